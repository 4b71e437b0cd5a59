"""One candidate of the search, fitted by MAP and scored by BIC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.gp import LinearBlock, one_blas_thread
from kerneltrail.kernels import Priors
from kerneltrail.methods.cks.candidate import Candidate
from kerneltrail.methods.cks.evidence import Rows
from kerneltrail.methods.cks.expression import Expression
from kerneltrail.methods.cks.layout import ExpressionParameters, expression_layout
from kerneltrail.methods.cks.period_guard import allowed, limits_of
from kerneltrail.methods.cks.starting_points import starts_for
from kerneltrail.methods.periods import PeriodLimits, Periods
from kerneltrail.methods.protocol import Array
from kerneltrail.store.digest import blake

APART = 0.3
"""Starts closer than this in every hyperparameter, in prior standard deviations, count as one."""


@dataclass(frozen=True)
class Effort:
    """How hard one candidate is searched.

    Attributes:
        draws: starts tried with what is new in the child drawn from the prior, and as many with all of it drawn.
        kept: how many of the first kind are followed to an optimum.
        fresh: how many of the second kind, at least.
        small: of the second kind, kernels of few atoms follow `small` less the number of their atoms, if that is more:
            what a search builds on is found there, and there it is cheap.
        starts: random restarts besides, spread over the prior.
        screen: points from which those are chosen.
        accuracy: relative change of the log posterior at which a search ends.
    """

    draws: int = 8
    kept: int = 1
    fresh: int = 1
    small: int = 0
    starts: int = 0
    screen: int = 8
    accuracy: float = 1e-4


@dataclass(frozen=True)
class FitData:
    """The rows to be explained, scaled, as one batch, and all that a fit needs beside the kernel.

    `limits` and `periods` are the periods allowed and those likely on each covariate; `seed` is that of all random
    starts, `tol` the error allowed in a log evidence.
    """

    user: User
    priors: Priors
    limits: PeriodLimits = field(default_factory=dict)
    periods: Periods = field(default_factory=dict)
    block: LinearBlock | None = None
    seed: int = 0
    tol: float = 1e-6

    @cached_property
    def rows(self) -> Rows:
        """The rows as kernels see them."""
        return Rows(self.user, self.block)

    @cached_property
    def columns(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each covariate."""
        columns = zip(self.user.covariates, self.user.X.T, strict=True)
        return {name: (float(column.mean()), float(column.std())) for name, column in columns}

    def thinned(self, rows: int) -> FitData:
        """The problem on so many rows, drawn at random and kept in order; itself if there are no more than that.

        At random, not every k-th: that would turn short periods into long ones.
        """
        if self.user.rows <= rows:
            return self
        return self.at(np.sort(self.rng("thin").permutation(self.user.rows)[:rows]))

    def at(self, chosen: NDArray[np.int_]) -> FitData:
        """The problem on some of the rows."""
        user = self.user
        fewer = User(user.name, user.covariates, user.X[chosen], user.y[chosen], (len(chosen),))
        block = None if self.block is None else self.block.at(self.block.features[chosen])
        return replace(self, user=fewer, block=block)

    def rng(self, *what: str) -> np.random.Generator:
        """Random numbers that depend on the seed, the rows and the purpose alone, not on who asked before.

        Covariates enter by name, so their order does not matter.
        """
        names = sorted(self.user.covariates)
        columns = (part for name in names for part in (name, self.user.X[:, self.user.column_index(name)]))
        seed = blake(*columns, self.user.y, "\0".join((str(self.seed), *what)))
        return np.random.default_rng(int.from_bytes(seed, "little"))


@dataclass(frozen=True)
class FittedExpression:
    """A candidate after its fit to so many rows.

    `kernel` has the maximum a posteriori hyperparameters, and is None where there are none to be used: the BIC is then
    infinite. `status` is ``fitted``, ``period`` (the guard rejected it) or ``numerical`` (no start could be evaluated).
    """

    kernel: ExpressionParameters | None
    log_likelihood: float
    bic: float
    rows: int
    status: str


def parameters(expression: Expression) -> int:
    """Free hyperparameters: amplitudes that can be told apart and what the atoms have; the noise is not counted.

    >>> from kerneltrail.methods.cks.expression import leaf, plus, times
    >>> parameters(times(leaf("PER", "x"), plus(leaf("LIN", "x"), leaf("SE", "x"))))
    6
    """
    return expression_layout(expression).size - 1


