"""A linear mixed model by restricted maximum likelihood: what users share of linear weights, and how far they differ.

y_m = B_m (β + u_m) + ε_m with β shared, u_m ~ N(0, D) a user's own, ε_m ~ N(0, σ²S_m) (method (35)). Everything is
computed from each user's sums B'S⁻¹B, B'S⁻¹y and y'S⁻¹y, so that S_m may be a kernel's covariance with its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.data.arrays import deviations
from kerneltrail.errors import DataError

Array = NDArray[np.float64]

LEAST, MOST = 1e-4, 1e2
"""Bounds of a standard deviation, in units of its prior's scale: no difference at all, and more than any."""

QUICK = 1e-6
"""Relative change of the log likelihood at which a quick fit ends."""

LOADED = 1e6
"""Of own variance times what rows say, over the noise: beyond it sums lose the digits that a plain solution needs."""

GRID = 32
"""Values at which a standard deviation's posterior is computed."""


def reach_of(values: Array) -> float:
    """How far a covariate goes for most rows, two standard deviations: slopes over it compare with levels.

    Of one that does not vary it is its unit: nobody knows its slope, which then has the prior's variance.
    """
    return 2.0 * float(deviations(values)) or 1.0


def range_of(values: Array) -> float:
    """How far a covariate goes for all rows; of one that does not vary its unit."""
    return float(np.ptp(values)) or 1.0


def turned(
    rows: Array, q: int, first: int, *, reach: Callable[[Array], float] = reach_of, constant: bool = True
) -> Array:
    """Features as slopes are learnt from them, by their weights in the given ones, (q, q).

    Slopes turn around the middle of the rows, so that a user's level and slopes are told apart, and are over a `reach`,
    so that units do not matter. Over the whole range, which a few rows far out decide, a usual slope may be larger than
    its prior allows.

    Args:
        rows: the covariates, (n, d).
        q: how many features there are.
        first: the place of the first slope among them; the others follow.
        reach: how far a covariate goes.
        constant: whether the first feature is a constant.
    """
    turn = np.eye(q)
    for j, values in enumerate(rows.T):
        slope, far = first + j, reach(values)
        turn[slope, slope] = 1.0 / far
        if constant:
            turn[0, slope] = -values.mean() / far
    return turn


