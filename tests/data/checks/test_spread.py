"""What is far from the rest: found where it was put, and hardly ever where it was not."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kerneltrail.data.checks.spread import correlation, far_values, ranks, skewness
from kerneltrail.kernels import Array

DRAWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(rng.normal(20.0, 5.0, n)),
    "Student's t": lambda rng, n: rng.standard_t(3, n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: np.exp(1.2 * rng.normal(size=n)),
    "counts": lambda rng, n: np.where(rng.random(n) < 0.35, 0.0, np.round(np.exp(4.5 + 1.2 * rng.normal(size=n)))),
    "two groups": lambda rng, n: np.where(rng.random(n) < 0.7, rng.normal(size=n), rng.normal(30.0, 1.0, n)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("rows", [40, 400])
def test_false_alarms_are_rare(name: str, rows: int) -> None:
    """At most 1 in 100 columns is meant; 10 or more of 300 then come by chance with probability 0.001."""
    rng = np.random.default_rng(7)
    assert sum(far_values(DRAWS[name](rng, rows)) is not None for _ in range(300)) < 10


@pytest.mark.parametrize("name", [name for name in DRAWS if name != "two groups"])
def test_a_code_is_found_among_anything(name: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = DRAWS[name](rng, 200)
        values[[5, 80, 150]] = -99999.0
        far = far_values(values)
        assert far is not None
        assert -99999.0 in far.codes
        assert (~far.within(values))[[5, 80, 150]].all()


def test_a_group_of_its_own_is_not_far() -> None:
    days = np.concatenate([np.repeat(np.arange(340.0, 366.0), 5), np.repeat(np.arange(1.0, 5.0), 5)])
    assert far_values(days) is None  # January after December
    assert far_values(np.array([0.0, 1.0] * 30 + [9999.0] * 5)) is None  # of two values nobody knows what is far
    assert far_values(np.arange(19.0)) is None


def test_one_slip_is_no_code() -> None:
    values = np.concatenate([np.random.default_rng(0).normal(36.6, 0.4, 100), [366.0]])
    far = far_values(values)
    assert far is not None
    assert (far.codes, far.strays) == ((), (366.0,))
    assert far.high < 40.0


NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30)


@given(NUMBERS)
def test_ranks_and_skewness_are_those_of_scipy(values: list[float]) -> None:
    x = np.array(values)
    assert np.allclose(ranks(x), stats.rankdata(x) - 1.0)
    if np.std(x) > max(1e-6 * np.abs(x).max(), 1e-6):
        assert skewness(x) == pytest.approx(float(stats.skew(x)), rel=1e-6, abs=1e-6)


def test_correlation_is_numpy_s() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert correlation(x, np.ones(50)) == 0.0
