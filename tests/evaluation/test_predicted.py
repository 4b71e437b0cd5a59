"""Columns of predictions: the same wherever predictions are written."""

import numpy as np
import pytest
from scipy.special import ndtri

from kerneltrail.data.assignment import Assignment
from kerneltrail.evaluation.predicted import ACTED, PREDICTED, acted_columns, cells, predicted_columns, under_both
from kerneltrail.gp import Prediction
from trajectory.small import X_NEXT, follow, rewarded_model, rows


def test_mean_spread_and_intervals():
    columns = predicted_columns(Prediction(np.array([1.0, -2.0]), np.array([0.5, 3.0]), 0.75))
    assert tuple(columns) == PREDICTED
    sd = np.sqrt([1.25, 3.75])
    assert columns["sd"] == pytest.approx(sd)
    for level, tail in ((50, 0.75), (90, 0.95)):
        assert columns[f"upper_{level}"] - columns["mean"] == pytest.approx(ndtri(tail) * sd)
        assert columns["mean"] - columns[f"lower_{level}"] == pytest.approx(ndtri(tail) * sd)


def test_where_nobody_could_act_only_the_mean_without_the_action_applies():
    user = rewarded_model().new_user("ann")
    follow(user, rows("ann", seed=4))
    available = np.array([1.0, 0.0, 1.0])
    both = under_both(user, X_NEXT, Assignment(np.array([1.0, 1.0, 0.0]), None, available))
    columns = acted_columns(both, user.advantage(X_NEXT), available)
    assert tuple(columns) == ACTED
    assert [bool(gap) for gap in np.isnan(columns["mean_action_0"])] == [False] * 3
    for name in ACTED[1:]:
        assert np.isnan(columns[name]).tolist() == [False, True, False], name
    gain = (columns["mean_action_1"] - columns["mean_action_0"])[[0, 2]]
    assert columns["advantage"][[0, 2]] == pytest.approx(gain)
    assert columns["advantage_positive"][[0, 2]] == pytest.approx(user.advantage(X_NEXT).positive[[0, 2]])
    written = cells(columns)
    assert [len(row) for row in written] == [6, 1, 6]
    assert all(type(value) is float for row in written for value in row.values())
