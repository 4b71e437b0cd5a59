"""What was assigned: what need not be there where nobody could act, and what cannot have been."""

import numpy as np

from kerneltrail.data.assignment import Assignment


def test_what_was_never_drawn_is_0():
    settled = Assignment.read([1, np.nan, np.nan], [np.nan, np.nan, 0.4], [1, 0, 0]).settled()
    np.testing.assert_array_equal(settled.action, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(settled.probability, [np.nan, 0.0, 0.4])  # a gap where somebody could act stays


def test_without_availability_or_with_that_of_other_rows_nothing_is_settled():
    for available in (None, [0, 0]):
        settled = Assignment.read([1, np.nan, 0], None, available).settled()
        np.testing.assert_array_equal(settled.action, [1.0, np.nan, 0.0])
        assert settled.probability is None


def test_an_action_where_nobody_could_act_is_impossible():
    assert Assignment.read([1, 1, 0], None, [0, 1, 0]).impossible.tolist() == [True, False, False]
    assert not Assignment.read([1, 1, 0]).impossible.any()


def test_an_action_that_had_probability_0_is_contradicted_where_somebody_could_act():
    action, probability = [1, 0, 0, 1, 1], [0, 1, 0, 1, 0.5]
    assert Assignment.read(action, probability).contradicted.tolist() == [True, True, False, False, False]
    away = Assignment.read(action, probability, [0, 0, 1, 1, 1])
    assert not away.contradicted.any()
    assert not Assignment.read(action).contradicted.any()
