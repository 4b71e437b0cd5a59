"""Whatever takes arrays refuses what is not real and finite, and says what and where."""

from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.data.arrays import real_numbers
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import (
    LinearBlock,
    OnlineState,
    Posterior,
    Reward,
    evidence,
    find_map,
    find_map_path,
    log_evidence,
    prior_only,
)  # fmt: skip
from kerneltrail.kernels import Hyperparameters, Priors, parse

KERNEL = parse("SE[x] + LIN[x]")
H = Hyperparameters.from_values(KERNEL, [1.0, 0.0, 1.0, 0.5, 0.1])
X = np.array([[0.0], [0.5], [1.0]])
Y = np.array([1.0, 2.0, 0.0])

STRANGE = {
    "complex": (lambda a: a + 1j, "complex numbers"),
    "complex without imaginary part": (lambda a: a.astype(complex), "complex numbers"),
    "dates": (lambda a: a.astype("datetime64[D]"), "dates"),
    "durations": (lambda a: a.astype("timedelta64[s]"), "durations"),
    "text": (lambda a: a.astype(str), "text"),
    "bytes": (lambda a: a.astype("S"), "text"),
    "objects": (lambda a: a.astype(object), "objects"),
    "records": (lambda a: a.view([("one", float)]), "values of type"),
}
MISSING = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def rows(**changes):
    return SimpleNamespace(**({"name": "ann", "covariates": ("x",), "X": X, "y": Y, "ends": (3,)} | changes))


def fitted(block=None):
    return Posterior.fit(rows(), H, block=block)


def started(**options):
    return OnlineState.start(H, ("x",), low=0.0, high=1.0, **options).update(X, Y)


THETA = H.vector
BLOCK = LinearBlock(np.ones((3, 1)), np.eye(1), ("one",))
TAKERS = {
    "log_evidence, covariates": (X, "user 'ann': covariates", lambda a: log_evidence(rows(X=a), KERNEL, THETA)),
    "log_evidence, target": (Y, "user 'ann': target", lambda a: log_evidence(rows(y=a), KERNEL, THETA)),
    "log_evidence, hyperparameters": (THETA, "hyperparameters of", lambda a: log_evidence(rows(), KERNEL, a)),
    "evidence": (X, "user 'ann': covariates", lambda a: evidence(rows(X=a), KERNEL, THETA)),
    "find_map": (
        X, "user 'ann': covariates",
        lambda a: find_map(rows(X=a), KERNEL, Priors.synthetic(), rng=np.random.default_rng(0)),
    ),
    "find_map, a warm start": (
        THETA, "hyperparameters of",
        lambda a: find_map(rows(), KERNEL, Priors.synthetic(), rng=np.random.default_rng(0), starts=0, warm=[a]),
    ),
    "find_map_path": (
        Y, "user 'ann': target",
        lambda a: find_map_path(rows(y=a), KERNEL, Priors.synthetic(), rng=np.random.default_rng(0)),
    ),
    "fit": (X, "user 'ann': covariates", lambda a: Posterior.fit(rows(X=a), H)),
    "predict": (X, "rows|x of row", lambda a: fitted().predict(a)),
    "covariance": (X, "rows|x of row", lambda a: fitted().covariance(a)),
    "components": (X, "rows|x of row", lambda a: fitted().components(a)),
    "sample": (X, "rows|x of row", lambda a: fitted().sample(a, 2, np.random.default_rng(0))),
    "advantage": (X, "rows|x of row", lambda a: fitted().advantage(a, Reward())),
    "grow": (X, "rows|x of row", lambda a: fitted().grow(a, Y)),
    "grow, target": (Y, "targets", lambda a: fitted().grow(X, a)),
    "predict, block": (np.ones((3, 1)), "linear=", lambda a: fitted(BLOCK).predict(X, linear=a)),
    "predict before any row": (X, "rows|x of row", lambda a: prior_only(H, ("x",)).predict(a)),
    "log_density": (Y, "targets|target of row", lambda a: fitted().predict(X).log_density(a)),
    "online": (X, "rows|x of row", lambda a: started().predict(a)),
    "online, components": (X, "rows|x of row", lambda a: started().components(a)),
    "online, update": (X, "rows|x of row", lambda a: started().update(a, Y)),
    "online, target": (Y, "targets", lambda a: started().update(X, a)),
    "online, box": (np.zeros(1), "low", lambda a: OnlineState.start(H, ("x",), low=a, high=1.0)),
    "online, prior": (np.eye(1), "linear=", lambda a: OnlineState.start(H, ("x",), low=0.0, high=1.0, linear=a)),
    "block": (np.ones((3, 1)), r"linear block \(one\)", lambda a: LinearBlock(a, np.eye(1), ("one",))),
    "block, prior": (np.eye(1), r"linear block \(one\)", lambda a: LinearBlock(np.ones((3, 1)), a, ("one",))),
    "action": (Y, "the action", lambda a: Reward().block(X, ("x",), a)),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("taker", TAKERS)
def test_what_is_not_real_is_refused_by_name(taker, kind):
    array, what, call = TAKERS[taker]
    make, noun = STRANGE[kind]
    with pytest.raises(DataError, match=f"({what}).*must hold numbers, not {noun}"):
        call(make(array.astype(float)))


@pytest.mark.parametrize("bad", MISSING)
@pytest.mark.parametrize("taker", sorted(set(TAKERS) - {"action"}))
def test_what_is_not_finite_is_refused_by_name(taker, bad):
    array, what, call = TAKERS[taker]
    spoilt = np.array(array, dtype=float)
    spoilt[(-1,) * spoilt.ndim] = MISSING[bad]
    told = "noise of" if what == "hyperparameters of" else what
    with pytest.raises(ValueError, match=told) as caught:  # DataError, or KernelError of hyperparameters
        call(spoilt)
    assert any(word in str(caught.value) for word in ("finite", "is nan in vector", "inf in vector"))
    if taker in ("log_evidence, covariates", "fit", "find_map"):
        assert "covariates: x of row 2 is not finite" in str(caught.value)


def test_the_place_of_what_is_no_number_is_told():
    with pytest.raises(DataError, match=r"rows must hold numbers, not text \('much' at \(1, 0\)\)"):
        fitted().predict(np.array([[1.0], ["much"]], dtype=object))
    with pytest.raises(DataError, match="rows must hold numbers \\("):
        fitted().predict([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.longdouble])
def test_every_real_type_is_taken_and_copied(dtype):
    given = np.array([[0, 1], [1, 1]]).astype(dtype)
    found = real_numbers(given, "it")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[0.0, 1.0], [1.0, 1.0]])
    assert not np.shares_memory(found, given)


