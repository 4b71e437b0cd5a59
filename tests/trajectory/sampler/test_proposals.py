from __future__ import annotations

import math

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory.sampler.proposals import Toggle
from trajectory.enumerator import install, outcomes


@pytest.mark.parametrize(("size", "smallest"), [(1, 0), (2, 0), (2, 1), (4, 0), (4, 1)])
def test_toggle_proposes_with_the_probability_it_says_and_returns_its_q_ratio(size, smallest, monkeypatch):
    install(monkeypatch)
    toggle = Toggle(size, smallest)
    for mask in range(1 << size):
        if mask.bit_count() < smallest:
            continue
        chances = dict.fromkeys(range(1 << size), 0.0)
        for probability, (proposal, log_q) in outcomes(lambda r, mask=mask: toggle.propose(r, mask)):
            chances[proposal] += probability
            assert log_q == toggle.log_prob(proposal, mask) - toggle.log_prob(mask, proposal)
            assert math.isfinite(log_q)  # everything proposed can be undone
        for proposal, chance in chances.items():
            assert chance == pytest.approx(math.exp(toggle.log_prob(mask, proposal)))


def test_the_papers_probabilities():
    """Appendix A.1: add for certain up to one product, never with all of them, else with probability 0.3."""
    toggle = Toggle.of(Pool.paper())
    assert [toggle.add_probability(n) for n in (1, 2, 7, 8)] == [1.0, 0.3, 0.3, 0.0]
    assert Toggle.of(Pool.paper().with_empty()).add_probability(0) == 1.0


def test_a_pool_of_one_product_has_nothing_to_propose():
    assert Toggle(1, 1).propose(np.random.default_rng(0), 1) == (1, 0.0)
