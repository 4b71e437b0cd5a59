"""The stages of an experiment with a known truth: models, followed users, likelihoods, fits of example users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.simulate import Simulation
from kerneltrail.errors import NumericalError
from kerneltrail.evaluation import Evaluation, Spec, evaluate, follow, merged
from kerneltrail.kernels import Composition, Pool, Priors
from kerneltrail.methods.candidate_fits import CandidateSearch
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.simulated.design import PRESETS, SimulatedStudy, Sizes
from kerneltrail.studies.experiments.simulated.likelihoods import LikelihoodRow, likelihood_table
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trajectory.user_state import SelectionStep

POINTS = 120
"""Points at which the fits of example users are drawn."""


@dataclass(frozen=True)
class Findings:
    """All that was computed.

    Attributes:
        simulation: users and truth.
        models: by preset.
        followed: the test users followed under every preset.
        likelihoods: log likelihoods of simple kernels and the true one, by rows.
        examples: the first test user of each true kernel, as `example` describes it.
        evaluation: methods compared on some of the test users; None where that was not asked for.
    """

    simulation: Simulation
    models: Mapping[str, TrajectoryModel]
    followed: Evaluation
    likelihoods: tuple[LikelihoodRow, ...]
    examples: tuple[Mapping[str, Any], ...]
    evaluation: Evaluation | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows seen after each batch."""
        return tuple(map(int, self.simulation.test.users[0].ends))

    @property
    def truths(self) -> tuple[Composition, ...]:
        """The true kernels, in order of appearance."""
        return tuple(dict.fromkeys(self.simulation.truth.values()))


def stage_names(sizes: Sizes) -> tuple[str, ...]:
    """The stages that `compute` goes through, in order."""
    models = [name for preset in PRESETS for name in (f"model-{preset}", f"followed-{preset}")]
    return (*models, "log-likelihood", "examples", *(("methods",) if sizes.methods else ()))


def compute(plan: SimulatedStudy, sizes: Sizes, context: Context) -> Findings:
    """All stages."""
    simulation = plan.simulate(train=sizes.train, test=sizes.test, seed=context.seed)
    pool, priors = plan.pool(), plan.priors()
    common = {"train": sizes.train, "test": sizes.test, "pool": repr(pool), "priors": repr(priors)}
    models: dict[str, TrajectoryModel] = {}
    followed: list[Evaluation] = []
    for preset in PRESETS:
        settings = sizes.settings(preset, context.seed)
        about = {**common, "settings": settings.to_json()}
        models[preset] = _model(preset, simulation, pool, priors, settings, context, about)
        followed.append(_followed(preset, simulation, models[preset], context, about))
    first = next(iter(dict.fromkeys(simulation.truth.values())))
    users = [user for user in simulation.test.users if simulation.truth[user.name] == first][: sizes.table]
    kernels = plan.compared(first)
    table = {**common, "users": len(users), "kernels": [kernel.text for kernel in kernels]}
    likelihoods = context.stage(
        "log-likelihood", lambda: [each.to_json() for each in likelihood_table(users, kernels, priors)], about=table
    )
    of_examples = {**common, "settings": sizes.settings(PRESETS[0], context.seed).to_json()}
    examples = context.stage("examples", lambda: _examples(models[PRESETS[0]], simulation), about=of_examples)
    evaluation = _compared(plan, sizes, simulation, models, context, common) if sizes.methods else None
    return Findings(
        simulation,
        models,
        merged(followed),
        tuple(LikelihoodRow(**each) for each in likelihoods),
        tuple(examples),
        evaluation,
    )


