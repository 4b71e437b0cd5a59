"""The methods of an evaluation: what was asked for, and what was learnt from the training users."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import cloudpickle

from kerneltrail.data import Cohort, Scaler, User
from kerneltrail.engines import Engine, Serial, results
from kerneltrail.errors import DataError
from kerneltrail.evaluation.follow import FOLLOWED, Failure
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Composition
from kerneltrail.methods.builder import LearnsFrom
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.protocol import Method
from kerneltrail.methods.refit import RefittingMethod
from kerneltrail.methods.registry import learns_from, prepared, reports, rests_on, takes
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.progress import Progress, Tell
from kerneltrail.store.cache import Cache
from kerneltrail.store.code import code_of
from kerneltrail.store.digest import digest
from kerneltrail.trajectory.model import MODEL, TrajectoryModel

Spec = str | tuple[str, Mapping[str, Any]]
"""A method's name in the registry, alone or with its settings."""

Truth = Mapping[str, Composition]
"""The true composition by user's name; not everybody's need be known."""


BUILDING = "building methods"
"""The first stage of an evaluation, counted in methods."""


@dataclass(frozen=True)
class MethodSpec:
    """One method of an evaluation: what was asked for, and what its results are kept under.

    Attributes:
        label: in the results.
        name: in the registry.
        settings: by name.
        train: makes the method from the training users.
        learns_from: whose rows. It is asked here, since another process does not know methods registered in this one.
        key: digest of all that its results depend on but the user followed; None where that cannot be told.
        code: digest of the code among that; empty where nothing is kept.
        base: the method whose model this one changes, with the same settings; None for all others.
    """

    label: str
    name: str
    settings: Mapping[str, Any]
    train: partial[Method]
    learns_from: LearnsFrom
    key: str | None
    code: str
    base: MethodSpec | None = None


@dataclass(frozen=True)
class TrainedMethod:
    """A method that was trained, with how long it took and where its results belong.

    Attributes:
        spec: what was asked for.
        method: what came of it; None where every result was kept, so that nobody needs it.
        seconds: for training it; None if it was kept.
        own_key: digest of what matters to a user with rows, for methods that learn nothing from training users.
    """

    spec: MethodSpec
    method: Method | None
    seconds: float | None
    own_key: str | None

    def key(self, user: User, truth: Truth) -> str | None:
        """What a user's result is kept under."""
        return _result_key(self.spec.key if self.own_key is None else self.own_key, user, truth)


def _result_key(base: str | None, user: User, truth: Truth) -> str | None:
    true = [truth[user.name].text] if user.name in truth else []
    return None if base is None else digest(base, user.fingerprint, *true)


def specs_of(
    train: Cohort, methods: Mapping[str, Spec] | Sequence[str], seed: int, engine: Engine, *, keep: bool
) -> tuple[MethodSpec, ...]:
    """What was asked for; unknown names and settings are refused before anything is computed."""
    if isinstance(methods, str):
        raise DataError(f"methods must be a list or a mapping, such as [{methods!r}]")
    asked = methods if isinstance(methods, Mapping) else dict(zip(methods, methods, strict=True))
    if not asked:
        raise DataError("an evaluation needs at least one method")
    specs = []
    for label, spec in asked.items():
        name, settings = (spec, {}) if isinstance(spec, str) else spec
        if takes(name, "workers"):
            settings = {"workers": engine, **settings}
        each, base = _spec(train, label, name, settings, seed, keep=keep), rests_on(name)
        if base is not None and settings.get("model") is None:
            each = replace(each, base=_spec(train, label, base, settings, seed, keep=keep))
        specs.append(each)
    return tuple(specs)


def _spec(train: Cohort, label: str, name: str, settings: Mapping[str, Any], seed: int, *, keep: bool) -> MethodSpec:
    make = prepared(name, settings, seed=seed)
    # How many processes train a method changes nothing but the time.
    telling = {key: value for key, value in settings.items() if key != "workers"}
    code = f"{version('kerneltrail')} {code_of(_code(make))}" if keep else ""
    try:
        key = digest(train.fingerprint, name, telling, seed, code) if keep else None
    except DataError:
        key = None  # it can be evaluated, but not kept
    return MethodSpec(label, name, settings, make, learns_from(name), key, code)


def _code(train: partial[Method]) -> Callable[..., Any]:
    """The function or class whose code a method is: of a builder, what it builds from."""
    learn: Callable[..., Any] = getattr(train.func, "learn", train.func)
    return learn


