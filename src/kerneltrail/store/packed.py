"""Many small records in few large blocks of memory.

A million records of a kilobyte that arrive one by one, each an object of its own among messages that come and go, take
half as much again as they hold: what lies between them is free but of no use to anybody.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

BLOCK = 1 << 20
"""Bytes of a block."""

_HEAD = 8
"""Bytes in front of a record, which say how long it is; and to what its beginning is aligned."""


class PackedTable(MutableMapping[K, "bytes | memoryview"]):
    """Records by key. What is read is a view that cannot be written to; a record that is replaced leaves a gap.

    >>> table = PackedTable()
    >>> table["a"] = b"one"
    >>> bytes(table["a"]), len(table)
    (b'one', 1)
    """

    def __init__(self) -> None:
        self._blocks: list[bytearray] = []
        self._free = 0
        self._at: dict[K, int] = {}

    def __setitem__(self, key: K, record: bytes | memoryview) -> None:
        size = _HEAD + -(-len(record) // _HEAD) * _HEAD
        if size > self._free:
            self._blocks.append(bytearray(max(BLOCK, size)))
            self._free = len(self._blocks[-1])
        block = self._blocks[-1]
        start = len(block) - self._free
        block[start : start + _HEAD] = len(record).to_bytes(_HEAD, "little")
        block[start + _HEAD : start + _HEAD + len(record)] = record
        self._free -= size
        self._at[key] = (len(self._blocks) - 1) * BLOCK + start  # a record begins within the first BLOCK bytes

    def __getitem__(self, key: K) -> memoryview:
        number, start = divmod(self._at[key], BLOCK)
        view = memoryview(self._blocks[number]).toreadonly()
        begin = start + _HEAD
        return view[begin : begin + int.from_bytes(view[start:begin], "little")]

    def __delitem__(self, key: K) -> None:
        del self._at[key]

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def __iter__(self) -> Iterator[K]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)
