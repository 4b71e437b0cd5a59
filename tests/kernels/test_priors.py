"""Priors: the numbers of method §3.1, overrides, refusals and samples."""

import copy
import pickle

import numpy as np
import pytest

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Composition, Prior, Priors, log_normal, normal, parse

# method §3.1: (mean, variance) in the unconstrained space.
TABLE = {
    "synthetic": {
        "lengthscale": (0.0, 0.5),
        "amplitude": (1.0, 0.5),
        "period": (1.0, 0.5),
        "location": (0.0, 0.1),
        "noise": (0.0, 0.5),
    },
    "heartsteps": {
        "lengthscale": (-1.0, 0.75),
        "amplitude": (0.5, 0.75),
        "period": (-1.0, 0.75),
        "location": (0.0, 0.1),
        "noise": (1.0, 0.75),
    },
}


@pytest.mark.parametrize("preset", TABLE)
def test_presets_are_the_papers_numbers(preset):
    priors = getattr(Priors, preset)()
    assert {kind: (prior.mean, prior.variance) for kind, prior in priors.by_kind.items()} == TABLE[preset]
    assert {kind for kind, prior in priors.by_kind.items() if prior.family == "Normal"} == {"location"}


@pytest.mark.parametrize("build", [normal, log_normal])
def test_the_spread_is_named_and_only_once(build):
    assert build(1.0, scale=0.5) == build(1.0, variance=0.25)
    with pytest.raises(TypeError):
        build(1.0, 0.5)
    for wrong in ({}, {"variance": 1.0, "scale": 1.0}):
        with pytest.raises(KernelError, match="either variance= or scale="):
            build(1.0, **wrong)


@pytest.mark.parametrize(
    ("mean", "spread"),
    [
        (0.0, {"variance": 0.0}),
        (0.0, {"variance": -1.0}),
        (0.0, {"scale": -1.0}),
        (0.0, {"scale": 0.0}),
        (0.0, {"variance": float("inf")}),
        (float("nan"), {"variance": 1.0}),
    ],
)
def test_improper_priors_are_refused(mean, spread):
    with pytest.raises(KernelError):
        log_normal(mean, **spread)


def test_moments_follow_the_layout():
    mean, variance = Priors.heartsteps().moments(parse("LIN[a] + PER[h]*SE[t]"))
    np.testing.assert_array_equal(mean, [0.5, 0.0, 0.5, -1.0, -1.0, -1.0, 1.0])
    np.testing.assert_array_equal(variance, [0.75, 0.1, 0.75, 0.75, 0.75, 0.75, 0.75])


def test_overrides_hold_for_their_covariate_only():
    priors = Priors.synthetic().override("lengthscale", "hour", log_normal(2.0, scale=0.1))
    mean, _ = priors.moments(parse("SE[hour]*SE[t]"))
    np.testing.assert_array_equal(mean, [1.0, 2.0, 0.0, 0.0])
    assert priors.of("lengthscale") == priors.of("lengthscale", "t") == log_normal(0.0, variance=0.5)
    everywhere = priors.override("lengthscale", None, log_normal(3.0, scale=0.1))
    np.testing.assert_array_equal(everywhere.moments(parse("SE[hour]*SE[t]"))[0], [1.0, 2.0, 3.0, 0.0])
    assert Priors.synthetic().moments(parse("SE[hour]"))[0][1] == 0.0  # the original is as it was
    assert priors.of("smoothness") is None


@pytest.mark.parametrize("kind", ["amplitude", "noise"])
def test_overrides_that_could_never_apply_are_refused(kind):
    with pytest.raises(KernelError, match="belongs to no covariate"):
        Priors.synthetic().override(kind, "hour", log_normal(0.0, scale=1.0))


def test_the_wrong_family_is_refused_with_the_remedy():
    with pytest.raises(KernelError, match=r"prior of SE\[x\].lengthscale is a Normal.*use log_normal"):
        Priors.synthetic().override("lengthscale", None, normal(0.0, scale=1.0)).moments(parse("SE[x]"))
    with pytest.raises(KernelError, match=r"prior of LIN\[x\].location is a LogNormal.*use normal"):
        Priors.synthetic().override("location", "x", log_normal(0.0, scale=1.0)).moments(parse("LIN[x]"))


def test_what_the_priors_do_not_name_falls_back_to_the_atoms_own():
    mean, variance = Priors({}).moments(parse("LIN[x]"))
    np.testing.assert_array_equal(mean, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(variance, [0.5, 0.1, 0.5])


def test_sample_moments():
    composition, size = parse("LIN[x] + PER[x]"), 20_000
    priors = Priors.heartsteps()
    draws = priors.sample(composition, size, np.random.default_rng(0))
    mean, variance = priors.moments(composition)
    assert draws.shape == (size, len(mean))
    # Five standard errors on each of 12 moments of a fixed seed: a false alarm once in some 100,000 seeds.
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / size))
    assert np.all(np.abs(draws.var(axis=0) / variance - 1.0) < 5 * np.sqrt(2.0 / size))
    assert np.abs(np.corrcoef(draws.T) - np.eye(len(mean))).max() < 5 / np.sqrt(size)
    assert priors.sample(Composition(), 3, np.random.default_rng(0)).shape == (3, 1)


def test_priors_are_values():
    one, two = Priors.synthetic(), Priors.synthetic()
    assert one == two
    assert hash(one) == hash(two)
    assert one != Priors.heartsteps()
    override = one.override("period", "hour", log_normal(0.0, scale=1.0))
    for again in (pickle.loads(pickle.dumps(override)), copy.deepcopy(override)):
        assert again == override
        assert hash(again) == hash(override)
    with pytest.raises(TypeError):
        one.by_kind["noise"] = Prior("LogNormal", 0.0, 1.0)
