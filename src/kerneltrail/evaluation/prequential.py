"""One user followed by one method, each batch predicted before it is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.evaluation.steps import NAN, Failure, Step
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition
from kerneltrail.methods.protocol import Method, Selector, hyperparameter_count
from kerneltrail.store.cache import json_format

Array = NDArray[np.float64]
T = TypeVar("T")

WITHIN = {50: 0.6744897501960817, 90: 1.6448536269514722}
"""Standard deviations on either side that hold so many per cent of a Normal."""


@dataclass(frozen=True)
class Piece:
    """What came of one user under one method.

    Attributes:
        steps: one for each t from 0 to the number of batches, or up to a failing update.
        failures: what went wrong on the way.
    """

    steps: tuple[Step, ...]
    failures: tuple[Failure, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values; failures are not kept, so that they are tried again."""
        return {"steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Piece:
        """The piece that `to_json` described."""
        return cls(tuple(Step.from_json(step) for step in stored["steps"]))


PIECE = json_format(Piece.to_json, Piece.from_json)
"""How the store keeps a piece."""


def prequential(method: Method, user: User, *, last: int | None = None) -> Piece:
    """Follow a user, in data units: predict batch t+1 after batch t, from t = 0, then update.

    The state after the last batch is a step too, with no prediction. Whatever the method raises is recorded.

    Args:
        method: what was learnt from training users.
        user: whose batches are followed.
        last: stop after the step at this t; None to follow to the end.
    """
    steps: list[Step] = []
    failures: list[Failure] = []
    try:
        selector, _, _ = _timed(lambda: method(user.name))
    except Exception as problem:
        return Piece((), (Failure.of(problem, "update", user=user.name, t=0),))
    seconds = cpu = NAN
    before: Composition | None = None
    for t in range(user.batches + 1):
        selected = selector.composition
        if before is not None:  # what changed from t-1 to t is only known now
            change = len(set(before) ^ set(selected))
            steps[-1] = replace(steps[-1], change=change, changed=int(change > 0))
        step = _state(user, t, selector, seconds, cpu)
        if t == user.batches:
            steps.append(step)
            break
        batch = user.batch(t + 1)
        action = batch.action if method.takes_action else None
        try:
            step = _predicted(step, selector, batch, action)
        except Exception as problem:
            failures.append(Failure.of(problem, "predict", user=user.name, t=t))
        steps.append(step)
        if t == last:
            break
        try:
            _, seconds, cpu = _timed(lambda: selector.update(batch.X, batch.y, action=action))  # noqa: B023
        except Exception as problem:
            failures.append(Failure.of(problem, "update", user=user.name, t=t))
            break
        before = selected if t else None
    return Piece(tuple(steps), tuple(failures))


def _state(user: User, t: int, selector: Selector, seconds: float, cpu: float) -> Step:
    selected = selector.composition
    return Step(
        run="",
        method="",
        user=user.name,
        person=user.fingerprint,
        t=t,
        rows=selector.rows,
        predicted=0,
        rmse=NAN,
        log_density=NAN,
        coverage50=NAN,
        coverage90=NAN,
        seconds=seconds,
        cpu_seconds=cpu,
        predict_seconds=NAN,
        composition=selected.text,
        products=len(selected),
        hyperparameters=hyperparameter_count(selector),
        covariates=len(selected.covariates),
        covariate_names=selected.covariates,
        change=None,
        changed=None,
        right=None,
    )


def _predicted(step: Step, selector: Selector, batch: User, action: Array | None) -> Step:
    said, seconds, _ = _timed(lambda: selector.predict(batch.X, action=action))
    if not (np.all(np.isfinite(said.mean)) and np.all(np.isfinite(said.total)) and np.all(said.total > 0.0)):
        raise NumericalError("the prediction is not finite, or its variance is not above 0")
    return replace(step, predicted=batch.rows, predict_seconds=seconds, **scores(said, batch.y))


def scores(said: Prediction, y: Array) -> dict[str, Any]:
    """How well targets were predicted: rmse, log_density, coverage50, coverage90."""
    error = np.abs(y - said.mean)
    sd = np.sqrt(said.total)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "log_density": float(said.log_density(y).mean()),
        **{f"coverage{percent}": float(np.mean(error <= z * sd)) for percent, z in WITHIN.items()},
    }


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What came of it, seconds by the clock, and seconds of the processor."""
    clock, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - clock, time.process_time() - cpu
