"""Curves that all users share, beside lines, and what covariates say of a user's level (method (44), (71), (73)).

There are two estimates. A Gaussian process of two levels knows that users differ, by how much, and how smooth curves
are: it is what changes for one user. A ridge takes all rows alike, so what differs between users is in it as well. How
much of that predicts users who are left out is said of a new user's level.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp.mixed import Sums
from kerneltrail.gp.population import (
    BUMPS,
    PLACES,
    PopulationMean,
    bumps,
    design,
    ridge,
    ridge_left_out,
    size_of,
    some_of,
)
from kerneltrail.gp.two_level import LevelRows, TwoLevelModel
from kerneltrail.gp.two_level import bumps as bumps_of_grid
from kerneltrail.gp.two_level_search import Learnt, Units, learn_from_some, level_rows, level_variance

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

PENALTIES = tuple(float(p) for p in np.logspace(-1, 4, 6))
"""Ridge penalties tried for a curve."""

FOLDS = 20
"""Users are left out one by one, or, where there are more, in so many groups."""

LEAST_CURVE = 0.02
"""A curve that bends by less, in root mean squares of the target, is a line as far as anybody can tell."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean that users share, and what it says at each user's rows if it is learnt without them, (n,) each."""

    mean: PopulationMean
    left_out: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class TwoLevels(Estimate):
    """The shared function of a Gaussian process of two levels, with what it was learnt from."""

    units: Units
    rows: tuple[LevelRows, ...]
    learnt: Learnt

    def around(self, levels: Array) -> PopulationMean:
        """The mean, with how users differ once so much is known of the level of each, (M,).

        Of all that differs between users, that is the level alone; so its variance is what is learnt anew.
        """
        assert self.mean.own is not None
        size = self.units.target_scale
        left = [replace(user, y=user.y - level / size) for user, level in zip(self.rows, levels.tolist(), strict=True)]
        own = self.mean.own.copy()
        own[0, 0] += size**2 * (level_variance(left, self.learnt) - float(self.learnt.levels.user[0]))
        return replace(self.mean, own=own)


def with_curves(lines: PopulationMean, users: Sequence[User]) -> PopulationMean:
    """The mean with a curve for each covariate that has one; as it is where there are not two users with rows.

    Curves are learnt from at most `MOST_USERS` users, and the lines beside them with them.

    Args:
        lines: a ridge of the same users.
        users: the pilot users, with covariates scaled to their range, over which the curves go.
    """
    known = [user for user in users if user.rows]
    if len(known) < 2:
        return lines
    some = some_of(known)
    folds = np.arange(len(some)) % FOLDS
    mean = _estimated(lines, some, folds)
    return _straightened(mean, np.concatenate([user.X for user in some]), size_of(some))


def _estimated(lines: PopulationMean, users: Sequence[User], folds: Numbers) -> PopulationMean:
    ridge = by_ridge(lines, users, folds)
    try:
        two = by_two_levels(lines, users, folds)
    except (NumericalError, np.linalg.LinAlgError) as problem:  # a fit is worth more than the better of two means
        warnings.warn(
            f"what users share could not be learnt on two levels: {problem}; it is the ridge's alone", stacklevel=2
        )
        return ridge.mean
    level = apart(ridge.mean, two.mean, weighed(users, ridge, two))
    if level is None:
        return two.mean
    said = [level.at(user.X, None) for user in users]
    mean = two.around(np.array([each.mean() for each in said]))
    return replace(mean, level=level, scatter=float(np.mean([each.var() for each in said])))


def by_ridge(lines: PopulationMean, users: Sequence[User], folds: Numbers) -> Estimate:
    """The ridge (34) with curves that predict users who are left out better.

    What it says of a user does not rest on the user's rows by the choice of curves either.

    Args:
        lines: the ridge without curves.
        users: scaled.
        folds: for each user the number of the group that is left out together.
    """
    designs = [_design(lines, user) for user in users]
    features = [np.hstack([each, bumps(user.X, BUMPS)]) for each, user in zip(designs, users, strict=True)]
    sums = Sums.of([(each, user.y) for each, user in zip(features, users, strict=True)]).joined_by(folds)
    count = len(sums.rows)
    others = [
        ridge_weights(sums.of_users(np.arange(count) != fold), lines.penalty, len(lines.covariates))
        for fold in range(count)
    ]
    left_out = tuple(each @ others[fold] for each, fold in zip(features, folds.tolist(), strict=True))
    weights = ridge_weights(sums, lines.penalty, len(lines.covariates))
    straight = designs[0].shape[1]
    shapes = bumps(np.clip(PLACES, 0.0, 1.0)[:, None], BUMPS)  # beyond the range bumps would vanish
    curves = weights[straight:].reshape(-1, BUMPS) @ shapes.T
    return Estimate(replace(lines, weights=weights[:straight], curves=curves), left_out)


