"""Chains without a fit: evidences that are given, and a run that yields what happened after every sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory import ROOT, Counts, Joint, MoveInfo, State, Sweep


class FixedEvidence:
    """Evidences that are simply given: as a mapping or a function of (user, mask).

    >>> table = FixedEvidence([2, 1], lambda user, mask: [0.0, -1.0][: 2 - user])
    >>> table.log_evidence(0, 0b1)
    array([ 0., -1.])
    """

    def __init__(
        self,
        customers: Sequence[int],
        values: Mapping[tuple[int, int], ArrayLike] | Callable[[int, int], ArrayLike],
    ) -> None:
        self.customers = tuple(int(t) for t in customers)
        self._values = values
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}

    def log_evidence(self, user: int, mask: int) -> NDArray[np.float64]:
        """The log evidences of one composition for all batches of one user, shape (T_m,)."""
        key = (user, mask)
        if key not in self._known:
            if callable(self._values):
                value = self._values(user, mask)
            elif key in self._values:
                value = self._values[key]
            else:
                raise TrajectoryError(f"no evidence is given for user {user} and composition {mask:#b}")
            self._known[key] = np.asarray(value, dtype=np.float64)
        return self._known[key]

    @classmethod
    def flat(cls, customers: Sequence[int]) -> FixedEvidence:
        """Evidences that say nothing: the posterior is the prior."""
        lengths = tuple(customers)
        return cls(lengths, lambda user, mask: np.zeros(lengths[user]))


class Record(NamedTuple):
    """One sweep: the state it ended in, and what each move did."""

    sweep: int
    state: State
    info: dict[str, MoveInfo]

    @property
    def log_joint(self) -> float:
        """log of the joint (method (9)), up to a constant."""
        return self.state.log_joint

    @property
    def nodes(self) -> int:
        """Number of compositions in use."""
        return self.state.nodes

    @property
    def edges(self) -> int:
        """Number of distinct transitions in use."""
        return self.state.edges

    @property
    def acceptance(self) -> dict[str, float]:
        """Share of proposals accepted, by move."""
        return {name: made.accepted / max(made.proposed, 1) for name, made in self.info.items()}


def run(rng: np.random.Generator, sweep: Sweep, state: State, sweeps: int, *, first: int = 0) -> Iterator[Record]:
    """Sweep after sweep, one record each.

    To stop and resume bit for bit, keep `record.state.paths` (and `.tables`, if any) and the generator's state of one
    record, and start again with both, and with `first` one more than its number.
    """
    if state.log_joint != sweep.joint.log_joint(state.paths):
        raise TrajectoryError("the state was made for another target: make it anew with joint.state(state.paths)")
    for number in range(first, first + sweeps):
        state, info = sweep.step(rng, state)
        yield Record(number, state, info)


def draw_prior(joint: Joint, rng: np.random.Generator) -> State:
    """Paths simulated from the urn, user by user: the generative process without data (method (7))."""
    counts = Counts()
    paths: list[tuple[int, ...]] = []
    for length in joint.customers:
        path: list[int] = []
        parent = ROOT
        for _ in range(length):
            child = _draw_step(joint, rng, counts, parent)
            counts.add(parent, child)
            path.append(child)
            parent = child
        paths.append(tuple(path))
    return joint.state(paths)


def _draw_step(joint: Joint, rng: np.random.Generator, counts: Counts, parent: int) -> int:
    seat = rng.random() * (counts.totals.get(parent, 0) + joint.urn.alpha)
    for child, n in counts.rows.get(parent, {}).items():
        seat -= n
        if seat < 0.0:
            return child
    return joint.urn.sample_h0(rng, parent)
