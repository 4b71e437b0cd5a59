"""Names that people type: looked up exactly, and answered with the nearest one when they are wrong."""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from kerneltrail.errors import DataError, KerneltrailError

P = ParamSpec("P")
R = TypeVar("R")

_MANY = 50
"""No more names are listed in a message."""


def nearest(name: str, known: Collection[str], what: str = "known are") -> str:
    """A hint for a wrong name: the nearest known one, or all of them where none is near.

    >>> nearest("temprature", ["hour", "temperature"])
    "did you mean 'temperature'?"
    >>> nearest("zzz", ["hour", "temperature"])
    'known are hour, temperature'
    """
    folded = {item.casefold(): item for item in reversed(list(known))}
    near = difflib.get_close_matches(name.casefold(), _shortlist(name.casefold(), folded), n=1, cutoff=0.6)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    more = f" and {len(known) - _MANY} more" if len(known) > _MANY else ""
    return f"{what} {', '.join(itertools.islice(known, _MANY))}{more}" if known else "there are none"


def _shortlist(name: str, known: Collection[str]) -> Collection[str]:
    """Those of many names that share most pairs of letters: comparing closely takes 0.1 ms for each."""
    if len(known) <= 10 * _MANY:
        return known
    wanted = set(itertools.pairwise(name))

    def shared(other: str) -> float:
        pairs = set(itertools.pairwise(other))
        return len(wanted & pairs) / (len(pairs) + len(wanted) + 1)

    return heapq.nlargest(_MANY, known, key=shared)


def index_of(name: str, known: tuple[str, ...], what: str) -> int:
    """The place of `name` among `known`; DataError with the nearest one otherwise. `what` says what is named."""
    try:
        return known.index(name)
    except ValueError:
        raise DataError(f"{what} has no column {name!r}; {nearest(name, known)}") from None


def unused(name: str, taken: Collection[str]) -> str:
    """The name itself, or with as many underscores behind it as it takes not to be one of those taken.

    >>> unused("row", ["mean"]), unused("mean", ["mean", "mean_"])
    ('row', 'mean__')
    """
    return unused(f"{name}_", taken) if name in taken else name


def shortened(names: Collection[str], most: int = 8) -> str:
    """Names in one line, of many the first ones.

    >>> shortened(["hour", "temperature"]), shortened(["a", "b", "c", "d"], most=2)
    ('hour, temperature', 'a, b, … (4 in all)')
    """
    listed = ", ".join(itertools.islice(names, most))
    return listed if len(names) <= most else f"{listed}, … ({len(names)} in all)"


def only_known(what: str, error: type[KerneltrailError]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function refuses an option that it does not have, with the nearest one that it has.

    >>> @only_known("option of greet", DataError)
    ... def greet(*, name): ...
    >>> greet(nmae="Ann")
    Traceback (most recent call last):
        ...
    kerneltrail.errors.DataError: no option of greet is called 'nmae'; did you mean 'name'?
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = tuple(name for name in signature(function).parameters if name not in ("self", "cls"))

        @wraps(function)
        def checked(*values: P.args, **options: P.kwargs) -> R:
            for name in options:
                if name not in known:
                    raise error(f"no {what} is called {name!r}; {nearest(name, known, 'there are')}")
            return function(*values, **options)

        return checked

    return decorate


def unique(names: Collection[object], what: str) -> None:
    """Refuse empty, badly written or repeated covariate names, saying which."""
    seen: set[object] = set()
    for name in names:
        # The same rule as for atoms: a covariate has to be writable as SE[name].
        if not isinstance(name, str) or not name or name != name.strip() or set(name) & set("[]\n"):
            raise DataError(
                f"{what}: covariate name {name!r} cannot be written in a kernel; it must be a non-empty text without "
                "brackets, line breaks or blanks at its ends"
            )
        if name in seen:
            raise DataError(f"{what}: covariate {name!r} is named twice")
        seen.add(name)
