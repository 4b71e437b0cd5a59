"""Methods by name: from training users, settings and a seed to a method that can follow somebody new.

Each method is registered beside its definition; `kerneltrail.register` adds one from outside.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.errors import DataError
from kerneltrail.methods.builder import LearnsFrom, MethodBuilder
from kerneltrail.methods.protocol import Learner, Method
from kerneltrail.names import nearest
from kerneltrail.registry import Registry

Builder = Callable[..., Method]
"""Called with the training cohort, ``seed=`` and settings by name; what it takes is in its signature.

It may have an attribute `learns_from` (`LearnsFrom`): results of one that learns from ``own rows`` are shared between
training cohorts. Without it, it learns from the ``group``.
It may have an attribute `rests_on`, the name of the method whose model it changes: a model that an evaluation has
learnt for that one is given to it as ``model=``.
One that takes ``progress=`` is given whom to tell how far it is.
"""

METHODS: Registry[Builder] = Registry("method", DataError)
"""Every method."""

SHARED = ("pool", "priors", "reward")
"""Settings that may be given to every method at once; one that has no use for them leaves them aside."""

PROGRESS = "progress"
"""The parameter of a builder that says how far it is."""


def register_learner(
    name: str, learn: Callable[..., Learner], learns_from: LearnsFrom = "group", **fixed: Any
) -> MethodBuilder:
    """Make the method of a learner known by name; `fixed` parameters of the learner are decided, not settings."""
    builder = MethodBuilder(name, learn, learns_from, fixed)
    METHODS.add(name, builder)
    return builder


def methods() -> tuple[str, ...]:
    """Names of all registered methods."""
    return tuple(METHODS)


def build(name: str, cohort: Cohort, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> Method:
    """The method of that name, learnt from training users: `build("se-ard", train)("ann")` follows Ann.

    Settings are by name, as in the builder's signature; `SHARED` ones are left aside where they have no use. The seed
    is that of everything random.
    """
    return prepared(name, settings, seed=seed)(cohort)


def prepared(name: str, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> partial[Method]:
    """What `build` calls with the training users; names and settings are checked already."""
    known = _settings(name)
    given = {key: value for key, value in (settings or {}).items() if key in known or key not in SHARED}
    unknown = sorted(set(given) - known)
    if unknown:
        raise DataError(f"{name} has no setting {unknown[0]!r}; {nearest(unknown[0], sorted(known), 'it has')}")
    return partial(METHODS[name], seed=seed, **given)


def takes(name: str, setting: str) -> bool:
    """Whether a method has a setting of that name."""
    return setting in _settings(name)


def reports(name: str) -> bool:
    """Whether a method says how far its building is."""
    return PROGRESS in inspect.signature(METHODS[name]).parameters


def learns_from(name: str) -> LearnsFrom:
    """Whose rows a method learns from."""
    whose: LearnsFrom = getattr(METHODS[name], "learns_from", "group")
    return whose


def rests_on(name: str) -> str | None:
    """The method whose model another one changes; None for all others."""
    base: str | None = getattr(METHODS[name], "rests_on", None)
    return base


def _settings(name: str) -> set[str]:
    return set(inspect.signature(METHODS[name]).parameters) - {"cohort", "seed", PROGRESS}
