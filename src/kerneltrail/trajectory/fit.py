"""Learn a trajectory model from pilot users: fits of candidate compositions, then chains, then one structure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from kerneltrail import gp
from kerneltrail.data import Cohort, User, default_priors
from kerneltrail.data.columns import columns_of_numbers
from kerneltrail.data.table import read_table
from kerneltrail.engines import engine_for
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean, centred_where_logged, spread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.names import nearest
from kerneltrail.progress import Progress, reporting
from kerneltrail.store.code import registered_code
from kerneltrail.store.digest import code, digest
from kerneltrail.trajectory.candidates import FITTING, find_candidates
from kerneltrail.trajectory.conclusion import SHARING, Conclusion
from kerneltrail.trajectory.map_table import MapTable, block_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.chains import SAMPLING, ChainTarget, FitProgress, run_chains
from kerneltrail.trajectory.sampler.checkpoint import Checkpoint
from kerneltrail.trajectory.sampler.constant import whole_table
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.urn import Urn
from kerneltrail.trajectory.settings import Settings

STAGES = (FITTING, SAMPLING, SHARING)
"""What a fit tells of, one after the other."""


def fit(
    data: Any,
    *,
    pool: Pool | None = None,
    priors: Priors | None = None,
    settings: Settings | None = None,
    reward: Reward | None = None,
    workers: int | None = None,
    engine: Any = None,
    progress: Callable[[FitProgress], None] | bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    extend: TrajectoryModel | None = None,
    **changes: Any,
) -> TrajectoryModel:
    """Learn from pilot users how compositions evolve as data accrues.

    Args:
        data: the pilot users: a `Cohort`, scaled for the group or not at all; or a table (a frame, a dict of columns, a
            path), with the options of `Cohort.from_table` beside it: ``user="user", order="time", target="steps"``, ….
            Without ``covariates`` all other columns of numbers are taken.
        pool: products on offer; every atom on every covariate if None.
        priors: over hyperparameters; if None the paper's: HeartSteps' where covariates are scaled (for a standardised
            target `Priors.standardised`), else the synthetic.
        settings: of evidence, moves and chains; the measured default if None.
        reward: adds an action's linear advantage and a constant mean to every composition (method (32)).
        workers: processes of this machine; all cores if None.
        engine: what runs the jobs instead: a text such as ``"local:4"`` or ``"dask://host:8786"``, a Dask client, or an
            `Engine`. The result is the same, to the bit on machines of one kind.
        progress: called as the fit goes on; True shows it, as bars on a terminal and as lines elsewhere.
        checkpoint: folder from which a fit that was stopped goes on, to the same result; refused if it belongs to a
            fit of other data, settings or code.
        extend: a model learnt before, whose pilot users are in the cohort among others: its chains go on from its
            paths, with its pool, priors and reward model unless others are given. Read the table with
            `Cohort.from_schema(extend.schema, table)`, so that all are scaled alike.
        changes: single settings, such as ``chains=2`` or ``seed=1``, and the options of a table.
    """
    cohort, changes = _cohort(data, changes)
    began = time.perf_counter()
    if extend is not None:
        pool, priors = pool or extend.pool, priors or extend.priors
        settings, reward = settings or extend.settings, reward or (extend.reward if extend.takes_action else None)
        if reward is not None:  # what was learnt is learnt anew
            reward = replace(reward, variances=None, slopes=(), covariance=None, typical=None)
    settings = (settings or Settings()).changed(changes).resolved(cohort.schema.target_scaling == "standard")
    if pool is None:  # around a mean, noise alone is a candidate: somebody may be like everybody
        pool = Pool.atoms(cohort.covariates).with_empty(settings.mean != "none")
    priors = priors or default_priors(cohort.schema)
    _check(cohort, pool, reward)
    if reward is not None:
        reward = centred_where_logged(reward, cohort.raw)
    if reward is None and settings.constant:
        reward = Reward.constant(settings.constant)
    begin = {} if extend is None else _known_paths(extend, cohort, pool)
    runner = engine_for(engine, workers=workers)
    # What the fit depends on: a checkpoint of one must not serve another. Before the reward model learns from users.
    plug_ins = registered_code(atom=pool.kinds, evidence=[settings.evidence], move=settings.moves)
    depends = (code("trajectory"), plug_ins, cohort.users, pool, priors, settings.to_json(), reward, begin)
    mean, users, reward = _around(cohort.users, settings, reward)
    table = MapTable(users, pool, priors, settings.maps, reward)
    # Before the work begins: both may refuse their settings.
    urn = Urn(pool, alpha=settings.alpha, keep=settings.keep)
    empty = ChainTarget(table, urn, settings, ())
    empty.sweep(Joint(urn, empty.evidence))
    keeper = None if checkpoint is None else Checkpoint(checkpoint, digest(*depends))
    if keeper is not None:
        keeper.read_fits(table)
        table.on_new = keeper.add_fits
    before = {mask for path in begin.values() for mask in path}
    search = (settings.largest, settings.width, settings.scope)
    with reporting(progress, *STAGES) as tell:
        if not gp.compilation.is_compiled():
            tell(FitProgress(FITTING, said=gp.compilation.COMPILING))
        gp.compilation.ensure_compiled()  # a fit that is resumed must find the same bits

        def tell_fits(now: Progress) -> None:
            tell(FitProgress(**vars(now)))

        found = find_candidates(
            table,
            *search,
            most=settings.candidates,
            always=before,
            negligible=settings.negligible,
            workers=runner,
            tell=tell_fits,
        )
        # On constant paths a user is one customer, with all rows.
        constant = settings.paths == "constant"
        sampled = whole_table(table) if constant else table
        begin = {m: path[-1:] for m, path in begin.items()} if constant else begin
        target = ChainTarget(sampled, urn, settings, found.masks, begin)
        fits = len(table.pairs)

        def tell_evidences(done: int, total: int) -> None:
            tell(FitProgress(FITTING, fits + done, fits + total, f"{settings.evidence} evidences"))

        target.evidence.prepare(runner, tell_evidences)
        fitted = time.perf_counter()
        chains = run_chains(target, runner, tell, keeper)
        sampling = time.perf_counter()
        conclusion = Conclusion(cohort, users, table, priors, mean, reward, found, runner)
        model = conclusion.model(target, chains, tell)
    seconds = {"fits": fitted - began, "chains": sampling - fitted, "sharing": time.perf_counter() - sampling}
    return replace(model, diagnostics=replace(model.diagnostics, seconds=seconds))


_TABLE = tuple(name for name in signature(Cohort.from_table).parameters if name != "rows")


def _cohort(data: Any, options: Mapping[str, Any]) -> tuple[Cohort, dict[str, Any]]:
    """The cohort, read from a table if it is one, and the options that are not a table's."""
    table = {name: value for name, value in options.items() if name in _TABLE}
    rest = {name: value for name, value in options.items() if name not in _TABLE}
    known = (*_TABLE, *Settings.__dataclass_fields__)
    for name in rest:
        if name not in known:
            raise DataError(f"fit has no option {name!r}; {nearest(name, known, 'there are')}")
    if isinstance(data, Cohort):
        if table:
            raise DataError(
                f"a cohort is read already, so {next(iter(table))!r} cannot be changed; give the table itself"
            )
        return data, rest
    missing = [name for name in ("user", "order", "target") if name not in table]
    if missing:
        raise DataError(f"a table needs {' and '.join(f'{name}=' for name in missing)}: the names of its columns")
    rows = read_table(data, delimiter=table.get("delimiter"), decimal=table.get("decimal"))
    if "covariates" not in table:
        table["covariates"] = columns_of_numbers(rows, table)
    return Cohort.from_table(rows, **table), rest


def _around(
    users: Sequence[User], settings: Settings, reward: Reward | None
) -> tuple[PopulationMean | None, tuple[User, ...], Reward | None]:
    """What users vary around, the users less that, and the reward model with what was learnt of its spread."""
    for user in users if reward is not None else ():
        block_of(user, reward)  # refuses users without the actions that it needs
    if settings.mean == "none":
        return None, tuple(users), reward
    if reward is not None:
        # What an extended model had learnt is learnt anew.
        reward = replace(reward, variances=None, slopes=(), covariance=None)
    mean = PopulationMean.train(users, reward)
    centred = tuple(mean.centred(user) for user in users)
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
