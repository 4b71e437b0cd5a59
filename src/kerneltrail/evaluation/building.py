"""The methods of an evaluation: what was asked for, and what comes of it when it is built."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
import joblib

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.evaluation.identity import cohort_digest, digest, own_digest
from kerneltrail.evaluation.pieces import Pieces
from kerneltrail.evaluation.steps import Failure
from kerneltrail.gp import one_blas_thread
from kerneltrail.methods.protocol import Method
from kerneltrail.methods.registry import OWN_ROWS, prepared, takes
from kerneltrail.methods.trajectory import Trajectory
from kerneltrail.store.digest import code_of

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


def plans_of(train: Cohort, methods: Mapping[str, Spec] | Sequence[str], seed: int, workers: int) -> tuple[Plan, ...]:
    """What was asked for; unknown names and settings are refused before anything is computed."""
    if isinstance(methods, str):
        raise DataError(f"methods must be a list or a mapping, such as [{methods!r}]")
    specs = methods if isinstance(methods, Mapping) else dict(zip(methods, methods, strict=True))
    if not specs:
        raise DataError("an evaluation needs at least one method")
    group = cohort_digest(train)
    plans = []
    for label, spec in specs.items():
        name, settings = (spec, {}) if isinstance(spec, str) else spec
        if takes(name, "workers"):
            settings = {"workers": workers, **settings}
        make = prepared(name, settings, seed=seed)
        # How many processes build a method changes nothing but the time.
        telling = {key: value for key, value in settings.items() if key != "workers"}
        try:
            key: str | None = digest(group, name, telling, seed, code_of(getattr(make.func, "learn", make.func)))
        except DataError:
            key = None  # it can be evaluated, but not kept
        plans.append(Plan(label, name, settings, make, key))
    return tuple(plans)


def build_all(
    parallel: joblib.Parallel,
    train: Cohort,
    plans: Sequence[Plan],
    users: Sequence[User],
    kept: Pieces | None,
    tell: Callable[[Progress], None],
) -> tuple[list[Built], list[Failure]]:
    """All methods: those that share out their own work here, with all processes; the others one process each."""
    found: dict[str, Built | Failure] = {
        plan.label: Built(plan, None, None, None) for plan in plans if _is_done(plan, users, kept)
    }
    total = len(plans)
    missing = [plan for plan in plans if plan.label not in found]
    if parallel.n_jobs > 1:
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
        found[plan.label] = _build(train, plan, kept, parallel.n_jobs)
    if alone:
        tell(Progress("build", len(found), total, alone[0].label))
    jobs = (joblib.delayed(_build)(train, plan, kept, parallel.n_jobs) for plan in alone)
    for each in parallel(jobs):
        label = each.plan.label if isinstance(each, Built) else each.method
        found[label] = each
        tell(Progress("build", len(found), total, label))
    every = [found[plan.label] for plan in plans]
    return [e for e in every if isinstance(e, Built)], [e for e in every if isinstance(e, Failure)]


def _is_done(plan: Plan, users: Sequence[User], kept: Pieces | None) -> bool:
    """Whether every piece of a method is there, so that it need not be built; some take minutes.

    Methods that learn nothing from training users are built in no time, and are needed for what comes before any row.
    """
    if kept is None or plan.key is None or plan.name in OWN_ROWS:
        return False
    return all(kept.get(digest(plan.key, user.fingerprint)) is not None for user in users)


def _build(train: Cohort, plan: Plan, kept: Pieces | None, workers: int) -> Built | Failure:
    began = time.perf_counter()
    model = None if kept is None or plan.key is None else kept.model(plan.key)
    try:
        with one_blas_thread():
            method = plan.make(train) if model is None else Trajectory(model)
        if model is None and isinstance(method, Trajectory) and kept is not None and plan.key is not None:
            kept.put_model(plan.key, method.model)
        own = own_digest(method) if plan.name in OWN_ROWS and plan.key is not None else None
        problem = _bound(method) if workers > 1 else None
        if problem is not None:
            raise problem
    except Exception as problem:
        return Failure.of(problem, "build", method=plan.label)
    return Built(plan, method, time.perf_counter() - began if model is None else None, own)


def _bound(thing: object) -> DataError | None:
    """Why a thing cannot go to another process; None if it can. Said of one method, it does not stop the others.

    Only asked, as joblib would ask it: nothing that is pickled is kept or read.
    """
    try:
        cloudpickle.dumps(thing)
    except Exception as problem:  # whatever its classes raise
        return DataError(f"it cannot be sent to another process ({problem}); evaluate it with one worker")
    return None
