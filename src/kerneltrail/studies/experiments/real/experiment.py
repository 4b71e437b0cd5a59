"""Experiments on real users: `heartsteps` and `fitbit`."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.data.heartsteps import absent_covariates
from kerneltrail.report.model_page.followed_user import follow_users
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.experiment import EXPERIMENTS, StudyExperiment
from kerneltrail.studies.experiments.outcome import Outcome
from kerneltrail.studies.experiments.real.claims import claims
from kerneltrail.studies.experiments.real.compute import compute, stage_names
from kerneltrail.studies.experiments.real.design import FITBIT, HEARTSTEPS, TRAJECTORY, RealStudy, Sizes
from kerneltrail.studies.experiments.real.sections import page_of
from kerneltrail.studies.experiments.real.tables import tables


@dataclass(frozen=True)
class RealExperiment(StudyExperiment):
    """A data set, split several times, with the trajectory model and every other method on each split."""

    study: RealStudy
    sizes: Sizes | None = None

    def stages(self, context: Context) -> tuple[str, ...]:
        """Names of its stages, in order."""
        return stage_names(self.sizes_in(context))

    def run(self, context: Context) -> Outcome:
        """Learn from training users, follow test users with every method, and compare with what the paper says."""
        sizes: Sizes = self.sizes_in(context)
        findings = compute(self.study, sizes, context)
        table_rows = tables(findings)
        paper = self.study is HEARTSTEPS
        agreements = claims(findings, table_rows, paper=paper)
        page = page_of(self.study, sizes, findings, table_rows, agreements)
        pool = self.study.pool(findings.cohort.covariates)
        results = {
            "settings": {
                "sizes": sizes.to_json(),
                "pool": {str(product): p for product, p in zip(pool.products, pool.probabilities, strict=True)},
                "reward": None if self.study.reward is None else list(self.study.reward.names),
                "models": {label: model.settings.to_json() for label, model in findings.models.items()},
            },
            "absent_covariates": list(absent_covariates(findings.cohort.covariates)) if paper else [],
            "metrics": table_rows["metrics"],
            "paired": table_rows["paired"],
            "first_split": {"metrics": table_rows["first_metrics"], "paired": table_rows["first_paired"]},
            "failures": [str(each) for one in (findings.first, findings.splits) if one for each in one.failures],
            "learning_seconds": sum(findings.learning.values()),
        }
        return Outcome(
            self.study.title,
            "The trajectory model learns from some users of a real study which kernels suit them, and follows the "
            "others; beside it, every method that it is compared with.",
            results,
            table_rows,
            tuple(page.drawn),
            tuple(page.opening),
            tuple(page.sections),
            agreements,
            findings.models[TRAJECTORY],
            follow_users(findings.models[TRAJECTORY], findings.test.raw, detailed=8),
        )


for _study in (HEARTSTEPS, FITBIT):
    EXPERIMENTS.add(_study.name, RealExperiment(_study))
