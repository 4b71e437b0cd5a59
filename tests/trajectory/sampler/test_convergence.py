"""When chains are said to agree."""

from dataclasses import dataclass

import numpy as np

from kerneltrail.trajectory.sampler.convergence import worst_rhat
from kerneltrail.trajectory.settings import Settings

A, B, C = ((1, 1, 1),), ((1, 1, 2),), ((1, 2, 1),)


@dataclass(frozen=True)
class Seen:
    visited: tuple
    log_joint: tuple


def chain(paths, seed):
    order = np.random.default_rng(seed).permutation(np.arange(80) % 2)
    return Seen(tuple(paths[i] for i in order), (0.0,) * 80)


def test_agreement_is_with_the_structure_that_the_margins_own_rule_chooses():
    """Both chains are as near to A; one is far from C, which is chosen where the prior counts against it."""
    chains = [chain((A, B), 0), chain((A, C), 1)]
    assert worst_rhat(chains, 0.5) < 1.1
    assert worst_rhat(chains, 0.5, lambda paths: 0.0) == worst_rhat(chains, 0.5)
    assert worst_rhat(chains, 0.5, {A: 0.0, B: 0.0, C: -10.0}.__getitem__) > 1.3


def test_chains_that_never_stop_early_are_judged_by_the_usual_limit():
    assert Settings.published().rhat < Settings.published().agreed == Settings().agreed == Settings().rhat
    assert Settings(rhat=1.2).agreed == 1.2
