"""Simple rules, against plain loops."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.evaluation.baselines import RUNNING, SHARED, simple_predictions


def somebody(rng, ends=(3, 4, 9)):
    n = ends[-1]
    return User("ann", ("hour",), rng.normal(size=(n, 1)), rng.normal(size=n), ends)


def test_each_batch_is_predicted_from_the_rows_before_it():
    user = somebody(np.random.default_rng(0))
    shared = 2.0 * user.X[:, 0] + 7.0
    found = simple_predictions(user, shared)
    assert found[0] == {}
    for t in (2, 3):
        seen, batch = user.upto(t - 1), user.batch(t)
        mean = sum(seen.y) / seen.rows
        above = sum(y - (2.0 * x + 7.0) for y, x in zip(seen.y, seen.X[:, 0], strict=True)) / seen.rows
        assert found[t - 1][RUNNING] == pytest.approx([mean] * batch.rows)
        assert found[t - 1][SHARED] == pytest.approx([2.0 * x + 7.0 + above for x in batch.X[:, 0]])


def test_later_rows_change_nothing_of_what_was_predicted():
    user = somebody(np.random.default_rng(1))
    other = user.with_y(np.concatenate([user.y[:4], user.y[4:] + 100.0]))
    first, second = simple_predictions(user), simple_predictions(other)
    assert np.array_equal(first[1][RUNNING], second[1][RUNNING])
    assert SHARED not in first[1]