def ridge_weights(sums: Sums, penalty: float, d: int) -> Array:
    """Weights of lines and bumps, (q,).

    Curves are taken one after the other, what gains most by itself first: the order of covariates must not matter.
    """
    q = sums.side.shape[1]
    straight = q - d * BUMPS
    lines = _Ridge.of(sums, np.arange(straight), np.r_[0.0, np.full(straight - 1, penalty)])
    best = lines
    if len(sums.rows) > 1:
        curves = [straight + j * BUMPS + np.arange(BUMPS) for j in range(d)]
        alone = [(lines.bent(sums, columns), columns) for columns in curves]
        for first, columns in sorted(alone, key=lambda pair: pair[0].error):
            bent = first if best is lines else best.bent(sums, columns)
            best = bent if bent.error < best.error else best
    part = sums.part(best.columns)
    weights = np.zeros(q)
    weights[best.columns] = ridge(part.gram.sum(axis=0), part.side.sum(axis=0), best.penalties)
    return weights


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A ridge on some of the features: their columns and penalties, and its squared errors of users left out."""

    columns: Numbers
    penalties: Array
    error: float

    @classmethod
    def of(cls, sums: Sums, columns: Numbers, penalties: Array) -> _Ridge:
        part = sums.part(columns)
        return cls(columns, penalties, float(part.errors(ridge_left_out(part, penalties)).sum()))

    def bent(self, sums: Sums, columns: Numbers) -> _Ridge:
        """With a curve more, at the best of the penalties."""
        more = np.r_[self.columns, columns]
        tried = [_Ridge.of(sums, more, np.r_[self.penalties, np.full(len(columns), each)]) for each in PENALTIES]
        return min(tried, key=lambda ridge: ridge.error)


def by_two_levels(lines: PopulationMean, users: Sequence[User], folds: Numbers) -> TwoLevels:
    """The shared function of a Gaussian process in which every user has one more (method §10.3).

    Args:
        lines: whose features it has; their weights do not matter.
        users: scaled.
        folds: for each user the number of the group that is left out together.
    """
    d = len(lines.covariates)
    units = Units.of(users)
    rows = [level_rows(user, lines.covariates, units, lines.reward) for user in users]
    learnt = learn_from_some(rows)
    model, designs, eliminated = TwoLevelModel.eliminated(rows, learnt.levels, learnt.deviations)
    variances = learnt.levels.population[model.owner(model.grids)]
    others = [eliminated.of_users(folds != fold).shared(variances).mean for fold in range(int(folds.max()) + 1)]
    centre, size = units.target_centre, units.target_scale
    left_out = tuple(centre + size * (phi @ others[k]) for phi, k in zip(designs, folds.tolist(), strict=True))
    shared = eliminated.shared(variances)
    weights = size * shared.mean
    turn = np.eye(model.lines)  # lines of standardised covariates, in weights of the scaled ones
    turn[1 : 1 + d, 1 : 1 + d] /= units.scale
    turn[0, 1 : 1 + d] = -units.centre / units.scale
    straight = turn @ weights[: model.lines]
    straight[0] += centre
    # A new user's lines are off by how users differ, and by what is not known of the shared ones (method (75)).
    off = shared.covariance[: model.lines, : model.lines] + np.diag(learnt.levels.user[: model.lines])
    own = size**2 * turn @ off @ turn.T
    starts = model.lines + np.cumsum([0, *map(len, model.grids)])
    curves = []
    for j, grid in enumerate(model.grids):
        places = (PLACES - units.centre[j]) / (units.scale[j] * learnt.levels.lengthscale[j])
        curves.append(bumps_of_grid(places, grid) @ weights[starts[j] : starts[j + 1]])
    mean = replace(lines, weights=straight, curves=np.array(curves), own=own)
    return TwoLevels(mean, left_out, units, tuple(rows), learnt)


def weighed(users: Sequence[User], first: Estimate, second: Estimate) -> float:
    """The share of the first in the average of two estimates that predicts users left out best (method (71))."""
    mine, other = np.concatenate(first.left_out), np.concatenate(second.left_out)
    apart, left = mine - other, np.concatenate([user.y for user in users]) - other
    below = float(apart @ apart)
    return min(max(float(apart @ left) / below, 0.0), 1.0) if below > 0.0 else 0.0


def apart(first: PopulationMean, second: PopulationMean, share: float) -> PopulationMean | None:
    """So much of how far the first lies above the second, without the action; None for nothing. Both have curves."""
    assert first.curves is not None
    assert second.curves is not None
    if share == 0.0:
        return None
    straight = 1 + len(first.covariates)
    weights = share * (first.weights - second.weights)[:straight]
    return PopulationMean(weights, first.covariates, None, first.penalty, share * (first.curves - second.curves))


def _design(lines: PopulationMean, user: User) -> Array:
    return design(user.X, lines.covariates, lines.reward, user.assignment)


def _straightened(mean: PopulationMean, rows: Array, size: float) -> PopulationMean:
    """The mean with lines in place of curves that hardly bend; `rows` are scaled."""
    assert mean.curves is not None
    weights, curves = mean.weights.copy(), mean.curves.copy()
    for j, curve in enumerate(curves):
        line = np.column_stack([np.ones(len(rows)), rows[:, j]])
        values = np.interp(rows[:, j], PLACES, curve)
        straight = np.linalg.lstsq(line, values, rcond=None)[0]
        if np.ptp(values - line @ straight) < LEAST_CURVE * size:
            weights[[0, 1 + j]] += straight
            curves[j] = 0.0
    return replace(mean, weights=weights, curves=curves if curves.any() else None)