def _compared(
    plan: SimulatedStudy,
    sizes: Sizes,
    simulation: Simulation,
    models: Mapping[str, TrajectoryModel],
    context: Context,
    common: Mapping[str, Any],
) -> Evaluation:
    """The trajectory model beside other methods, on the same users."""
    every = simulation.test.raw
    users = [every[round(position)] for position in np.linspace(0, len(every) - 1, min(sizes.methods, len(every)))]
    shared = {"pool": plan.pool(), "priors": plan.priors()}
    search = {"search": CandidateSearch(largest=sizes.search)}
    specs: dict[str, Spec] = {
        "trajectory": ("trajectory", {"model": models["default"]}),
        "published": ("trajectory", {"model": models["published"]}),
        "union": ("union", {"model": models["default"]}),
        "flat": ("flat", {"model": models["default"]}),
        "mean": "mean",
        "linear": ("linear", {"priors": plan.priors()}),
        "se-ard": ("se-ard", {"priors": plan.priors()}),
        "pooled": ("pooled", {"priors": plan.priors()}),
        "final": ("final", {"model": models["default"]}),
        "stratified": ("stratified", {**shared, **search}),
        "memoryless": ("memoryless", {**shared, **search}),
        "shrinkage": ("shrinkage", shared),
        "cks": ("cks", {"priors": plan.priors()}),
    }
    settings = {preset: sizes.settings(preset, context.seed).to_json() for preset in PRESETS}
    return context.evaluation(
        "methods",
        lambda folder, tell: evaluate(
            simulation.train,
            users,
            specs,
            seed=context.seed,
            engine=context.workers,
            truth=simulation.truth,
            out=folder,
            progress=tell,
        ),
        about={**common, "users": [user.name for user in users], "search": sizes.search, "settings": settings},
    )


def _model(
    preset: str,
    simulation: Simulation,
    pool: Pool,
    priors: Priors,
    settings: Settings,
    context: Context,
    about: Mapping[str, Any],
) -> TrajectoryModel:
    return context.model(
        f"model-{preset}",
        lambda folder, tell: fit(
            simulation.train,
            pool=pool,
            priors=priors,
            settings=settings,
            engine=context.workers,
            progress=tell,
            checkpoint=folder,
        ),
        about=about,
        fits_of=None if preset == PRESETS[0] else f"model-{PRESETS[0]}",
    )


def _followed(
    preset: str, simulation: Simulation, model: TrajectoryModel, context: Context, about: Mapping[str, Any]
) -> Evaluation:
    """The test users on one preset's model; whoever cannot be followed to the end stops the experiment."""
    evaluation = context.evaluation(
        f"followed-{preset}",
        lambda folder, tell: evaluate(
            simulation.train,
            simulation.test,
            {preset: ("trajectory", {"model": model})},
            seed=context.seed,
            engine=context.workers,
            truth=simulation.truth,
            out=folder,
            progress=tell,
        ),
        about=about,
    )
    if evaluation.failures:
        raise NumericalError(str(evaluation.failures[0]))
    return evaluation


def _examples(model: TrajectoryModel, simulation: Simulation) -> list[dict[str, Any]]:
    """The first test user of each true kernel, so that none is picked because it looks good."""
    first: dict[Composition, User] = {}
    for user in simulation.test.users:
        first.setdefault(simulation.truth[user.name], user)
    return [example(model, user, truth) for truth, user in first.items()]


def example(model: TrajectoryModel, user: User, truth: Composition) -> dict[str, Any]:
    """A user's rows and, after each batch, the kernel selected and its prediction over the range of x."""
    x = user.X[:, 0]
    margin = 0.04 * float(np.ptp(x))
    grid = np.linspace(x.min() - margin, x.max() + margin, POINTS)
    steps: list[dict[str, Any]] = []

    def look(state: NewUser, step: SelectionStep) -> None:
        fit = state.predict(grid[:, None])
        steps.append(
            {
                "rows": step.rows,
                "composition": step.composition.text,
                "probability": step.probabilities[step.composition],
                "mean": fit.mean.tolist(),
                "sd": np.sqrt(fit.variance).tolist(),
                "total_sd": np.sqrt(fit.total).tolist(),
            }
        )

    follow(TrajectoryMethod(model), user, catch=(), after_update=look)
    return {
        "user": user.name,
        "truth": truth.text,
        "x": x.tolist(),
        "y": user.y.tolist(),
        "grid": grid.tolist(),
        "steps": steps,
    }