def bic(log_likelihood: float, expression: Expression, rows: int) -> float:
    """BIC = 2·NLL + p·log n (method (36)): smaller is better."""
    return -2.0 * log_likelihood + parameters(expression) * float(np.log(rows))


def fit(
    data: FitData,
    expression: Expression,
    effort: Effort,
    *,
    parent: ExpressionParameters | None = None,
    periods: Periods | None = None,
) -> FittedExpression:
    """Fit a candidate by MAP from its parent's values and from random restarts.

    The parent is the fitted expression it was made from, or itself fitted on fewer rows. `periods` are those likely in
    what the parent leaves unexplained, tried besides the problem's own.
    """
    rng = data.rng("fit", expression.text, repr(effort))
    candidate = Candidate(data.rows, data.priors, expression, data.tol)
    with one_blas_thread():
        ends = candidate.climb(_chosen(data, candidate, effort, parent, periods or {}, rng), effort.accuracy)
    if not ends:
        return FittedExpression(None, -np.inf, np.inf, data.user.rows, "numerical")
    for end in ends:
        kernel = ExpressionParameters(expression, tuple(end.vector))
        if allowed(kernel, data.limits):
            score = bic(end.log_evidence, expression, data.user.rows)
            return FittedExpression(kernel, end.log_evidence, score, data.user.rows, "fitted")
    return FittedExpression(None, -np.inf, np.inf, data.user.rows, "period")


def _chosen(
    data: FitData,
    candidate: Candidate,
    effort: Effort,
    parent: ExpressionParameters | None,
    periods: Periods,
    rng: np.random.Generator,
) -> Array:
    """The starts that are followed to an optimum."""
    both = {name: zip_longest(data.periods.get(name, ()), periods.get(name, ())) for name in data.user.covariates}
    likely = {name: tuple(each for each in chain(*pairs) if each is not None) for name, pairs in both.items()}
    mean, variance = candidate.moments
    starts = starts_for(candidate.expression, (mean, variance), parent, data.columns, likely, rng, effort.draws)
    anywhere = mean + np.sqrt(variance) * rng.standard_normal((effort.screen if effort.starts else 0, len(mean)))
    heirs = 0 if parent is None else effort.kept
    fresh = max(effort.fresh + effort.kept - heirs, effort.small - candidate.expression.size)
    kinds = max(1, *(len(each) for each in likely.values()))
    return np.concatenate(
        [
            _screened(data, candidate, starts.heir, heirs, kinds),
            _screened(data, candidate, starts.fresh, fresh, kinds),
            _screened(data, candidate, anywhere, effort.starts),
        ]
    )


def _screened(data: FitData, candidate: Candidate, points: Array, count: int, kinds: int = 1) -> Array:
    """The `count` best points that are not close to each other; periods are moved to what the guard allows.

    Where a kernel has periods, points are of so many `kinds` in turn, one for each likely period, and the best of each
    kind come first: a point that is good where it stands may be far from the period that is best in the end.
    """
    if not count or not len(points):
        return points[:0]
    periodic = False
    for i, slot in enumerate(expression_layout(candidate.expression).slots):
        periodic |= slot.spec.kind == "period"
        shortest, longest = limits_of(slot, data.limits)
        if 0.0 < shortest <= longest and np.isfinite(shortest):
            points[:, i] = np.clip(points[:, i], np.log(shortest), np.log(longest))
    if len(points) == 1:
        return points
    log = candidate.log_posteriors(points)
    mean, variance = candidate.moments
    whitened = (points - mean) / np.sqrt(variance)
    ranked = [int(i) for i in np.argsort(-log, kind="stable") if np.isfinite(log[i])]
    if periodic:
        turn = {i: [j for j in ranked if j % kinds == i % kinds].index(i) for i in ranked}
        ranked.sort(key=lambda i: turn[i])  # stable: within a turn, the best first
    picked: list[int] = []
    for i in ranked:
        if len(picked) == count:
            break
        if all(np.abs(whitened[i] - whitened[j]).max() > APART for j in picked):
            picked.append(i)
    return points[picked]
