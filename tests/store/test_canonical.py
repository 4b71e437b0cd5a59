"""Canonical JSON: the same bytes for the same value, whatever the order of its keys."""

import hashlib

import pytest

from kerneltrail.errors import DataError
from kerneltrail.store.canonical import canonical, sha256_of


def test_the_order_of_keys_does_not_matter_and_that_of_items_does():
    assert canonical({"a": 1, "b": {"d": None, "c": True}}) == canonical({"b": {"c": True, "d": None}, "a": 1})
    assert canonical([1, 2]) != canonical([2, 1])
    assert canonical(1) != canonical(1.0)
    assert sha256_of({"ü": 0.1}) == hashlib.sha256('{"ü":0.1}'.encode()).hexdigest()


@pytest.mark.parametrize("bad", [float("inf"), {"a": object()}, {1, 2}])
def test_what_json_does_not_have_is_refused(bad):
    with pytest.raises(DataError, match="cannot be written as JSON"):
        canonical(bad)
