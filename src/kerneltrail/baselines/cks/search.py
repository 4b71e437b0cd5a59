"""The compositional kernel search (Duvenaud et al. 2013; SPEC §10): greedy, level by level, by BIC."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import joblib
import numpy as np
from numpy.typing import NDArray

from kerneltrail.baselines.cks.evidence import TreePosterior
from kerneltrail.baselines.cks.expression import Expression, numbered
from kerneltrail.baselines.cks.fit import Effort, Fitted, Problem, fit
from kerneltrail.baselines.cks.form import Tied
from kerneltrail.baselines.cks.grammar import KINDS, base_expressions, expand
from kerneltrail.baselines.cks.guard import Guard, Limits
from kerneltrail.baselines.cks.holdout import Holdout, held_out_score
from kerneltrail.baselines.cks.priors import wide_priors
from kerneltrail.baselines.cks.tree import Node, SearchTree
from kerneltrail.baselines.periods import Periods, likely_periods
from kerneltrail.data import User
from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp import LinearBlock, one_blas_thread
from kerneltrail.kernels import Priors

Array = NDArray[np.float64]
Choice = Literal["bic", "holdout"]
"""What decides among the kernels fitted to all rows: BIC, or the density of rows held out at the end."""

THOROUGH = Effort(draws=0, kept=1, fresh=0, starts=1, screen=16, accuracy=1e-6)
"""Effort for the few candidates of a level that are fitted to all rows."""

SERIES_FIRST = Effort(draws=10, small=6)
SERIES_SECOND = Effort(draws=0, kept=1, fresh=0, starts=0, accuracy=1e-5)
"""Efforts for one series: small kernels from many starts, on few rows; none at random on all rows."""


@dataclass(frozen=True)
class SearchSettings:
    """How far and how hard to search.

    Attributes:
        depth: grammar steps at most. The original took 10; 5 is a practical limit for a search at every batch.
        seconds: no further fit is begun after this long; None for no limit. What was fitted in time then depends on
            the machine, so only searches without it can be repeated exactly.
        beam: how many of the newest level are expanded; 1 as in SPEC §10. Two that score alike differ in what they can
            become.
        patience: stop after so many levels without a better BIC; None to go to the full depth, as the original did.
        kinds: atom kinds to build from.
        guard: which periods are rejected.
        choose: what decides in the end: ``bic`` as in SPEC §10, or ``holdout``: the best by BIC are refitted to the
            earlier rows and judged by the later ones. Levels are expanded by BIC either way.
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
    beam: int = 1
    patience: int | None = 2
    kinds: tuple[str, ...] = KINDS
    guard: Guard = field(default_factory=Guard)
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
        guard = Guard(gaps=3.0, spacings=0.0, cycles=2.0)
        own = cls(depth=4, guard=guard, choose="holdout", thin=150, first=SERIES_FIRST, second=SERIES_SECOND)
        return replace(own, **changes)

    def __post_init__(self) -> None:
        if self.depth < 0 or min(self.beam, self.refits, self.thin, self.workers) < 1 or not self.kinds:
            raise KernelError("a search needs depth ≥ 0, beam, refits, thin and workers ≥ 1, and some atom kind")
        if (self.patience is not None and self.patience < 1) or (self.seconds is not None and self.seconds < 0):
            raise KernelError("patience must be 1 or more, and seconds 0 or more, or None")
        if self.choose not in get_args(Choice):
            raise KernelError(f"a kernel is chosen by {' or '.join(get_args(Choice))}, not by {self.choose!r}")


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        level: the level being fitted; after the last, one more where rows are held out.
        done, total: candidates of the level, or kernels judged by held-out rows.
        best: the best kernel so far by BIC, and its BIC.
        seconds: since the start.
        judging: whether kernels are being judged by held-out rows.
    """

    level: int
    done: int
    total: int
    best: tuple[str, float] | None
    seconds: float
    judging: bool = False


@dataclass(frozen=True)
class _Task:
    """A candidate to be fitted."""

    expression: Expression
    parent: int | None
    start: Tied | None
    periods: Periods


def search(
    user: User,
    priors: Priors | None = None,
    settings: SearchSettings | None = None,
    *,
    block: LinearBlock | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchTree:
    """Search the kernels of SPEC §10's grammar for one user's rows.

    Args:
        user: the rows, scaled to what the priors are meant for; batches do not matter.
        priors: over hyperparameters; `wide_priors` if None.
        settings: budget and effort.
        block: a linear block of a reward model.
        progress: called after every fit.
    """
    if not user.rows:
        raise DataError(f"user {user.name!r} has no rows yet, so there is nothing to search by")
    return _Search(user, priors, settings or SearchSettings(), block, progress).run()


class _Search:
    """One search in progress."""

    def __init__(
        self,
        user: User,
        priors: Priors | None,
        settings: SearchSettings,
        block: LinearBlock | None,
        progress: Callable[[SearchProgress], None] | None,
    ) -> None:
        self.began = time.perf_counter()
        self.settings = settings
        self.progress = progress
        limits = settings.guard.limits(user.X, user.covariates)
        self.problem = Problem(
            user.with_ends((user.rows,)),
            wide_priors(limits) if priors is None else priors,
            limits,
            self._periods(user, user.y, limits),
            block,
            settings.seed,
            settings.tol,
        )
        self.fewer = self.problem.thinned(settings.thin)
        self.base = base_expressions(user.covariates, settings.kinds)
        self.nodes: list[Node] = []
        self.visited: set[Expression] = set()
        self.parallel = joblib.Parallel(n_jobs=settings.workers) if settings.workers > 1 else None

    @staticmethod
    def _periods(user: User, target: Array, limits: Limits) -> Periods:
        found = {}
        for name, column in zip(user.covariates, user.X.T, strict=True):
            found[name] = likely_periods(column, target, *limits[name])
        return found

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def late(self) -> bool:
        return self.settings.seconds is not None and self.elapsed >= self.settings.seconds

    def run(self) -> SearchTree:
        tasks = [_Task(each, None, None, {}) for each in self.base]
        best, quiet, stopped = np.inf, 0, "depth"
        for level in range(self.settings.depth + 1):
            newest = self._level(level, tasks)
            if not newest or self.late:
                stopped = "seconds" if self.late else "exhausted"
                break
            score = self.nodes[newest[0]].bic
            quiet = 0 if score < best else quiet + 1
            best = min(best, score)
            if self.settings.patience is not None and quiet >= self.settings.patience:
                stopped = "patience"
                break
            if level == self.settings.depth:
                break
            tasks = self._children(newest[: self.settings.beam])
            if not tasks:
                stopped = "exhausted"
                break
        if self.settings.choose == "holdout":
            self._judge()
        return SearchTree(tuple(self.nodes), self.problem.user.rows, stopped, self.elapsed)

    def _children(self, parents: Sequence[int]) -> list[_Task]:
        """What one step makes of some nodes, without what was tried before."""
        tasks: list[_Task] = []
        known = set(self.visited)
        for index in parents:
            node = self.nodes[index]
            kernel = node.fitted.kernel
            assert kernel is not None  # only fitted nodes are expanded
            periods = self._periods(self.problem.user, self._left(kernel), self.problem.limits)
            for child in expand(node.expression, self.base):
                if child not in known:
                    known.add(child)
                    tasks.append(_Task(child, index, kernel, periods))
        return tasks

    def _left(self, kernel: Tied) -> Array:
        """What a fitted kernel leaves of the target: σ² K⁻¹ y."""
        try:
            with one_blas_thread():
                alpha = TreePosterior(self.problem.rows, kernel).alpha
        except NumericalError:
            return self.problem.user.y
        return kernel.values_array[-1] * alpha

    def _level(self, level: int, tasks: Sequence[_Task]) -> list[int]:
        """Fit a level's candidates, then the best of them to all rows; the indices of those, best first."""
        start = len(self.nodes)
        chunk = self.settings.workers
        for first in range(0, len(tasks), chunk):
            if self.nodes and self.late:
                break
            batch = tasks[first : first + chunk]
            arguments = [(self.fewer, task.expression, self.settings.first, task) for task in batch]
            for task, fitted in zip(batch, self._map(arguments), strict=True):
                self.nodes.append(Node(level, task.expression, task.parent, fitted))
                self.visited.add(task.expression)
            self._tell(level, len(self.nodes) - start, len(tasks))
        self._refit(range(start, len(self.nodes)), tasks, level)
        return self._ranked(range(start, len(self.nodes)))

    def _refit(self, places: range, tasks: Sequence[_Task], level: int) -> None:
        """Fit the best of a level to all rows, more thoroughly."""
        fitted = [i for i in places if self.nodes[i].fitted.kernel is not None]
        ranked = sorted(fitted, key=lambda i: (self.nodes[i].bic, self.nodes[i].expression.key))
        chosen = ranked[: max(self.settings.refits, self.settings.beam)]
        for first in range(0, len(chosen), self.settings.workers):
            # Something has to be fitted to all rows, however late it is.
            if self.late and self._ranked(range(len(self.nodes))):
                return
            batch = chosen[first : first + self.settings.workers]
            arguments = [
                (
                    self.problem,
                    numbered(self.nodes[i].expression),
                    self.settings.second,
                    replace(tasks[i - places.start], start=self.nodes[i].fitted.kernel),
                )
                for i in batch
            ]
            for i, again in zip(batch, self._map(arguments), strict=True):
                old = self.nodes[i].fitted
                # On the same rows the better of the two fits stands, whichever found it.
                if old.rows < again.rows or again.bic < old.bic:
                    self.nodes[i] = replace(self.nodes[i], fitted=again)
            self._tell(level, len(places), len(tasks))

    def _judge(self) -> None:
        """Score the best by BIC on held-out rows. When it is late, what has a score by then is what can win."""
        holdout, chunk = self.settings.holdout, self.settings.workers
        chosen = self._ranked(range(len(self.nodes)))[: holdout.most]
        if self.problem.user.rows < holdout.fewest:
            return
        level = 1 + max(node.level for node in self.nodes)
        for first in range(0, len(chosen), chunk):
            if self.late:
                return
            batch = chosen[first : first + chunk]
            kernels = [kernel for i in batch if (kernel := self.nodes[i].fitted.kernel) is not None]
            for i, score in zip(batch, self._scores(kernels), strict=True):
                self.nodes[i] = replace(self.nodes[i], held_out=score)
            self._tell(level, min(first + chunk, len(chosen)), len(chosen), judging=True)

    def _scores(self, kernels: Sequence[Tied]) -> list[float]:
        arguments = [(self.problem, kernel, self.settings.holdout) for kernel in kernels]
        if self.parallel is None or len(arguments) == 1:
            return [held_out_score(*each) for each in arguments]
        return list(self.parallel(joblib.delayed(held_out_score)(*each) for each in arguments))

    def _map(self, arguments: Sequence[tuple[Problem, Expression, Effort, _Task]]) -> list[Fitted]:
        if self.parallel is None or len(arguments) == 1:
            return [_fit(*each) for each in arguments]
        return list(self.parallel(joblib.delayed(_fit)(*each) for each in arguments))

    def _ranked(self, places: range) -> list[int]:
        """The nodes among some that are fitted to all rows, best first."""
        whole = self.problem.user.rows
        fine = [i for i in places if self.nodes[i].fitted.rows == whole and np.isfinite(self.nodes[i].bic)]
        return sorted(fine, key=lambda i: (self.nodes[i].bic, self.nodes[i].expression.key))

    def _tell(self, level: int, done: int, total: int, *, judging: bool = False) -> None:
        if self.progress is None:
            return
        ranked = self._ranked(range(len(self.nodes)))
        best = (self.nodes[ranked[0]].expression.text, self.nodes[ranked[0]].bic) if ranked else None
        self.progress(SearchProgress(level, done, total, best, self.elapsed, judging))


def _fit(problem: Problem, expression: Expression, effort: Effort, task: _Task) -> Fitted:
    """A task's fit; at module level, so that another process can do it."""
    return fit(problem, expression, effort, parent=task.start, periods=task.periods)
