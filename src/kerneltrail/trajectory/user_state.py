"""All there is to know of a followed user but for the model: what an update replaces and a file keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kerneltrail.data import User
from kerneltrail.kernels import Array, Composition
from kerneltrail.trajectory.node_fit import NodeFit
from kerneltrail.trajectory.settings import Memory, Selection, Settings

RECENT = 64
"""Steps of a user that are kept; of earlier ones the first, and how often each node was selected. Somebody who is
followed for years must not grow; whoever wants every step keeps what `update` returns."""


@dataclass(frozen=True)
class Step:
    """What was selected at one batch, counted from 1; evidences of the candidates and probabilities are on all rows."""

    batch: int
    rows: int
    composition: Composition
    log_evidence: Mapping[Composition, float]
    probabilities: Mapping[Composition, float]


@dataclass(frozen=True)
class UserState:
    """A followed user.

    Attributes:
        name: of the user.
        selection, memory, refine: how the user is followed.
        rows, batches: seen so far.
        history: what happened at the last batches, at most `RECENT`.
        fits: one per node of the model, in its order.
        kept: the rows that some fit still needs, scaled and less the population mean; None where sums have replaced
            them all.
        prior: probabilities of the nodes before the newest batch's evidence.
        weights: probabilities of the nodes.
        current: index of the selected node, None before any batch.
        first: what happened at the first batch, None before it.
        selected: after how many batches each node was the selected one, in the model's order.
    """

    name: str
    selection: Selection
    memory: Memory
    refine: int
    rows: int
    batches: int
    history: tuple[Step, ...]
    fits: tuple[NodeFit, ...]
    kept: User | None
    prior: Array
    weights: Array
    current: int | None
    first: Step | None
    selected: tuple[int, ...]

    @classmethod
    def start(cls, name: str, settings: Settings, fits: tuple[NodeFit, ...], prior: Array) -> UserState:
        """Before any row."""
        how = (settings.selection, settings.memory, settings.refine)
        return cls(name, *how, 0, 0, (), fits, None, prior, prior, None, None, (0,) * len(fits))

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps that are known: the first and the last ones."""
        if self.first is None or self.batches <= len(self.history):
            return self.history
        return (self.first, *self.history)
