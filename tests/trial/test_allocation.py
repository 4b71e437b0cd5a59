"""Allocation rules (method §15.1) against integrals by brute force; probabilities within their limits, always."""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import erf, exp, log, pi, sqrt
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from kerneltrail import register
from kerneltrail.errors import DataError
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.trial.allocation import (
    ALLOCATIONS,
    NEAR,
    PRESETS,
    Allocation,
    ClippedThompson,
    EpsilonMix,
    Fixed,
    HeartStepsV2,
    Limits,
    SmoothLogistic,
    SmoothProbit,
    allocation_of,
)

UNIT = "target unit"
EVERY = [
    SmoothProbit(slope=8.0, per=UNIT),
    SmoothLogistic(slope=8.0, per=UNIT),
    ClippedThompson(),
    HeartStepsV2(),
    EpsilonMix(),
    Fixed(),
]


def mixture(weights, means, variances):
    return NormalMixture(weights, np.array(means)[:, None], np.array(variances)[:, None])


def normal(x):
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


def logistic(x):
    return 1.0 / (1.0 + exp(-x)) if x > -700 else 0.0


def expected(curve, parts, middle):
    """E[curve(x)] over a mixture by adaptive quadrature, part by part, split where the curve is steep."""
    total = 0.0
    for weight, mean, variance in zip(parts.weights, parts.means[:, 0], parts.variances[:, 0], strict=True):
        sd = sqrt(variance)
        if sd == 0.0:
            total += weight * curve(mean)
            continue
        density = lambda x, m=mean, s=sd: exp(-0.5 * ((x - m) / s) ** 2) / (s * sqrt(2 * pi))  # noqa: E731
        low, high = mean - 10 * sd, mean + 10 * sd
        cuts = [min(max(middle + step, low), high) for step in (-1e-1, -1e-2, -1e-3, 0, 1e-3, 1e-2, 1e-1)]
        edges = sorted({low, *cuts, mean, high})
        for a, b in pairwise(edges):
            total += weight * integrate.quad(lambda x, d=density: curve(x) * d(x), a, b, epsabs=1e-11, limit=200)[0]
    return total


CASES = [
    mixture([1.0], [0.3], [0.04]),
    mixture([0.5, 0.5], [1.0, -0.1], [0.01, 0.01]),
    mixture([0.2, 0.3, 0.5], [-2.0, 0.05, 0.4], [4.0, 1e-4, 0.0]),
    mixture([0.9, 0.1], [0.1, 30.0], [100.0, 1e-8]),
    mixture([1.0], [-0.02], [0.0]),
]