def train_all(
    engine: Engine,
    train: Cohort,
    specs: Sequence[MethodSpec],
    users: Sequence[User],
    truth: Truth,
    cache: Cache | None,
    tell: Tell,
) -> tuple[list[TrainedMethod], list[Failure]]:
    """Train all methods: those that use several processes one after the other, the others in a process each."""
    ended: dict[str, TrainedMethod | Failure] = {
        spec.label: TrainedMethod(spec, None, None, None) for spec in specs if _is_done(spec, users, truth, cache)
    }
    total = len(specs)
    missing = [spec for spec in specs if spec.label not in ended]
    travels = not isinstance(engine, Serial)
    if travels:
        for spec in missing:
            problem = _bound(spec.train)
            if problem is not None:
                ended[spec.label] = Failure.of(problem, "build", method=spec.label)
        missing = [spec for spec in missing if spec.label not in ended]
    alone = [spec for spec in missing if not takes(spec.name, "workers")]
    models = _Models(train, cache, travels)
    # Those that rest on another one's model come after it, so that it is learnt once.
    for spec in sorted(missing, key=lambda spec: spec.base is not None):
        if spec in alone:
            continue
        begun = Progress(BUILDING, len(ended), total, spec.label)
        tell(begun)

        def hear(now: Progress, begun: Progress = begun) -> None:  # a method that takes minutes says how far it is
            tell(replace(begun, said=f"{begun.said}: {now.stage} {now.count}".rstrip()))

        heard = hear if reports(spec.name) else None
        given = models.given(spec, heard)
        if isinstance(given, MethodSpec):
            ended[spec.label] = models.noted(_train(train, given, cache, travels, heard))
        else:
            ended[spec.label] = given
    if alone:
        tell(Progress(BUILDING, len(ended), total, alone[0].label))
    jobs = ((spec.label, (spec, cache, travels)) for spec in alone)
    for label, each in results(engine, _train, jobs, train):
        ended[label] = each
        tell(Progress(BUILDING, len(ended), total, label))
    every = [ended[spec.label] for spec in specs]
    return [e for e in every if isinstance(e, TrainedMethod)], [e for e in every if isinstance(e, Failure)]


class _Models:
    """The trajectory models that an evaluation has learnt: each is learnt once, whoever rests on it."""

    def __init__(self, train: Cohort, cache: Cache | None, travels: bool) -> None:
        self._train, self._cache, self._travels = train, cache, travels
        self._known: list[tuple[MethodSpec, TrajectoryModel]] = []

    def noted(self, trained: TrainedMethod | Failure) -> TrainedMethod | Failure:
        """A method that was trained, its model remembered."""
        if isinstance(trained, TrainedMethod) and isinstance(trained.method, TrajectoryMethod):
            self._known.append((trained.spec, trained.method.model))
        return trained

    def given(self, spec: MethodSpec, progress: Tell | None) -> MethodSpec | Failure:
        """A spec with the model that it rests on, which is learnt if nobody has; or why it could not be."""
        base = spec.base
        if base is None:
            return spec
        asked = (base.name, base.settings)
        model = next((model for known, model in self._known if (known.name, known.settings) == asked), None)
        if model is None:
            trained = self.noted(_train(self._train, base, self._cache, self._travels, progress))
            if isinstance(trained, Failure):
                return trained
            assert isinstance(trained.method, TrajectoryMethod)  # what a model is of
            model = trained.method.model
        return replace(spec, train=partial(spec.train, model=model))


def _is_done(spec: MethodSpec, users: Sequence[User], truth: Truth, cache: Cache | None) -> bool:
    """Whether every result of a method is there, so that it need not be trained; some take minutes.

    Methods that learn nothing from training users are there in no time, and are needed for what comes before any row.
    """
    if cache is None or spec.key is None or spec.learns_from == "own rows":
        return False
    keys = [_result_key(spec.key, user, truth) for user in users]
    return all(key is not None and cache.get(key, FOLLOWED) is not None for key in keys)


def _train(
    train: Cohort,
    spec: MethodSpec,
    cache: Cache | None,
    travels: bool,
    progress: Tell | None = None,
) -> TrainedMethod | Failure:
    began = time.perf_counter()
    # A model that was given costs nothing, and may be followed in another way than its own.
    keeps = None if spec.settings.get("model") is not None else cache
    entry = None if keeps is None or spec.key is None else keeps.get(spec.key, MODEL)
    model = None if entry is None else entry.value
    try:
        with one_blas_thread():
            telling = {} if progress is None else {"progress": progress}
            method = spec.train(train, **telling) if model is None else TrajectoryMethod(model)
        if model is None and isinstance(method, TrajectoryMethod) and keeps is not None and spec.key is not None:
            keeps.put(spec.key, method.model, MODEL)
        own_key = _own_key(spec, method)
        problem = _bound(method) if travels else None
        if problem is not None:
            raise problem
    except Exception as problem:
        return Failure.of(problem, "build", method=spec.label)
    return TrainedMethod(spec, method, time.perf_counter() - began if model is None else None, own_key)


def _own_key(spec: MethodSpec, method: Method) -> str | None:
    """A digest of all that matters to a user who has rows, code included, for a method without training users.

    Two methods with the same one do the same from the first batch on, whoever the training users were; before the first
    row, their scaler matters. None where the method is of another kind.
    """
    if spec.learns_from != "own rows" or spec.key is None or not isinstance(method, RefittingMethod):
        return None
    learner: Any = method.learner
    preprocessor = getattr(learner, "preprocessor", None)
    if not is_dataclass(learner) or not isinstance(preprocessor, Preprocessor):
        return None
    seen = replace(preprocessor, before=Scaler.identity(preprocessor.covariates))
    return digest(spec.code, method.method, replace(learner, preprocessor=seen))  # type: ignore[type-var]


def _bound(thing: object) -> DataError | None:
    """Why a thing cannot go to another process; None if it can. Asked of each method, so one does not stop the others.

    Only asked, as an engine would: nothing that is pickled is kept or read.
    """
    try:
        cloudpickle.dumps(thing)
    except Exception as problem:  # whatever its classes raise
        return DataError(f"it cannot be sent to another process ({problem}); evaluate it with one worker")
    return None
