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
    engine: Any = None,
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
        workers: processes of this machine; all cores if None. Times are comparable between methods in any case: every
            process has one BLAS thread.
        engine: what runs the jobs instead, as `fit` takes it.
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
    runner = engine_for(engine, workers=workers)
    cache = None if out is None else Cache.at(out)
    shared = cache if share is None else Cache.at(share)
    true = truth or {}
    specs = specs_of(train, methods, seed, runner, keep=shared is not None)
    with reporting(progress, *STAGES) as tell:
        if not gp.compilation.is_compiled():
            tell(Progress(BUILDING, said=gp.compilation.COMPILING))
        gp.compilation.ensure_compiled()  # before anything is timed, and for the same bits when it goes on
        trained, failures = train_all(runner, train, specs, users, true, cache, tell)
        followed = _follow_all(runner, trained, users, true, cache, shared, tell)
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
                "workers": runner.workers,
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
    new: dict[tuple[str, str], tuple[Cache, str]] = {}

    def jobs() -> Iterator[tuple[tuple[str, str], tuple[str, User, Followed | None]]]:
        for user in users:
            for each in trained:
                pair, key = (each.spec.label, user.name), each.key(user, truth)
                folder, entry = cache if each.own_key is None else shared, None
                if folder is not None and key is not None:
                    entry = folder.get(key, FOLLOWED)
                    if entry is None:
                        new[pair] = folder, key
                yield pair, (each.spec.label, user, None if entry is None else entry.value)

    # Files are read and written here: workers may be on other machines.
    for pair, followed in results(engine, _follow, jobs(), (by_label, truth)):
        ended[pair] = followed
        if pair in new and not followed.failures:  # what failed is tried again
            folder, key = new[pair]
            folder.put(key, followed, FOLLOWED)
        tell(Progress(FOLLOWING, len(ended), total, ": ".join(pair)))
    return ended


def _follow(
    together: tuple[Mapping[str, TrainedMethod], Truth], label: str, user: User, kept: Followed | None
) -> Followed:
    """One user under one method: as it was kept, or computed."""
    if current_process().name != "MainProcess":
        keep_freed_memory()  # ours to decide in a process of our own
    by_label, truth = together
    trained, true = by_label[label], truth.get(user.name)
    if kept is not None and trained.own_key is None:
        return kept
    assert trained.method is not None  # only methods whose results are all there are not trained
    with one_blas_thread():
        if kept is None:
            _warm_up(label, trained.method, user)
            return replace(follow(trained.method, user, truth=true), predictions=())
        # Kept with other training users, perhaps: before the first row their scaler matters.
        opening = follow(trained.method, user, truth=true, last=0)
        return Followed((*opening.steps[:1], *kept.steps[1:]), opening.failures)


_WARM: set[str] = set()


def _warm_up(label: str, method: Method, user: User) -> None:
    """Follow the first batch once for nothing, in every process: compiled code is loaded, and not timed."""
    if label in _WARM or not user.batches:
        return
    _WARM.add(label)
    follow(method, user.upto(1))


def _shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for people to read, whatever they are; who ran a method is none."""
    shown = {}
    for name, value in settings.items():
        if name == "workers":
            continue
        try:
            shown[name] = described(value)
        except DataError:
            shown[name] = repr(value)
    return shown
