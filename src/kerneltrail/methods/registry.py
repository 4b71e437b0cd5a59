"""Methods by name: from training users, settings and a seed to a method that can follow somebody new."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.ard import se_ard
from kerneltrail.methods.builder import Recipe, group_rows
from kerneltrail.methods.candidate_fits import Judged, Search
from kerneltrail.methods.cks import CKSLearner, SearchSettings
from kerneltrail.methods.final import final_of_evidence, final_of_model
from kerneltrail.methods.linear import LinearRegression
from kerneltrail.methods.mean import RunningMean
from kerneltrail.methods.memoryless import Memoryless
from kerneltrail.methods.pooled import PooledGP
from kerneltrail.methods.preprocessing import Frame, priors_for
from kerneltrail.methods.protocol import Learner, Method
from kerneltrail.methods.shrinkage import Shrinkage
from kerneltrail.methods.stratified import Stratified
from kerneltrail.methods.trajectory import Trajectory
from kerneltrail.names import nearest
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings

Factory = Callable[..., Method]
"""Called with the training cohort, ``seed=`` and settings by name; what it takes is in its signature."""

_FACTORIES: dict[str, Factory] = {}

SHARED = ("pool", "priors", "reward")
"""Settings that may be given to every method at once; one that has no use for them leaves them aside."""

OWN_ROWS = ("se-ard", "memoryless", "cks", "shrinkage")
"""Methods that learn nothing from training users but, before a user's first row, how rows are scaled."""


def register(name: str, factory: Factory) -> None:
    """Make a method known by name; a name can be given only once."""
    if name in _FACTORIES and _FACTORIES[name] is not factory:
        raise DataError(f"a method named {name!r} exists already")
    _FACTORIES[name] = factory


def methods() -> tuple[str, ...]:
    """Names of all registered methods."""
    return tuple(_FACTORIES)


def build(name: str, cohort: Cohort, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> Method:
    """The method of that name, learnt from training users: `build("se-ard", train)("ann")` follows Ann.

    Args:
        name: one of `methods()`.
        cohort: the training users.
        settings: by name, as in the factory's signature; `SHARED` ones are left aside where they have no use.
        seed: of everything random.
    """
    return prepared(name, settings, seed=seed)(cohort)


def prepared(name: str, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> partial[Method]:
    """What `build` calls with the training users; names and settings are checked already."""
    factory, known = _factory_of(name), _settings(name)
    given = {key: value for key, value in (settings or {}).items() if key in known or key not in SHARED}
    unknown = sorted(set(given) - known)
    if unknown:
        raise DataError(f"{name} has no setting {unknown[0]!r}; {nearest(unknown[0], sorted(known), 'it has')}")
    return partial(factory, seed=seed, **given)


def takes(name: str, setting: str) -> bool:
    """Whether a method has a setting of that name."""
    return setting in _settings(name)


def _factory_of(name: str) -> Factory:
    try:
        return _FACTORIES[name]
    except KeyError:
        raise DataError(f"no method is called {name!r}; {nearest(name, methods(), 'there are')}") from None


def _settings(name: str) -> set[str]:
    return set(inspect.signature(_factory_of(name)).parameters) - {"cohort", "seed"}


def _trajectory(
    cohort: Cohort,
    *,
    seed: int,
    model: TrajectoryModel | None = None,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    workers: int = 1,
    settings: Settings | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Method:
    """The trajectory model: a given one, or fitted with `settings` and `changes` of single ones."""
    if model is not None:
        return Trajectory(model)
    more = {"seed": seed, **(changes or {})}
    found = fit(cohort, pool=pool, priors=priors, reward=reward, workers=workers, settings=settings, **more)
    return Trajectory(found)


def _cks(frame: Frame, priors: Priors, *, search: SearchSettings | None = None, seed: int = 0) -> Learner:
    """The same priors and frame as the other per-user methods; `search` says how far and how hard."""
    return CKSLearner(frame, priors, replace(search or SearchSettings(), seed=seed))


def _final(
    cohort: Cohort,
    *,
    seed: int,
    model: TrajectoryModel | None = None,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    constant: float = 0.0,
    transfer: bool = True,
    search: Search | None = None,
) -> Learner:
    """One kernel: of a given trajectory model, or of the training users' summed evidence."""
    if model is not None:
        frame = replace(group_rows(cohort, reward=model.reward), schema=model.schema, mean=model.mean)
        return final_of_model(model, frame, transfer=transfer, seed=seed)
    frame = group_rows(cohort, reward=reward, constant=constant)
    offered = pool or Pool.atoms(cohort.covariates)
    judged = Judged(cohort, frame, offered, priors or priors_for(cohort.schema), search or Search())
    return final_of_evidence(judged, frame, transfer=transfer, seed=seed)


def _stratified(
    cohort: Cohort,
    frame: Frame,
    pool: Pool,
    priors: Priors,
    *,
    alpha: float = 1.0,
    search: Search | None = None,
    seed: int = 0,
) -> Learner:
    judged = Judged(cohort, frame, pool, priors, search or Search())
    return Stratified.train(judged, frame, alpha=alpha, seed=seed)


register("trajectory", _trajectory)
for _recipe in (
    Recipe("mean", RunningMean.train),
    Recipe("linear", LinearRegression.train),
    Recipe("se-ard", se_ard, "own"),
    Recipe("pooled", PooledGP.train, fixed={"population_mean": False}),
    Recipe("pooled-mean", PooledGP.train, fixed={"population_mean": True}),
    Recipe("final", _final),
    Recipe("stratified", _stratified, "group"),
    Recipe("memoryless", Memoryless, "own"),
    Recipe("cks", _cks, "own"),
    Recipe("shrinkage", Shrinkage, "own"),
):
    register(_recipe.name, _recipe)
