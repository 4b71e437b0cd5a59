"""A Gaussian process of two levels: a function that all users share, and for each user one more around it.

cov(y_mi, y_nj) = k_pop(x, x') + [m = n]·k_user(x, x') + [same row]·σ² (method §10.3). Both kernels are sums over the
same features with amplitudes of their own, so the shared function is a Normal over r weights w, a user's is one over
weights u_m, and users are eliminated one by one: nothing is of the size of all rows.

A squared exponential is a sum over an endless grid of Gaussian bumps. A bump is felt only near its centre, so a grid
around the rows is all that is needed, wherever they lie, and new rows far away bring bumps of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp.numerics import LOG_2PI, factorise

Array = NDArray[np.float64]

SPACING = 0.45
"""Distance of neighbouring bumps in lengthscales: the kernel then ripples by 2·exp(-π²/(2·0.45²)) = 5e-11."""
REACH = 4.8
"""Lengthscales past which a bump is not felt: it is exp(-4.8²) = 1e-10 there."""
NEGLIGIBLE = 1e-10
"""Share of a covariate's variance below which a direction of its bumps is left out while hyperparameters are learnt."""

_HEIGHT = (SPACING * np.sqrt(2.0 / np.pi)) ** 0.5
_STEPS = np.arange(-np.ceil(REACH / SPACING), np.ceil(REACH / SPACING) + 1.0)


@dataclass(frozen=True, eq=False)
class LevelRows:
    """One user's rows.

    Attributes:
        lines: features that are what they are: a constant, the covariates, the action's, (n, q).
        X: covariates that have a smooth part, (n, d).
        y: target, (n,).
    """

    lines: Array
    X: Array
    y: Array


@dataclass(frozen=True, eq=False)
class Levels:
    """Hyperparameters of both levels; groups are the q lines, then the smooth parts of the d covariates.

    Attributes:
        population: variance of each group's weights in the shared function, (q + d,).
        user: variance of each group's weights between users, (q + d,).
        lengthscale: of the smooth parts, for both levels, (d,).
        noise: σ².
    """

    population: Array
    user: Array
    lengthscale: Array
    noise: float

    @classmethod
    def from_vector(cls, theta: Array, lines: int) -> Levels:
        """From logarithms in the order of the attributes, (2(q + d) + d + 1,)."""
        d = (len(theta) - 1 - 2 * lines) // 3
        values = np.exp(theta)
        population, user, lengthscale, noise = np.split(values, np.cumsum([lines + d, lines + d, d]))
        return cls(population, user, lengthscale, float(noise[0]))

    @property
    def vector(self) -> Array:
        """Their logarithms, in the order of the attributes."""
        return np.log(np.concatenate([self.population, self.user, self.lengthscale, [self.noise]]))

    @property
    def size(self) -> int:
        """How many hyperparameters there are."""
        return len(self.population) + len(self.user) + len(self.lengthscale) + 1


def grid_around(z: Array) -> Array:
    """Numbers of the bumps that are felt at some of the points z, in lengthscales."""
    near = np.unique(np.round(z / SPACING))
    return np.unique(near[:, None] + _STEPS)


def bumps(z: Array, grid: Array) -> Array:
    """Bumps of the grid at points z, (n, g): over the whole grid, inner products are exp(-(z - z')²/2).

    >>> z = np.array([0.0, 1.0])
    >>> phi = bumps(z, grid_around(z))
    >>> bool(abs((phi @ phi.T)[0, 1] - np.exp(-0.5)) < 1e-10)
    True
    """
    return np.asarray(_HEIGHT * np.exp(-((z[:, None] - SPACING * grid) ** 2)))


