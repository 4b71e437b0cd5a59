"""The stages of an experiment on real users: models learnt from training users, methods followed on test users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.evaluation import Evaluation, Spec, evaluate, merged, splits
from kerneltrail.kernels import Pool
from kerneltrail.store.digest import described
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.real.design import PUBLISHED, TRAJECTORY, WITHOUT, RealStudy, Sizes
from kerneltrail.trajectory import PUBLISHED as PUBLISHED_MOVES
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings


@dataclass(frozen=True)
class Findings:
    """All that was computed.

    Attributes:
        cohort: all users.
        train, test: of the first split.
        models: by label, of the first split and seed.
        first: the first split over all seeds of the chains.
        splits: the random splits; None where there are none.
        learning: seconds spent on fitting models, by stage.
    """

    cohort: Cohort
    train: Cohort
    test: Cohort
    models: Mapping[str, TrajectoryModel]
    first: Evaluation
    splits: Evaluation | None
    learning: Mapping[str, float]

    @property
    def most(self) -> Evaluation:
        """The evaluation over the most users."""
        return self.first if self.splits is None else self.splits


@dataclass(frozen=True)
class _Bench:
    """What every stage needs."""

    study: RealStudy
    sizes: Sizes
    context: Context

    def about(self, train: Cohort, pool: Pool) -> dict[str, Any]:
        return {"pool": repr(pool), "reward": repr(self.study.reward), "train": list(train.names)}

    def learnt(self, stage: str, train: Cohort, settings: Settings, fits_of: str | None = None) -> TrajectoryModel:
        """A trajectory model; by the paper's procedure on the paper's pool."""
        make = self.study.paper_pool if settings.moves == PUBLISHED_MOVES else self.study.pool
        pool = make(train.covariates)
        return self.context.model(
            stage,
            lambda folder, tell: fit(
                train,
                pool=pool,
                reward=self.study.reward,
                settings=settings,
                engine=self.context.workers,
                progress=tell,
                checkpoint=folder,
            ),
            about={**self.about(train, pool), "settings": settings.to_json()},
            fits_of=fits_of,
        )

    def followed(
        self, stage: str, run: str, train: Cohort, test: Cohort, models: Mapping[str, TrajectoryModel]
    ) -> Evaluation:
        """Test users under the models, what is left of the first one without its graph, and all other methods."""
        specs: dict[str, Spec] = {label: ("trajectory", {"model": model}) for label, model in models.items()}
        specs |= {name: (name, {"model": models[TRAJECTORY]}) for name in ("union", "flat", "final")}
        specs |= self.study.methods(train, self.sizes)
        return self.context.evaluation(
            stage,
            lambda folder, tell: evaluate(
                train,
                test,
                specs,
                seed=self.context.seed,
                engine=self.context.workers,
                out=folder,
                share=self.context.folder("own-rows"),
                run=run,
                progress=tell,
            ),
            # Methods as they are, models by their content: the plan is another module, whose code is not in the key.
            about={"train": list(train.names), "test": list(test.names), "methods": described(specs)},
        )


def stage_names(sizes: Sizes) -> tuple[str, ...]:
    """The stages that `compute` goes through, in order."""
    names = ["model", "model-published", *(["model-no-mean"] if sizes.without else []), "first-0"]
    for other in range(1, sizes.seeds):
        names += [f"model-seed-{other}", f"first-{other}"]
    for number in range(sizes.splits):
        stage = f"split-{number:02d}"
        names.append(f"{stage}-model")
        if number < sizes.published:
            names += [f"{stage}-published", *([f"{stage}-no-mean"] if sizes.without else [])]
        names.append(stage)
    return tuple(names)


def compute(study: RealStudy, sizes: Sizes, context: Context) -> Findings:
    """All stages."""
    bench, seed = _Bench(study, sizes, context), context.seed
    cohort = study.cohort(context.data)
    train, test = cohort.split(test=study.first(cohort))
    followed = test if sizes.users is None else test.subset(test.names[: sizes.users])
    models = {TRAJECTORY: bench.learnt("model", train, sizes.settings(seed))}
    models[PUBLISHED] = bench.learnt("model-published", train, sizes.published_settings(seed))
    if sizes.without:
        models[WITHOUT] = bench.learnt("model-no-mean", train, sizes.settings(seed, mean="none"))
    runs = [bench.followed("first-0", f"seed {seed}", train, followed, models)]
    for other in range(1, sizes.seeds):  # other seeds differ in their chains alone
        model = bench.learnt(f"model-seed-{other}", train, sizes.settings(seed + other), "model")
        runs.append(bench.followed(f"first-{other}", f"seed {seed + other}", train, followed, {TRAJECTORY: model}))
    more = []
    for number, names in enumerate(splits(cohort.names, sizes.test, sizes.splits, seed=seed)):
        some, others = cohort.split(test=names)
        stage = f"split-{number:02d}"
        split_models = {TRAJECTORY: bench.learnt(f"{stage}-model", some, sizes.settings(seed))}
        if number < sizes.published:
            split_models[PUBLISHED] = bench.learnt(f"{stage}-published", some, sizes.published_settings(seed))
            if sizes.without:
                split_models[WITHOUT] = bench.learnt(f"{stage}-no-mean", some, sizes.settings(seed, mean="none"))
        more.append(bench.followed(stage, f"split {number}", some, others, split_models))
    learning = {name: seconds for name, seconds in context.seconds.items() if "model" in name or "no-mean" in name}
    learning |= {name: seconds for name, seconds in context.seconds.items() if name.endswith("published")}
    return Findings(cohort, train, test, models, merged(runs), merged(more) if more else None, learning)
