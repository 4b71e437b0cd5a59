"""The one loop that follows a user: predict the next batch, then update with it. Everything that follows calls it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

from kerneltrail.data import User
from kerneltrail.errors import KerneltrailError, NumericalError
from kerneltrail.evaluation.metrics import brier, scores
from kerneltrail.evaluation.tables import Row
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition
from kerneltrail.methods.protocol import FollowedUser, Method, hyperparameter_count, probabilities_of
from kerneltrail.store.cache import Format, json_format
from kerneltrail.store.validate import conform
from kerneltrail.trajectory.beyond import judged

T = TypeVar("T")
NAN = float("nan")

BAD_ROWS = (KerneltrailError, ArithmeticError, ValueError)
"""What a user's rows may bring about: where many users are followed, one of them must not stop the others."""

HUGE = 1e100
"""Beyond this, products of a few such numbers are infinite."""


@dataclass(frozen=True)
class Step(Row):
    """A user followed by a method, after t batches (method §11). What does not apply is NaN, or None for flags.

    Attributes:
        run: label of the evaluation that it belongs to: a seed, a split.
        method: the method's label.
        user: the user's name.
        person: digest of the user's rows: the same rows are the same person, whatever the run.
        t: batches seen; 0 is before any row.
        rows: rows seen.
        predicted: rows of batch t+1, predicted before they were seen; 0 after the last batch.
        rmse: root mean squared error of that prediction (method (40)).
        log_density: mean log predictive density, noise included. Methods that average over several kernels join them
            by mean and variance.
        coverage50, coverage90: share of the rows inside the predicted 50 % and 90 % intervals.
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
        probability: of the most probable composition; NaN for methods that give no probabilities.
        truth_probability: of the true composition, 0 where the method has none for it.
        brier: Brier score of the probabilities.
        length90: mean length of the predicted 90 % intervals.
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
    probability: float = NAN
    truth_probability: float = NAN
    brier: float = NAN
    length90: float = NAN

    def value(self, metric: str) -> float:
        """A metric as a number; NaN where it does not apply."""
        value = getattr(self, metric)
        return NAN if value is None else float(value)

    def to_json(self) -> dict[str, Any]:
        """As plain values; NaN is None, infinity a text."""
        return {name: _plain(value) for name, value in super().to_json().items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Step:
        """The step that `to_json` described; what older files lack is left at its default."""
        conform(stored, _layout(), "a step")
        known = {each.name: stored[each.name] for each in fields(cls) if each.name in stored or each.default is MISSING}
        for name in REAL & set(known):
            known[name] = NAN if known[name] is None else float(known[name])
        return cls(**{**known, "covariate_names": tuple(known["covariate_names"])})


METRICS = (
    "rmse", "log_density", "coverage50", "coverage90", "length90", "seconds", "cpu_seconds", "predict_seconds",
    "products", "hyperparameters", "covariates", "change", "changed", "right", "probability", "brier",
)  # fmt: skip
"""What is averaged over users, and compared in pairs."""

REAL = frozenset(each.name for each in fields(Step) if each.type == "float")
"""Values that are neither counts, flags nor texts."""


@cache
def _layout() -> dict[str, Any]:
    """The layout of a step in a file: numbers that are not finite are null or a text."""
    kinds = get_type_hints(Step) | dict.fromkeys(REAL, float | str | None)
    return {name: kind for name, kind in kinds.items() if Step.__dataclass_fields__[name].default is MISSING}


@dataclass(frozen=True)
class Failure(Row):
    """Something that raised, and was left out.

    Attributes:
        run, method, user, t: as of a `Step`; no user and no t where the method itself could not be built.
        stage: ``build``, ``update`` or ``predict``. A user whose update fails is left at t; one whose prediction fails
            goes on.
        type, message: of the exception.
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

    def __str__(self) -> str:
        where = f"{self.method}, user {self.user!r} after {self.t} batches" if self.user else self.method
        return f"{where}: {self.stage} failed with {self.type}: {self.message}"


