"""Maximum a posteriori hyperparameters (method (16)), from many starts, with the curvature at the optimum.

The search runs in the unconstrained space, whitened by the prior (method §3.1): one unit is one prior standard
deviation of every hyperparameter, so one step size fits all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp.compiled_map import CONVERGED, LOST, CompiledPosterior, descend, hessian_at
from kerneltrail.gp.evidence import TOLERANCE, Method, evidence_of, slope_of
from kerneltrail.gp.features import FeatureLayout, feature_layout_for
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.numerics import LEAST_CURVATURE, LOG_2PI
from kerneltrail.gp.quasi_newton import FARTHEST, Minimum, minimise
from kerneltrail.gp.reward import LinearBlock
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.families import NO_FAMILY
from kerneltrail.kernels.hyperparameters import Hyperparameters, layout_of

Array = NDArray[np.float64]

APART = 0.25
"""Starts closer than this, in prior standard deviations, lead to the same optimum: the better one is enough."""

STEP = 1e-4
"""Step of the differences of gradients that give the curvature, in prior standard deviations."""

ACCURACY = 1e-9
"""Default relative change of a log posterior below which a search ends."""


class Prior(Protocol):
    """A Normal over a composition's unconstrained hyperparameters; `kerneltrail.kernels.Priors` is one."""

    def moments(self, composition: Composition) -> tuple[Array, Array]:
        """(mean, variance) of each hyperparameter."""
        ...


@dataclass(frozen=True)
class MapResult:
    """The best hyperparameters found, and how.

    Attributes:
        hyperparameters: the maximum a posteriori value.
        log_posterior: log p(y|X,θ) + log p(θ) there, the prior's density taken in the unconstrained space.
        log_likelihood: log p(y|X,θ) there, the function integrated out and the hyperparameters not.
        precision: minus the Hessian of the log posterior in the unconstrained space, (k, k).
        prior_variance: of each hyperparameter in the unconstrained space, (k,).
        status: of the winning search: ``converged``, ``flat``, ``edge``, ``stuck`` or ``iterations`` (see `Minimum`).
        iterations: of the winning search.
        evaluations: evidences computed, all starts and the curvature together.
        optima: log posterior at the end of every search, best first; more than one near the top means several modes.
        ends: unconstrained hyperparameters at the end of every search, in the same order, (searches, k).
    """

    hyperparameters: Hyperparameters
    log_posterior: float
    log_likelihood: float
    precision: Array
    prior_variance: Array
    status: str
    iterations: int
    evaluations: int
    optima: tuple[float, ...]
    ends: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def composition(self) -> Composition:
        """The kernel that was fitted."""
        return self.hyperparameters.composition

    @property
    def converged(self) -> bool:
        """Whether the search ended because nothing was left to gain."""
        return self.status in ("converged", "flat")

    @cached_property
    def log_laplace(self) -> float:
        """Laplace's approximation of log p(y|X,K) (method (17)): log posterior + (k/2) log 2π - ½ log|precision|.

        A direction in which the optimum is not a maximum (a saddle, or a search cut short) would make the integral
        diverge; its curvature, relative to the prior's, is floored at `LEAST_CURVATURE`.
        """
        scale = np.sqrt(self.prior_variance)
        eigenvalues = np.linalg.eigvalsh(self.precision * np.multiply.outer(scale, scale))
        logdet = float(np.log(np.maximum(eigenvalues, LEAST_CURVATURE)).sum()) - float(
            np.log(self.prior_variance).sum()
        )
        return self.log_posterior + 0.5 * len(eigenvalues) * LOG_2PI - 0.5 * logdet


@dataclass(frozen=True)
class WhitenedPosterior:
    """The log posterior of one user's rows under one composition, in whitened coordinates."""

    inputs: Inputs
    mean: Array
    scale: Array
    method: Method
    tol: float

    def unwhiten(self, w: Array) -> Array:
        """Unconstrained hyperparameters."""
        return self.mean + self.scale * w

    def log_prior(self, w: Array) -> Array:
        """Log density of the unconstrained vectors, (S,)."""
        return -0.5 * (w * w).sum(axis=-1) - float(np.log(self.scale).sum()) - 0.5 * len(self.mean) * LOG_2PI

    def values(self, w: Array) -> Array:
        """Minus log posterior (S,), for screening: infinite where a matrix could not be factorised."""
        u = self.unwhiten(w)
        try:
            log = evidence_of(self.inputs, u, method=self.method, tol=self.tol).log[:, -1]
        except NumericalError:
            if len(w) == 1:
                return np.array([np.inf])
            return np.concatenate([self.values(row[None]) for row in w])
        return -(log + self.log_prior(w))

    def slopes(self, w: Array) -> tuple[Array, Array]:
        """Minus log posterior (S,) and its gradient (S, k)."""
        u = self.unwhiten(w)
        try:
            slope = slope_of(self.inputs, u, method=self.method, tol=self.tol)
        except NumericalError:
            if len(w) == 1:
                return np.array([np.inf]), np.zeros_like(w)
            parts = [self.slopes(row[None]) for row in w]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return -(slope.log + self.log_prior(w)), -(slope.gradient * self.scale - w)

    def curvature(self, w: Array) -> Array:
        """Hessian of minus the log posterior in the unconstrained space, by central differences of the gradient."""
        step = STEP
        shifts = step * np.eye(len(w))
        _, gradient = self.slopes(np.concatenate([w + shifts, w - shifts]))
        k = len(w)
        hessian = (gradient[:k] - gradient[k:]) / (2.0 * step)
        hessian = 0.5 * (hessian + hessian.T)
        return hessian / np.multiply.outer(self.scale, self.scale)


