"""One candidate of the search, fitted by MAP and scored by BIC."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kerneltrail.baselines.cks.guard import Limits, allowed, limits_of
from kerneltrail.baselines.cks.starts import starts_for
from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock, MapResult, evidence_of, find_map, inputs_for, one_blas_thread
from kerneltrail.kernels import Composition, Hyperparameters, Priors, layout_of

Array = NDArray[np.float64]
Periods = Mapping[str, tuple[float, ...]]

APART = 0.3
"""Starts closer than this in every hyperparameter, in prior standard deviations, count as one."""


@dataclass(frozen=True)
class Effort:
    """How hard one candidate is searched.

    Attributes:
        draws: starts tried with what is new in the child drawn from the prior, and as many with all of it drawn.
        kept: how many of the first kind are followed to an optimum.
        fresh: how many of the second kind.
        starts: random restarts besides, spread over the prior.
        screen: points from which those are chosen.
        accuracy: relative change of the log posterior at which a search ends.
    """

    draws: int = 8
    kept: int = 1
    fresh: int = 1
    starts: int = 0
    screen: int = 8
    accuracy: float = 1e-4


@dataclass(frozen=True)
class Problem:
    """The rows to be explained, and all that a fit needs beside the kernel.

    Attributes:
        user: rows, scaled, as one batch.
        priors: over hyperparameters.
        limits: the shortest and longest period allowed on each covariate.
        periods: likely periods on each covariate.
        block: a linear block, or None.
        seed: of all random starts.
        tol: error allowed in a log evidence.
    """

    user: User
    priors: Priors
    limits: Limits = field(default_factory=dict)
    periods: Periods = field(default_factory=dict)
    block: LinearBlock | None = None
    seed: int = 0
    tol: float = 1e-6

    def thinned(self, rows: int) -> Problem:
        """The problem on so many rows, drawn at random and kept in order; itself if there are no more than that.

        At random, not every k-th: that would turn short periods into long ones.
        """
        user = self.user
        if user.rows <= rows:
            return self
        chosen = np.sort(self.rng("thin").permutation(user.rows)[:rows])
        fewer = User(user.name, user.covariates, user.X[chosen], user.y[chosen], (rows,))
        block = None if self.block is None else self.block.at(self.block.features[chosen])
        return replace(self, user=fewer, block=block)

    def rng(self, *what: str) -> np.random.Generator:
        """Random numbers that depend on the seed, the rows and the purpose alone, not on who asked before.

        Covariates enter by name, so their order does not matter.
        """
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(self.user.covariates):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.user.X[:, self.user.column_index(name)]).tobytes())
        digest.update(self.user.y.tobytes())
        digest.update("\0".join((str(self.seed), *what)).encode())
        return np.random.default_rng(int.from_bytes(digest.digest(), "little"))


@dataclass(frozen=True)
class Fitted:
    """A candidate after its fit.

    Attributes:
        hyperparameters: maximum a posteriori; None where there is none that may be used.
        log_likelihood: log p(y|X,θ) there.
        bic: 2·NLL + p·log n; infinite where there is no fit.
        rows: n.
        status: ``fitted``, ``period`` (the guard rejected it) or ``numerical`` (no start could be evaluated).
    """

    hyperparameters: Hyperparameters | None
    log_likelihood: float
    bic: float
    rows: int
    status: str


def parameters(composition: Composition) -> int:
    """Free hyperparameters: one amplitude for each product and what its atoms have; the noise is not counted.

    >>> from kerneltrail.kernels import parse
    >>> parameters(parse("LIN[x] + PER[x]*SE[x]"))
    6
    """
    return layout_of(composition).size - 1


def bic(log_likelihood: float, composition: Composition, rows: int) -> float:
    """BIC = 2·NLL + p·log n (SPEC §10): smaller is better."""
    return -2.0 * log_likelihood + parameters(composition) * float(np.log(rows))


def fit(
    problem: Problem,
    composition: Composition,
    effort: Effort,
    *,
    parent: Hyperparameters | None = None,
    periods: Periods | None = None,
) -> Fitted:
    """Fit a candidate by MAP from its parent's values and from random restarts.

    Args:
        problem: the rows.
        composition: the candidate.
        effort: how hard to search.
        parent: fitted hyperparameters of the expression it was made from, or of itself on fewer rows.
        periods: periods likely in what the parent leaves unexplained, tried besides the problem's own.
    """
    rng = problem.rng("fit", composition.text, repr(effort))
    with one_blas_thread():
        chosen = _chosen(problem, composition, effort, parent, periods or {}, rng)
        try:
            found = _search(problem, composition, effort, chosen, effort.starts, rng)
            if not allowed(found.hyperparameters, problem.limits) and chosen:
                # What a random start ran away to says nothing against the other starts.
                found = min(
                    (_search(problem, composition, effort, [one], 0, rng) for one in chosen),
                    key=lambda each: (not allowed(each.hyperparameters, problem.limits), -each.log_posterior),
                )
        except NumericalError:
            return Fitted(None, -np.inf, np.inf, problem.user.rows, "numerical")
    if not allowed(found.hyperparameters, problem.limits):
        return Fitted(None, -np.inf, np.inf, problem.user.rows, "period")
    score = bic(found.log_evidence, composition, problem.user.rows)
    return Fitted(found.hyperparameters, found.log_evidence, score, problem.user.rows, "fitted")


def _search(
    problem: Problem,
    composition: Composition,
    effort: Effort,
    warm: list[Array],
    starts: int,
    rng: np.random.Generator,
) -> MapResult:
    return find_map(
        problem.user,
        composition,
        problem.priors,
        rng=rng,
        starts=starts if warm else max(starts, 1),
        screen=effort.screen,
        warm=warm,
        block=problem.block,
        tol=problem.tol,
        accuracy=effort.accuracy,
    )


def _chosen(
    problem: Problem,
    composition: Composition,
    effort: Effort,
    parent: Hyperparameters | None,
    periods: Periods,
    rng: np.random.Generator,
) -> list[Array]:
    """The starts that are followed to an optimum."""
    user = problem.user
    centre = dict(zip(user.covariates, user.X.mean(axis=0).tolist(), strict=True))
    likely = {name: tuple(_in_turn(problem.periods.get(name, ()), periods.get(name, ()))) for name in user.covariates}
    starts = starts_for(composition, problem.priors.moments(composition), parent, centre, likely, rng, effort.draws)
    if parent is None:
        return list(_screened(problem, composition, starts.fresh, effort.kept + effort.fresh))
    return [
        *_screened(problem, composition, starts.heir, effort.kept),
        *_screened(problem, composition, starts.fresh, effort.fresh),
    ]


def _in_turn(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """One of each in turn."""
    return [value for pair in zip_longest(first, second) for value in pair if value is not None]


def _screened(problem: Problem, composition: Composition, points: Array, count: int) -> Array:
    """The `count` best points that are not close to each other; periods are moved to what the guard allows."""
    if not count:
        return points[:0]
    for i, slot in enumerate(layout_of(composition).slots):
        shortest, longest = limits_of(slot, problem.limits)
        if 0.0 < shortest <= longest and np.isfinite(shortest):
            points[:, i] = np.clip(points[:, i], np.log(shortest), np.log(longest))
    mean, variance = problem.priors.moments(composition)
    inputs = inputs_for(problem.user, composition, block=problem.block)
    log = np.full(len(points), -np.inf)
    for i, point in enumerate(points):
        try:
            log[i] = evidence_of(inputs, point, tol=problem.tol).log[0, -1]
        except NumericalError:
            continue
    whitened = (points - mean) / np.sqrt(variance)
    log -= 0.5 * (whitened**2).sum(axis=1)
    picked: list[int] = []
    for i in np.argsort(-log, kind="stable"):
        if len(picked) == count or not np.isfinite(log[i]):
            break
        if all(np.abs(whitened[i] - whitened[j]).max() > APART for j in picked):
            picked.append(int(i))
    return points[picked]
