"""Presets of the trajectory model side by side where the truth is known: who gets to the true kernel, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kerneltrail.data import Cohort
from kerneltrail.data.simulate import Simulation
from kerneltrail.evaluation.harness import evaluate
from kerneltrail.evaluation.result import Average, Difference, Evaluation, merged
from kerneltrail.evaluation.training import Spec
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings

R = TypeVar("R", Average, Difference)
Learner = Callable[[Cohort, Pool, Priors, Settings], TrajectoryModel]

OF_SELECTION = ("selection", "memory", "refine")
"""Settings that matter for new users only: presets that differ in nothing else share one model."""

AHEAD = ("rmse", "log_density", "changed")
"""Metrics of a batch that stand at the step before it: how it was predicted, and whether the selection changed."""

_PLAIN = Settings()


def learn(cohort: Cohort, pool: Pool, priors: Priors, settings: Settings, engine: Any = None) -> TrajectoryModel:
    """A model of pilot users; what `compare_presets` learns with unless told otherwise."""
    return fit(cohort, pool=pool, priors=priors, settings=settings, engine=engine)


def compare_presets(
    simulate: Callable[..., Simulation],
    presets: Mapping[str, Settings],
    seeds: Iterable[int],
    *,
    pool: Pool,
    priors: Priors,
    learner: Learner | None = None,
    engine: Any = None,
    tick: Callable[[str], None] = lambda message: None,
) -> Evaluation:
    """Learn from each seed's training users under each preset, and follow its test users batch by batch.

    Presets are the methods of the evaluation, seeds its runs; each run's ``models`` say what graph was learnt.

    Args:
        simulate: a simulation, from ``seed=``.
        presets: settings by name; those that differ in selection alone share one model.
        seeds: of the simulations.
        pool: products on offer.
        priors: over hyperparameters.
        learner: makes a model; to replace where fits are to be shared between presets.
        engine: what runs the jobs, as `fit` takes it; if None, fits run on all cores and users are followed one by one.
        tick: called with what comes next.
    """
    every = []
    for seed in seeds:
        simulation = simulate(seed=seed)
        models: dict[str, TrajectoryModel] = {}
        specs: dict[str, Spec] = {}
        graphs: dict[str, Any] = {}
        for preset, settings in presets.items():
            tick(f"seed {seed}, {preset}")
            key = repr(replace(settings, **{name: getattr(_PLAIN, name) for name in OF_SELECTION}).to_json())
            began = time.perf_counter()
            if key not in models:
                models[key] = (learner or partial(learn, engine=engine))(simulation.train, pool, priors, settings)
            graphs[preset] = _graph(models[key], simulation, time.perf_counter() - began)
            changes = {name: getattr(settings, name) for name in OF_SELECTION}
            specs[preset] = ("trajectory", {"model": models[key], "changes": changes})
        evaluation = evaluate(
            simulation.train,
            simulation.test,
            specs,
            seed=seed,
            engine=engine or "serial",
            truth=simulation.truth,
            run=f"seed {seed}",
        )
        (run,) = evaluation.about["runs"]
        every.append(replace(evaluation, about={**evaluation.about, "runs": [{**run, "models": graphs}]}))
    return merged(every)


def _graph(model: TrajectoryModel, simulation: Simulation, seconds: float) -> dict[str, Any]:
    """The graph that was learnt, beside the pilot users' true kernels; 0 seconds where it was shared."""
    table = model.table()
    return {
        "edges": [f"{e.parent.text if e.parent else ''} -> {e.child.text} {e.label}".strip() for e in model.edges],
        "paths": [[composition.text for composition in path] for _, path in table],
        "truth": [simulation.truth[name].text for name, _ in table],
        "rhat": float(model.diagnostics.rhat["log_joint"]),
        "sweeps": model.diagnostics.sweeps,
        "seconds": seconds,
    }


def of_batch(rows: Iterable[R], t: int) -> dict[str, R]:
    """Averages or differences of one method by metric, for batch t, counted from 1.

    That is: the selection after the batch, how well the batch was predicted before it was seen, and how many
    selections changed with it; with the first batch there is none to change.
    """
    return {row.metric: row for row in rows if row.t == (t - 1 if row.metric in AHEAD else t)}


def right_by_run(evaluation: Evaluation, method: str) -> dict[str, float]:
    """The share of users whose last selection is the true kernel, for each run."""
    by_run: dict[str, list[float]] = {}
    for step in _last(evaluation, method).values():
        by_run.setdefault(step.run, []).append(step.value("right"))
    return {run: sum(values) / len(values) for run, values in by_run.items()}


def recovered(evaluation: Evaluation, method: str) -> float | None:
    """Of the users wrong after the first batch, the share right after the last; None if nobody was wrong."""
    last = _last(evaluation, method)
    ends = [last[step.run, step.user].value("right") for step in evaluation.at(method, 1) if step.right is False]
    return sum(ends) / len(ends) if ends else None


def _last(evaluation: Evaluation, method: str) -> dict[tuple[str, str], Any]:
    """Each user's last step."""
    return {(step.run, step.user): step for step in evaluation.steps if step.method == method}