@dataclass(frozen=True)
class Followed:
    """What came of one user under one method.

    Attributes:
        steps: one for each t from 0 to the number of batches, or up to a failing update.
        failures: what went wrong on the way.
        predictions: of every batch, made before it was seen; None where that failed. They are not stored.
    """

    steps: tuple[Step, ...]
    failures: tuple[Failure, ...] = ()
    predictions: tuple[Prediction | None, ...] = field(default=(), compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As plain values; failures are not kept, so that they are tried again."""
        return {"steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Followed:
        """What `to_json` described."""
        return cls(tuple(Step.from_json(step) for step in stored["steps"]))


FOLLOWED: Format[Followed] = json_format(Followed.to_json, Followed.from_json)
"""How the store keeps a followed user."""


@judged()
def follow(
    method: Method,
    user: User,
    *,
    truth: Composition | None = None,
    last: int | None = None,
    catch: tuple[type[Exception], ...] = (Exception,),
    before_update: Callable[[Any, User], None] | None = None,
    after_update: Callable[[Any, Any], None] | None = None,
) -> Followed:
    """Follow a user, in data units: predict batch t+1 after batch t, from t = 0, then update.

    The state after the last batch is a step too, with no prediction.

    Args:
        method: what was learnt from training users.
        user: whose batches are followed.
        truth: the true composition, where it is known.
        last: stop after the step at this t; None to follow to the end.
        catch: what the method, or a function called here, may raise to be recorded as a failure; anything else goes on
            to the caller. With ``()`` there are no failures.
        before_update: called with the followed user and the batch that was just predicted.
        after_update: called with the followed user and what its `update` returned.
    """
    steps: list[Step] = []
    failures: list[Failure] = []
    predictions: list[Prediction | None] = []
    try:
        followed = method(user.name)
    except catch as problem:
        return Followed((), (Failure.of(problem, "update", user=user.name, t=0),))
    seconds = cpu = NAN
    earlier: Composition | None = None
    for t in range(user.batches + 1):
        selected = followed.composition
        if earlier is not None:  # what changed from t-1 to t is only known now
            change = len(set(earlier) ^ set(selected))
            steps[-1] = replace(steps[-1], change=change, changed=int(change > 0))
        step = _state(user, t, followed, truth, seconds, cpu)
        if t == user.batches:
            steps.append(step)
            break
        batch = user.batch(t + 1)
        action = batch.assignment if method.takes_action else None
        prediction: Prediction | None = None
        try:
            raw, taken, _ = _timed(lambda: followed.predict(batch.X, action=action))  # noqa: B023
            prediction = _sound(raw)
            step = replace(step, predicted=batch.rows, predict_seconds=taken, **scores(prediction, batch.y))
        except catch as problem:
            failures.append(Failure.of(problem, "predict", user=user.name, t=t))
        steps.append(step)
        predictions.append(prediction)
        if t == last:
            break
        try:
            if before_update is not None:
                before_update(followed, batch)
            outcome, seconds, cpu = _timed(lambda: followed.update(batch.X, batch.y, action=action))  # noqa: B023
            if after_update is not None:
                after_update(followed, outcome)
        except catch as problem:
            failures.append(Failure.of(problem, "update", user=user.name, t=t))
            break
        earlier = selected if t else None
    return Followed(tuple(steps), tuple(failures), tuple(predictions))


def left_out(user: User, failure: Failure) -> str:
    """Why a user is left out, for people: at which rows, what went wrong, and a number there that is out of scale."""
    t, batch = failure.t or 0, user.batch((failure.t or 0) + 1)
    first = user.ends[t] - batch.rows + 1
    columns = {**dict(zip(user.covariates, batch.X.T, strict=True)), "the target": batch.y}
    huge = next(
        (
            f" (row {first + row} has {value:g} for {name})"
            for name, column in columns.items()
            for row, value in enumerate(column.tolist())
            if abs(value) > HUGE
        ),
        "",
    )
    return (
        f"user {user.name!r} is left out, for rows {first} to {user.ends[t]} (batch {t + 1}): "
        f"{failure.type}: {failure.message}{huge}"
    )


def _state(user: User, t: int, followed: FollowedUser, truth: Composition | None, seconds: float, cpu: float) -> Step:
    selected, probabilities = followed.composition, probabilities_of(followed)
    facts: dict[str, Any] = dict.fromkeys(("rmse", "log_density", "coverage50", "coverage90", "predict_seconds"), NAN)
    facts["right"] = None if truth is None else selected == truth
    if truth is not None and probabilities:
        facts |= {"truth_probability": probabilities.get(truth, 0.0), "brier": brier(probabilities, truth)}
    return Step(
        run="",
        method="",
        user=user.name,
        person=user.fingerprint,
        t=t,
        rows=followed.rows,
        predicted=0,
        seconds=seconds,
        cpu_seconds=cpu,
        composition=selected.text,
        products=len(selected),
        hyperparameters=hyperparameter_count(followed),
        covariates=len(selected.covariates),
        covariate_names=selected.covariates,
        change=None,
        changed=None,
        probability=max(probabilities.values(), default=NAN),
        **facts,
    )


def _sound(prediction: Prediction) -> Prediction:
    total = prediction.total
    if not (np.all(np.isfinite(prediction.mean)) and np.all(np.isfinite(total)) and np.all(total > 0.0)):
        raise NumericalError("the prediction is not finite, or its variance is not above 0")
    return prediction


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """The result, seconds by the clock, and seconds of the processor."""
    clock, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - clock, time.process_time() - cpu


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
