"""The log posterior of one user's rows under one composition, in coordinates whitened by the prior.

Compiled code computes it where the composition's features allow, NumPy where they do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp import spectral
from kerneltrail.gp.compiled_map import (
    LOST,
    NO_RANK,
    STATUS,
    UNFINISHED,
    CompiledPosterior,
    descend,
    expansion,
)
from kerneltrail.gp.evidence import Method, evidence_of, slope_of
from kerneltrail.gp.features import FeatureLayout, feature_layout_for
from kerneltrail.gp.inputs import Inputs
from kerneltrail.gp.numerics import LOG_2PI
from kerneltrail.gp.quasi_newton import FARTHEST
from kerneltrail.kernels.families import NO_FAMILY

Array = NDArray[np.float64]

STEP = 1e-4
"""Step of the differences of gradients that give the curvature, in standard deviations of the prior or posterior."""

ITERATIONS = 200
"""Most steps of a search."""

INSIDE = 0.99 * FARTHEST
"""Where a compiled search begins, at the farthest: on the edge it could not take a step."""

MANY = 100
"""Features up to which evidences are computed from them without asking whether the covariance would be quicker."""


class End(NamedTuple):
    """Where one search stands.

    Attributes:
        point: whitened, (k,).
        value: minus the log posterior.
        gradient: (k,).
        status: see `Minimum`.
        iterations: steps taken.
        inverse: what was learnt of the inverse Hessian, (k, k).
    """

    point: Array
    value: float
    gradient: Array
    status: str
    iterations: int
    inverse: Array

    @property
    def steepest(self) -> float:
        """Largest entry of the gradient."""
        return max(map(abs, self.gradient.tolist()), default=0.0)

    def goes_on(self, tolerance: float) -> bool:
        """Whether the search was stopped before it came to a tolerance."""
        return self.status == "iterations" or (self.status == "converged" and self.steepest > tolerance)


@dataclass(frozen=True)
class WhitenedPosterior:
    """The log posterior of one user's rows under one composition, in whitened coordinates."""

    inputs: Inputs
    mean: Array
    scale: Array
    method: Method
    tol: float

    @cached_property
    def compiled(self) -> CompiledSearch | None:
        """Itself as compiled code takes it; None where only the general search will do, or says what is wrong."""
        wanted = self.method in ("auto", "spectral") and 0.0 < self.tol < 1.0
        layout = can_search(self.inputs) if wanted else None
        return None if layout is None else CompiledSearch(self, layout)

    @cached_property
    def constant(self) -> float:
        """The log density of the prior at its mean."""
        return -float(np.log(self.scale).sum()) - 0.5 * len(self.mean) * LOG_2PI

    def whiten(self, u: Array) -> Array:
        """Whitened coordinates."""
        return (u - self.mean) / self.scale

    def unwhiten(self, w: Array) -> Array:
        """Unconstrained hyperparameters."""
        return self.mean + self.scale * w

    def log_prior(self, w: Array) -> Array:
        """Log density of the unconstrained vectors, (S,)."""
        return -0.5 * (w * w).sum(axis=-1) + self.constant

    def values(self, w: Array, tol: float | None = None) -> Array:
        """Minus log posterior of each batch (S, T), for screening: infinite where a matrix could not be factorised.

        `tol` is the error allowed in a log evidence, if it is not the posterior's own.
        """
        allowed = self.tol if tol is None else tol
        if self.compiled is None:
            return self._general_values(w, allowed)
        log = self.compiled.evidence(w, allowed)
        values = -(log + self.log_prior(w)[:, None])
        rest = np.isnan(values).any(axis=1)
        if rest.any():
            values[rest] = self._general_values(w[rest], allowed)
        return values

    def _general_values(self, w: Array, tol: float) -> Array:
        try:
            log = evidence_of(self.inputs, self.unwhiten(w), method=self.method, tol=tol).log
        except NumericalError:
            if len(w) == 1:
                return np.full((1, len(self.inputs.ends)), np.inf)
            return np.concatenate([self._general_values(row[None], tol) for row in w])
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
        """Hessian of minus the log posterior, by central differences of the gradient; in whitened coordinates too."""
        k = len(w)
        shifts = STEP * np.eye(k)
        _, gradient = self.slopes(np.concatenate([w + shifts, w - shifts]))
        hessian = (gradient[:k] - gradient[k:]) / (2.0 * STEP)
        return 0.5 * (hessian + hessian.T)


