"""All methods on all test users: built once, followed in parallel, kept as they finish."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import current_process
from typing import Any

from kerneltrail.data import Cohort, User
from kerneltrail.engines import Engine, engine_for, results
from kerneltrail.errors import DataError
from kerneltrail.evaluation.building import Built, Progress, Spec, build_all, plans_of
from kerneltrail.evaluation.machine import machine
from kerneltrail.evaluation.prequential import PIECE, Piece, prequential
from kerneltrail.evaluation.result import Evaluation
from kerneltrail.evaluation.steps import Step
from kerneltrail.gp import keep_freed_memory, one_blas_thread
from kerneltrail.gp.compilation import ensure_compiled
from kerneltrail.kernels import Composition
from kerneltrail.methods.protocol import Method
from kerneltrail.store.cache import Cache
from kerneltrail.store.digest import described, digest


def evaluate(
    train: Cohort,
    test: Cohort | Sequence[User],
    methods: Mapping[str, Spec] | Sequence[str],
    *,
    seed: int = 0,
    workers: int | None = None,
    truth: Mapping[str, Composition] | None = None,
    out: str | os.PathLike[str] | None = None,
    share: str | os.PathLike[str] | None = None,
    run: str = "",
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Build methods from training users, follow test users with each, and judge every prediction of a next batch.

    A method that cannot be built, or a user whom a method fails on, is recorded in the result's `failures`; everything
    else goes on.

    Args:
        train: the training users.
        test: the test users: a cohort, or users in data units.
        methods: by label, a name in the registry, alone or with settings: ``{"published": ("trajectory", {...})}``.
        seed: of every method.
        workers: processes; all cores if None. Times are comparable between methods in any case: every process has one
            BLAS thread.
        truth: the true composition by user's name, where it is known.
        out: folder where finished pieces and models are kept; an evaluation that was stopped goes on from it, to the
            same result but for times. Pieces are kept by a digest of data, settings, seed and code (the library's, and
            the module in which a method of your own is registered); another one of these, and they are computed anew.
        share: folder for pieces of methods that learn nothing from the training users (CKS, shrinkage, SE-ARD,
            memoryless). They are the same for every split of the same users, and are computed once; only the prediction
            before the first row, scaled as the training users, is made anew. `out` if None.
        run: label of this run, for evaluations that are to be `merged`.
        progress: called as it goes on.
    """
    began = datetime.now(UTC)
    tell = progress or (lambda said: None)
    users = tuple(test.raw if isinstance(test, Cohort) else test)
    _check(train, users)
    ensure_compiled()  # before anything is timed, and for the same bits when it goes on
    engine = engine_for(workers)
    kept = None if out is None else Cache.at(out)
    shared = kept if share is None else Cache.at(share)
    plans = plans_of(train, methods, seed, engine.workers, kept=shared is not None)
    built, failures = build_all(engine, train, plans, users, kept, tell)
    pieces = _follow_all(engine, built, users, kept, shared, tell)
    steps: list[Step] = []
    for each in built:
        for user in users:
            piece = pieces[each.plan.label, user.name]
            right = None if truth is None else truth.get(user.name)
            steps += [_labelled(step, run, each.plan.label, right) for step in piece.steps]
            failures += [replace(failure, method=each.plan.label) for failure in piece.failures]
    about = {
        "version": version("kerneltrail"),
        "machine": machine(),
        "runs": [
            {
                "run": run,
                "seed": seed,
                "workers": engine.workers,
                "began": began.isoformat(timespec="seconds"),
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
                "train": {"digest": train.fingerprint, "users": list(train.names)},
                "test": {user.name: user.fingerprint for user in users},
                "methods": {plan.label: {"method": plan.name, "settings": _told(plan.settings)} for plan in plans},
                "build_seconds": {each.plan.label: each.seconds for each in built},
            }
        ],
    }
    return Evaluation(tuple(steps), tuple(replace(failure, run=run) for failure in failures), about)


def _check(train: Cohort, users: Sequence[User]) -> None:
    if not users:
        raise DataError("an evaluation needs at least one test user")
    for user in users:
        if user.covariates != train.covariates:
            raise DataError(
                f"test user {user.name!r} has covariates {', '.join(user.covariates)}, the training users "
                f"{', '.join(train.covariates)}"
            )
    names = [user.name for user in users]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two test users are named {twice!r}")
    rows = {user.fingerprint for user in train.raw}
    both = next((user.name for user in users if user.fingerprint in rows), None)
    if both is not None:
        raise DataError(f"user {both!r} is both a training and a test user")


def _follow_all(
    engine: Engine,
    built: Sequence[Built],
    users: Sequence[User],
    kept: Cache | None,
    shared: Cache | None,
    tell: Callable[[Progress], None],
) -> dict[tuple[str, str], Piece]:
    found: dict[tuple[str, str], Piece] = {}
    total = len(built) * len(users)
    # User by user, so that a look at what is there so far compares all methods.
    jobs = (((each.plan.label, user.name), (each, user)) for user in users for each in built)
    for (label, name), piece in results(engine, _follow, jobs, (kept, shared)):
        found[label, name] = piece
        tell(Progress("follow", len(found), total, f"{label}: {name}"))
    return found


def _follow(folders: tuple[Cache | None, Cache | None], each: Built, user: User) -> Piece:
    """One piece: as it was kept, or computed and then kept."""
    if current_process().name != "MainProcess":
        keep_freed_memory()  # ours to decide in a process of our own
    kept, shared = folders
    cache = kept if each.own is None else shared
    base = each.plan.key if each.own is None else each.own
    key = None if base is None else digest(base, user.fingerprint)
    entry = None if cache is None or key is None else cache.get(key, PIECE)
    if entry is not None and each.own is None:
        return entry.value
    assert each.method is not None  # only methods whose pieces are all there are not built
    with one_blas_thread():
        if entry is None:
            _warm_up(each.plan.label, each.method, user)
            piece = prequential(each.method, user)
            if cache is not None and key is not None and not piece.failures:  # what failed is tried again
                cache.put(key, piece, PIECE)
        else:
            # Kept with other training users, perhaps: before the first row their scaler matters.
            opening = prequential(each.method, user, last=0)
            piece = Piece((*opening.steps[:1], *entry.value.steps[1:]), opening.failures)
    return piece


_WARM: set[str] = set()


def _warm_up(label: str, method: Method, user: User) -> None:
    """Follow the first batch once for nothing, in every process: compiled code is loaded, and not timed."""
    if label in _WARM or not user.batches:
        return
    _WARM.add(label)
    prequential(method, user.upto(1))


def _labelled(step: Step, run: str, label: str, truth: Composition | None) -> Step:
    right = None if truth is None else step.composition == truth.text
    return replace(step, run=run, method=label, right=right)


def _told(settings: Mapping[str, Any]) -> Any:
    """Settings for people to read, whatever they are."""
    told = {}
    for name, value in settings.items():
        try:
            told[name] = described(value)
        except DataError:
            told[name] = repr(value)
    return told
