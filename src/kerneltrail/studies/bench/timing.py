"""Timing of several contenders side by side: in turns, so that whatever else the machine does hits them all alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

Work = Callable[[], float]
"""Does a piece of work and returns the seconds it took; what is not to be timed, it leaves outside its own clock."""


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        least: rounds that are always taken.
        most: rounds at most.
        seconds: no further round is begun after this long.
    """

    least: int = 3
    most: int = 50
    seconds: float = 3.0


def timed(work: Callable[[], object]) -> Work:
    """Work whose whole call is timed."""

    def run() -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    return run


def in_turns(contenders: Mapping[Key, Sequence[Work]], effort: Effort) -> dict[Key, list[list[float]]]:
    """For each contender and each of its pieces the seconds of every round; a round goes through all of them.

    The first round warms up caches and compiled code and is thrown away. The order changes from round to round: what
    runs after a contender that fills the processor's caches would otherwise pay for it every time.
    """
    order = Random(0)
    rounds: dict[Key, list[list[float]]] = {name: [[] for _ in pieces] for name, pieces in contenders.items()}
    for pieces in contenders.values():
        for work in pieces:
            work()
    start = perf_counter()
    for count in range(effort.most):
        if count >= effort.least and perf_counter() - start > effort.seconds:
            break
        for name in order.sample(list(contenders), len(contenders)):
            for piece, work in enumerate(contenders[name]):
                rounds[name][piece].append(work())
    return rounds


def undisturbed(pieces: Sequence[Sequence[float]]) -> float:
    """Seconds for all pieces together, each at its best round.

    A piece is short, so that some round of it goes without the machine turning to something else; long pieces would
    make long work look slower than it is beside short work.
    """
    return sum(map(min, pieces))
