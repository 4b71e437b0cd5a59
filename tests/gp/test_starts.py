"""Where searches start: spread over the prior, apart from each other, and at other periods, noises and lengthscales."""

from itertools import product

import numpy as np
import pytest

from kerneltrail.gp.starts import (
    APART,
    GRIDS,
    LITTLE,
    MUCH,
    SHORT,
    KnownPoints,
    best_apart,
    other_explanations,
    other_periods,
    spread_points,
)
from kerneltrail.kernels import layout_of, parse

KERNEL = parse("LIN[x]*PER[x] + PER[z] + SE[x]")
PERIODS = [i for i, slot in enumerate(layout_of(KERNEL).slots) if slot.spec.kind == "period"]


def rng(seed=0):
    return np.random.default_rng(seed)


def test_periods_are_spread_evenly_and_half_of_the_points_vary_nothing_else():
    points = spread_points(KERNEL, rng(), 40)
    others = [i for i in range(points.shape[1]) if i not in PERIODS]
    assert (points[:20, others] == 0.0).all()
    assert (points[20:, others] != 0.0).all()
    for i in PERIODS:
        assert len(np.unique(points[:, i])) == 40
        assert np.abs(points[:, i]).max() <= 2.5
        assert (points[:, i] < 0.0).sum() == 20
    assert (spread_points(parse("SE[x]"), rng(), 5)[0] == 0.0).all()


def test_the_best_apart_are_those_a_plain_loop_picks():
    draw = rng(1)
    points, values = draw.normal(0.0, 0.3, (50, 2)), draw.random(50)
    values[7] = np.inf
    chosen = best_apart(points, values, 6)
    expected = []
    for i in sorted(range(50), key=lambda i: values[i]):
        if len(expected) < 6 and all(max(abs(points[i] - points[j])) > APART for j in expected):
            expected.append(i)
    assert chosen == expected
    # Too few of them apart: the next best of the others. None that is finite: the first ones.
    assert best_apart(np.zeros((3, 1)), np.array([2.0, 1.0, np.inf]), 3) == [1, 0]
    assert best_apart(np.zeros((3, 1)), np.full(3, np.inf), 2) == [0, 1]


def test_other_periods_change_one_period_and_what_goes_with_it():
    w = rng(2).normal(size=layout_of(KERNEL).size)
    points = other_periods(w, KERNEL, rng(), 20)
    assert len(points) == 20 * len(PERIODS)
    slots = layout_of(KERNEL).slots
    for n, i in enumerate(PERIODS):
        part = points[20 * n : 20 * (n + 1)]
        changed = {j for j in range(len(w)) if (part[:, j] != w[j]).any()}
        assert i in changed
        assert {slots[j].name.rpartition(".")[2] for j in changed} == {"period", "lengthscale"}
        assert {slots[j].product for j in changed} == {slots[i].product}
        assert len({j for j in changed if (part[:10, j] != w[j]).any()}) == 1


def test_points_are_added_with_what_is_known_of_them():
    known = KnownPoints(np.zeros((2, 3)), np.zeros((2, 4)))
    known.add(np.ones((1, 3)), np.ones((1, 4)), 2.0 * np.eye(3))
    assert (known.points.shape, known.values.shape, np.shape(known.inverse)) == ((3, 3), (3, 4), (3, 3, 3))
    np.testing.assert_array_equal([inverse[0, 0] for inverse in known.inverse], [1.0, 1.0, 2.0])


@pytest.mark.parametrize(("noise", "other_noise"), [(0.4, LITTLE), (-1.6, MUCH)])
@pytest.mark.parametrize(("length", "other_length"), [(0.1, SHORT), (-0.9, MUCH)])
def test_other_explanations_are_those_of_plain_loops(noise, other_noise, length, other_length):
    kernel = parse("LIN[x]*PER[x] + LIN[z] + SE[x]")
    names = [slot.name for slot in layout_of(kernel).slots]
    w = rng(2).normal(size=len(names))
    w[names.index("noise")] = noise
    w[names.index("LIN[x]*PER[x]: PER[x].lengthscale")] = length
    expected = set()

    def add(changes):
        expected.add(tuple((dict(zip(names, w.tolist(), strict=True)) | changes).values()))

    for level in (noise, other_noise):
        for location in GRIDS["location"]:
            add({"LIN[x]*PER[x]: LIN[x].location": location, "noise": level})
        for lengthscale in GRIDS["lengthscale"]:
            add({"SE[x].lengthscale": lengthscale, "noise": level})
        for period, beside in product(GRIDS["period"], (length, other_length)):
            changes = {"LIN[x]*PER[x]: PER[x].period": period, "LIN[x]*PER[x]: PER[x].lengthscale": beside}
            add(changes | {"noise": level})
    points = other_explanations(w, kernel)
    assert {tuple(point) for point in points.tolist()} == expected
    assert len(points) == len(expected)


def test_a_kernel_with_one_mode_has_no_other_explanation():
    for text in ("", "LIN[x]", "LIN[x] + LIN[z]"):
        k = len(layout_of(parse(text)).slots)
        assert other_explanations(np.zeros(k), parse(text)).shape == (0, k)