def can_search(inputs: Inputs) -> FeatureLayout | None:
    """The layout of a composition that can be searched here, else None."""
    layout = feature_layout_for(inputs)
    if layout is None or layout.tensor:
        return None
    if any(kind.family == NO_FAMILY for kind in layout.series_atom):
        return None
    return layout


class CompiledSearch:
    """Compiled code bound to one user's rows, one composition and one prior."""

    def __init__(self, target: WhitenedPosterior, layout: FeatureLayout) -> None:
        inputs = target.inputs
        self.posterior = CompiledPosterior(
            np.ascontiguousarray(target.mean),
            np.ascontiguousarray(target.scale),
            inputs.layout.positive,
            inputs.columns,
            inputs.reach,
            inputs.reach.mean(axis=0),
            inputs.fixed_features,
            np.array([kind.family for kind in layout.series_atom], dtype=np.int64),
            target.tol,
        )
        self.layout = layout.compiled
        self._ends = inputs.ends
        self._constant = target.constant
        self._by_tolerance = {target.tol: self.posterior}

    def _allowing(self, tol: float) -> CompiledPosterior:
        if tol not in self._by_tolerance:
            self._by_tolerance[tol] = self.posterior._replace(tol=tol)
        return self._by_tolerance[tol]

    def evidence(self, w: Array, tol: float) -> Array:
        """Log evidence of each batch (S, T) at whitened points; NaN where features do not do, or are too many."""
        posterior = self._allowing(tol)
        batch, rank = expansion(w, posterior, self.layout)
        few = (rank != NO_RANK) & (rank <= max(MANY, posterior.X.shape[1] // 2))
        log = np.full((len(w), len(self._ends)), np.nan)
        if not few.all():
            batch, rank = tuple(part[few] for part in batch), rank[few]
        if len(rank):
            rows = (posterior.X, posterior.centre, self._ends, posterior.extra)
            log[few] = spectral.evidence(*rows, self.layout, batch, rank, False)
        return log

    def search(
        self,
        start: Array,
        inverse: Array,
        *,
        gradient_tolerance: float,
        value_tolerance: float,
        iterations: int = ITERATIONS,
        tol: float | None = None,
        ceiling: float = math.inf,
    ) -> tuple[End, int]:
        """`minimise` from one start, and how many evidences that took.

        A search that cannot be finished here is ``lost``, at the point to which it came. `tol` is the error allowed in
        a log evidence, if it is not the posterior's own. Values that may be too good by it are raised by it, so that a
        search that is finished is better than one beside it that is not. One that cannot hope to come below the
        `ceiling` is left ``behind``.
        """
        point, gradient, inverse = start.clip(-INSIDE, INSIDE), np.zeros(len(start)), inverse.copy()
        allowed = self.posterior.tol if tol is None else tol
        posterior = self._allowing(allowed)
        unlike = allowed - self.posterior.tol - self._constant
        limits = (gradient_tolerance, value_tolerance, iterations, ceiling - unlike)
        value, status, taken, evaluations = descend(point, gradient, inverse, posterior, self.layout, *limits)
        if status == UNFINISHED and iterations == ITERATIONS:
            status = LOST
        return End(point, value + unlike, gradient, STATUS[status], taken, inverse), evaluations

    def curvature(self, w: Array, steps: Array) -> Array | None:
        """The Hessian in whitened coordinates, by differences of the gradient; None where it cannot be had.

        The differences are to one side. With a step that is small beside the posterior's width the error is as small,
        and two sides would take twice as long.
        """
        k = len(w)
        hessian, here, point = np.empty((k, k)), np.empty(k), w.copy()
        if not math.isfinite(self._value(point, here)):
            return None
        for i, step in enumerate(steps.tolist()):
            point[i] = w[i] + step
            if not math.isfinite(self._value(point, hessian[i])):
                return None
            point[i] = w[i]
        hessian = (hessian - here) / steps[:, None]
        return 0.5 * (hessian + hessian.T)

    def _value(self, w: Array, gradient: Array) -> float:
        """Minus the log posterior up to a constant, its gradient written: a search that takes no step."""
        unread = np.eye(len(w))
        value: float = descend(w, gradient, unread, self.posterior, self.layout, 0.0, 0.0, 0, math.inf)[0]
        return value