def can_search(inputs: Inputs) -> FeatureLayout | None:
    """The layout of a composition that can be searched here, else None."""
    layout = feature_layout_for(inputs)
    if layout is None or layout.tensor or not len(layout.amplitude_slot):
        return None
    if any(kind.family == NO_FAMILY for kind in layout.series_atom):
        return None
    return layout


class MapSearch:
    """A compiled search bound to one user's rows, one composition and one prior."""

    def __init__(self, inputs: Inputs, layout: FeatureLayout, mean: Array, scale: Array, tol: float) -> None:
        self._posterior = CompiledPosterior(
            np.ascontiguousarray(mean),
            np.ascontiguousarray(scale),
            inputs.layout.positive,
            inputs.columns,
            inputs.reach,
            inputs.reach.mean(axis=0),
            inputs.fixed_features,
            np.array([kind.family for kind in layout.series_atom], dtype=np.int64),
            tol,
        )
        self._layout = layout.compiled

    def run(
        self, start: Array, *, gradient_tolerance: float, value_tolerance: float, iterations: int = 200
    ) -> tuple[Array, float, str, int, int] | None:
        """(point, value without the prior's constant, status, iterations, evaluations), or None where it is lost."""
        w = np.clip(start, -0.99 * FARTHEST, 0.99 * FARTHEST)
        value, status, taken, evaluations = descend(
            w, np.eye(len(w)), self._posterior, self._layout, gradient_tolerance, value_tolerance, iterations
        )
        if status == LOST:
            return None
        return w, value, "converged" if status == CONVERGED else "flat", taken, evaluations

    def curvature(self, w: Array, step: float) -> Array | None:
        """The Hessian in whitened coordinates, or None where it cannot be had."""
        hessian = hessian_at(w, step, self._posterior, self._layout)
        return hessian if np.isfinite(hessian).all() else None


def find_map(
    user: Rows,
    composition: Composition,
    priors: Prior,
    *,
    rng: np.random.Generator,
    batch: int | None = None,
    starts: int = 8,
    screen: int = 64,
    warm: Sequence[Hyperparameters | ArrayLike] = (),
    block: LinearBlock | None = None,
    method: Method = "auto",
    tol: float = TOLERANCE,
    accuracy: float = ACCURACY,
) -> MapResult:
    """The maximum a posteriori hyperparameters of a composition for a user's rows up to a batch.

    Args:
        user: rows in time order.
        composition: the kernel.
        priors: over its hyperparameters.
        rng: source of the starts that are drawn.
        batch: how many batches count (from 1); all if None.
        starts: number of searches.
        screen: number of points evaluated to choose the starts from. Periods are spread evenly over their prior there,
            because the likelihood has a mode near every fraction and multiple of the true one.
        warm: further starts, e.g. the optimum of the batch before.
        block: linear block of a reward model, for all of the user's rows.
        method: how evidence is computed.
        tol: error allowed in a log evidence.
        accuracy: relative change of the log posterior below which a search ends.
    """
    inputs = inputs_for(user, composition, block=block)
    count = len(inputs.ends) if batch is None else batch
    if not 1 <= count <= len(inputs.ends):
        raise DataError(f"user {user.name!r} has batches 1 to {len(inputs.ends)}; asked for {batch}")
    return _find(inputs.upto(int(inputs.ends[count - 1])), priors, rng, starts, screen, warm, method, tol, accuracy)


def find_map_path(
    user: Rows,
    composition: Composition,
    priors: Prior,
    *,
    rng: np.random.Generator,
    starts: int = 8,
    screen: int = 64,
    block: LinearBlock | None = None,
    method: Method = "auto",
    tol: float = TOLERANCE,
    accuracy: float = ACCURACY,
) -> tuple[MapResult, ...]:
    """`find_map` for every batch of a user, each warm-started from the batch before."""
    inputs = inputs_for(user, composition, block=block)
    results: list[MapResult] = []
    for end in inputs.ends:
        warm = [results[-1].hyperparameters] if results else []
        results.append(_find(inputs.upto(int(end)), priors, rng, starts, screen, warm, method, tol, accuracy))
    return tuple(results)


