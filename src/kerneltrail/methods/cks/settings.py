"""How far and how hard the compositional kernel search goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from kerneltrail.errors import KernelError
from kerneltrail.kernels import default_kinds
from kerneltrail.methods.cks.fit import Effort
from kerneltrail.methods.cks.holdout import Holdout
from kerneltrail.methods.cks.period_guard import PeriodGuard

Choice = Literal["bic", "holdout", "average"]
"""What decides among the kernels fitted to all rows: BIC, or the density of rows held out at the end; ``average`` lets
them all predict, weighted by that density."""

THOROUGH = Effort(draws=0, kept=1, fresh=0, starts=1, screen=16, accuracy=1e-6)
"""Effort for the few candidates of a level that are fitted to all rows."""

SERIES_FIRST = Effort(draws=10, kept=2, small=6)
SERIES_SECOND = Effort(draws=0, kept=1, fresh=0, starts=0, accuracy=1e-5)
"""Efforts for one series: two starts from the parent's values and small kernels from many, on few rows; none at random
on all rows."""


@dataclass(frozen=True)
class SearchSettings:
    """How far and how hard to search.

    Attributes:
        depth: grammar steps at most. The original took 10; 5 is a practical limit for a search at every batch.
        seconds: no further fit is begun after this long; None for no limit. What was fitted in time then depends on
            the machine, so only searches without it can be repeated exactly.
        fits: no further kernel is looked at after so many fits, those to all rows counted; None for no limit. The best
            of what was looked at are still fitted to all rows, and judged. The same on any machine.
        beam: how many of the newest level are expanded; 1 as in method §10.1. Two that score alike differ in what they
            can become.
        patience: stop after so many levels without a better BIC; None to go to the full depth, as the original did.
        kinds: atom kinds to build from.
        guard: which periods are rejected.
        choose: what decides in the end: ``bic`` as in method §10.1, or ``holdout``: the best by BIC are refitted to the
            earlier rows and judged by the later ones. With ``average`` these predict together, weighted by how they
            were judged; the one judged best is still what is reported. Levels are expanded by BIC in any case.
        holdout: which rows are held out, and how many kernels are judged by them.
        thin: rows on which candidates are looked at first.
        refits: how many of each level are then fitted to all rows, more thoroughly; only these are expanded or win.
        first: effort of the first look.
        second: effort of the refit.
        workers: processes that fit candidates in parallel.
        seed: of random restarts.
        tol: error allowed in a log evidence.
    """

    depth: int = 5
    seconds: float | None = None
    fits: int | None = None
    beam: int = 1
    patience: int | None = 2
    kinds: tuple[str, ...] = field(default_factory=default_kinds)
    guard: PeriodGuard = field(default_factory=PeriodGuard)
    choose: Choice = "bic"
    holdout: Holdout = field(default_factory=Holdout)
    thin: int = 250
    refits: int = 3
    first: Effort = field(default_factory=Effort)
    second: Effort = THOROUGH
    workers: int = 1
    seed: int = 0
    tol: float = 1e-6

    @classmethod
    def for_series(cls, **changes: Any) -> SearchSettings:
        """Settings for one series that is searched once, with any of them changed.

        Small kernels are begun from more starts than where a search follows every batch: what comes later is built on
        them. The guard lets a cycle of three rows pass (a week in daily values has seven), and asks that a cycle be
        seen twice. The kernel is chosen by how it extrapolates, since that is what a series is searched for.
        """
        guard = PeriodGuard(gaps=3.0, spacings=0.0, cycles=2.0)
        defaults = cls(guard=guard, choose="holdout", first=SERIES_FIRST, second=SERIES_SECOND)
        return replace(defaults, **changes)

    def __post_init__(self) -> None:
        if self.depth < 0 or min(self.beam, self.refits, self.thin, self.workers) < 1 or not self.kinds:
            raise KernelError("a search needs depth ≥ 0, beam, refits, thin and workers ≥ 1, and some atom kind")
        if (self.patience is not None and self.patience < 1) or (self.seconds is not None and self.seconds < 0):
            raise KernelError("patience must be 1 or more, and seconds 0 or more, or None")
        if self.fits is not None and self.fits < 1:
            raise KernelError(f"fits must be 1 or more, or None, not {self.fits}")
        if self.choose not in get_args(Choice):
            raise KernelError(f"a kernel is chosen by {', '.join(get_args(Choice))}, not by {self.choose!r}")
