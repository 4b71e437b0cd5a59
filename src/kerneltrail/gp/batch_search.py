"""The searches for the MAP hyperparameters of one batch: compiled, and general where compiled code cannot go on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.quasi_newton import minimise
from kerneltrail.gp.starts import APART, best_apart
from kerneltrail.gp.whitened import ITERATIONS, STEP, End, WhitenedPosterior

Array = NDArray[np.float64]

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

NEAR = 0.1
"""Nats, by value and by curvature, that make a search's end the optimum known already: a rough end is no nearer."""

EXPLAINED = 0.5, 2.0
"""Shares of a parabola's rise between which that of the posterior is its own: no other optimum is near such a point."""

SAME = 0.01
"""Points closer than this, in standard deviations of the posterior, share their curvature: searches end no closer."""


class BatchSearch:
    """The searches for one batch: begun at all starts, gone on with from the best, finished from the best of those.

    Attributes:
        target: what is searched.
        ends: where the searches ended.
        evaluations: evidences computed.
        handed_over: how often compiled code could not go on, and the general search did.
    """

    def __init__(self, target: WhitenedPosterior, accuracy: float) -> None:
        self.target = target
        self._accuracy = accuracy
        # At a gradient g the value is off by about g²/2 (whitened: curvature is 1 or more).
        self._tight = max(1e-4, 10.0 * accuracy**0.5)
        self._coarse = max(self._tight, COARSE)
        self._identity = np.eye(len(target.mean))
        self.handed_over = 0
        self.evaluations = 0
        self.ends: list[End] = []
        self._curved: tuple[Array, Array] | None = None
        self._learnt: tuple[Array, Array] | None = None

    @property
    def best(self) -> End:
        """The best search's end."""
        return min(self.ends, key=_value)

    @property
    def hessian(self) -> Array:
        """Hessian of minus the log posterior at the best point, whitened; kept while that is about the same point."""
        best = self.best
        width = np.minimum(np.sqrt(np.diagonal(best.inverse)), 1.0)
        if self._curved is None or (np.abs(self._curved[0] - best.point) > SAME * width).any():
            compiled, hessian = self.target.compiled, None
            if compiled is not None:
                hessian = compiled.curvature(best.point, STEP * np.maximum(width, 1e-3))
            self._curved = best.point, self.target.curvature(best.point) if hessian is None else hessian
        return self._curved[1]

    @property
    def learnt(self) -> Array:
        """The inverse Hessian at the best point, as a search beside it may begin with.

        Where the general search must compute it, what that has learnt on its way has to do: it costs nothing.
        """
        if self.target.compiled is None:
            return self.best.inverse
        hessian = self.hessian
        if self._learnt is None or self._learnt[0] is not hessian:
            values, vectors = np.linalg.eigh(hessian)
            self._learnt = hessian, (vectors / np.clip(values, 1.0 / SOFTEST, 1.0 / STIFFEST)) @ vectors.T
        return self._learnt[1]

    def run(self, points: Array, finished: int = 1, inverse: Sequence[Array] | None = None) -> None:
        """Begin a search at each point, go on with the `finished` best, and then with the best of those to the end."""
        if inverse is None:
            inverse = [self._identity] * len(points)
        known = self.best.value if self.ends else math.inf
        ceiling = known + BEHIND if finished == 1 else math.inf
        if len(points) > finished:
            ends = self._descend(points, inverse, self._coarse, BEGIN, ceiling=ceiling, race=finished == 1)
            values = np.array([end.value for end in ends])
            which = best_apart(np.array([end.point for end in ends]), values, finished)
            self._continue(ends, [i for i in which if ends[i].goes_on(self._coarse)], self._coarse)
        else:
            ends = self._descend(points, inverse, self._coarse, ceiling=ceiling)
        ended: set[int] = set()
        # What was not finished is rough. The best must be, so another one may have to be finished after it.
        while (best := min(range(len(ends)), key=lambda i: ends[i].value)) not in ended:
            if ends[best].value > known + BEHIND or self._reached(ends[best]):
                break
            rough = self.target.compiled is not None and ends[best].status not in ("edge", "stuck")
            if rough or ends[best].goes_on(self._tight):
                self._continue(ends, [best], self._tight)
            ended.add(best)
        self.ends += ends

    def improve(self, points: Array, values: Array) -> bool:
        """Search from the best point elsewhere, if its value is near the best one's; whether that was better."""
        best = self.best
        away = points - best.point
        elsewhere = (np.abs(away).max(axis=1) > APART) & (values < best.value + MARGIN)
        if self.target.compiled is not None and elsewhere.any():
            rise, (least, most) = values - best.value, EXPLAINED
            parabola = 0.5 * ((away @ self.hessian) * away).sum(axis=1)
            elsewhere &= ~((rise > least * parabola) & (rise < most * parabola))
        if not elsewhere.any():
            return False
        start = np.where(elsewhere, values, np.inf).argmin()
        self.run(points[start][None], inverse=[self.learnt])
        return self.best.value < best.value - 1e-3

    def _reached(self, end: End) -> bool:
        """Whether a search has come to the optimum that is known already: about there, and no better."""
        if not self.ends or self.target.compiled is None:
            return False
        away = end.point - self.best.point
        return bool(away @ self.hessian @ away < NEAR and end.value > self.best.value - NEAR)

    def _continue(self, ends: list[End], which: Sequence[int], tolerance: float) -> None:
        """Take some searches to a tolerance."""
        if not which:
            return
        further = self._descend([ends[i].point for i in which], [ends[i].inverse for i in which], tolerance)
        for i, end in zip(which, further, strict=True):
            ends[i] = end._replace(iterations=ends[i].iterations + end.iterations)

    def _descend(
        self,
        points: Sequence[Array] | Array,
        inverse: Sequence[Array],
        tolerance: float,
        iterations: int = ITERATIONS,
        *,
        ceiling: float = math.inf,
        race: bool = False,
    ) -> list[End]:
        """By compiled code where the composition allows, from where that is lost by the general search.

        Before the end is wanted, compiled code computes roughly, and only from where that is lost as it should. In a
        race, searches that cannot hope to catch up with one before them are left.
        """
        compiled = self.target.compiled
        if compiled is None:
            return self._general(points, inverse, tolerance, iterations)
        errors = [self.target.tol]
        if tolerance > self._tight and self.target.tol < ROUGH:
            errors.insert(0, ROUGH)
        ends: list[End] = []
        for start, learnt in zip(points, inverse, strict=True):
            end = End(start, math.inf, start, "lost", 0, learnt)
            for tol in errors:
                if end.status != "lost":
                    break
                taken = end.iterations
                end, evaluations = compiled.search(
                    end.point,
                    learnt if tol == errors[0] else self._identity,
                    gradient_tolerance=tolerance,
                    value_tolerance=self._accuracy,
                    iterations=iterations,
                    tol=tol,
                    ceiling=ceiling,
                )
                if taken:
                    end = end._replace(iterations=taken + end.iterations)
                self.evaluations += evaluations
            ends.append(end)
            ceiling = min(ceiling, end.value) if race else ceiling
        lost = [i for i, end in enumerate(ends) if end.status == "lost"]
        if lost:
            self.handed_over += len(lost)
            further = self._general([ends[i].point for i in lost], [self._identity] * len(lost), tolerance, iterations)
            for i, end in zip(lost, further, strict=True):
                ends[i] = end._replace(iterations=ends[i].iterations + end.iterations)
        return ends

    def _general(
        self, points: Sequence[Array] | Array, inverse: Sequence[Array], tolerance: float, iterations: int
    ) -> list[End]:
        """By the general search."""
        found = minimise(
            self.target.slopes,
            np.array(points),
            inverse=np.array(inverse),
            gradient_tolerance=tolerance,
            value_tolerance=self._accuracy,
            iterations=iterations,
        )
        self.evaluations += found.evaluations
        parts = (found.point, found.value.tolist(), found.gradient, found.status.tolist(), found.iterations.tolist())
        return [End(*each) for each in zip(*parts, found.inverse, strict=True)]


def _value(end: End) -> float:
    return end.value
