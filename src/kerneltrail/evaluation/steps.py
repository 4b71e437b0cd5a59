"""One row of an evaluation: a method and a user after t batches, and how well the next batch was predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

NAN = float("nan")


@dataclass(frozen=True)
class Step:
    """A user followed by a method, after t batches (SPEC §11). What does not apply is NaN, or None for flags.

    Attributes:
        run: label of the evaluation that it belongs to: a seed, a split.
        method: the method's label.
        user: the user's name.
        person: digest of the user's rows: the same rows are the same person, whatever the run.
        t: batches seen; 0 is before any row.
        rows: rows seen.
        predicted: rows of batch t+1, predicted before they were seen; 0 after the last batch.
        rmse: root mean squared error of that prediction.
        log_density: mean log predictive density, noise included. Predictions are Normal: methods that average over
            several kernels join them by mean and variance.
        coverage50, coverage90: share of the rows inside the central 50 % and 90 % intervals of that Normal.
        seconds: of the update that led to t, by the clock.
        cpu_seconds: the same in processor time of this process: not disturbed by what else the machine does.
        predict_seconds: of the prediction of batch t+1, by the clock.
        composition: text of the selected composition.
        products: how many it has.
        hyperparameters: those of the kernel, the noise counted: the method's own number where it says one, since what
            products share counts once there; else the composition's.
        covariates: how many covariates it reads.
        covariate_names: which.
        change: products that differ between the compositions after t and after t+1. From t = 1: what is said before any
            row is no selection.
        changed: 1 if that is not 0.
        right: whether the composition is the true one; None where the truth is unknown.
    """

    run: str
    method: str
    user: str
    person: str
    t: int
    rows: int
    predicted: int
    rmse: float
    log_density: float
    coverage50: float
    coverage90: float
    seconds: float
    cpu_seconds: float
    predict_seconds: float
    composition: str
    products: int
    hyperparameters: int
    covariates: int
    covariate_names: tuple[str, ...]
    change: int | None
    changed: int | None
    right: bool | None

    def value(self, metric: str) -> float:
        """A metric as a number; NaN where it does not apply."""
        found = getattr(self, metric)
        return NAN if found is None else float(found)

    def to_json(self) -> dict[str, Any]:
        """As plain values; NaN is None, infinity a text."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Step:
        """The step that `to_json` described."""
        known = {field.name: stored[field.name] for field in fields(cls)}
        for name in REAL:
            known[name] = NAN if known[name] is None else float(known[name])
        return cls(**{**known, "covariate_names": tuple(known["covariate_names"])})


METRICS = (
    "rmse", "log_density", "coverage50", "coverage90", "seconds", "cpu_seconds", "predict_seconds", "products",
    "hyperparameters", "covariates", "change", "changed", "right",
)  # fmt: skip
"""What is averaged over users, and compared in pairs."""

REAL = METRICS[:7]
"""Those that are not counts or flags."""


@dataclass(frozen=True)
class Failure:
    """Something that raised, and was left out.

    Attributes:
        run: label of the evaluation.
        method: the method's label.
        user: the user's name; empty where the method itself could not be built.
        t: batches seen by then; None where the method could not be built.
        stage: ``build``, ``update`` or ``predict``. A user whose update fails is left at t; one whose prediction fails
            goes on.
        type: of the exception.
        message: what it said.
    """

    run: str
    method: str
    user: str
    t: int | None
    stage: str
    type: str
    message: str

    @classmethod
    def of(
        cls, problem: BaseException, stage: str, *, method: str = "", user: str = "", t: int | None = None
    ) -> Failure:
        """From an exception."""
        return cls("", method, user, t, stage, type(problem).__name__, str(problem))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        where = f"{self.method}, user {self.user!r} after {self.t} batches" if self.user else self.method
        return f"{where}: {self.stage} failed with {self.type}: {self.message}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
