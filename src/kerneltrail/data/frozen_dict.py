"""A mapping that cannot change: for values that are hashed, compared, stored and sent to other processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class FrozenDict(Mapping[str, V]):
    """A read-only copy of a mapping with text keys; equal to any mapping with the same items.

    >>> FrozenDict({"hour": "h"})["hour"], FrozenDict(a=1) == {"a": 1}
    ('h', True)
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V] | None = None, **more: V) -> None:
        self._items: dict[str, V] = {**(items or {}), **more}

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __reduce__(self) -> tuple[type[FrozenDict[V]], tuple[dict[str, V]]]:
        return FrozenDict, (self._items,)

    def __repr__(self) -> str:
        return repr(self._items)
