"""Methods by name: from training users, settings and a seed to a method that can follow somebody new."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kerneltrail.baselines.ard import se_ard
from kerneltrail.baselines.candidates import Judged, Search
from kerneltrail.baselines.cks import CKSLearner, SearchSettings
from kerneltrail.baselines.final import final_of_evidence, final_of_model
from kerneltrail.baselines.following import Following
from kerneltrail.baselines.frame import Frame, Scaled, priors_for
from kerneltrail.baselines.linear import LinearRegression
from kerneltrail.baselines.mean import RunningMean
from kerneltrail.baselines.memoryless import Memoryless
from kerneltrail.baselines.pooled import PooledGP
from kerneltrail.baselines.protocol import Learner, Method
from kerneltrail.baselines.shrinkage import Shrinkage
from kerneltrail.baselines.stratified import Stratified
from kerneltrail.baselines.trajectory import Trajectory
from kerneltrail.data import Cohort
from kerneltrail.data.names import nearest
from kerneltrail.data.scaling import TargetScaling
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors
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


def _mean(cohort: Cohort, *, seed: int) -> Method:
    return Following("mean", RunningMean.train(cohort))


def _linear(
    cohort: Cohort,
    *,
    seed: int,
    prior: str = "group",
    priors: Priors | None = None,
    reward: Reward | None = None,
    variance: float = 10.0,
) -> Method:
    learner = LinearRegression.train(
        cohort,
        prior=prior,  # type: ignore[arg-type]
        priors=priors,
        reward=reward,
        variance=variance,
    )
    return Following("linear", learner)


def _pooled_as(name: str, population_mean: bool) -> Factory:
    def pooled(
        cohort: Cohort,
        *,
        seed: int,
        kernel: str | None = None,
        priors: Priors | None = None,
        reward: Reward | None = None,
        constant: float | None = None,
        starts: int = 2,
        screen: int = 8,
    ) -> Method:
        learner = PooledGP.train(
            cohort,
            kernel=kernel,
            population_mean=population_mean,
            priors=priors,
            reward=reward,
            constant=constant,
            starts=starts,
            screen=screen,
            seed=seed,
        )
        return Following(name, learner)

    return pooled


def _se_ard(
    cohort: Cohort,
    *,
    seed: int,
    priors: Priors | None = None,
    reward: Reward | None = None,
    scaling: Scaled | None = None,
    target_scaling: TargetScaling | None = None,
    constant: float = 0.0,
    starts: int = 2,
    screen: int = 16,
) -> Method:
    frame = Frame.of(cohort, scaling=scaling, target_scaling=target_scaling, reward=reward, constant=constant)
    priors = priors or priors_for(cohort.schema)
    return Following("se-ard", se_ard(frame, priors, starts=starts, screen=screen, seed=seed))


def _shrinkage(
    cohort: Cohort,
    *,
    seed: int,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    scaling: Scaled | None = None,
    target_scaling: TargetScaling | None = None,
    constant: float = 0.0,
    share: float = Shrinkage.share,
    size: float = Shrinkage.size,
    clear: float = Shrinkage.clear,
    pairs: int = Shrinkage.pairs,
    iterations: int = Shrinkage.iterations,
    tolerance: float = Shrinkage.tolerance,
) -> Method:
    frame = Frame.of(cohort, scaling=scaling, target_scaling=target_scaling, reward=reward, constant=constant)
    learner = Shrinkage(
        frame,
        pool or Pool.atoms(cohort.covariates),
        priors or priors_for(cohort.schema),
        share=share,
        size=size,
        clear=clear,
        pairs=pairs,
        iterations=iterations,
        tolerance=tolerance,
        seed=seed,
    )
    return Following("shrinkage", learner)


def _cks(
    cohort: Cohort,
    *,
    seed: int,
    priors: Priors | None = None,
    reward: Reward | None = None,
    scaling: Scaled | None = None,
    target_scaling: TargetScaling | None = None,
    constant: float = 0.0,
    search: SearchSettings | None = None,
) -> Method:
    """The same priors and frame as the other per-user methods; `search` says how far and how hard."""
    frame = Frame.of(cohort, scaling=scaling, target_scaling=target_scaling, reward=reward, constant=constant)
    settings = replace(search or SearchSettings(), seed=seed)
    return Following("cks", CKSLearner(frame, priors or priors_for(cohort.schema), settings))


def _group_frame(cohort: Cohort, reward: Reward | None, constant: float) -> Frame:
    """As the trajectory model sees rows: what is learnt of hyperparameters is in the group's units."""
    scaling: Scaled = "none" if cohort.schema.scaling == "none" else "group"
    return Frame.of(cohort, scaling=scaling, reward=reward, constant=constant)


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
) -> Method:
    """One kernel: of a given trajectory model, or of the training users' summed evidence."""
    if model is not None:
        frame = replace(_group_frame(cohort, model.reward, 0.0), schema=model.schema, mean=model.mean)
        learner: Learner = final_of_model(model, frame, transfer=transfer, seed=seed)
    else:
        frame = _group_frame(cohort, reward, constant)
        learner = final_of_evidence(_judged(cohort, frame, pool, priors, search), frame, transfer=transfer, seed=seed)
    return Following("final", learner)


def _stratified(
    cohort: Cohort,
    *,
    seed: int,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    constant: float = 0.0,
    alpha: float = 1.0,
    search: Search | None = None,
) -> Method:
    frame = _group_frame(cohort, reward, constant)
    judged = _judged(cohort, frame, pool, priors, search)
    return Following("stratified", Stratified.train(judged, frame, alpha=alpha, seed=seed))


def _judged(cohort: Cohort, frame: Frame, pool: Pool | None, priors: Priors | None, search: Search | None) -> Judged:
    offered = pool or Pool.atoms(cohort.covariates)
    return Judged(cohort, frame, offered, priors or priors_for(cohort.schema), search or Search())


def _memoryless(
    cohort: Cohort,
    *,
    seed: int,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    scaling: Scaled | None = None,
    target_scaling: TargetScaling | None = None,
    constant: float = 0.0,
    search: Search | None = None,
    average: bool = True,
) -> Method:
    """No seed is needed: starts are seeded by the content of the rows."""
    frame = Frame.of(cohort, scaling=scaling, target_scaling=target_scaling, reward=reward, constant=constant)
    pool = pool or Pool.atoms(cohort.covariates)
    learner = Memoryless(frame, pool, priors or priors_for(cohort.schema), search or Search(), average)
    return Following("memoryless", learner)


for _name, _factory in (
    ("trajectory", _trajectory),
    ("mean", _mean),
    ("linear", _linear),
    ("se-ard", _se_ard),
    ("pooled", _pooled_as("pooled", False)),
    ("pooled-mean", _pooled_as("pooled-mean", True)),
    ("final", _final),
    ("stratified", _stratified),
    ("memoryless", _memoryless),
    ("cks", _cks),
    ("shrinkage", _shrinkage),
):
    register(_name, _factory)
