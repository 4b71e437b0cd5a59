"""Geweke's joint test: paths and data drawn in turn, each given the other, must have the prior's distribution.

J. Geweke (2004), "Getting it right: joint distribution tests of posterior simulators", JASA 99. The data of a customer
are one of three symbols, with a known probability under each composition.
"""

from __future__ import annotations

import numpy as np
import pytest

from kerneltrail.trajectory import EXACT, PUBLISHED, Joint, Sweep
from kerneltrail.trajectory.sampler import bulk_ess
from support.exactness import enumerate_joint, tiny_problem
from support.sampling import FixedEvidence, draw_prior

CUSTOMERS = (3, 2)
LIKELIHOOD = np.random.default_rng(0).dirichlet(
    [0.7, 0.7, 0.7], size=4
)  # p(symbol | composition), composition 0 unused


def statistics(paths):
    flat = [mask for path in paths for mask in path]
    return (
        len(set(flat)),
        sum(mask.bit_count() for mask in flat),
        paths[0][0] == paths[1][0],
        paths[0][1] == paths[0][2],
        paths[0][2] == 3,
        paths[1][1] == 1,
    )


def scores(moves, keep, sweeps, seed, options=None):
    """How many standard errors each statistic's mean is from its exact expectation under the prior."""
    prior = tiny_problem(0, CUSTOMERS, products=2, spread=0.0, keep=keep)
    exact = enumerate_joint(prior)
    expected = sum(p * np.array(statistics(paths), dtype=float) for paths, p in exact.items())
    rng = np.random.default_rng(seed)
    state = draw_prior(prior, rng)
    sweep = Sweep(prior, moves, options or {})
    seen = []
    for _ in range(sweeps):
        symbols = [[rng.choice(3, p=LIKELIHOOD[mask]) for mask in path] for path in state.paths]
        table = {(m, k): np.log(LIKELIHOOD[k, mine]) for m, mine in enumerate(symbols) for k in (1, 2, 3)}
        joint = Joint(prior.urn, FixedEvidence(CUSTOMERS, table))
        state, _ = sweep.on(joint).step(rng, joint.state(state.paths))
        seen.append(statistics(state.paths))
    draws = np.array(seen, dtype=float)
    errors = [draws[:, i].std() / np.sqrt(bulk_ess(draws[None, :, i])) for i in range(draws.shape[1])]
    return (draws.mean(axis=0) - expected) / np.array(errors)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 0.8])
def test_the_exact_sweep_gets_it_right(keep):
    """Six statistics at |z| < 4: false alarms in fewer than one of 2,500 seeds."""
    assert np.abs(scores(EXACT, keep, 4_000, seed=1)).max() < 4.0


@pytest.mark.slow
def test_it_would_see_the_hastings_ratio_upside_down():
    """The test has power: same length, with the mistake of the authors' code (method §14)."""
    upside_down = {"published_plate": {"inverted": True}}
    assert np.abs(scores(PUBLISHED, None, 4_000, seed=1, options=upside_down)).max() > 6.0
