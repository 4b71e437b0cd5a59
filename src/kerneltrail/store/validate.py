"""What was read from a file, checked against the types that it should have; a file's layout is written as types."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError, KernelSyntaxError, KerneltrailError

_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "nothing"}

Array = NDArray[Any]


class Malformed(DataError):
    """A value or an array of a file that is not of the kind it should be."""


@contextmanager
def reading(shown: str, error: type[KerneltrailError] = DataError) -> Iterator[None]:
    """Turn whatever goes wrong while a file's content is understood into an error that names the file.

    Files come from anywhere. What they can break is not for each reader to foresee: the classes that are built of their
    values check themselves, and what those raise is caught here.
    """
    try:
        yield
    except Malformed as problem:
        raise error(f"{shown} is damaged: {problem}") from None
    except KernelSyntaxError as problem:
        raise error(
            f"{shown} uses the kernel {short(problem.text)}, which cannot be read here: {problem.problem}. A kernel of "
            "your own has to be registered (kerneltrail.kernels.register) before a model with it is loaded"
        ) from None
    except KerneltrailError as problem:
        if isinstance(problem, error) and shown in str(problem):
            raise
        raise error(f"{shown} does not fit this version of kerneltrail: {problem}") from None
    except Exception as problem:
        raise error(f"{shown} is damaged: {type(problem).__name__}: {short(str(problem), 300)}") from None


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses and mappings as dicts, tuples and arrays as lists, NumPy's numbers as plain.

    >>> plain({"a": (np.float64(1.0), np.arange(2))})
    {'a': [1.0, [0, 1]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def conform(value: Any, kind: Any, subject: str = "it") -> None:
    """Refuse a value of a JSON file that is not of a kind.

    A kind is a type as it stands in annotations (a union, a literal, a list, a mapping), a dataclass, or a layout: a
    mapping from each key to its kind. Whole numbers have at most 64 bits; keys may be more.

    >>> conform({"a": [1, None]}, dict[str, list[int | None]])
    >>> conform({"t": float("inf")}, {"t": int}, "step 3")
    Traceback (most recent call last):
        ...
    kerneltrail.store.validate.Malformed: step 3: t must be a whole number, got inf
    """
    problem = _problem(value, kind, "")
    if problem is not None:
        raise Malformed(f"{subject}: {problem}")


def _problem(value: Any, kind: Any, path: str) -> str | None:
    """What is wrong, and where; None if nothing is."""
    if kind is Any:
        return None
    where, inside = path or "the whole", get_args(kind)
    origin = get_origin(kind) or kind
    if origin in (Union, types.UnionType):
        problems = [_problem(value, option, path) for option in inside]
        return None if None in problems else problems[0]
    if origin is Literal:
        return None if value in inside else f"{where} must be one of {', '.join(map(str, inside))}, got {short(value)}"
    if origin in (list, tuple, Sequence):
        if not isinstance(value, list):
            return f"{where} must be a list, got {short(value)}"
        return _first((item, inside[0], f"{path}[{i}]") for i, item in enumerate(value))
    if is_dataclass(kind) or isinstance(kind, Mapping) or origin in (dict, Mapping):
        if not isinstance(value, dict):
            return f"{where} must be keys with values, got {short(value)}"
        keys: Any = kind if isinstance(kind, Mapping) else _hints(origin) if is_dataclass(kind) else None
        if keys is None:
            return _first((item, inside[1], f"{path}[{short(key, 40)}]") for key, item in value.items())
        needed = kind if isinstance(kind, Mapping) else [f.name for f in fields(kind) if _is_needed(f)]
        missing = next((key for key in needed if key not in value), None)
        if missing is not None:
            return f"{where} lacks {missing!r}"
        return _first((value[key], wanted, f"{path}.{key}".lstrip(".")) for key, wanted in keys.items() if key in value)
    # JSON's true is no number, though Python's is one.
    if not isinstance(value, (int, float) if kind is float else kind) or (isinstance(value, bool) and kind is not bool):
        return f"{where} must be {_WORDS[kind]}, got {short(value)}"
    if kind is int and not -(2**63) <= value < 2**63:
        return f"{where} must be a whole number of 64 bits, got {short(value)}"
    return None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _first(items: Iterator[tuple[Any, Any, str]]) -> str | None:
    return next((problem for item in items if (problem := _problem(*item)) is not None), None)


def array(
    arrays: Mapping[str, Array],
    name: str,
    shape: Sequence[int | None],
    dtype: Any = np.float64,
    *,
    finite: bool = False,
) -> Array:
    """An array of a file, refused if it is not there, or not of its type and shape; None is any length but 0."""
    if name not in arrays:
        raise Malformed(f"the array {name} is missing")
    entry = arrays[name]
    fits = len(shape) == entry.ndim and all(
        n == m or (n is None and m) for n, m in zip(shape, entry.shape, strict=True)
    )
    if entry.dtype != dtype or not fits:
        wanted = f"({', '.join('any' if n is None else str(n) for n in shape)})"
        raise Malformed(
            f"the array {name} must be {np.dtype(dtype).name} of shape {wanted}, is {entry.dtype.name} of {entry.shape}"
        )
    if finite and not np.isfinite(entry).all():
        raise Malformed(f"the array {name} has a value that is not finite")
    return entry


def short(value: Any, most: int = 80) -> str:
    """A value in a message: what is longer than that is cut in the middle."""
    try:
        text = value if isinstance(value, str) and most > 200 else repr(value)
    except ValueError:  # Python does not print whole numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 4 :]}"
