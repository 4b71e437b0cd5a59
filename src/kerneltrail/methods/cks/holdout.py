"""A fitted kernel judged by how it extrapolates: refitted to the earlier rows, scored on the later ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import one_blas_thread
from kerneltrail.methods.cks.evidence import ExpressionPosterior
from kerneltrail.methods.cks.expression import numbered
from kerneltrail.methods.cks.fit import Effort, FitData, FittedExpression, fit
from kerneltrail.methods.cks.layout import ExpressionParameters
from kerneltrail.methods.periods import periods_within

Ints = NDArray[np.int_]

LOOK = Effort(draws=8, kept=1, fresh=1)
"""Effort of the fresh start, on few rows."""

CLIMB = Effort(draws=0, kept=1, fresh=0)
"""Effort on all earlier rows: from the values given, nowhere else."""


@dataclass(frozen=True)
class Holdout:
    """Which rows are held out, and how many kernels are judged by them.

    The rows are taken in order of the covariate; where there are several covariates, as they come. With two origins and
    a share of 0.1, rows 80–90 % are predicted from those before them, and rows 90–100 % from those before them.

    Attributes:
        share: of the rows, predicted from each origin.
        origins: how many such parts, counted from the end.
        most: kernels judged at most, those of the best BIC.
        fewest: with fewer rows than this none is judged, and BIC decides: one or two rows say nothing.
        thin: earlier rows on which the fresh start is looked for.
        worth: where kernels are averaged, for how many independent rows an origin counts: weights are proportional to
            exp(worth · origins · mean log density). Rows extrapolated from one origin go wrong together, so it is far
            less than their number.
    """

    share: float = 0.1
    origins: int = 2
    most: int = 12
    fewest: int = 20
    thin: int = 150
    worth: float = 5.0

    def __post_init__(self) -> None:
        if not (self.share > 0.0 and self.origins >= 1 and self.share * self.origins <= 0.5):
            raise KernelError(
                "a holdout needs a share above 0 and an origin or more, and half of the rows to learn from"
            )
        if min(self.most, self.thin) < 1 or self.fewest < 4:
            raise KernelError("a holdout needs most and thin ≥ 1, and fewest ≥ 4")
        if not (np.isfinite(self.worth) and self.worth >= 0.0):
            raise KernelError(f"a holdout's origin is worth 0 rows or more, not {self.worth}")

    def parts(self, user: User) -> Iterator[tuple[Ints, Ints]]:
        """Indices of the rows to learn from and of those to predict, the last origin first; none for too few rows."""
        if user.rows < self.fewest:
            return
        order = np.argsort(user.X[:, 0], kind="stable") if len(user.covariates) == 1 else np.arange(user.rows)
        size = max(1, int(self.share * user.rows))
        for origin in range(self.origins):
            end = user.rows - origin * size
            # In the order of the rows, so that a kernel is fitted to them as a search on them alone would.
            yield np.sort(order[: end - size]), np.sort(order[end - size : end])


def held_out_score(data: FitData, kernel: ExpressionParameters, holdout: Holdout) -> float:
    """Mean log predictive density of held-out rows, averaged over origins; -∞ where a refit or a prediction fails.

    Each row is scored by its own density given the earlier part, not by the joint density of the part: by the chain
    rule the joint is a product of predictions one row ahead, each given the held-out rows before it, which a kernel
    that merely follows the newest rows does well at.
    """
    scores = [_score(data, kernel, past, test, holdout.thin) for past, test in holdout.parts(data.user)]
    return float(np.mean(scores)) if scores else -np.inf


def _score(data: FitData, kernel: ExpressionParameters, past: Ints, test: Ints, thin: int) -> float:
    early = earlier(data, past)
    again = refit(early, kernel, thin).kernel
    if again is None:
        return -np.inf
    linear = None if data.block is None else data.block.features[test]
    try:
        with one_blas_thread():
            prediction = ExpressionPosterior(early.rows, again).predict(data.user.X[test], linear=linear)
    except NumericalError:
        return -np.inf
    score = float(prediction.log_density(data.user.y[test]).mean())
    return score if np.isfinite(score) else -np.inf


def earlier(data: FitData, past: Ints) -> FitData:
    """The problem on the earlier rows; likely periods are those of these rows."""
    early = data.at(past)
    return replace(early, periods=periods_within(early.user, early.user.y, data.limits))


def refit(early: FitData, kernel: ExpressionParameters, thin: int) -> FittedExpression:
    """A kernel's hyperparameters anew on the earlier rows, from its values on all rows and from a fresh start.

    The target of the rows held out enters nowhere but in the first start, which an optimum forgets unless there are
    several; the fresh start is there for those.
    """
    assert kernel.expression is not None  # what is judged has been fitted
    expression = numbered(kernel.expression)
    ends = [fit(early, expression, CLIMB, parent=kernel)]
    look = fit(early.thinned(thin), expression, LOOK).kernel
    if look is not None:
        ends.append(fit(early, expression, CLIMB, parent=look))
    return min(ends, key=lambda end: end.bic)
