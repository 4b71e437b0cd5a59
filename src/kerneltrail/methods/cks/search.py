"""The compositional kernel search (Duvenaud et al. 2013; method §10.1): greedy, level by level, by BIC."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from kerneltrail.data import User
from kerneltrail.engines import Serial, engine_for, results
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import LinearBlock, one_blas_thread
from kerneltrail.kernels import Priors, log_normal, normal
from kerneltrail.methods.cks.evidence import ExpressionPosterior
from kerneltrail.methods.cks.expression import Expression, numbered
from kerneltrail.methods.cks.fit import Effort, FitData, FittedExpression, fit
from kerneltrail.methods.cks.grammar import base_expressions, expand
from kerneltrail.methods.cks.holdout import held_out_score
from kerneltrail.methods.cks.layout import ExpressionParameters
from kerneltrail.methods.cks.search_tree import SearchNode, SearchTree
from kerneltrail.methods.cks.settings import SearchSettings
from kerneltrail.methods.periods import PeriodLimits, Periods, periods_within
from kerneltrail.methods.protocol import Array

T = TypeVar("T")


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
    start: ExpressionParameters | None
    periods: Periods


def search(
    user: User,
    priors: Priors | None = None,
    settings: SearchSettings | None = None,
    *,
    block: LinearBlock | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchTree:
    """Search the kernels of the grammar (method §10.1) for one user's rows.

    The rows are scaled to what the priors are meant for (`wide_priors` if None); batches do not matter. `block` is the
    linear block of a reward model; `progress` is called after every fit.
    """
    if not user.rows:
        raise DataError(f"user {user.name!r} has no rows yet, so there is nothing to search by")
    return _Search(user, priors, settings or SearchSettings(), block, progress).run()


def wide_priors(limits: PeriodLimits) -> Priors:
    """Priors that say little: what they say is the scale of the data.

    A lengthscale lies within a few factors of ten of a third of the range, the noise below the target's variance, a
    straight line crosses zero in or near the range. A period lies anywhere from the shortest to the longest that
    `limits` allow on the scaled covariate, or the range: both ends are two standard deviations of the logarithm from
    the middle.
    """
    by_kind = {
        "lengthscale": log_normal(-1.0, scale=1.5),
        "amplitude": log_normal(0.0, scale=2.0),
        "period": log_normal(-1.0, scale=1.0),
        "noise": log_normal(-3.0, scale=2.0),
        "location": normal(0.5, scale=1.0),
    }
    priors = Priors(by_kind)
    for name, (shortest, longest) in limits.items():
        lowest, highest = max(shortest, 1e-6), min(longest, 1.0)
        if 2.0 * lowest < highest:
            middle, width = 0.5 * math.log(lowest * highest), math.log(highest / lowest)
            priors = priors.override("period", name, log_normal(middle, scale=0.25 * width))
    return priors


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
        self.data = FitData(
            user.with_ends((user.rows,)),
            wide_priors(limits) if priors is None else priors,
            limits,
            periods_within(user, user.y, limits),
            block,
            settings.seed,
            settings.tol,
        )
        self.fewer = self.data.thinned(settings.thin)
        self.base = base_expressions(user.covariates, settings.kinds)
        self.nodes: list[SearchNode] = []
        self.visited: set[Expression] = set()
        self.fits = 0
        self.engine = engine_for(settings.workers)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def late(self) -> bool:
        return self.settings.seconds is not None and self.elapsed >= self.settings.seconds

    @property
    def left(self) -> int | None:
        """Fits that may still be begun; None for any number."""
        return None if self.settings.fits is None else max(0, self.settings.fits - self.fits)

    @property
    def _some(self) -> bool:
        """Whether any kernel could be fitted: without one, no limit ends the search."""
        return any(node.fitted.kernel is not None for node in self.nodes)

    def run(self) -> SearchTree:
        tasks = [_Task(each, None, None, {}) for each in self.base]
        best, quiet, stopped = np.inf, 0, "depth"
        for level in range(self.settings.depth + 1):
            newest = self._level(level, tasks)
            if not newest or self.late or self.left == 0:
                stopped = "seconds" if self.late else "fits" if self.left == 0 else "exhausted"
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
        if self.settings.choose != "bic":
            self._judge()
        return SearchTree(tuple(self.nodes), self.data.user.rows, stopped, self.elapsed)

    def _children(self, parents: Sequence[int]) -> list[_Task]:
        """What one step makes of some nodes, without what was tried before."""
        tasks: list[_Task] = []
        known = set(self.visited)
        for index in parents:
            node = self.nodes[index]
            kernel = node.fitted.kernel
            assert kernel is not None  # only fitted nodes are expanded
            periods = periods_within(self.data.user, self._left(kernel), self.data.limits)
            for child in expand(node.expression, self.base):
                if child not in known:
                    known.add(child)
                    tasks.append(_Task(child, index, kernel, periods))
        return tasks

    def _left(self, kernel: ExpressionParameters) -> Array:
        """What a fitted kernel leaves of the target: σ² K⁻¹ y."""
        try:
            with one_blas_thread():
                alpha = ExpressionPosterior(self.data.rows, kernel).alpha
        except NumericalError:
            return self.data.user.y
        return kernel.values_array[-1] * alpha

    def _level(self, level: int, tasks: Sequence[_Task]) -> list[int]:
        """Fit a level's candidates, then the best of them to all rows; the indices of those, best first."""
        start = len(self.nodes)
        waiting = list(tasks)
        while waiting and not (self._some and (self.late or self.left == 0)):
            size = self.settings.workers if self.left is None else max(1, min(self.settings.workers, self.left))
            batch, waiting = waiting[:size], waiting[size:]
            for task, fitted in zip(batch, self._fits(self.fewer, self.settings.first, batch), strict=True):
                self.nodes.append(SearchNode(level, task.expression, task.parent, fitted))
                self.visited.add(task.expression)
            self._tell(level, len(self.nodes) - start, len(tasks))
        self._refit(range(start, len(self.nodes)), tasks, level)
        return self._ranked(range(start, len(self.nodes)))

    def _refit(self, places: range, tasks: Sequence[_Task], level: int) -> None:
        """Fit the best of a level to all rows, more thoroughly."""
        fitted = self._best_first(i for i in places if self.nodes[i].fitted.kernel is not None)
        chosen = fitted[: max(self.settings.refits, self.settings.beam)]
        for first in range(0, len(chosen), self.settings.workers):
            # Something has to be fitted to all rows, however late it is.
            if self.late and self._ranked(range(len(self.nodes))):
                return
            batch = chosen[first : first + self.settings.workers]
            from_first_look = []
            for node, task in ((self.nodes[i], tasks[i - places.start]) for i in batch):
                from_first_look.append(replace(task, expression=numbered(node.expression), start=node.fitted.kernel))
            for i, again in zip(batch, self._fits(self.data, self.settings.second, from_first_look), strict=True):
                old = self.nodes[i].fitted
                # On the same rows the better of the two fits stands, whichever found it.
                if old.rows < again.rows or again.bic < old.bic:
                    self.nodes[i] = replace(self.nodes[i], fitted=again)
            self._tell(level, len(places), len(tasks))

    def _judge(self) -> None:
        """Score the best by BIC on held-out rows. Once the time is up, only kernels with a score can win."""
        holdout, chunk = self.settings.holdout, self.settings.workers
        chosen = self._ranked(range(len(self.nodes)))[: holdout.most]
        if self.data.user.rows < holdout.fewest:
            return
        level = 1 + max(node.level for node in self.nodes)
        for first in range(0, len(chosen), chunk):
            if self.late:
                return
            batch = chosen[first : first + chunk]
            kernels = [(self.nodes[i].fitted.kernel, holdout) for i in batch]  # what is ranked has one
            for i, score in zip(batch, self._all(held_out_score, kernels, self.data), strict=True):
                self.nodes[i] = replace(self.nodes[i], held_out=score)
            self._tell(level, min(first + chunk, len(chosen)), len(chosen), judging=True)

    def _fits(self, data: FitData, effort: Effort, tasks: Sequence[_Task]) -> list[FittedExpression]:
        self.fits += len(tasks)
        return self._all(_fit, [(effort, task) for task in tasks], data)

    def _all(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], data: FitData) -> list[T]:
        """The results of a function of the rows for each of some arguments, in their order."""
        engine = self.engine if len(arguments) > 1 else Serial()
        ready = dict(results(engine, function, enumerate(arguments), data))
        return [ready[i] for i in range(len(arguments))]

    def _ranked(self, places: range) -> list[int]:
        """The nodes among some that are fitted to all rows, best first."""
        whole = self.data.user.rows
        return self._best_first(
            i for i in places if self.nodes[i].fitted.rows == whole and np.isfinite(self.nodes[i].bic)
        )

    def _best_first(self, places: Iterable[int]) -> list[int]:
        return sorted(places, key=lambda i: (self.nodes[i].bic, self.nodes[i].expression.key))

    def _tell(self, level: int, done: int, total: int, *, judging: bool = False) -> None:
        if self.progress is None:
            return
        ranked = self._ranked(range(len(self.nodes)))
        best = (self.nodes[ranked[0]].expression.text, self.nodes[ranked[0]].bic) if ranked else None
        self.progress(SearchProgress(level, done, total, best, self.elapsed, judging))


def _fit(data: FitData, effort: Effort, task: _Task) -> FittedExpression:
    """A task's fit; at module level, so that another process can do it."""
    return fit(data, task.expression, effort, parent=task.start, periods=task.periods)