@pytest.mark.parametrize("slope", [0.5, 8.0, 60.0, 400.0])
@pytest.mark.parametrize("parts", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("delta", [0.0, 0.15])
def test_smooth_rules_are_the_expected_curve(slope, parts, delta):
    """400 per unit at a standard deviation of 10 is past the slope at which the curve is taken for a step."""
    middle = delta + log(3.0) / slope
    curves = {
        SmoothProbit: lambda x: normal((slope * (x - delta) - log(3.0)) / NEAR),
        SmoothLogistic: lambda x: logistic(slope * (x - delta) - log(3.0)),
    }
    for rule, curve in curves.items():
        answer = rule(slope=slope, per=UNIT).allocate(parts, delta)
        share = expected(curve, parts, middle)
        assert answer.raw == pytest.approx(share, abs=1e-6)
        assert answer.probability == pytest.approx(0.2 + 0.6 * share, abs=1e-6)


def test_the_logistic_sum_is_exact_wherever_its_grid_changes():
    """Slopes times standard deviation from flat to a step, against a sum of a million points."""
    z = np.linspace(-8.5, 8.5, 1_000_001)
    weights = np.exp(-0.5 * z**2)
    for steepness in (0.1, 5.0, 24.9, 25.1, 100.0, 1000.0, 2499.0, 2501.0, 1e4):
        for mean in (-1.0, 0.0, 0.013, 2.0):
            found = SmoothLogistic(slope=steepness, per=UNIT).allocate(mixture([1.0], [mean], [1.0])).raw
            dense = weights @ (0.5 + 0.5 * np.tanh(0.5 * (steepness * (mean + z) - log(3.0)))) / weights.sum()
            assert found == pytest.approx(dense, abs=1e-6), (steepness, mean)


def test_rules_of_the_probability_that_acting_helps_count_it_for_the_mixture():
    for parts in CASES:
        for delta in (0.0, 0.15):
            helps = sum(
                w * (normal((m - delta) / sqrt(v)) if v > 0 else float(m > delta) + 0.5 * (m == delta))
                for w, m, v in zip(parts.weights, parts.means[:, 0], parts.variances[:, 0], strict=True)
            )
            assert ClippedThompson().allocate(parts, delta).raw == pytest.approx(helps, abs=1e-12)
            assert ClippedThompson().allocate(parts, delta).probability == pytest.approx(min(max(helps, 0.2), 0.8))
            line = min(0.8, 0.2 + max(helps - 0.5, 0.0) * 0.8 / 0.5)
            assert HeartStepsV2().allocate(parts, delta).probability == pytest.approx(line, abs=1e-12)
            mixed = EpsilonMix(epsilon=0.3).allocate(parts, delta)
            assert mixed.raw == pytest.approx(0.7 * helps + 0.15, abs=1e-12)
            assert Fixed(p=0.35).allocate(parts, delta).probability == 0.35


def test_ten_thousand_random_posteriors_stay_within_the_limits():
    rng = np.random.default_rng(4)
    for trial in range(10_000):
        size = rng.integers(1, 5)
        means = rng.standard_normal(size) * 10.0 ** rng.integers(-12, 13)
        variances = rng.exponential(size=size) * 10.0 ** rng.integers(-20, 21)
        variances[rng.random(size) < 0.2] = 0.0
        means[rng.random(size) < 0.05] = rng.choice([-1e308, 1e308, 0.0])
        lower, upper = np.sort(rng.uniform(0.001, 0.999, 2))
        rule = EVERY[trial % 5]  # all but the fixed one
        rule = replace(rule, limits=Limits(float(lower), float(upper)))
        answer = rule.allocate(mixture(rng.dirichlet(np.ones(size)), means, variances), rng.standard_normal())
        assert lower <= answer.probability <= upper
        assert np.isfinite(answer.raw)


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_name(rule, bad):
    with pytest.raises(DataError, match="mean of the advantage under kernel 2 of 2 is"):
        rule.allocate(mixture([0.5, 0.5], [0.0, bad], [1.0, 1.0]))
    with pytest.raises(DataError, match="variance of the advantage under kernel 1 of 2 is"):
        rule.allocate(mixture([0.5, 0.5], [0.0, 1.0], [bad, 1.0]))
    with pytest.raises(DataError, match="delta"):
        rule.allocate(CASES[0], bad)
    with pytest.raises(DataError, match="one context, got 2"):
        rule.allocate(NormalMixture([1.0], [[0.0, 1.0]], [[1.0, 1.0]]))


def test_a_negative_variance_is_refused():
    with pytest.raises(DataError, match="variance of the advantage under kernel 1 of 1 is -1"):
        SmoothProbit(per=UNIT).allocate(mixture([1.0], [0.0], [-1.0]))


@given(st.floats(-5, 5), st.floats(0, 25), st.floats(0.1, 100))
def test_the_two_smooth_rules_are_alike(mean, variance, slope):
    parts = mixture([1.0], [mean], [variance])
    one, other = (rule(slope=slope, per=UNIT).allocate(parts) for rule in (SmoothProbit, SmoothLogistic))
    assert abs(one.raw - other.raw) < 0.0095


@pytest.mark.parametrize("rule", [SmoothProbit(slope=9.0, per=UNIT), SmoothLogistic(slope=9.0, per=UNIT)])
def test_more_advantage_is_more_probable_and_doubt_draws_to_the_middle(rule):
    chances = [rule.allocate(mixture([1.0], [m], [0.1])).probability for m in np.linspace(-2, 2, 21)]
    assert (np.diff(chances) > 0).all()
    sure, unsure = (rule.allocate(mixture([1.0], [0.6], [v])).probability for v in (0.01, 4.0))
    assert unsure < sure


def test_a_slope_is_stated_per_noise_and_used_per_unit():
    stated = SmoothProbit()
    with pytest.raises(DataError, match="per noise sd; convert it"):
        stated.allocate(CASES[0])
    used = stated.in_units(0.5)
    assert (used.slope, used.per) == (20.0, UNIT)
    assert used.in_units(123.0) is used
    # Advantages and noise in other units, the same probability.
    scaled = mixture([1.0], [0.3 * 60], [0.04 * 3600])
    assert stated.in_units(30.0).allocate(scaled).probability == pytest.approx(used.allocate(CASES[0]).probability)
    assert ClippedThompson().in_units(3.0) == ClippedThompson()
    with pytest.raises(DataError, match="above 0, got 0"):
        stated.in_units(0.0)


def test_which_limit_a_probability_stands_at():
    rule = ClippedThompson()
    bounds = [rule.allocate(mixture([1.0], [m], [1.0])).bound for m in (-3.0, 0.0, 3.0)]
    assert bounds == ["lower", "none", "upper"]
    assert SmoothProbit(per=UNIT).allocate(mixture([1.0], [9.0], [0.0])).bound == "upper"
    assert HeartStepsV2().allocate(mixture([1.0], [-0.1], [1.0])).bound == "lower"
    assert Fixed(p=0.5, limits=Limits(0.5, 0.5)).allocate(CASES[0]).bound == "none"


def test_presets_are_the_published_ones():
    assert PRESETS["default"] == SmoothProbit(slope=10.0, odds_against=3.0, per="noise sd", limits=Limits(0.2, 0.8))
    for name, slope, odds in (("oralytics", 0.515, 3.0), ("miwaves", 10.53, 5.0)):
        rule = allocation_of(name)
        for x in (-1.0, 0.0, 0.4):
            published = 0.2 + 0.6 / (1.0 + odds * exp(-slope * x))
            assert rule.allocate(mixture([1.0], [x], [0.0])).probability == pytest.approx(published, abs=1e-12)
    assert allocation_of("heartsteps-v2") == HeartStepsV2()
    assert allocation_of("oralytics", Limits(0.1, 0.9), slope=1.0).to_json() == {
        "rule": "smooth-logistic", "slope": 1.0, "odds_against": 3.0, "per": UNIT, "lower": 0.1, "upper": 0.9,
    }  # fmt: skip


def test_wrong_names_and_parameters_are_refused():
    with pytest.raises(DataError, match="did you mean 'smooth-probit'"):
        allocation_of("smooth-probbit")
    with pytest.raises(DataError, match="no parameter 'slop'; did you mean 'slope'"):
        allocation_of("smooth-probit", slop=3.0)
    with pytest.raises(DataError, match="slope of the rule smooth-probit must be above 0"):
        allocation_of("smooth-probit", slope=-1.0)
    with pytest.raises(DataError, match="within the limits"):
        allocation_of("fixed", p=0.9)
    with pytest.raises(DataError, match=r"lies in \[0, 1\]"):
        allocation_of("epsilon-mix", epsilon=2.0)
    with pytest.raises(DataError, match="per 'noise sd'"):
        allocation_of("smooth-probit", per="week")


def test_a_rule_of_ones_own():
    @dataclass(frozen=True)
    class Always(Allocation):
        name: ClassVar[str] = "always"

        def raw(self, parts, delta):
            return 1.0

    register("allocation", "always", Always)
    try:
        assert allocation_of("always").allocate(CASES[0]).probability == 0.8
    finally:
        del ALLOCATIONS._things["always"]
