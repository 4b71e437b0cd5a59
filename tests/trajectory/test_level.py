"""Effects are told apart from a user's level, whether or not the model has a constant."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.gp import Reward
from kerneltrail.trajectory.level import with_level
from trajectory.lines import after, lines, person
from trajectory.small import rewarded_model, rows, small_model

USERS, LEAST = 30, 21
"""90 % intervals that are right hold the truth for fewer than 21 of 30 users once in 2,000 times."""


@pytest.mark.parametrize("slope", [0.8, 0.0, -0.8])
@pytest.mark.parametrize("changes", [{}, {"refine": 30}])
def test_intervals_of_a_slope_hold_it_on_any_level(slope, changes):
    """Levels differ by up to 6 from the pilot users', and after 30 rows sums replace the rows."""
    held = 0
    for seed in range(USERS):
        found = after(lines(), person("ann", slope, seed=1000 + seed), **changes).effects()["x"]
        low, high = found.interval()
        held += low <= slope * (found.end - found.start) <= high
    assert held >= LEAST


def test_a_line_s_slope_is_that_of_a_regression_with_a_constant():
    one = person("ann", -0.8, seed=3)
    found = after(lines(), one).effects()["x"]
    slope = np.polyfit(one.X[:, 0], one.y, 1)[0]
    assert float(found.slope.mean[0]) == pytest.approx(slope, abs=0.03)


def test_a_model_with_a_constant_stays_as_it_is():
    scaled = small_model().scaler.apply(rows("ann"))
    rewarded = rewarded_model()
    assert with_level(rewarded, scaled) is rewarded
    levelled = with_level(small_model(), scaled).reward
    assert levelled.names == ("constant",)
    bare = replace(rewarded, reward=Reward(("hour",), constant_variance=0.0, variances=(0.5, 0.25)))
    with_it = with_level(bare, scaled).reward
    assert with_it.names == ("constant", "action", "action×hour")
    assert with_it.variances[1:] == (0.5, 0.25)
