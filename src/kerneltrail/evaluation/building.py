"""The methods of an evaluation: what was asked for, and what comes of it when it is built."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from importlib.metadata import version
from typing import Any

import cloudpickle

from kerneltrail.data import Cohort, Scaler, User
from kerneltrail.engines import Engine, results
from kerneltrail.errors import DataError
from kerneltrail.evaluation.prequential import PIECE
from kerneltrail.evaluation.steps import Failure
from kerneltrail.gp import one_blas_thread
from kerneltrail.methods.preprocessing import Frame
from kerneltrail.methods.protocol import Method
from kerneltrail.methods.refit import Following
from kerneltrail.methods.registry import OWN_ROWS, prepared, takes
from kerneltrail.methods.trajectory import Trajectory
from kerneltrail.store.cache import Cache
from kerneltrail.store.digest import code_of, digest
from kerneltrail.trajectory.model_file import MODEL

VERSION = version("kerneltrail")

Spec = str | tuple[str, Mapping[str, Any]]
"""A method's name in the registry, alone or with its settings."""


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is.

    Attributes:
        stage: ``build`` (methods) or ``follow`` (users times methods).
        done, total: how many.
        said: what comes next, or has just been done.
    """

    stage: str
    done: int
    total: int
    said: str


@dataclass(frozen=True)
class Plan:
    """One method of an evaluation: what was asked for, and what its results are kept under."""

    label: str
    name: str
    settings: Mapping[str, Any]
    make: Callable[[Cohort], Method]
    key: str | None
    code: str


@dataclass(frozen=True)
class Built:
    """A method that was built, with how long it took and where its pieces belong.

    Attributes:
        plan: what was asked for.
        method: what came of it; None where every piece was kept, so that nobody needs it.
        seconds: for building it; None if it was kept.
        own: digest of what matters to a user with rows, for methods that learn nothing from training users.
    """

    plan: Plan
    method: Method | None
    seconds: float | None
    own: str | None


def plans_of(
    train: Cohort, methods: Mapping[str, Spec] | Sequence[str], seed: int, workers: int, *, kept: bool
) -> tuple[Plan, ...]:
    """What was asked for; unknown names and settings are refused before anything is computed."""
    if isinstance(methods, str):
        raise DataError(f"methods must be a list or a mapping, such as [{methods!r}]")
    specs = methods if isinstance(methods, Mapping) else dict(zip(methods, methods, strict=True))
    if not specs:
        raise DataError("an evaluation needs at least one method")
    plans = []
    for label, spec in specs.items():
        name, settings = (spec, {}) if isinstance(spec, str) else spec
        if takes(name, "workers"):
            settings = {"workers": workers, **settings}
        make = prepared(name, settings, seed=seed)
        # How many processes build a method changes nothing but the time.
        telling = {key: value for key, value in settings.items() if key != "workers"}
        code = code_of(getattr(make.func, "learn", make.func)) if kept else ""
        try:
            key: str | None = digest(train.fingerprint, name, telling, seed, code, VERSION)
        except DataError:
            key = None  # it can be evaluated, but not kept
        plans.append(Plan(label, name, settings, make, key if kept else None, code))
    return tuple(plans)


def build_all(
    engine: Engine,
    train: Cohort,
    plans: Sequence[Plan],
    users: Sequence[User],
    kept: Cache | None,
    tell: Callable[[Progress], None],
) -> tuple[list[Built], list[Failure]]:
    """All methods: those that share out their own work here, with all processes; the others one process each."""
    found: dict[str, Built | Failure] = {
        plan.label: Built(plan, None, None, None) for plan in plans if _is_done(plan, users, kept)
    }
    total = len(plans)
    missing = [plan for plan in plans if plan.label not in found]
    if engine.workers > 1:
        for plan in missing:
            problem = _bound(plan.make)
            if problem is not None:
                found[plan.label] = Failure.of(problem, "build", method=plan.label)
        missing = [plan for plan in missing if plan.label not in found]
    alone = [plan for plan in missing if not takes(plan.name, "workers")]
    for plan in missing:
        if plan in alone:
            continue
        tell(Progress("build", len(found), total, plan.label))
        found[plan.label] = _build(train, plan, kept, engine.workers)
    if alone:
        tell(Progress("build", len(found), total, alone[0].label))
    jobs = ((plan.label, (plan, kept, engine.workers)) for plan in alone)
    for label, each in results(engine, _build, jobs, train):
        found[label] = each
        tell(Progress("build", len(found), total, label))
    every = [found[plan.label] for plan in plans]
    return [e for e in every if isinstance(e, Built)], [e for e in every if isinstance(e, Failure)]


def _is_done(plan: Plan, users: Sequence[User], kept: Cache | None) -> bool:
    """Whether every piece of a method is there, so that it need not be built; some take minutes.

    Methods that learn nothing from training users are built in no time, and are needed for what comes before any row.
    """
    if kept is None or plan.key is None or plan.name in OWN_ROWS:
        return False
    return all(kept.get(digest(plan.key, user.fingerprint), PIECE) is not None for user in users)


def _build(train: Cohort, plan: Plan, kept: Cache | None, workers: int) -> Built | Failure:
    began = time.perf_counter()
    entry = None if kept is None or plan.key is None else kept.get(plan.key, MODEL)
    model = None if entry is None else entry.value
    try:
        with one_blas_thread():
            method = plan.make(train) if model is None else Trajectory(model)
        if model is None and isinstance(method, Trajectory) and kept is not None and plan.key is not None:
            kept.put(plan.key, method.model, MODEL)
        own = _own_key(plan, method) if plan.name in OWN_ROWS and plan.key is not None else None
        problem = _bound(method) if workers > 1 else None
        if problem is not None:
            raise problem
    except Exception as problem:
        return Failure.of(problem, "build", method=plan.label)
    return Built(plan, method, time.perf_counter() - began if model is None else None, own)


def _own_key(plan: Plan, method: Method) -> str | None:
    """A digest of all that matters to a user who has rows, code included, for a method without training users.

    Two methods with the same one do the same from the first batch on, whoever the training users were; before the first
    row, their scaler matters. None where the method is of another kind.
    """
    learner: Any = method.learner if isinstance(method, Following) else None
    frame = getattr(learner, "frame", None)
    if not is_dataclass(learner) or not isinstance(frame, Frame):
        return None
    seen = replace(frame, before=Scaler.identity(frame.covariates))
    return digest(plan.code, method.method, replace(learner, frame=seen), VERSION)  # type: ignore[attr-defined, type-var]


def _bound(thing: object) -> DataError | None:
    """Why a thing cannot go to another process; None if it can. Said of one method, it does not stop the others.

    Only asked, as an engine would ask it: nothing that is pickled is kept or read.
    """
    try:
        cloudpickle.dumps(thing)
    except Exception as problem:  # whatever its classes raise
        return DataError(f"it cannot be sent to another process ({problem}); evaluate it with one worker")
    return None
