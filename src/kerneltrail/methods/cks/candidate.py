"""One candidate's log posterior over its hyperparameters, and the search for its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kerneltrail import gp
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Inputs, inputs_for
from kerneltrail.gp.numerics import LOG_2PI
from kerneltrail.gp.quasi_newton import FARTHEST, minimise
from kerneltrail.kernels import Priors, layout_of
from kerneltrail.methods.cks.evidence import CovarianceTree, Rows
from kerneltrail.methods.cks.expression import Expression, Leaf, Sum, Times
from kerneltrail.methods.cks.layout import expression_layout
from kerneltrail.methods.protocol import Array


@dataclass(frozen=True)
class Optimum:
    """Where one search ended: the unconstrained vector, its log posterior and its log evidence."""

    vector: Array
    log_posterior: float
    log_evidence: float


def is_plain(expression: Expression) -> bool:
    """Whether it is a sum of different products of atoms, and so the very model of its composition.

    ``LIN[x] + PER[x]*SE[x]`` is; ``PER[x]*(LIN[x] + SE[x])`` and ``SE[x] + SE[x]`` are not.
    """
    terms = expression.parts if isinstance(expression, Sum) else (expression,)
    flat = all(
        isinstance(term, Leaf) or (isinstance(term, Times) and all(isinstance(part, Leaf) for part in term.parts))
        for term in terms
    )
    return flat and len(expression.composition) == len(terms)


@dataclass(frozen=True)
class Candidate:
    """An expression before its fit to some rows; `tol` is the error allowed in a log evidence."""

    rows: Rows
    priors: Priors
    expression: Expression
    tol: float = 1e-6

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Prior mean and variance."""
        return expression_layout(self.expression).moments(self.priors)

    @cached_property
    def tree(self) -> CovarianceTree:
        """The kernel, to be evaluated."""
        return CovarianceTree(self.expression, self.rows.user.covariates)

    @cached_property
    def quick(self) -> Inputs | None:
        """The rows as compiled code takes them, where it can search this kernel by itself, else None."""
        if not is_plain(self.expression):
            return None
        composition = self.expression.composition
        # The order of parts is the same in both; were it not, the tree would serve.
        parameters = [(slot.spec.name, slot.covariate) for slot in expression_layout(self.expression).slots]
        if parameters != [(slot.spec.name, slot.covariate) for slot in layout_of(composition).slots]:
            return None
        inputs = inputs_for(self.rows.user, composition, block=self.rows.block)
        return inputs if gp.whitened.can_search(inputs) is not None else None

    def log_prior(self, vector: Array) -> float:
        """Log density of the prior, in the unconstrained space."""
        mean, variance = self.moments
        return float(-0.5 * ((vector - mean) ** 2 / variance + np.log(variance) + LOG_2PI).sum())

    def log_posteriors(self, points: Array) -> Array:
        """Log posterior at each of some points; -∞ where it cannot be computed."""
        log = np.full(len(points), -np.inf)
        for i, point in enumerate(points):
            try:
                if self.quick is not None:
                    log[i] = gp.evidence_of(self.quick, point, tol=self.tol).log[0, -1]
                else:
                    log[i] = self.rows.log_evidence(self.tree, point)
            except NumericalError:
                continue
            log[i] += self.log_prior(point)
        return np.where(np.isfinite(log), log, -np.inf)

    def climb(self, points: Array, accuracy: float) -> list[Optimum]:
        """The optimum from each start, best first; starts that cannot be evaluated are left out."""
        optima = self._compiled(points, accuracy) if self.quick is not None else self._dense(points, accuracy)
        return sorted(optima, key=lambda each: -each.log_posterior)

    def _compiled(self, points: Array, accuracy: float) -> list[Optimum]:
        optima = []
        for point in points:
            try:
                # With a start given nothing is drawn.
                end = gp.find_map(
                    self.rows.user,
                    self.expression.composition,
                    self.priors,
                    rng=np.random.default_rng(0),
                    starts=0,
                    warm=[point],
                    block=self.rows.block,
                    tol=self.tol,
                    accuracy=accuracy,
                )
            except NumericalError:
                continue
            optima.append(Optimum(end.hyperparameters.vector, end.log_posterior, end.log_likelihood))
        return optima

    def _dense(self, points: Array, accuracy: float) -> list[Optimum]:
        mean, scale = self.moments[0], np.sqrt(self.moments[1])

        def objective(whitened: Array) -> tuple[Array, Array]:
            """Minus the log posterior and its gradient, in prior standard deviations (compare `kerneltrail.gp.map`)."""
            values, gradients = np.full(len(whitened), np.inf), np.zeros_like(whitened)
            for i, w in enumerate(whitened):
                vector = mean + scale * w
                try:
                    log, slope = self.rows.slope(self.tree, vector)
                except NumericalError:
                    continue
                values[i], gradients[i] = -log - self.log_prior(vector), w - scale * slope
            return values, gradients

        if not len(points):
            return []
        inside = np.clip((points - mean) / scale, -FARTHEST, FARTHEST)
        ends = minimise(objective, inside, gradient_tolerance=max(1e-4, 10.0 * accuracy**0.5), value_tolerance=accuracy)
        optima = []
        for point, value in zip(ends.point, ends.value, strict=True):
            if np.isfinite(value):
                vector = mean + scale * point
                optima.append(Optimum(vector, -float(value), -float(value) - self.log_prior(vector)))
        return optima
