"""Plate on a flat target: the right sizes, and what the ratio upside down would give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kerneltrail.kernels import Pool
from kerneltrail.trajectory import Joint, Urn
from kerneltrail.trajectory.sampler.moves import Plate
from kerneltrail.trajectory.sampler.proposals import Toggle
from support.sampling import FixedEvidence
from trajectory.enumerator import Uniforms, install, outcomes, plain_moves

ATOMS = tuple(f"SE[x{i}]" for i in range(8))


def size_chain(joint, step):
    """Transition matrix between numbers of products; all compositions of one size are alike on a flat target."""
    size = len(joint.urn.pool)
    matrix = np.zeros((size + 1, size + 1))
    for n in range(0 if joint.urn.pool.allow_empty else 1, size + 1):
        paths = (((1 << n) - 1,),)
        for probability, result in outcomes(lambda r, p=paths: step(r, p[0][0])):
            matrix[n, result.bit_count()] += probability
    return matrix


def stationary(matrix):
    legal = matrix.sum(axis=1) > 0
    start = legal / legal.sum()
    return start @ np.linalg.matrix_power(matrix, 1 << 20)


@pytest.mark.parametrize("empty", [False, True])
def test_a_flat_target_gives_binomial_sizes(empty):
    joint = Joint(Urn(Pool.of(*ATOMS, probability=0.5).with_empty(empty)), FixedEvidence.flat([1]))
    moves, target, masks = plain_moves(), joint.target, joint.book.masks

    def step(script, mask):
        tally = moves.tally_of(target, np.array([joint.book.index[mask]]))
        shift, block = np.zeros_like(tally.counts), np.empty_like(tally.codes)
        moves.replate(target, tally, False, shift, block, Uniforms(script))
        return masks[tally.codes[0]]

    sizes = stationary(size_chain(joint, step))
    binomial = np.array([math.comb(8, n) for n in range(9)], dtype=float)
    binomial[0] *= empty
    np.testing.assert_allclose(sizes, binomial / binomial.sum(), atol=1e-8)
    assert sizes @ np.arange(9) == pytest.approx(4.0 if empty else 4.0 * 256 / 255, abs=1e-7)


@pytest.mark.parametrize(("empty", "mean"), [(True, 0.23), (False, 1.44)])
def test_the_ratio_upside_down_would_favour_tiny_compositions(empty, mean, monkeypatch):
    """method §14: an accidental sparsity prior. The authors' code, which treats the edges differently, gives 0.19."""
    joint = Joint(Urn(Pool.of(*ATOMS, probability=0.5).with_empty(empty)), FixedEvidence.flat([1]))
    install(monkeypatch)
    toggle = Toggle.of(joint.urn.pool)

    def step(rng, mask):
        proposal, log_q = toggle.propose(rng, mask)
        p = math.exp(min(0.0, -log_q))
        return proposal if rng.decide([p, 1.0 - p]) == 0 else mask

    assert stationary(size_chain(joint, step)) @ np.arange(9) == pytest.approx(mean, abs=0.005)


def test_a_self_transition_chain_is_no_table_that_could_come_back():
    """K→K→K within one user: proposing k' for both would put the second into restaurant k'. It must not be accepted."""
    keen = FixedEvidence([3], lambda user, mask: [100.0 * (mask == 3)] * 3)  # so that all that may be accepted is
    joint = Joint(Urn(Pool.of(*ATOMS[:2], probability=0.5), alpha=1e-6), keen)
    rng, accepted = np.random.default_rng(0), 0
    for _ in range(200):  # with so small a mass, the two self transitions always share their table
        state, info = Plate(joint, steps=1)(rng, joint.state(((1, 1, 1),)))
        accepted += info.accepted
        assert state.paths == (((3, 1, 1),) if info.accepted else ((1, 1, 1),))
    assert 50 < accepted < 150  # every second group is the first customer's