@dataclass(frozen=True, eq=False)
class Sums:
    """What M users' rows say of q weights: B'S⁻¹B, (M, q, q), B'S⁻¹y, (M, q), y'S⁻¹y, (M,), and rows, (M,)."""

    gram: Array
    side: Array
    squares: Array
    rows: Array

    @classmethod
    def of(cls, blocks: Sequence[tuple[Array, Array]]) -> Sums:
        """From each user's features and target."""
        if not blocks:
            raise DataError("a mixed model needs at least one user with rows")
        gram = np.array([b.T @ b for b, _ in blocks])
        side = np.array([b.T @ y for b, y in blocks])
        return cls(
            gram, side, np.array([float(y @ y) for _, y in blocks]), np.array([float(len(y)) for _, y in blocks])
        )

    @classmethod
    def joined(cls, users: Sequence[Sums]) -> Sums:
        """Of several users' sums."""
        if not users:
            raise DataError("a mixed model needs at least one user with rows")
        parts = ([getattr(each, name) for each in users] for name in ("gram", "side", "squares", "rows"))
        return cls(*(np.concatenate(each) for each in parts))

    def part(self, columns: Sequence[int] | NDArray[np.int64]) -> Sums:
        """Of some of the weights."""
        keep = np.asarray(columns)
        return Sums(self.gram[:, keep[:, None], keep], self.side[:, keep], self.squares, self.rows)

    def of_users(self, kept: NDArray[np.bool_]) -> Sums:
        """Of some of the users."""
        return Sums(self.gram[kept], self.side[kept], self.squares[kept], self.rows[kept])

    def joined_by(self, groups: NDArray[np.int64]) -> Sums:
        """Users of one group as one user; groups are numbered from 0, (M,)."""
        inside = np.eye(int(groups.max()) + 1)[groups].T
        gram = (inside @ self.gram.reshape(len(groups), -1)).reshape(-1, *self.gram.shape[1:])
        return Sums(gram, inside @ self.side, inside @ self.squares, inside @ self.rows)

    def errors(self, weights: Array) -> Array:
        """Sum of squared errors of each user's rows with weights of its own, (M, q) to (M,)."""
        products = (self.gram @ weights[..., None])[..., 0]
        return np.asarray(self.squares - (weights * (2.0 * self.side - products)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class MixedModel:
    """A fitted mixed model.

    Attributes:
        mean: β̂, (q,).
        uncertainty: posterior covariance of β, (q, q).
        between: variance of each weight between users, (q,): its posterior mean, so few users leave it wide.
        low, high: 90 % interval of the same, (q,).
        noise: σ².
        log_evidence: restricted log likelihood, with the priors.
    """

    mean: Array
    uncertainty: Array
    between: Array
    low: Array
    high: Array
    noise: float
    log_evidence: float

    @property
    def covariance(self) -> Array:
        """Covariance of a new user's weights around `mean`: how users differ, and how well the mean is known."""
        return np.diag(self.between) + self.uncertainty

    @classmethod
    def fit(
        cls,
        sums: Sums,
        *,
        shared: NDArray[np.int64] | None = None,
        own: NDArray[np.int64] | None = None,
        scale: float = 1.0,
        noise: float | None = None,
        quick: bool = False,
    ) -> MixedModel:
        """By the restricted likelihood of variances (method (50)), then their posterior means one by one.

        Args:
            sums: of the users.
            shared: for each weight the number of its group, whose shared weights have one prior variance, learnt; -1
                for no prior at all (a constant). None: the first has none, all others one group.
            own: for each weight the number of its group, whose own weights have one variance between users; -1 for
                weights in which users do not differ. None: everyone a variance of its own.
            scale: of the half-normal prior of standard deviations between users.
            noise: σ² if it is known: 1 where the sums have the noise in them.
            quick: leave out posterior means; the variances are then those of highest density under a prior that is 0
                at none, so that few users do not end there, and have no intervals.
        """
        q = sums.gram.shape[1]
        groups = np.r_[-1, np.zeros(q - 1, dtype=np.int64)] if shared is None else np.asarray(shared)
        apart = np.arange(q) if own is None else np.asarray(own)
        problem = _Restricted(sums, groups, apart, scale, noise, quick)
        return problem.solve()


class _Restricted:
    """The restricted likelihood as a function of log deviations: between users, of shared weights, of the noise."""

    def __init__(
        self,
        sums: Sums,
        groups: NDArray[np.int64],
        apart: NDArray[np.int64],
        scale: float,
        noise: float | None,
        quick: bool = False,
    ) -> None:
        self.quick = quick
        self.sums, self.groups, self.apart, self.scale, self.known = sums, groups, apart, scale, noise
        self.variances, self.priors = int(apart.max(initial=-1)) + 1, int(groups.max(initial=-1)) + 1
        self.rows = float(sums.rows.sum())
        typical = float(sums.squares.sum()) / max(self.rows, 1.0)
        self.typical = typical if typical > 1e-24 * scale**2 else scale**2  # zeros say nothing of their size

    def unpack(self, point: Array) -> tuple[Array, Array, float]:
        """Standard deviations of own and of shared weights, (q,) each, the latter infinite without a prior; σ²."""
        deviations = np.exp(point)
        split = self.variances
        own = (
            np.where(self.apart >= 0, deviations[np.maximum(self.apart, 0)], 0.0)
            if split
            else np.zeros(len(self.apart))
        )
        prior = np.full(len(self.groups), np.inf)
        for group in range(self.priors):
            prior[self.groups == group] = deviations[split + group]
        return own, prior, self.known if self.known is not None else float(deviations[-1] ** 2)

    def moments(self, own: Array, prior: Array, noise: float) -> dict[str, Array]:
        """The pieces of method (50) at given variances."""
        gram, side = self.sums.gram / noise, self.sums.side / noise
        A, a, pulled, explained, logdet = _parts_of(gram, side, own)
        precision = A.sum(axis=0) + np.diag(1.0 / prior**2)
        covariance = np.linalg.pinv(precision, hermitian=True)
        mean = covariance @ a.sum(axis=0)
        fit = self.sums.squares / noise - explained
        return {
            "A": A, "a": a, "C": covariance, "mean": mean, "pulled": pulled, "gram": gram, "side": side, "fit": fit,
            "precision": precision, "logdet": np.asarray(logdet),
        }  # fmt: skip

    def value(self, own: Array, prior: Array, noise: float, pieces: dict[str, Array]) -> float:
        """The restricted log likelihood, with the priors."""
        fixed = np.isfinite(prior)
        _, logdet = np.linalg.slogdet(pieces["precision"])
        total = -0.5 * (self.rows * np.log(noise) + float(pieces["logdet"]))
        total -= 0.5 * (float(pieces["fit"].sum()) - float(pieces["mean"] @ pieces["a"].sum(axis=0)))
        total -= 0.5 * float(logdet) + float(np.log(prior[fixed]).sum())
        return float(total) + self.log_prior(own, prior)

    def log_prior(self, own: Array, prior: Array) -> float:
        """Of the standard deviations: half-normal; those of shared weights ten times as wide."""
        total = 0.0
        for group in range(self.variances):
            deviation = float(own[self.apart == group][0]) / self.scale
            total += (np.log(deviation) if self.quick else 0.0) - 0.5 * deviation**2
        for group in range(self.priors):
            total -= 0.5 * float((prior[self.groups == group][0] / (10.0 * self.scale)) ** 2)
        return total

    def objective(self, point: Array) -> tuple[float, Array]:
        """Minus the log posterior of variances, and its gradient."""
        own, prior, noise = self.unpack(point)
        p = self.moments(own, prior, noise)
        value = self.value(own, prior, noise, p)
        A, C, mean = p["A"], p["C"], p["mean"]
        e = p["a"] - A @ mean
        AC = A @ C
        slopes = 0.5 * (e**2 - np.diagonal(A, axis1=1, axis2=2) + (AC * A).sum(axis=2)).sum(axis=0)
        gradient = np.zeros(len(point))
        for group in range(self.variances):
            inside = self.apart == group
            deviation = own[inside][0]
            gradient[group] = 2.0 * deviation**2 * slopes[inside].sum() - (deviation / self.scale) ** 2
            gradient[group] += self.quick
        for group in range(self.priors):
            inside = self.groups == group
            square = prior[inside][0] ** 2
            moment = (mean[inside] ** 2 + np.diagonal(C)[inside]).sum()
            gradient[self.variances + group] = moment / square - inside.sum() - square / (10.0 * self.scale) ** 2
        if self.known is None:
            w = mean + e * own**2
            residual = (self.sums.squares - 2.0 * (self.sums.side * w).sum(axis=1)) / noise
            residual = residual + (w * (p["gram"] @ w[..., None])[..., 0]).sum(axis=1)
            # With P = G·cov(u|β): the fit's trace is tr P, and tr (I-P)A C that of the shared weights.
            traces = self.sums.rows - np.trace(p["pulled"], axis1=1, axis2=2)
            shared = np.trace(AC, axis1=1, axis2=2) - (p["pulled"] * np.swapaxes(AC, 1, 2)).sum(axis=(1, 2))
            gradient[-1] = float((residual - traces + shared).sum())  # 2σ² · dL/dσ²
        return -value, -gradient

    def solve(self) -> MixedModel:
        start = np.log(np.full(self.variances + self.priors + (self.known is None), 0.3 * self.scale))
        if self.known is None:
            start[-1] = 0.5 * np.log(self.typical)
        bounds = [(np.log(LEAST * self.scale), np.log(MOST * self.scale))] * (self.variances + self.priors)
        bounds += [(0.5 * np.log(1e-9 * self.typical), 0.5 * np.log(1e3 * self.typical))] * (self.known is None)
        point = start
        if len(start):
            options = {"ftol": QUICK} if self.quick else {}
            found = scipy.optimize.minimize(
                self.objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            point = found.x
        own, prior, noise = self.unpack(point)
        between, low, high = own**2, own**2, own**2
        mode = own.copy()
        for group in range(0 if self.quick else self.variances):
            inside = self.apart == group
            mean, least, most = self.posterior(mode, inside, prior, noise)
            between, low, high = (
                np.where(inside, new, old) for new, old in ((mean, between), (least, low), (most, high))
            )
        pieces = self.moments(np.sqrt(between), prior, noise)
        value = self.value(mode, prior, noise, self.moments(mode, prior, noise))
        return MixedModel(pieces["mean"], pieces["C"], between, low, high, noise, value)

    def posterior(
        self, own: Array, inside: NDArray[np.bool_], prior: Array, noise: float
    ) -> tuple[float, float, float]:
        """Mean and 90 % interval of one variance given the others at their optimum, on a grid of its deviation."""
        top = 4.0 * self.scale
        grid = top * (np.arange(GRID) + 0.5) ** 2 / GRID**2  # finer near 0
        edges = top * np.arange(GRID + 1) ** 2 / GRID**2
        logs = []
        for deviation in grid:
            each = np.where(inside, deviation, own)
            logs.append(self.value(each, prior, noise, self.moments(each, prior, noise)))
        weights = np.exp(np.array(logs) - max(logs)) * np.diff(edges)
        weights /= weights.sum()
        low, high = np.interp((0.05, 0.95), np.r_[0.0, np.cumsum(weights)], edges).tolist()
        return float(weights @ grid**2), low**2, high**2


_Parts = tuple[Array, Array, Array, Array, float]
"""Of all users: A = (G⁻¹ + D)⁻¹ and a = A G⁻¹ s; G times the posterior covariance of u_m given β; what that explains of
the squares; and the log determinant of I + D G."""


def _parts_of(gram: Array, side: Array, own: Array) -> _Parts:
    load = float((own**2 * np.diagonal(gram, axis1=1, axis2=2)).max(initial=0.0))
    return _plain(gram, side, own) if load <= LOADED else _careful(gram, side, own)


def _plain(gram: Array, side: Array, own: Array) -> _Parts:
    """By Cholesky factors, which is quick."""
    inner = np.eye(gram.shape[1]) + own[:, None] * gram * own
    lower = np.linalg.cholesky(inner)
    spread = own[:, None] * np.linalg.inv(inner) * own  # posterior covariance of u_m given β
    pulled = gram @ spread
    A = gram - pulled @ gram
    a = side - (pulled @ side[..., None])[..., 0]
    explained = (side * (spread @ side[..., None])[..., 0]).sum(axis=1)
    return A, a, pulled, explained, 2.0 * float(np.log(np.diagonal(lower, axis1=1, axis2=2)).sum())


def _careful(gram: Array, side: Array, own: Array) -> _Parts:
    """The same where there is next to no noise, without differences of large numbers.

    With G = HH' and D^½H = U S W': I + D^½GD^½ has the eigenvalues 1 + S², and no difference is needed for the rest.
    """
    values, vectors = np.linalg.eigh(0.5 * (gram + np.swapaxes(gram, 1, 2)))
    most = values.max(axis=1, keepdims=True, initial=0.0)
    sure = values > 1e-14 * most  # below it rounding is all that there is
    roots = np.sqrt(np.where(sure, values, 0.0))
    half = vectors * roots[:, None, :]
    left, strengths, right = np.linalg.svd(own[:, None] * half)
    shrunk = 1.0 / (1.0 + strengths**2)
    turned = half @ np.swapaxes(right, 1, 2)
    A = (turned * shrunk[:, None, :]) @ np.swapaxes(turned, 1, 2)
    whitened = (np.swapaxes(vectors, 1, 2) @ side[..., None])[..., 0]
    whitened = np.where(sure, whitened / np.where(sure, roots, 1.0), 0.0)
    along = (right @ whitened[..., None])[..., 0]
    a = (turned @ (shrunk * along)[..., None])[..., 0]
    pulled = (turned * (strengths * shrunk)[:, None, :]) @ np.swapaxes(own[:, None] * left, 1, 2)
    explained = ((strengths * along) ** 2 * shrunk).sum(axis=1)
    return A, a, pulled, explained, float(np.log1p(strengths**2).sum())
