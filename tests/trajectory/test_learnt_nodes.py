"""Structures averaged: expected transitions by plain loops, and what is left out."""

import numpy as np
import pytest

from kerneltrail.trajectory import ROOT, State
from kerneltrail.trajectory.learnt_nodes import average_of, nodes_of
from kerneltrail.trajectory.sampler.urn import transitions

from .tiny import LIN, PER, SE, table

BOTH = LIN | PER
NAMES = ("a", "b", "c")
SAMPLES = [
    *[State(((LIN, BOTH), (SE, SE), (LIN, LIN)), -1.0)] * 3,
    *[State(((SE, BOTH), (SE, SE), (LIN, BOTH)), -2.0)] * 2,
    State(((PER, PER), (SE, SE), (LIN, LIN)), -1.5),
]
CHOSEN = SAMPLES[0].paths


@pytest.fixture(scope="module")
def fits():
    return table(3)


def expected_step(parent, child):
    return sum(
        sum(step == (parent, child) for path in state.paths for step in transitions(path)) for state in SAMPLES
    ) / len(SAMPLES)


def test_counts_are_averages_over_the_samples(fits):
    nodes = nodes_of(fits, CHOSEN, NAMES)
    average = average_of(fits, SAMPLES, nodes, NAMES)
    masks = [node.mask for node in (*nodes, *average.nodes)]
    assert masks == [LIN, SE, BOTH, PER]
    for i, parent in enumerate([ROOT, *masks]):
        for j, child in enumerate(masks):
            assert average.counts[i, j] == pytest.approx(expected_step(parent, child))
    assert average.counts[0].sum() == pytest.approx(3.0)  # everybody leaves the root once
    assert average.cut == 0.0


def test_a_node_of_another_structure_has_that_structures_group(fits):
    nodes = nodes_of(fits, CHOSEN, NAMES)
    (other,) = average_of(fits, SAMPLES, nodes, NAMES).nodes
    group = fits.group(PER, [(0, 1)])
    assert other.users == ("a",)
    np.testing.assert_array_equal(other.group.mean, group.mean)
    np.testing.assert_array_equal(other.group.variance, group.variance)


def test_what_is_rare_or_too_much_is_left_out_and_its_share_is_stated(fits):
    nodes = nodes_of(fits, CHOSEN, NAMES)
    few = average_of(fits, SAMPLES, nodes, NAMES, most=3)
    assert few.nodes == ()
    assert few.counts.shape == (4, 3)
    assert few.cut == pytest.approx(2 / 6 / 6)  # two of six batches, in one of six samples
    seldom = [SAMPLES[0]] * 99 + [State(((PER, BOTH), (SE, SE), (LIN, LIN)), -9.0)]
    rare = average_of(fits, seldom, nodes, NAMES)
    assert rare.nodes == ()
    assert rare.cut == pytest.approx(1 / 600)


def test_one_structure_alone_is_itself(fits):
    nodes = nodes_of(fits, CHOSEN, NAMES)
    average = average_of(fits, SAMPLES[:3], nodes, NAMES)
    assert (average.nodes, average.cut) == ((), 0.0)
    np.testing.assert_array_equal(average.counts, [[2, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]])
