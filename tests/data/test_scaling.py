import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kerneltrail.data import Scaler, User
from kerneltrail.errors import DataError

numbers = st.floats(-1e9, 1e9, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-9 else v)
tables = st.integers(1, 8).flatmap(lambda n: arrays(np.float64, (n, 2), elements=numbers))


def user(X: np.ndarray, y: np.ndarray | None = None, name: str = "ann") -> User:
    return User(name, ("a", "b"), X, np.zeros(len(X)) if y is None else y, (len(X),))


@given(X=tables)
def test_fitted_rows_fall_into_the_unit_interval_and_come_back(X: np.ndarray) -> None:
    scaler = Scaler.fit(user(X))
    Z = scaler.transform(X)
    assert Z.min() >= 0.0
    assert Z.max() <= 1.0
    for column, z in zip(X.T, Z.T, strict=True):
        assert (z.min(), z.max()) == ((0.0, 1.0) if column.min() < column.max() else (0.0, 0.0))
    np.testing.assert_allclose(scaler.inverse(Z), X, rtol=1e-12, atol=1e-14 * np.abs(X).max() + 1e-300)


@given(fitted=tables, other=tables)
def test_other_rows_come_back_and_are_not_clipped(fitted: np.ndarray, other: np.ndarray) -> None:
    scaler = Scaler.fit(user(fitted))
    back = scaler.inverse(scaler.transform(other))
    size = max(np.abs(fitted).max(), np.abs(other).max(), 1e-300)
    np.testing.assert_allclose(back, other, rtol=0, atol=1e-14 * size)
    above = other > fitted.max(axis=0)
    assert np.all(scaler.transform(other)[above] > 0.0)


@given(X=tables, y=st.data())
def test_json_round_trip_is_exact(X: np.ndarray, y: st.DataObject) -> None:
    target = y.draw(arrays(np.float64, len(X), elements=numbers))
    scaler = Scaler.fit(user(X, target), target="standard")
    again = Scaler.from_json(json.loads(json.dumps(scaler.to_json())))
    assert again == scaler
    assert again.transform(X).tobytes() == scaler.transform(X).tobytes()
    assert again.transform_target(target).tobytes() == scaler.transform_target(target).tobytes()


@given(y=arrays(np.float64, st.integers(1, 20), elements=numbers))
def test_standard_target(y: np.ndarray) -> None:
    scaler = Scaler.fit(user(np.zeros((len(y), 2)), y), target="standard")
    z = scaler.transform_target(y)
    size = np.abs(y).max()
    np.testing.assert_allclose(scaler.inverse_target(z), y, rtol=0, atol=1e-13 * size + 1e-300)
    if np.ptp(y) > 1e-6 * size:
        np.testing.assert_allclose([z.mean(), z.std()], [0.0, 1.0], atol=1e-6)
        np.testing.assert_allclose(scaler.inverse_variance(z.var()), y.var(), rtol=1e-6)
    elif np.ptp(y) == 0.0:
        assert scaler.scale == 1.0


def test_hyperparameters_in_data_units() -> None:
    scaler = Scaler(("hour", "day"), (8.0, 5.0), (20.0, 5.0))
    assert scaler.length("hour", 0.5) == 6.0
    assert scaler.location("hour", 0.5) == 14.0
    assert scaler.scaled_length("hour", 6.0) == 0.5
    assert scaler.scaled_location("hour", 14.0) == 0.5
    assert scaler.length("day", 0.5) == 0.5, "a constant column has range 1"
    assert scaler.location("day", 0.0) == 5.0
    with pytest.raises(DataError, match="the scaler has no column 'hours'; did you mean 'hour'"):
        scaler.length("hours", 1.0)


def test_group_is_the_users_together() -> None:
    low, high = user(np.array([[0.0, 5.0]]), np.array([1.0]), "a"), user(np.array([[2.0, 5.0]]), np.array([3.0]), "b")
    group = Scaler.fit([low, high], target="standard")
    assert (group.low, group.high, group.shift, group.scale) == ((0.0, 5.0), (2.0, 5.0), 2.0, 1.0)
    assert Scaler.fit(low).high == (0.0, 5.0)
    assert Scaler.fit([low, high], ranges={"a": (0.0, 8.0)}).high == (8.0, 5.0)
    assert Scaler.fit([low, high], covariates=False) == Scaler.identity(("a", "b"))
    assert group.undo(group.apply(high)) == high


@given(X=tables)
def test_identity_changes_nothing(X: np.ndarray) -> None:
    identity = Scaler.identity(("a", "b"))
    assert np.array_equal(identity.transform(X), X)
    assert identity.apply(user(X)) == user(X)


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="at least one row"):
        Scaler.fit([])
    with pytest.raises(DataError, match="at least one row"):
        Scaler.fit(user(np.zeros((1, 2))).upto(0))
    with pytest.raises(DataError, match="'a' cannot be scaled"):
        Scaler(("a",), (1.0,), (0.0,))
    with pytest.raises(DataError, match="cannot be scaled"):
        Scaler(("a",), (-1.7e308,), (1.7e308,))
    with pytest.raises(DataError, match="as many lows"):
        Scaler(("a",), (1.0, 2.0), (3.0,))
    with pytest.raises(DataError, match="scale above 0"):
        Scaler(("a",), (0.0,), (1.0,), 0.0, 0.0)
    with pytest.raises(DataError, match=r"expected 1 columns \(a\), got shape \(2, 2\)"):
        Scaler(("a",), (0.0,), (1.0,)).transform(np.zeros((2, 2)))
    with pytest.raises(DataError, match="knows a; user 'ann' has a, b"):
        Scaler(("a",), (0.0,), (1.0,)).apply(user(np.zeros((1, 2))))
    with pytest.raises(DataError, match="different covariates"):
        Scaler.fit([user(np.zeros((1, 2))), User("bob", ("x",), [[1.0]], [1.0], (1,))])
    for stored in ({}, {"covariates": ["a"], "low": 3, "high": [1], "shift": 0, "scale": 1}):
        with pytest.raises(DataError, match="not a stored scaler"):
            Scaler.from_json(stored)


@pytest.mark.parametrize("values", [[[1j]], np.array([["2020-01-01"]], "datetime64[D]")])
def test_what_is_no_real_number_is_not_scaled(values) -> None:
    scaler = Scaler(("hour",), (8.0,), (20.0,))
    for convert in (scaler.transform, scaler.inverse):
        with pytest.raises(DataError, match=r"X must hold numbers, not .*: covariate 'hour'"):
            convert(values)
    with pytest.raises(DataError, match="the target must hold numbers, not"):
        scaler.transform_target(np.asarray(values)[0])
