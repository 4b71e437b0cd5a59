"""Where shrinkage starts, and the tables of its benchmark."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of, parse
from kerneltrail.methods.preprocessing import own_preprocessor
from kerneltrail.methods.shrinkage import Shrinkage
from kerneltrail.methods.shrinkage.starting_points import around, at_periods, greedy, own_map, periods_of

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]")
WHOLE = Composition(POOL.products)


def wave(rows=50):
    """A steep line with a cycle of 0.15 on it."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, rows))
    y = 3.0 * x - 1.5 + np.sin(2 * np.pi * x / 0.15) + 0.1 * rng.standard_normal(rows)
    return User("ann", ("x",), x[:, None], y, (rows,))


def test_likely_periods_are_put_where_periods_are():
    composition = parse("PER[x] + PER[x]*PER[x] + SE[z]")
    vector = np.zeros(layout_of(composition).size)
    names = layout_of(composition).names
    at = at_periods(vector, composition, {"x": (2.0, 3.0)})
    found = {name: float(np.exp(value)) for name, value in zip(names, at, strict=True) if value}
    assert found == pytest.approx(
        {"PER[x].period": 2.0, "PER[x]*PER[x]: PER[x].period": 2.0, "PER[x]*PER[x]: PER[x]#2.period": 3.0}
    )
    shifted = dict(zip(names, np.exp(at_periods(vector, composition, {"x": (2.0, 3.0)}, 1)), strict=True))
    assert shifted["PER[x].period"] == pytest.approx(3.0)
    assert shifted["PER[x]*PER[x]: PER[x]#2.period"] == pytest.approx(2.0)
    assert periods_of(wave())["x"][0] == pytest.approx(0.15, rel=0.03)


def test_a_product_alone_finds_the_likely_period():
    user = wave().with_y(np.sin(2 * np.pi * wave().X[:, 0] / 0.15))
    theta = own_map(user, WHOLE, Priors.heartsteps(), np.random.default_rng(0), None, periods_of(user))
    names = layout_of(WHOLE).names
    assert np.exp(theta[names.index("PER[x].period")]) == pytest.approx(0.15, rel=0.02)


def test_a_greedy_sum_is_what_the_rows_are_made_of_and_a_start_is_it():
    user = wave()
    found = greedy(user, WHOLE, Priors.heartsteps(), None, periods_of(user), 3)
    assert found is not None
    assert found.kernel is not None
    assert found.kernel.composition == parse("LIN[x] + PER[x]")
    theta, _ = Priors.heartsteps().moments(WHOLE)
    start = around(found, WHOLE, theta, 2.0)
    inside = Hyperparameters(found.kernel.composition, found.kernel.unconstrained)
    log_weights, _ = start.log_weights
    by_product = dict(zip(map(str, WHOLE), np.exp(log_weights), strict=True))
    assert by_product["LIN[x]"] == pytest.approx(inside["LIN[x].amplitude"])
    assert by_product["PER[x]"] == pytest.approx(inside["PER[x].amplitude"])
    assert by_product["SE[x]"] < 0.1
    kept = [name for name in layout_of(WHOLE).names if not name.endswith("amplitude")]
    values = dict(zip(kept, start.theta, strict=True))
    assert np.exp(values["PER[x].period"]) == pytest.approx(inside["PER[x].period"])
    assert np.exp(values["noise"]) == pytest.approx(inside["noise"])
    assert greedy(user, WHOLE, Priors.heartsteps(), None, {}, 0) is None


def test_a_greedy_start_is_no_worse():
    user, preprocessor = wave(40), own_preprocessor(("x",), "none")
    plain = Shrinkage(preprocessor, POOL, Priors.heartsteps(), pairs=2).fit(user, None)
    better = Shrinkage(preprocessor, POOL, Priors.heartsteps(), pairs=2, greedy=2).fit(user, None)
    assert better.bound > plain.bound - 0.5
    with pytest.raises(DataError, match="greedy"):
        Shrinkage(preprocessor, POOL, Priors.heartsteps(), greedy=-1)
