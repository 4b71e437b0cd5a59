"""Curves that all users share, beside the lines of a population mean (method (44), (71)).

There are two estimates. A ridge takes all rows alike, and asks of each curve whether it helps to predict users who are
left out. A mixed model knows that users differ, and by how much. Which one predicts new users better is another for
every set of users, so they are averaged, weighed by leaving users out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.gp.mixed import MixedModel, Sums
from kerneltrail.gp.population import BUMPS, PopulationMean, bumps, design, ridge, ridge_left_out, size_of, some_of

Array = NDArray[np.float64]

PENALTIES = tuple(float(p) for p in np.logspace(-1, 4, 6))
"""Ridge penalties tried for a curve."""

LEAST_CURVE = 0.02
"""A curve that bends by less, in root mean squares of the target, is a line as far as anybody can tell."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Weights that users share, (q,), and the same without each user in turn, (M, q)."""

    weights: Array
    left_out: Array


def with_curves(lines: PopulationMean, users: Sequence[User]) -> PopulationMean:
    """The mean with a curve for each covariate that has one; as it is where there are not two users with rows.

    Curves are learnt from at most `MOST_USERS` users, and the lines beside them with them.

    Args:
        lines: a ridge of the same users.
        users: the pilot users, with covariates scaled to their range, on which the bumps lie.
    """
    known = [user for user in users if user.rows]
    if len(known) < 2:
        return lines
    some = some_of(known)
    designs = [design(user.X, user.covariates, lines.reward, user.assignment) for user in some]
    blocks = [(np.hstack([each, bumps(user.X, BUMPS)]), user.y) for each, user in zip(designs, some, strict=True)]
    sums = Sums.of(blocks)
    d, size = len(lines.covariates), size_of(some)
    weights = weighed(sums, by_ridge(sums, lines.penalty, d), by_mixed_model(sums, d, size))
    return _straightened(replace(lines, weights=weights, curves=BUMPS), np.concatenate([user.X for user in some]), size)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge on some of the features: their columns, penalties, weights without each user, and the errors of those."""

    columns: NDArray[np.int64]
    penalties: Array
    left_out: Array
    error: float

    @classmethod
    def of(cls, sums: Sums, columns: NDArray[np.int64], penalties: Array) -> _Ridge:
        part = sums.part(columns)
        left_out = ridge_left_out(part, penalties)
        return cls(columns, penalties, left_out, float(part.errors(left_out).sum()))

    def bent(self, sums: Sums, columns: NDArray[np.int64]) -> _Ridge:
        """With a curve more, at the best of the penalties."""
        more = np.r_[self.columns, columns]
        tried = [_Ridge.of(sums, more, np.r_[self.penalties, np.full(len(columns), each)]) for each in PENALTIES]
        return min(tried, key=lambda ridge: ridge.error)


def by_ridge(sums: Sums, penalty: float, d: int) -> Estimate:
    """The ridge (34) with curves that predict users who are left out better.

    They are taken one after the other, what gains most by itself first: the order of covariates must not matter.
    """
    q = sums.side.shape[1]
    straight = q - d * BUMPS
    lines = _Ridge.of(sums, np.arange(straight), np.r_[0.0, np.full(straight - 1, penalty)])
    curves = [straight + j * BUMPS + np.arange(BUMPS) for j in range(d)]
    alone = [(lines.bent(sums, columns), columns) for columns in curves]
    best = lines
    for first, columns in sorted(alone, key=lambda pair: pair[0].error):
        bent = first if best is lines else best.bent(sums, columns)
        best = bent if bent.error < best.error else best
    part = sums.part(best.columns)
    weights, left_out = np.zeros(q), np.zeros((len(sums.side), q))
    weights[best.columns] = ridge(part.gram.sum(axis=0), part.side.sum(axis=0), best.penalties)
    left_out[:, best.columns] = best.left_out
    return Estimate(weights, left_out)


def by_mixed_model(sums: Sums, d: int, size: float) -> Estimate:
    """The shared weights of the mixed model (35) in which users differ in every line and every curve.

    Shared lines have one prior variance, those of the action another, and each curve its own; so have users' own lines
    and curves, each one for itself.
    """
    q = sums.side.shape[1]
    straight = q - d * BUMPS
    actions = straight - 1 - d
    curves = np.repeat(np.arange(d), BUMPS)
    shared = np.r_[-1, np.zeros(d), np.ones(actions), (2 if actions else 1) + curves].astype(np.int64)
    own = np.r_[np.arange(straight), straight + curves]
    model = MixedModel.fit(sums, shared=shared, own=own, scale=size, quick=True)
    return Estimate(model.mean, model.left_out(sums))


def weighed(sums: Sums, first: Estimate, second: Estimate) -> Array:
    """The average of two estimates that predicts users who are left out best (method (71))."""
    apart = first.left_out - second.left_out
    along = sums.products(apart)
    above = float((apart * sums.side - along * second.left_out).sum())
    below = float((apart * along).sum())
    share = min(max(above / below, 0.0), 1.0) if below > 0.0 else 0.5
    return share * first.weights + (1.0 - share) * second.weights


def _straightened(mean: PopulationMean, rows: Array, size: float) -> PopulationMean:
    """The mean with lines in place of curves that hardly bend; `rows` are scaled."""
    weights, d = mean.weights.copy(), len(mean.covariates)
    for j in range(d):
        part = slice(len(weights) - (d - j) * BUMPS, len(weights) - (d - j - 1) * BUMPS)
        line = np.column_stack([np.ones(len(rows)), rows[:, j]])
        curve = bumps(rows[:, [j]], BUMPS) @ weights[part]
        straight = np.linalg.lstsq(line, curve, rcond=None)[0]
        if np.ptp(curve - line @ straight) < LEAST_CURVE * size:
            weights[[0, 1 + j]] += straight
            weights[part] = 0.0
    bent = weights[-d * BUMPS :].any()
    return replace(mean, weights=weights) if bent else replace(mean, weights=weights[: -d * BUMPS], curves=0)
