"""Moves on paths, by name: the exact set, which targets SPEC §4's joint, and the published set, which does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo
from kerneltrail.trajectory.sampler.moves.path import Path
from kerneltrail.trajectory.sampler.moves.plate import Plate
from kerneltrail.trajectory.sampler.moves.published import PublishedPlate, PublishedSeat
from kerneltrail.trajectory.sampler.moves.rename import Rename
from kerneltrail.trajectory.sampler.moves.seat import Seat


def _run(joint: Joint, steps: int = 8) -> Plate:
    return Plate(joint, steps, runs=True)


def _plate(joint: Joint, steps: int = 8) -> Plate:
    return Plate(joint, steps)


MOVES: Mapping[str, Callable[..., Move]] = {
    "seat": Seat,
    "plate": _plate,
    "run": _run,
    "path": Path,
    "rename": Rename,
    "published_seat": PublishedSeat,
    "published_plate": PublishedPlate,
}
"""What a configuration may name. A new move is one entry."""

EXACT = ("path", "seat", "plate", "run", "rename")
"""The default sweep."""

PUBLISHED = ("published_seat", "published_plate")
"""The paper's sweep."""


def make_move(name: str, joint: Joint, options: Mapping[str, Any] | None = None) -> Move:
    """The move of a name, with its options checked.

    >>> from kerneltrail.kernels import Pool
    >>> from kerneltrail.trajectory import FixedEvidence, Urn
    >>> make_move("seat", Joint(Urn(Pool.paper()), FixedEvidence.flat([1])), {"fresh": -1})
    Traceback (most recent call last):
        ...
    kerneltrail.errors.TrajectoryError: option 'fresh' of move 'seat' must be at least 0, got -1
    """
    if name not in MOVES:
        raise TrajectoryError(f"no move is called {name!r}; there are {', '.join(MOVES)}")
    given = dict(options or {})
    allowed = [option for option in signature(MOVES[name]).parameters if option != "joint"]
    for option, value in given.items():
        if option not in allowed:
            raise TrajectoryError(f"move {name!r} has no option {option!r}; it has {', '.join(allowed)}")
        if option in ("fresh", "auxiliary", "steps"):
            least = 0 if option == "fresh" else 1
            if not isinstance(value, int) or value < least:
                raise TrajectoryError(f"option {option!r} of move {name!r} must be at least {least}, got {value!r}")
    if "library" in given:
        given["library"] = _checked_library(joint, given["library"])
    return MOVES[name](joint, **given)


def _checked_library(joint: Joint, library: Any) -> tuple[int, ...]:
    masks = tuple(dict.fromkeys(int(mask) for mask in library))
    pool = joint.urn.pool
    for mask in masks:
        if not 0 <= mask < 1 << len(pool) or (mask == 0 and not pool.allow_empty):
            raise TrajectoryError(f"{mask} in the library is not a composition of the pool")
    return masks


__all__ = [
    "EXACT",
    "MOVES",
    "Move",
    "MoveInfo",
    "PUBLISHED",
    "Path",
    "Plate",
    "PublishedPlate",
    "PublishedSeat",
    "Rename",
    "Seat",
    "make_move",
]
