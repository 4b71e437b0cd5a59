"""A packed table is a dict of bytes in few blocks."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.store import packed
from kerneltrail.store.packed import PackedTable


@given(st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=90) | st.none())))
def test_it_is_a_dict_whatever_is_put_and_deleted(steps):
    table, plain = PackedTable(), {}
    block, packed.BLOCK = packed.BLOCK, 64  # so that records cross blocks, and some have one of their own
    try:
        for key, record in steps:
            if record is not None:
                table[key] = plain[key] = record
            elif key in plain:
                del table[key], plain[key]
            else:
                with pytest.raises(KeyError):
                    del table[key]
        assert {key: bytes(record) for key, record in table.items()} == plain
        assert len(table) == len(plain)
        assert all((key in table) == (key in plain) for key in range(6))
        again = pickle.loads(pickle.dumps(table))
        assert {key: bytes(record) for key, record in again.items()} == plain
    finally:
        packed.BLOCK = block


def test_what_is_read_is_aligned_and_cannot_be_written_to():
    table = PackedTable()
    for n in range(20):
        table[n] = bytes(range(n))
    numbers = np.arange(7.0)
    table["numbers"] = numbers.tobytes()
    back = np.frombuffer(table["numbers"])
    np.testing.assert_array_equal(back, numbers)
    assert back.flags.aligned
    assert not back.flags.writeable
    with pytest.raises(TypeError):
        table[3][0] = 0


def test_a_view_stays_what_it_was_when_its_record_is_replaced():
    table = PackedTable()
    table["a"] = b"before"
    view = table["a"]
    table["a"] = b"after"
    assert (bytes(view), bytes(table["a"])) == (b"before", b"after")


def test_a_record_may_be_longer_than_a_block():
    table = PackedTable()
    records = {"small": b"a", "large": bytes(3 * packed.BLOCK), "next": b"b" * 100}
    table.update(records)
    assert {key: bytes(table[key]) for key in table} == records