STATIONARY = Hyperparameters.from_values(parse("SE[x] + PER[x]"), [2.0, 0.5, 1.0, 1.0, 0.3, 0.1])


@pytest.mark.parametrize("far", [1e30, 1e200, 1e300, -1.7e308])
def test_far_away_a_stationary_kernel_knows_no_more_than_before(far):
    alone = Hyperparameters.from_values(parse("SE[x]"), [2.0, 0.5, 0.1])
    found = Posterior.fit(rows(), alone).predict([[far]])
    assert (found.mean[0], found.variance[0]) == (0.0, 2.0)
    both = Posterior.fit(rows(), STATIONARY).predict([[max(far, -1e300)]])
    assert np.isfinite(both.mean).all()
    assert 2.0 <= both.variance[0] <= 3.0


@pytest.mark.parametrize("state", ["posterior", "prior", "online"])
def test_a_line_past_all_numbers_is_refused_with_its_column(state):
    line = Hyperparameters.from_values(parse("LIN[x]"), [1.0, 0.5, 0.1])
    model = {
        "posterior": Posterior.fit(rows(), line),
        "prior": prior_only(line, ("x",)),
        "online": OnlineState.start(line, ("x",), low=0.0, high=1.0).update(X, Y),
    }[state]
    assert model.predict([[1e100]]).variance[0] > 1e190
    for call in (model.predict, model.components):
        with pytest.raises(NumericalError, match=r"LIN\[x\] at row 1 is past all numbers: x is 1e\+300"):
            call([[0.5], [1e300]])


def test_rows_past_all_numbers_are_refused_by_name():
    with pytest.raises(NumericalError, match=r"LIN\[x\] for user 'ann'.*over- or underflowed"):
        log_evidence(rows(X=1e300 * X), parse("LIN[x]"), [0.0, 0.0, 0.0])
    with pytest.raises(NumericalError, match=r"LIN\[x\] for user 'ann'.*over- or underflowed"):
        Posterior.fit(rows(X=1e300 * X), Hyperparameters.from_values(parse("LIN[x]"), [1.0, 0.5, 0.1]))


def test_an_advantage_past_all_numbers_is_refused_with_its_column():
    reward = Reward(("x",))
    block = reward.block(X, ("x",), [0, 1, 1])
    with pytest.raises(NumericalError, match="at row 0 is past all numbers: x is 1e\\+300"):
        Posterior.fit(rows(), H, block=block).advantage([[1e300]], reward)
