"""What was assigned: what need not be there where nobody could act."""

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
