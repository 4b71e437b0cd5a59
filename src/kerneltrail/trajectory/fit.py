"""Learn a trajectory model from pilot users: fits of candidate compositions, then chains, then one structure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.compilation import ensure_compiled
from kerneltrail.gp.population import BUMPS, PopulationMean, centred_where_logged, effects_between, spread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.store.digest import code, digest
from kerneltrail.trajectory.candidates import support
from kerneltrail.trajectory.graph import Diagnostics, Node
from kerneltrail.trajectory.map_table import MapTable, block_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.pilot_effects import pilot_effects
from kerneltrail.trajectory.sampler.chains import Chain, ChainTarget, FitProgress, run_chains
from kerneltrail.trajectory.sampler.checkpoint import Checkpoint
from kerneltrail.trajectory.sampler.convergence import late_states, rhats, sizes, traces_of
from kerneltrail.trajectory.sampler.joint import Joint, Structure, choose
from kerneltrail.trajectory.sampler.urn import Urn, customers_of, last_use
from kerneltrail.trajectory.settings import Settings


def fit(
    cohort: Cohort,
    *,
    pool: Pool | None = None,
    priors: Priors | None = None,
    settings: Settings | None = None,
    reward: Reward | None = None,
    workers: int | None = None,
    progress: Callable[[FitProgress], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    extend: TrajectoryModel | None = None,
    **changes: Any,
) -> TrajectoryModel:
    """Learn from pilot users how compositions evolve as data accrues.

    Args:
        cohort: the pilot users, scaled for the group or not at all.
        pool: products on offer; every atom on every covariate if None.
        priors: over hyperparameters; if None the paper's: HeartSteps' where covariates are scaled, else the synthetic.
        settings: of evidence, moves and chains; the measured default if None.
        reward: adds an action's linear advantage and a constant mean to every composition (method (32)).
        workers: processes; all cores if None.
        progress: called as the fit goes on.
        checkpoint: folder from which a fit that was stopped goes on, to the same result; refused if it belongs to a
            fit of other data, settings or code.
        extend: a model learnt before, whose pilot users are in the cohort among others: its chains go on from its
            paths, with its pool, priors and reward model unless others are given. Read the table with
            `extend.schema.read`, so that all are scaled alike.
        changes: single settings, such as ``chains=2`` or ``seed=1``.
    """
    began = time.perf_counter()
    ensure_compiled()  # a fit that is resumed must find the same bits
    if extend is not None:
        pool, priors = pool or extend.pool, priors or extend.priors
        settings, reward = settings or extend.settings, reward or (extend.reward if extend.takes_action else None)
    settings = replace(settings or Settings(), **changes)
    pool = Pool.atoms(cohort.covariates) if pool is None else pool
    if priors is None:
        priors = Priors.synthetic() if cohort.schema.scaling == "none" else Priors.heartsteps()
    _check(cohort, pool, reward)
    if reward is not None:
        reward = centred_where_logged(reward, cohort.raw)
    if reward is None and settings.constant > 0:
        reward = Reward.constant(settings.constant)
    begin = {} if extend is None else _known_paths(extend, cohort, pool)
    count = workers if workers is not None else (os.cpu_count() or 1)
    # What the fit depends on: a checkpoint of one must not serve another. Before the reward model learns from users.
    depends = (cohort.users, pool, priors, settings.to_json(), reward, begin)
    mean, users, reward = _around(cohort.users, settings, reward, cohort.schema.scaling == "group")
    table = MapTable(users, pool, priors, settings.maps, reward)
    # Before the work begins: both may refuse their settings.
    urn = Urn(pool, alpha=settings.alpha, keep=settings.keep)
    empty = ChainTarget(table, urn, settings, ())
    empty.sweep(Joint(urn, empty.evidence))
    keeper = None if checkpoint is None else Checkpoint(checkpoint, digest(code("trajectory"), *depends))
    if keeper is not None:
        keeper.read_fits(table)
        table.on_new = keeper.add_fits

    def fitting(done: int, total: int) -> None:
        if progress is not None:
            progress(FitProgress("fits", done, total))

    before = {mask for path in begin.values() for mask in path}
    search = (settings.largest, settings.width, settings.scope)
    candidates = support(table, *search, always=before, workers=count, progress=fitting)
    fitted = time.perf_counter()
    target = ChainTarget(table, urn, settings, candidates, begin)
    chains = run_chains(target, count, progress, keeper)
    model = _conclude(cohort, target, priors, reward, chains)
    seconds = {"fits": fitted - began, "chains": time.perf_counter() - fitted}
    model = replace(model, mean=mean, diagnostics=replace(model.diagnostics, seconds=seconds))
    thetas = [table.get(m, path[-1]).theta[-1] for m, path in enumerate(model.paths)]
    return replace(model, pilot_effects=pilot_effects(model, users, thetas))


def _around(
    users: Sequence[User], settings: Settings, reward: Reward | None, scaled: bool
) -> tuple[PopulationMean | None, tuple[User, ...], Reward | None]:
    """What users vary around, the users less that, and the reward model with what was learnt of its spread."""
    for user in users if reward is not None else ():
        block_of(user, reward)  # refuses users without the actions that it needs
    if settings.mean == "none":
        return None, tuple(users), reward
    if reward is not None:
        reward = replace(reward, variances=None)  # what an extended model had learnt is learnt anew
    # Bumps lie on the pilot users' range, so covariates must be scaled to it.
    mean = PopulationMean.train(users, reward, curves=BUMPS if settings.mean == "smooth" and scaled else 0)
    centred = tuple(mean.centred(user) for user in users)
    if scaled:
        mean = replace(mean, between=effects_between(centred))
    return mean, centred, None if reward is None else spread(centred, reward)


def _known_paths(model: TrajectoryModel, cohort: Cohort, pool: Pool) -> dict[int, tuple[int, ...]]:
    """The paths of a model for those of its users who are in the cohort, with the same batches, by index."""
    known = dict(zip(model.users, model.paths, strict=True))
    begin = {}
    for m, user in enumerate(cohort.users):
        path = known.get(user.name)
        if path is not None and len(path) == user.batches:
            begin[m] = tuple(pool.mask(model.pool.composition(mask)) for mask in path)
    if not begin:
        raise DataError(
            f"none of the model's pilot users ({', '.join(model.users)}) is in the cohort with its batches of before"
        )
    return begin


def _check(cohort: Cohort, pool: Pool, reward: Reward | None) -> None:
    if not len(cohort):
        raise DataError("a fit needs at least one pilot user")
    if reward is not None and not reward.acts:
        raise DataError("this reward model has no action's advantage; for a constant mean alone say constant=VARIANCE")
    missing = [name for name in pool.covariates if name not in cohort.covariates]
    if missing:
        raise DataError(
            f"the pool reads {', '.join(missing)}, which the cohort does not have; its covariates are "
            f"{', '.join(cohort.covariates)}"
        )


def _conclude(
    cohort: Cohort, target: ChainTarget, priors: Priors, reward: Reward | None, chains: Sequence[Chain]
) -> TrajectoryModel:
    settings, table = target.settings, target.table
    sweeps = len(chains[0].log_joint)
    structures = _structures(target, chains)
    chosen = structures[0]
    traces = traces_of(chains, chosen.paths)
    late = {name: trace[:, sweeps // 2 :] for name, trace in traces.items()}  # the first half is warm-up
    acceptance = {}
    for name in chains[0].info:
        proposed, accepted, _ = np.sum([chain.info[name] for chain in chains], axis=0).tolist()
        acceptance[name] = accepted / max(proposed, 1)
    diagnostics = Diagnostics(sweeps, rhats(late), sizes(late), acceptance, traces, {})
    names = tuple(user.name for user in table.users)
    return TrajectoryModel(
        cohort.schema,
        table.pool,
        priors,
        settings,
        names,
        structures,
        _nodes(table, chosen, names),
        reward,
        diagnostics,
        {
            "version": version("kerneltrail"),
            "users": {user.name: user.fingerprint for user in cohort.users},
            "rows": {user.name: user.rows_digest for user in cohort.users},
            "candidates": [table.pool.composition(mask).text for mask in target.candidates],
        },
    )


def _structures(target: ChainTarget, chains: Sequence[Chain]) -> tuple[Structure, ...]:
    """The chosen structure, then the alternatives."""
    settings = target.settings
    rescored = lru_cache(maxsize=None)(target.rescore)
    states = late_states(chains, (lambda paths: rescored(paths)[0]) if target.evidence.learns else None)
    worth = (lambda paths: rescored(paths)[1]) if settings.margin_of == "likelihood" else None
    return choose(states, margin=settings.margin, worth=worth)


def _nodes(table: MapTable, chosen: Structure, names: tuple[str, ...]) -> tuple[Node, ...]:
    """The compositions in use, in order of first use: by batch, then by user."""
    longest = max(map(len, chosen.paths))
    order = dict.fromkeys(path[t] for t in range(longest) for path in chosen.paths if t < len(path))
    customers, last = customers_of(chosen.paths), last_use(chosen.paths)
    nodes = []
    for mask in order:
        thetas = np.array([table.get(m, mask).theta[t] for m, t in customers[mask]])
        users = tuple(names[m] for m in last[mask])
        group = table.group(mask, last[mask].items())
        nodes.append(Node(mask, table.pool.composition(mask), thetas, group, users))
    return tuple(nodes)