class TwoLevelEvidence:
    """The log evidence of all users together and its gradient, as a function of the hyperparameters' logarithms."""

    def __init__(self, users: Sequence[LevelRows]) -> None:
        self.users = tuple(users)
        self.lines = np.concatenate([user.lines for user in users])
        self.X = np.concatenate([user.X for user in users])
        self.y = np.concatenate([user.y for user in users])
        ends = np.cumsum([len(user.y) for user in users])
        self.parts = [slice(end - len(user.y), end) for end, user in zip(ends.tolist(), users, strict=True)]
        self.counts = np.array([len(user.y) for user in users], dtype=np.float64)

    @property
    def size(self) -> int:
        """Number of hyperparameters."""
        return 2 * self.lines.shape[1] + 3 * self.X.shape[1] + 1

    def features(self, lengthscale: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Features of all rows, their slopes by the log lengthscale, (N, r), and the group of each, (r,)."""
        q = self.lines.shape[1]
        parts, slopes, owner = [self.lines], [np.zeros_like(self.lines)], [np.arange(q)]
        for j, scale in enumerate(lengthscale.tolist()):
            z = self.X[:, j] / scale
            grid = grid_around(z)
            phi = bumps(z, grid)
            # Directions in which the rows hardly differ are left out: the bumps overlap.
            values, vectors = np.linalg.eigh(phi.T @ phi)
            kept = vectors[:, values > NEGLIGIBLE * len(z)]
            slope = phi * (2.0 * z[:, None] * (z[:, None] - SPACING * grid))
            parts.append(phi @ kept)
            slopes.append(slope @ kept)
            owner.append(np.full(kept.shape[1], q + j))
        return np.hstack(parts), np.hstack(slopes), np.concatenate(owner)

    def __call__(self, theta: Array, deviations: Array) -> Slopes:
        """log p(y|θ) and its slopes, where users' log noise deviates from the common one, (M,)."""
        levels = Levels.from_vector(theta, self.lines.shape[1])
        phi, slope, owner = self.features(levels.lengthscale)
        gram = np.stack([phi[rows].T @ phi[rows] for rows in self.parts])
        side = np.stack([phi[rows].T @ self.y[rows] for rows in self.parts])
        squares = np.array([self.y[rows] @ self.y[rows] for rows in self.parts])
        between, noise = levels.user[owner], levels.noise * np.exp(deviations)
        eliminated = Eliminated.of(gram, side, between, noise)
        shared = eliminated.shared(levels.population[owner])
        r = phi.shape[1]

        explained = np.einsum("mj,mj->m", side, np.einsum("mjk,k,mk->mj", eliminated.inverse, between, side))
        quad = float(((squares - explained) / noise).sum()) - float(eliminated.pull.sum(axis=0) @ shared.mean)
        logdet = float(((self.counts - r) * np.log(noise) + eliminated.logdet).sum()) + shared.logdet
        log = -0.5 * (quad + logdet + self.counts.sum() * LOG_2PI)

        # α = C⁻¹y, of each user (y - Φ(w + u))/σ² at the posterior means; P = Φ'V⁻¹Φ of each user, T = (σ²I + BΦ'Φ)⁻¹.
        p, t, s = eliminated.precision, eliminated.inverse, shared.covariance
        q = eliminated.pull - p @ shared.mean  # Φ'α
        v = shared.mean + between * q
        population = 0.5 * (shared.mean**2 / levels.population[owner] - 1.0 + np.diagonal(s) / levels.population[owner])
        ps = p @ s
        spread = np.einsum("mjj->mj", p) - np.einsum("mjk,mkj->mj", ps, p)
        user = 0.5 * between * (q**2 - spread).sum(axis=0)
        residual = [self.y[rows] - phi[rows] @ v[m] for m, rows in enumerate(self.parts)]
        alpha2 = np.array([e @ e for e in residual]) / noise**2
        trace = (self.counts - r) / noise + np.einsum("mjj->m", t) - np.einsum("mij,mij->m", gram @ t, t @ s)
        of_noise = 0.5 * noise * (alpha2 - trace)
        # d log p/dΦ = α v' - Φ T (S + B - S P B); contracted with dΦ by the inner products of both.
        x = t @ (s + np.diag(between) - ps.transpose(0, 2, 1) * between)
        of_slope = np.zeros(r)
        for m, rows in enumerate(self.parts):
            cross = phi[rows].T @ slope[rows]
            alpha_slope = (slope[rows].T @ self.y[rows] - cross.T @ v[m]) / noise[m]
            of_slope += v[m] * alpha_slope - np.einsum("jk,jk->k", cross, x[m])
        groups = self.lines.shape[1] + self.X.shape[1]
        gradient = np.concatenate(
            [
                np.bincount(owner, population, groups),
                np.bincount(owner, user, groups),
                np.bincount(owner, of_slope, groups)[self.lines.shape[1] :],
                [of_noise.sum()],
            ]
        )
        return Slopes(log, gradient, of_noise, alpha2 / trace, noise * trace, residual)


@dataclass(frozen=True, eq=False)
class Slopes:
    """The log evidence, its slopes, and what is left of the rows.

    Attributes:
        log: log p(y|θ).
        gradient: by θ, (k,).
        by_noise: by each user's log noise, (M,).
        ratio: how many times its σ² each user's rows ask for, (M,); 1 where `by_noise` is 0.
        freedom: of how many rows each is worth for that, (M,): rows less what the functions take.
        residual: rows less both functions, for each user.
    """

    log: float
    gradient: Array
    by_noise: Array
    ratio: Array
    freedom: Array
    residual: list[Array]

    @property
    def kurtosis(self) -> float:
        """Of the residuals, each user's scaled by themselves: 3 for a Normal, more with heavy tails."""
        rows = sum(len(e) for e in self.residual)
        return float(sum((e**4).sum() / max(float(np.mean(e**2)) ** 2, 1e-300) for e in self.residual) / rows)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Users with their own weights integrated out, for given weights w of the shared function.

    Attributes:
        inverse: T = (σ²I + BΦ'Φ)⁻¹ of each user, (M, r, r).
        precision: P = Φ'V⁻¹Φ, what each user says of w, (M, r, r).
        pull: Φ'V⁻¹y, (M, r).
        logdet: log|σ²I + BΦ'Φ|, (M,).
    """

    inverse: Array
    precision: Array
    pull: Array
    logdet: Array

    @classmethod
    def of(cls, gram: Array, side: Array, between: Array, noise: Array) -> Eliminated:
        """From Φ'Φ (M, r, r), Φ'y (M, r) and σ² of each (M,); `between`, the variances B of weights, may be tiny."""
        inner = between[:, None] * gram
        inner[:, np.arange(len(between)), np.arange(len(between))] += noise[:, None]
        inverse: Array = np.asarray(np.linalg.inv(inner), dtype=np.float64)
        precision = gram @ inverse  # V⁻¹Φ = ΦT: no difference of large numbers
        precision = 0.5 * (precision + precision.transpose(0, 2, 1))
        pull = np.einsum("mjk,mj->mk", inverse, side)
        return cls(inverse, precision, pull, np.linalg.slogdet(inner)[1])

    def of_users(self, kept: NDArray[np.bool_]) -> Eliminated:
        """Some of the users."""
        return Eliminated(self.inverse[kept], self.precision[kept], self.pull[kept], self.logdet[kept])

    def shared(self, variances: Array) -> SharedWeights:
        """The posterior of the shared function's weights, of these prior variances."""
        root = np.sqrt(variances)
        inner = np.eye(len(root)) + root[:, None] * self.precision.sum(axis=0) * root
        lower = factorise(inner, what="the function that users share")
        half = scipy.linalg.solve_triangular(lower, np.diag(root), lower=True)
        covariance = half.T @ half
        return SharedWeights(
            covariance @ self.pull.sum(axis=0), covariance, 2.0 * float(np.log(np.diagonal(lower)).sum())
        )


@dataclass(frozen=True, eq=False)
class SharedWeights:
    """The posterior N(mean, covariance) of the shared function's weights, and log|I + A½ΣPA½|."""

    mean: Array
    covariance: Array
    logdet: float


@dataclass(frozen=True, eq=False)
class TwoLevelModel:
    """What is known of a new user before any row: weights w + u ~ N(mean, covariance), given all pilot users' rows.

    Attributes:
        levels: the hyperparameters.
        grids: bumps of each covariate, around the pilot users' rows.
        mean: (r,).
        covariance: of the shared weights given the pilot users, plus a user's own, (r, r).
    """

    levels: Levels
    grids: tuple[Array, ...]
    mean: Array
    covariance: Array

    @classmethod
    def train(cls, users: Sequence[LevelRows], levels: Levels, deviations: Array) -> TwoLevelModel:
        """Condition on the pilot users' rows, given how far each one's log noise is from the common one, (M,)."""
        model, _, eliminated = cls.eliminated(users, levels, deviations)
        owner = model.owner(model.grids)
        shared = eliminated.shared(levels.population[owner])
        return cls(levels, model.grids, shared.mean, shared.covariance + np.diag(levels.user[owner]))

    @classmethod
    def eliminated(
        cls, users: Sequence[LevelRows], levels: Levels, deviations: Array
    ) -> tuple[TwoLevelModel, list[Array], Eliminated]:
        """A model that has seen no row yet, features of each user's rows, and what those rows say of shared weights."""
        X = np.concatenate([user.X for user in users])
        grids = tuple(grid_around(X[:, j] / scale) for j, scale in enumerate(levels.lengthscale.tolist()))
        model = cls(levels, grids, np.empty(0), np.empty((0, 0)))
        designs = [model.features(user.lines, user.X, grids) for user in users]
        gram = np.stack([phi.T @ phi for phi in designs])
        side = np.stack([phi.T @ user.y for phi, user in zip(designs, users, strict=True)])
        noise = levels.noise * np.exp(deviations)
        return model, designs, Eliminated.of(gram, side, levels.user[model.owner(grids)], noise)

    @property
    def lines(self) -> int:
        """Number of features that are no bumps."""
        return len(self.levels.population) - len(self.levels.lengthscale)

    def owner(self, grids: Sequence[Array]) -> NDArray[np.int64]:
        """The group of each feature."""
        q = self.lines
        return np.repeat(np.arange(q + len(grids)), [1] * q + [len(grid) for grid in grids])

    def features(self, lines: Array, X: Array, grids: Sequence[Array]) -> Array:
        """Features at rows, with these bumps, (n, r)."""
        scaled = X / self.levels.lengthscale
        return np.hstack([lines, *(bumps(scaled[:, j], grid) for j, grid in enumerate(grids))])

    @cached_property
    def root(self) -> Array:
        """R with RR' = covariance."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def given(self, rows: LevelRows, noises: Array, log_prior: Array, worth: float = 1.0) -> TwoLevelPosterior:
        """A user's rows seen, which may be none; σ² is one of `noises`, of these prior log probabilities, (Q,).

        For the choice among them a row counts as `worth` rows: with heavy tails it says less of σ² than it would.
        """
        scaled = rows.X / self.levels.lengthscale
        # Bumps that the pilot users' rows do not reach are as they are beforehand.
        more = tuple(np.setdiff1d(grid_around(scaled[:, j]), grid) for j, grid in enumerate(self.grids))
        known, white = self.whitened(more, rows.lines, rows.X)
        left, n = rows.y - known @ self.mean, len(rows.y)
        axes, lengths, directions = np.linalg.svd(white, full_matrices=False)
        coordinates = axes.T @ left
        total = lengths[:, None] ** 2 + noises
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            rest = float(np.sum((left - axes @ coordinates) ** 2))
            quad = (coordinates[:, None] ** 2 / total).sum(axis=0) + rest / noises
        if not np.isfinite(quad).all():
            raise NumericalError(f"a target {np.abs(left).max():.3g} away from what is expected is past all numbers")
        logdet = np.log(total).sum(axis=0) + (n - len(lengths)) * np.log(noises)
        log = log_prior - 0.5 * worth * (quad + logdet)
        weights = np.exp(log - scipy.special.logsumexp(log))
        means = (lengths[:, None] / total) * coordinates[:, None]
        return TwoLevelPosterior(self, more, directions, means, noises / total, noises, weights)

    def whitened(self, more: Sequence[Array], lines: Array, X: Array) -> tuple[Array, Array]:
        """Features at rows, (n, r), and those of weights N(0, I), (n, r + bumps added)."""
        known = self.features(lines, X, self.grids)
        q, scaled = self.lines, X / self.levels.lengthscale
        total = np.sqrt(self.levels.population + self.levels.user)
        added = [total[q + j] * bumps(scaled[:, j], grid) for j, grid in enumerate(more)]
        return known, np.hstack([known @ self.root, *added])


@dataclass(frozen=True, eq=False)
class TwoLevelPosterior:
    """A followed user's function, given the pilot users' rows and the user's own: a mixture over Q values of σ².

    Attributes:
        model: before the user's rows.
        more: bumps around the user's rows that the pilot users' rows do not reach.
        directions: orthonormal directions, among weights that are N(0, I) beforehand, that the rows say something of,
            (k, r').
        means: posterior mean along each direction for each σ², (k, Q).
        open: share of the variance along each that the rows have left, (k, Q).
        noises, weights: the values of σ² and how probable each is, (Q,).
    """

    model: TwoLevelModel
    more: tuple[Array, ...]
    directions: Array
    means: Array
    open: Array
    noises: Array
    weights: Array

    @property
    def noise_uncertainty(self) -> float:
        """Variance of log σ²."""
        logs = np.log(self.noises)
        return float(self.weights @ (logs - self.weights @ logs) ** 2)

    def moments(self, lines: Array, X: Array) -> tuple[Array, Array, float]:
        """Mean and variance of the function at rows, each (m,), and the mean of σ²."""
        features, white = self.model.whitened(self.more, lines, X)
        along = white @ self.directions.T
        means = along @ self.means
        mean = means @ self.weights
        # Not as a difference of variances: far from all rows both are large.
        variance = ((white - along @ self.directions) ** 2).sum(axis=1) + along**2 @ (self.open @ self.weights)
        variance += (means - mean[:, None]) ** 2 @ self.weights
        # Of a smooth part, what these bumps do not hold at a row is independent of all that was seen.
        scaled, q = X / self.model.levels.lengthscale, self.model.lines
        for j, grids in enumerate(zip(self.model.grids, self.more, strict=True)):
            held = sum((bumps(scaled[:, j], grid) ** 2).sum(axis=1) for grid in grids)
            both = self.model.levels.population[q + j] + self.model.levels.user[q + j]
            variance += both * np.maximum(1.0 - held, 0.0)
        return features @ self.model.mean + mean, variance, float(self.noises @ self.weights)
