"""Moves on paths, by name: the exact set, which targets method (9), and the published set, which does not."""

from kerneltrail.trajectory.sampler.moves.base import MOVES, Move, MoveInfo, Sweep, Workspace
from kerneltrail.trajectory.sampler.moves.exact import Path, Plate, Rename, Run, Seat
from kerneltrail.trajectory.sampler.moves.published import PublishedPlate, PublishedSeat

for _move in (Seat, Plate, Run, Path, Rename, PublishedSeat, PublishedPlate):
    MOVES.add(_move.name, _move)
MOVES.complete()

EXACT = (Path.name, Seat.name, Plate.name, Run.name, Rename.name)
"""The default sweep."""

PUBLISHED = (PublishedSeat.name, PublishedPlate.name)
"""The paper's sweep."""

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
    "Run",
    "Seat",
    "Sweep",
    "Workspace",
]