def _find(
    inputs: Inputs,
    priors: Prior,
    rng: np.random.Generator,
    starts: int,
    screen: int,
    warm: Sequence[Hyperparameters | ArrayLike],
    method: Method,
    tol: float,
    accuracy: float,
) -> MapResult:
    if starts < 1 and not warm:
        raise KernelError("a search needs at least one start")
    mean, variance = priors.moments(inputs.composition)
    target = WhitenedPosterior(inputs, mean, np.sqrt(variance), method, tol)
    chosen, screened = _starts(target, rng, starts, max(screen, starts))
    given = [(_vector(item, inputs) - target.mean) / target.scale for item in warm]
    points = np.concatenate([np.reshape(given, (-1, len(mean))), chosen])
    # At a gradient g the value is off by about g²/2 (whitened: curvature is 1 or more).
    tight = max(1e-4, 10.0 * accuracy**0.5)
    optima, quick = _minimise(target, points, tight, accuracy)
    order = np.argsort(optima.value, kind="stable")
    best = int(order[0])
    if not np.isfinite(optima.value[best]):
        raise NumericalError(
            f"no start gave a finite posterior for {inputs.label}: the targets may be far out of scale"
        )
    w = optima.point[best]
    log_posterior = -float(optima.value[best])
    hessian = None if quick is None else quick.curvature(w, STEP)
    return MapResult(
        Hyperparameters(inputs.composition, tuple(target.unwhiten(w))),
        log_posterior,
        log_posterior - float(target.log_prior(w)),
        target.curvature(w) if hessian is None else hessian / np.multiply.outer(target.scale, target.scale),
        variance,
        str(optima.status[best]),
        int(optima.iterations[best]),
        screened + optima.evaluations + 2 * len(w),
        tuple(-float(v) for v in optima.value[order]),
        target.unwhiten(optima.point[order]),
    )


def _minimise(
    target: WhitenedPosterior, points: Array, tight: float, accuracy: float
) -> tuple[Minimum, MapSearch | None]:
    """Search from all points: by compiled code where the composition allows, by the general search where that fails."""
    layout = can_search(target.inputs) if target.method != "dense" else None
    if layout is None:
        return minimise(target.slopes, points, gradient_tolerance=tight, value_tolerance=accuracy), None
    quick = MapSearch(target.inputs, layout, target.mean, target.scale, target.tol)
    ends = [quick.run(point, gradient_tolerance=tight, value_tolerance=accuracy) for point in points]
    won = [end for end in ends if end is not None]
    lost = np.array([point for point, end in zip(points, ends, strict=True) if end is None]).reshape(
        -1, points.shape[1]
    )
    constant = -float(target.log_prior(np.zeros(points.shape[1])))
    ended = Minimum(
        np.array([end[0] for end in won]).reshape(-1, points.shape[1]),
        np.array([end[1] + constant for end in won]),
        np.zeros((len(won), points.shape[1])),
        np.array([end[2] for end in won], dtype="<U10"),
        np.array([end[3] for end in won], dtype=np.int64),
        sum(end[4] for end in won),
    )
    if len(lost):
        ended += minimise(target.slopes, lost, gradient_tolerance=tight, value_tolerance=accuracy)
    return ended, quick


def _vector(item: Hyperparameters | ArrayLike, inputs: Inputs) -> Array:
    if isinstance(item, Hyperparameters):
        if item.composition != inputs.composition:
            raise KernelError(f"a warm start of {item.composition} cannot serve {inputs.composition}")
        return item.vector
    return inputs.vectors(item)[0]


def _starts(target: WhitenedPosterior, rng: np.random.Generator, wanted: int, screen: int) -> tuple[Array, int]:
    """The best of many candidate points that are not too close to each other, whitened, and how many were tried."""
    k = len(target.mean)
    if wanted < 1:
        return np.empty((0, k)), 0
    periods = [i for i, slot in enumerate(layout_of(target.inputs.composition).slots) if slot.spec.kind == "period"]
    # A Latin hypercube: each hyperparameter's candidates are evenly spread over its prior, in shuffled order.
    levels = (np.argsort(rng.random((k, screen)), axis=1).T + rng.random((screen, k))) / screen
    points = np.clip(scipy.special.ndtri(levels), -0.5 * FARTHEST, 0.5 * FARTHEST)
    # Half of them vary the periods only: the rest at its prior median is the safest guess.
    others = [i for i in range(k) if i not in periods]
    points[: screen // 2 if periods else 1, others] = 0.0
    if periods:
        spread = (np.argsort(rng.random((len(periods), screen)), axis=1).T + 0.5) / screen
        points[:, periods] = np.clip(scipy.special.ndtri(spread), -2.5, 2.5)
    if screen == wanted:
        return points, 0
    value = target.values(points)
    order = [int(i) for i in np.argsort(value) if np.isfinite(value[i])]
    picked: list[int] = []
    for i in order:
        if all(np.abs(points[i] - points[j]).max() > APART for j in picked):
            picked.append(i)
        if len(picked) == wanted:
            break
    picked += [i for i in order if i not in picked][: wanted - len(picked)]
    return points[picked] if picked else points[:wanted], screen
