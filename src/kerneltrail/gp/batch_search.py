"""The searches for the MAP hyperparameters of one batch: compiled, and general where compiled code cannot go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp.compiled_map import STATUS, CompiledPosterior, descend, hessian_at
from kerneltrail.gp.evidence import Method, evidence_of, slope_of
from kerneltrail.gp.features import FeatureLayout, feature_layout_for
from kerneltrail.gp.inputs import Inputs
from kerneltrail.gp.numerics import LOG_2PI
from kerneltrail.gp.quasi_newton import FARTHEST, Minimum, minimise
from kerneltrail.gp.starts import APART, best_apart
from kerneltrail.kernels.families import NO_FAMILY

Array = NDArray[np.float64]

STEP = 1e-4
"""Step of the differences of gradients that give the curvature, in prior standard deviations."""

COARSE = 0.2
"""Whitened gradient to which a search is taken before the best of them is finished."""

BEGIN = 5
"""Steps after which the searches that are behind are left: by then a rest that did not fit has been mended."""

MARGIN = 5.0
"""Nats that a search may be expected to gain where only a period was changed: farther behind, it is not begun."""

ITERATIONS = 200
"""Most steps of a search."""


@dataclass(frozen=True)
class WhitenedPosterior:
    """The log posterior of one user's rows under one composition, in whitened coordinates."""

    inputs: Inputs
    mean: Array
    scale: Array
    method: Method
    tol: float

    def whiten(self, u: Array) -> Array:
        """Whitened coordinates."""
        return (u - self.mean) / self.scale

    def unwhiten(self, w: Array) -> Array:
        """Unconstrained hyperparameters."""
        return self.mean + self.scale * w

    def log_prior(self, w: Array) -> Array:
        """Log density of the unconstrained vectors, (S,)."""
        return -0.5 * (w * w).sum(axis=-1) - float(np.log(self.scale).sum()) - 0.5 * len(self.mean) * LOG_2PI

    def values(self, w: Array) -> Array:
        """Minus log posterior of each batch (S, T), for screening: infinite where a matrix could not be factorised."""
        u = self.unwhiten(w)
        try:
            log = evidence_of(self.inputs, u, method=self.method, tol=self.tol).log
        except NumericalError:
            if len(w) == 1:
                return np.full((1, len(self.inputs.ends)), np.inf)
            return np.concatenate([self.values(row[None]) for row in w])
        return -(log + self.log_prior(w)[:, None])

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
        self,
        starts: Array,
        *,
        gradient_tolerance: float,
        value_tolerance: float,
        inverse: Array | None = None,
        iterations: int = 200,
    ) -> Minimum:
        """`minimise`, one start after the other; values are without the prior's constant.

        A search that cannot be finished here is ``lost``, at the point to which it came.
        """
        x = np.clip(starts, -0.99 * FARTHEST, 0.99 * FARTHEST)
        samples, k = x.shape
        learnt = np.array(np.broadcast_to(np.eye(k) if inverse is None else inverse, (samples, k, k)), order="C")
        gradient = np.zeros((samples, k))
        tolerances = (gradient_tolerance, value_tolerance, iterations)
        fresh = (learnt == np.eye(k)).all(axis=(1, 2))
        ends = [
            descend(x[s], gradient[s], learnt[s], fresh[s], self._posterior, self._layout, *tolerances)
            for s in range(samples)
        ]
        value, status, taken, evaluations = (np.array(part) for part in zip(*ends, strict=True))
        return Minimum(x, value, gradient, STATUS[status], taken, learnt, int(evaluations.sum()))

    def curvature(self, w: Array, step: float) -> Array | None:
        """The Hessian in whitened coordinates, or None where it cannot be had."""
        hessian = hessian_at(w, step, self._posterior, self._layout)
        return hessian if np.isfinite(hessian).all() else None


