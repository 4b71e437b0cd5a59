"""CKS as a method of following a user: searched from scratch on every cumulative set (method §10.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail.data import User, default_priors
from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition, Hyperparameters, Priors, parse
from kerneltrail.methods.cks.evidence import ExpressionPosterior, Rows
from kerneltrail.methods.cks.expression import read
from kerneltrail.methods.cks.layout import ExpressionParameters
from kerneltrail.methods.cks.search import SearchProgress, search
from kerneltrail.methods.cks.search_tree import SearchTree
from kerneltrail.methods.cks.settings import SearchSettings
from kerneltrail.methods.mixture import joined
from kerneltrail.methods.preprocessing import (
    Preparation,
    PreparedRows,
    PreprocessedLearner,
    Preprocessor,
    own_preprocessor,
)
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.refit import RefittedUser
from kerneltrail.methods.registry import register_learner


@dataclass(frozen=True)
class CKSFit:
    """What a search found for the rows so far.

    Attributes:
        prepared: the rows, scaled.
        hyperparameters: the best kernel with its hyperparameters, in scaled units; noise alone before any row.
        tree: the whole search; None before any row, and where the fit was read from a file.
        average: weights and kernels of those that predict together; empty where the best predicts alone.
    """

    prepared: PreparedRows
    hyperparameters: ExpressionParameters
    tree: SearchTree | None = field(default=None, compare=False)
    average: tuple[tuple[float, ExpressionParameters], ...] = ()

    @property
    def kernel(self) -> str:
        """The kernel's text as the grammar wrote it, sums inside products in brackets; empty before any row."""
        return str(self.hyperparameters.expression or "")

    @property
    def composition(self) -> Composition:
        """The products to which the best kernel multiplies out, each once."""
        return self.hyperparameters.composition

    @property
    def hyperparameter_count(self) -> int:
        """Hyperparameters of the kernel as written, noise included; what it multiplies out to would have more."""
        return len(self.hyperparameters)

    @cached_property
    def _members(self) -> tuple[tuple[float, ExpressionPosterior], ...]:
        """All that predict together, with their weights."""
        rows = Rows(self.prepared.whole, self.prepared.block)
        chosen = self.average or ((1.0, self.hyperparameters),)
        return tuple((weight, ExpressionPosterior(rows, kernel)) for weight, kernel in chosen)

    @property
    def in_data_units(self) -> ExpressionParameters:
        """The hyperparameters in the units of the data: years, hours, passengers."""
        return self.hyperparameters.in_data_units(self.prepared.scaler)

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units; several kernels are joined by mean and variance."""
        scaled, linear = self.prepared.inputs_at(X, action)
        parts = [posterior.predict(scaled, linear=linear) for _, posterior in self._members]
        return self.prepared.in_data_units(joined(parts, [weight for weight, _ in self._members]), scaled, action)

    def to_json(self) -> dict[str, Any]:
        """As plain values, without the search."""
        average = [{"weight": weight, **_plain(kernel)} for weight, kernel in self.average]
        return {**_plain(self.hyperparameters), "average": average}


def _plain(kernel: ExpressionParameters) -> dict[str, Any]:
    return {"kernel": str(kernel.expression or ""), "theta": list(kernel.unconstrained)}


def _read(stored: Mapping[str, Any]) -> ExpressionParameters:
    return ExpressionParameters(read(text) if (text := str(stored["kernel"])) else None, tuple(stored["theta"]))


@dataclass(frozen=True)
class CKSLearner(PreprocessedLearner):
    """CKS as two functions of the rows; a `Learner`.

    Attributes:
        priors: over hyperparameters of scaled rows, the same as the other methods'; `wide_priors` if None, which are
            meant for a standardised target.
        settings: budget and effort of each search.
        progress: called after every fit of a candidate.
    """

    priors: Priors | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    progress: Callable[[SearchProgress], None] | None = field(default=None, compare=False)

    @property
    def in_pieces(self) -> bool:
        """Every search starts from scratch, so only the rows matter; how many fit into seconds is another matter."""
        return self.settings.seconds is None

    def fit(self, rows: User, before: Fit | None) -> CKSFit:
        """The search on all rows so far; before any, noise alone around the mean."""
        prepared = self.preprocessor.prepare(rows)
        if not rows.rows:
            return CKSFit(prepared, self._nothing())
        tree = search(prepared.whole, self.priors, self.settings, block=prepared.block, progress=self.progress)
        best = tree.best.fitted.kernel
        assert best is not None  # the best node of a search is a fitted one
        if self.settings.choose != "average":
            return CKSFit(prepared, best, tree)
        weighted = tree.weighted(self.settings.holdout.worth * self.settings.holdout.origins)
        average = tuple((weight, kernel) for weight, node in weighted if (kernel := node.fitted.kernel) is not None)
        return CKSFit(prepared, best, tree, average)

    def _nothing(self) -> ExpressionParameters:
        """Noise alone, as large as the priors expect signal and noise to be together."""
        total = 1.0  # a standardised target's
        if self.priors is not None:
            usual = parse(f"SE[{self.covariates[0]}]")
            values = Hyperparameters(usual, tuple(self.priors.moments(usual)[0])).values_array
            total = float(values[0] + values[-1])
        return ExpressionParameters(None, (float(np.log(total)),))

    def restore(self, rows: User, stored: Mapping[str, Any]) -> CKSFit:
        """The fit of which `to_json` was kept."""
        average = tuple((float(each["weight"]), _read(each)) for each in stored.get("average", ()))
        return CKSFit(self.preprocessor.prepare(rows), _read(stored), average=average)


class CKS(RefittedUser):
    """Compositional kernel search on one's own rows, without training users: a `FollowedUser` for any table or series.

    Covariates are scaled to [0, 1] on the rows so far and the target is standardised, so years and thousands of
    passengers are as good as hours and steps; predictions and `fit.in_data_units` are in the data's own units.

    >>> import numpy as np
    >>> x = np.linspace(0.0, 10.0, 40)
    >>> user = CKS(["year"], settings=SearchSettings(depth=0))
    >>> fit = user.update(x[:, None], 1000.0 + 50.0 * x)
    >>> user.composition.text, round(float(user.predict([[12.0]]).mean[0]))
    ('LIN[year]', 1600)
    """

    def __init__(
        self,
        covariates: Sequence[str],
        *,
        name: str = "new",
        priors: Priors | None = None,
        settings: SearchSettings | None = None,
        scaling: Preparation = "automatic",
        progress: Callable[[SearchProgress], None] | None = None,
    ) -> None:
        """Somebody whose rows are yet to come; X has the covariates as columns, in order.

        Priors are over hyperparameters of scaled rows; if None, `wide_priors` under ``automatic`` scaling, which scales
        covariates and target, else the paper's: ``covariates`` scales those alone, ``none`` nothing. `settings` and
        `progress` are those of a `CKSLearner`.
        """
        preprocessor = own_preprocessor(covariates, scaling)
        if priors is None and scaling != "automatic":
            priors = default_priors(preprocessor.schema)
        super().__init__(CKSLearner(preprocessor, priors, settings or SearchSettings(), progress), name)

    @property
    def found(self) -> CKSFit:
        """The newest search's result: kernel, hyperparameters, tree."""
        fit = self.fit
        assert isinstance(fit, CKSFit)  # made by our own learner
        return fit


def cks(
    preprocessor: Preprocessor, priors: Priors, *, search: SearchSettings | None = None, seed: int = 0
) -> CKSLearner:
    """The same priors and scaling as the other per-user methods; `search` says how far and how hard."""
    return CKSLearner(preprocessor, priors, replace(search or SearchSettings(), seed=seed))


register_learner("cks", cks, "own rows")
