"""All methods on all test users: built once, followed in parallel, kept as they finish."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import current_process
from typing import Any

import numpy as np

from kerneltrail import gp
from kerneltrail.data import Cohort, User
from kerneltrail.engines import Engine, engine_for, keep_freed_memory, results
from kerneltrail.errors import DataError
from kerneltrail.evaluation.follow import FOLLOWED, Followed, Step, follow
from kerneltrail.evaluation.machine import machine
from kerneltrail.evaluation.result import Evaluation
from kerneltrail.evaluation.training import BUILDING, Spec, TrainedMethod, Truth, specs_of, train_all
from kerneltrail.gp import one_blas_thread
from kerneltrail.methods.protocol import Method
from kerneltrail.progress import Progress, Tell, reporting
from kerneltrail.store.cache import Cache
from kerneltrail.store.digest import described

FOLLOWING = "following users"
"""The second stage of an evaluation, counted in users times methods."""

STAGES = (BUILDING, FOLLOWING)
"""What an evaluation tells of, one after the other."""


def evaluate(
    train: Cohort,
    test: Cohort | Sequence[User],
    methods: Mapping[str, Spec] | Sequence[str],
    *,
    seed: int = 0,
    workers: int | None = None,
    truth: Truth | None = None,
    out: str | os.PathLike[str] | None = None,
    share: str | os.PathLike[str] | None = None,
    run: str = "",
    progress: Tell | bool | None = None,
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
        out: folder where what is finished is kept; an evaluation that was stopped goes on from it, to the same result
            but for times. Results are kept by a digest of data, settings, seed and code (the library's without other
            methods' packages, that of a method of your own, and that of every atom, evidence and move registered from
            outside); another one of these, and they are computed anew.
        share: folder for results of methods that learn nothing from the training users (CKS, shrinkage, SE-ARD,
            memoryless). They are the same for every split of the same users, and are computed once; only the prediction
            before the first row, scaled as the training users, is made anew. `out` if None.
        run: label of this run, for evaluations that are to be `merged`.
        progress: called as it goes on; True shows it, as bars on a terminal and as lines elsewhere.
    """
    began = datetime.now(UTC)
    users = tuple(test.raw if isinstance(test, Cohort) else test)
    _check(train, users)
    engine = engine_for(workers)
    cache = None if out is None else Cache.at(out)
    shared = cache if share is None else Cache.at(share)
    true = truth or {}
    specs = specs_of(train, methods, seed, engine.workers, keep=shared is not None)
    with reporting(progress, *STAGES) as tell:
        if not gp.compilation.is_compiled():
            tell(Progress(BUILDING, said=gp.compilation.COMPILING))
        gp.compilation.ensure_compiled()  # before anything is timed, and for the same bits when it goes on
        trained, failures = train_all(engine, train, specs, users, true, cache, tell)
        followed = _follow_all(engine, trained, users, true, cache, shared, tell)
    steps: list[Step] = []
    for each in trained:
        label = each.spec.label
        for user in users:
            one = followed[label, user.name]
            steps += [replace(step, run=run, method=label) for step in one.steps]
            failures += [replace(failure, method=label) for failure in one.failures]
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
                "methods": {spec.label: {"method": spec.name, "settings": _shown(spec.settings)} for spec in specs},
                "build_seconds": {each.spec.label: each.seconds for each in trained},
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


def splits(names: Sequence[str], test: int, count: int, *, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """Test users of so many random splits; each is drawn anew, so users may come again."""
    if not 0 < test < len(names):
        raise DataError(f"a split of {len(names)} users needs 1 to {len(names) - 1} test users, got {test}")
    rng = np.random.default_rng(seed)
    for _ in range(count):
        chosen = set(rng.permutation(len(names))[:test].tolist())
        yield tuple(name for i, name in enumerate(names) if i in chosen)


def _follow_all(
    engine: Engine,
    trained: Sequence[TrainedMethod],
    users: Sequence[User],
    truth: Truth,
    cache: Cache | None,
    shared: Cache | None,
    tell: Tell,
) -> dict[tuple[str, str], Followed]:
    ended: dict[tuple[str, str], Followed] = {}
    total = len(trained) * len(users)
    by_label = {each.spec.label: each for each in trained}
    # User by user, so that a look at what is there so far compares all methods.
    tell(Progress(FOLLOWING, 0, total))
    jobs = (((label, user.name), (label, user)) for user in users for label in by_label)
    for (label, name), followed in results(engine, _follow, jobs, (by_label, truth, cache, shared)):
        ended[label, name] = followed
        tell(Progress(FOLLOWING, len(ended), total, f"{label}: {name}"))
    return ended


def _follow(
    together: tuple[Mapping[str, TrainedMethod], Truth, Cache | None, Cache | None], label: str, user: User
) -> Followed:
    """One user under one method: as it was kept, or computed and then kept."""
    if current_process().name != "MainProcess":
        keep_freed_memory()  # ours to decide in a process of our own
    by_label, truth, run_cache, shared = together
    trained, true = by_label[label], truth.get(user.name)
    cache = run_cache if trained.own_key is None else shared
    key = trained.key(user, truth)
    entry = None if cache is None or key is None else cache.get(key, FOLLOWED)
    if entry is not None and trained.own_key is None:
        return entry.value
    assert trained.method is not None  # only methods whose results are all there are not trained
    with one_blas_thread():
        if entry is None:
            _warm_up(label, trained.method, user)
            followed = replace(follow(trained.method, user, truth=true), predictions=())
            if cache is not None and key is not None and not followed.failures:  # what failed is tried again
                cache.put(key, followed, FOLLOWED)
        else:
            # Kept with other training users, perhaps: before the first row their scaler matters.
            opening = follow(trained.method, user, truth=true, last=0)
            followed = Followed((*opening.steps[:1], *entry.value.steps[1:]), opening.failures)
    return followed


_WARM: set[str] = set()


def _warm_up(label: str, method: Method, user: User) -> None:
    """Follow the first batch once for nothing, in every process: compiled code is loaded, and not timed."""
    if label in _WARM or not user.batches:
        return
    _WARM.add(label)
    follow(method, user.upto(1))


def _shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for people to read, whatever they are."""
    shown = {}
    for name, value in settings.items():
        try:
            shown[name] = described(value)
        except DataError:
            shown[name] = repr(value)
    return shown
