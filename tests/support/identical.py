"""Whether two values are the same in every bit: what "load then continue = never having stopped" is tested by."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from kerneltrail.trajectory.new_user import NewUser


def identical(one: Any, other: Any) -> bool:
    """Whether two models, users or parts of them are the same: structure, texts, and numbers bit for bit.

    Lists and tuples are not told apart, nor are kinds of mapping: a file holds plain ones.

    >>> identical({"a": (1.0, float("nan"))}, {"a": [1.0, float("nan")]}), identical(0.0, -0.0)
    (True, False)
    """
    return difference(one, other) is None


def difference(one: Any, other: Any, place: str = "") -> str | None:
    """The place of the first difference, such as ``.nodes[2].thetas``; None if there is none."""
    return next(_differences(one, other, place), None)


def _differences(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, NewUser) and isinstance(other, NewUser):
        yield from _differences(one.state, other.state, f"{place}.state")
    elif isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and _same_array(one, other)):
            yield place
    elif is_dataclass(one) and not isinstance(one, type):
        if type(one) is not type(other):
            yield place
            return
        for field in fields(one):
            yield from _differences(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        if set(one) != set(other):
            yield place
            return
        for key in one:
            yield from _differences(one[key], other[key], f"{place}[{key}]")
    elif _is_list(one) and _is_list(other):
        if len(one) != len(other):
            yield place
            return
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _differences(a, b, f"{place}[{index}]")
    elif isinstance(one, float) and isinstance(other, float):
        if struct.pack("d", one) != struct.pack("d", other):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same_array(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
