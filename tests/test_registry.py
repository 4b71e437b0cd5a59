"""A registry keeps what it was given, refuses what does not fit, and forgets only what a block added."""

import pytest

from kerneltrail.errors import DataError
from kerneltrail.registry import Registry, subclass_of


class Base:
    pass


class Child(Base):
    pass


def test_what_is_added_for_a_block_is_gone_after_it():
    things = Registry("thing")
    with things.temporarily("a", 1):
        assert things["a"] == 1
    assert "a" not in things


def test_a_taken_name_is_refused_and_stays():
    things = Registry("thing", DataError)
    things.add("a", 1)
    with pytest.raises(DataError, match="a thing called 'a' is registered already"), things.temporarily("a", 2):
        pass
    assert things["a"] == 1


def test_what_does_not_fit_is_refused():
    things = Registry("thing", DataError, subclass_of(Base))
    things.add("child", Child)
    for wrong in (Child(), int, None):
        with pytest.raises(DataError, match="'x' cannot be registered as a thing: it must be a subclass of Base"):
            things.add("x", wrong)
    assert list(things) == ["child"]
