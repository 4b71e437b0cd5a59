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
"""Step of the differences of gradients that give the curvature, in standard deviations of the prior or posterior."""

ROUGH = 1e-2
"""Error of a log evidence that is allowed until the best of the searches is finished: half as many features do."""

BEHIND = 0.5
"""Nats behind the best optimum from which a search is not finished: what is left of it gains far less."""

STIFFEST, SOFTEST = 1e-6, 4.0
"""Bounds of the inverse Hessian's eigenvalues that a search begins with; whitened, so 1 is the prior's."""

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
        """Hessian of minus the log posterior, by central differences of the gradient; in whitened coordinates too."""
        k = len(w)
        shifts = STEP * np.eye(k)
        _, gradient = self.slopes(np.concatenate([w + shifts, w - shifts]))
        hessian = (gradient[:k] - gradient[k:]) / (2.0 * STEP)
        return 0.5 * (hessian + hessian.T)


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
        tol: float | None = None,
    ) -> Minimum:
        """`minimise`, one start after the other; values are without the prior's constant.

        A search that cannot be finished here is ``lost``, at the point to which it came. `tol` is the error allowed in
        a log evidence, if it is not the search's own.
        """
        posterior = self._posterior if tol is None else self._posterior._replace(tol=tol)
        x = np.clip(starts, -0.99 * FARTHEST, 0.99 * FARTHEST)
        samples, k = x.shape
        learnt = np.array(np.broadcast_to(np.eye(k) if inverse is None else inverse, (samples, k, k)), order="C")
        gradient = np.zeros((samples, k))
        tolerances = (gradient_tolerance, value_tolerance, iterations)
        fresh = (learnt == np.eye(k)).all(axis=(1, 2))
        ends = [
            descend(x[s], gradient[s], learnt[s], fresh[s], posterior, self._layout, *tolerances)
            for s in range(samples)
        ]
        value, status, taken, evaluations = (np.array(part) for part in zip(*ends, strict=True))
        return Minimum(x, value, gradient, STATUS[status], taken, learnt, int(evaluations.sum()))

    def curvature(self, w: Array, steps: Array) -> Array | None:
        """The Hessian in whitened coordinates, or None where it cannot be had."""
        hessian = hessian_at(w, steps, self._posterior, self._layout)
        return hessian if np.isfinite(hessian).all() else None


def _going(optima: Minimum, i: int, tolerance: float) -> bool:
    """Whether a search was stopped before it came to a tolerance."""
    steep = np.abs(optima.gradient[i]).max() > tolerance
    return bool(optima.status[i] == "iterations" or (steep and optima.status[i] == "converged"))


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
        self._hessian: tuple[Array, Array] | None = None

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
    def hessian(self) -> Array:
        """Hessian of minus the log posterior at the best point, whitened."""
        if self._hessian is None or (self._hessian[0] != self.best).any():
            w, hessian = self.best, None
            if self._compiled is not None:
                width = np.sqrt(np.diagonal(self.optima.inverse[self.optima.value.argmin()]))
                hessian = self._compiled.curvature(w, STEP * np.clip(width, 1e-3, 1.0))
            self._hessian = w, self.target.curvature(w) if hessian is None else hessian
        return self._hessian[1]

    @property
    def learnt(self) -> Array:
        """The inverse Hessian at the best point, as a search beside it may begin with.

        Where the general search must compute it, what that has learnt on its way has to do: it costs nothing.
        """
        if self._compiled is None:
            return np.asarray(self.optima.inverse[self.optima.value.argmin()])
        values, vectors = np.linalg.eigh(self.hessian)
        return np.asarray((vectors / np.clip(values, 1.0 / SOFTEST, 1.0 / STIFFEST)) @ vectors.T)

    def run(self, points: Array, finished: int = 1, inverse: Array | None = None) -> None:
        """Begin a search at each point, go on with the `finished` best, and then with the best of those to the end."""
        if len(points) > finished:
            optima = self._descend(points, self._coarse, inverse, BEGIN)
            which = best_apart(optima.point, optima.value, finished)
            optima = self._continued(optima, [i for i in which if _going(optima, i, self._coarse)], self._coarse)
        else:
            optima = self._descend(points, self._coarse, inverse)
        known = np.inf if self._optima is None else self._optima.value.min()
        ended: set[int] = set()
        best = int(optima.value.argmin())
        # What was not finished is rough. The best must be, so another one may have to be finished after it.
        while best not in ended and not optima.value[best] > known + BEHIND:
            rough = self._compiled is not None and optima.status[best] not in ("edge", "stuck")
            if rough or _going(optima, best, self._tight):
                optima = self._continued(optima, [best], self._tight)
            ended.add(best)
            best = int(optima.value.argmin())
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

    def _continued(self, optima: Minimum, which: Sequence[int], tolerance: float) -> Minimum:
        """With some searches taken to a tolerance."""
        rows = np.array(which, dtype=np.int64)
        if not len(rows):
            return optima
        return optima.continued(rows, self._descend(optima.point[rows], tolerance, optima.inverse[rows]))

    def _descend(
        self, points: Array, tolerance: float, inverse: Array | None = None, iterations: int = ITERATIONS
    ) -> Minimum:
        """By compiled code where the composition allows, from where that is lost by the general search.

        Before the end is wanted, compiled code computes roughly, and only from where that is lost as it should. Values
        that may be too good by its error are raised by it, so that a search that is finished is better than one beside
        it that is not.
        """
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

        search = self._compiled
        if search is None:
            return general(points, inverse)

        def compiled(starts: Array, learnt: Array | None, tol: float) -> tuple[Minimum, NDArray[np.int64]]:
            ended = search.run(
                starts,
                inverse=learnt,
                gradient_tolerance=tolerance,
                value_tolerance=accuracy,
                iterations=iterations,
                tol=tol,
            )
            unlike = tol - self.target.tol - float(self.target.log_prior(np.zeros(starts.shape[1])))
            lost = (ended.status == "lost") | ((ended.status == "iterations") & (iterations == ITERATIONS))
            return replace(ended, value=ended.value + unlike), np.flatnonzero(lost)

        rough = max(ROUGH, self.target.tol) if tolerance > self._tight else self.target.tol
        ended, lost = compiled(points, inverse, rough)
        if len(lost) and rough > self.target.tol:
            again, still = compiled(ended.point[lost], None, self.target.tol)
            ended, lost = ended.continued(lost, again), lost[still]
        if not len(lost):
            return ended
        self.handed_over += len(lost)
        return ended.continued(lost, general(ended.point[lost], None))
