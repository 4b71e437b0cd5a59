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


def test_what_comes_from_outside_is_what_was_added_after_the_packages_own():
    things = Registry("thing")
    things.add("own", 1)
    assert things.outside == {}
    things.complete()
    things.add("b", 2)
    with things.temporarily("a", 3):
        assert list(things.outside.items()) == [("b", 2), ("a", 3)]
    assert things.outside == {"b": 2}


def test_a_worker_has_what_was_sent_in_its_order_and_nothing_else():
    things = Registry("thing", DataError)
    things.add("own", 1)
    things.complete()
    things.add("old", 2)
    things.receive({"b": 3, "a": 4}, {"c": "it is a socket"})
    assert dict(things) == {"own": 1, "b": 3, "a": 4}
    assert list(things.outside) == ["b", "a"]
    with pytest.raises(DataError, match=r"the thing 'c' cannot be sent to another process \(it is a socket\); use one"):
        things["c"]
    things.add("a", 5)  # its module was imported here
    assert things["a"] == 5
    with pytest.raises(DataError, match="'own' is registered already"):
        things.add("own", 6)
    things.receive({}, {})
    assert dict(things) == {"own": 1}


def test_what_does_not_fit_is_refused():
    things = Registry("thing", DataError, subclass_of(Base))
    things.add("child", Child)
    for wrong in (Child(), int, None):
        with pytest.raises(DataError, match="'x' cannot be registered as a thing: it must be a subclass of Base"):
            things.add("x", wrong)
    assert list(things) == ["child"]