class BatchSearch:
    """The searches for one batch: begun at all starts, gone on with from the best, finished from the best of those.

    Attributes:
        target: what is searched.
        optima: where the searches ended.
        handed_over: how often compiled code could not go on, and the general search did.
    """

    def __init__(self, target: WhitenedPosterior, accuracy: float) -> None:
        self.target = target
        self._accuracy = accuracy
        # At a gradient g the value is off by about g²/2 (whitened: curvature is 1 or more).
        self._tight = max(1e-4, 10.0 * accuracy**0.5)
        self._coarse = max(self._tight, COARSE)
        layout = can_search(target.inputs) if target.method != "dense" else None
        self._compiled = (
            None if layout is None else MapSearch(target.inputs, layout, target.mean, target.scale, target.tol)
        )
        self.handed_over = 0
        self._optima: Minimum | None = None

    @property
    def optima(self) -> Minimum:
        """Where the searches ended."""
        if self._optima is None:
            raise ValueError("nothing was searched yet")
        return self._optima

    @property
    def best(self) -> Array:
        """The best point."""
        return np.asarray(self.optima.point[self.optima.value.argmin()])

    @property
    def learnt(self) -> Array:
        """What the search of the best point has learnt of the inverse Hessian."""
        return np.asarray(self.optima.inverse[self.optima.value.argmin()])

    def run(self, points: Array, finished: int = 1, inverse: Array | None = None) -> None:
        """Begin a search at each point, go on with the `finished` best, and then with the best of those to the end."""
        if len(points) > finished:
            optima = self._descend(points, self._coarse, inverse, BEGIN)
            optima = self._continued(optima, best_apart(optima.point, optima.value, finished), self._coarse)
        else:
            optima = self._descend(points, self._coarse, inverse)
        optima = self._continued(optima, best_apart(optima.point, optima.value, 1), self._tight)
        self._optima = optima if self._optima is None else self._optima + optima

    def improve(self, points: Array, values: Array) -> bool:
        """Search from the best point elsewhere, if its value is near the best one's; whether that was better."""
        value = self.optima.value.min()
        elsewhere = (np.abs(points - self.best).max(axis=1) > APART) & (values < value + MARGIN)
        if not elsewhere.any():
            return False
        start = np.where(elsewhere, values, np.inf).argmin()
        self.run(points[start][None], inverse=self.learnt[None])
        return bool(self.optima.value.min() < value - 1e-3)

    def curvature(self, w: Array) -> Array:
        """Hessian of minus the log posterior in the unconstrained space."""
        hessian = None if self._compiled is None else self._compiled.curvature(w, STEP)
        if hessian is None:
            return self.target.curvature(w)
        return hessian / np.multiply.outer(self.target.scale, self.target.scale)

    def _continued(self, optima: Minimum, which: Sequence[int], tolerance: float) -> Minimum:
        """With some searches taken to a tolerance, unless they have ended otherwise."""
        steep = np.abs(optima.gradient).max(axis=1) > tolerance
        going = (optima.status == "iterations") | (steep & (optima.status == "converged"))
        rows = np.array([i for i in which if going[i]], dtype=np.int64)
        if not len(rows):
            return optima
        return optima.continued(rows, self._descend(optima.point[rows], tolerance, optima.inverse[rows]))

    def _descend(
        self, points: Array, tolerance: float, inverse: Array | None = None, iterations: int = ITERATIONS
    ) -> Minimum:
        """By compiled code where the composition allows, from where that is lost by the general search."""
        accuracy = self._accuracy

        def general(starts: Array, learnt: Array | None) -> Minimum:
            return minimise(
                self.target.slopes,
                starts,
                inverse=learnt,
                gradient_tolerance=tolerance,
                value_tolerance=accuracy,
                iterations=iterations,
            )

        if self._compiled is None:
            return general(points, inverse)
        ended = self._compiled.run(
            points, inverse=inverse, gradient_tolerance=tolerance, value_tolerance=accuracy, iterations=iterations
        )
        ended = replace(ended, value=ended.value - float(self.target.log_prior(np.zeros(points.shape[1]))))
        lost = ended.status == "lost"
        if iterations == ITERATIONS:
            lost |= ended.status == "iterations"
        if not lost.any():
            return ended
        self.handed_over += int(lost.sum())
        return ended.continued(np.flatnonzero(lost), general(ended.point[lost], None))
