"""Turns of threads: short within, and as they were afterwards."""

import sys

import pytest

from kerneltrail.engines import short_turns
from kerneltrail.engines.turns import TURN


def test_turns_are_short_within_and_as_before_afterwards():
    before = sys.getswitchinterval()
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN)
        with short_turns():
            pass
        assert sys.getswitchinterval() == pytest.approx(TURN)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_blocks_that_overlap_end_with_the_last_one():
    before = sys.getswitchinterval()
    one, other = short_turns(), short_turns()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(TURN)
    other.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_an_error_within_gives_them_back():
    before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="within"), short_turns():
        raise ValueError("within")
    assert sys.getswitchinterval() == pytest.approx(before)
