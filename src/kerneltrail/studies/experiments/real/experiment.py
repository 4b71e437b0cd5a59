"""Experiments on real users: `heartsteps` and `fitbit`."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.data.heartsteps import absent_covariates
from kerneltrail.report.model_page.followed_user import follow_users
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.outcome import Outcome
from kerneltrail.studies.experiments.real.claims import claims
from kerneltrail.studies.experiments.real.compute import compute
from kerneltrail.studies.experiments.real.design import FITBIT as FITBIT_STUDY
from kerneltrail.studies.experiments.real.design import HEARTSTEPS as HEARTSTEPS_STUDY
from kerneltrail.studies.experiments.real.design import TRAJECTORY, Sizes, Study
from kerneltrail.studies.experiments.real.sections import page_of
from kerneltrail.studies.experiments.real.tables import tables


@dataclass(frozen=True)
class RealUsers:
    """A data set, split several times, with the trajectory model and every other method on each split.

    Attributes:
        study: which data.
        sizes: how large; the study's own, full or quick, if None.
    """

    study: Study
    sizes: Sizes | None = None

    @property
    def name(self) -> str:
        """As on the command line."""
        return self.study.name

    @property
    def about(self) -> str:
        """What it shows."""
        return self.study.title

    def run(self, context: Context) -> Outcome:
        """Learn from training users, follow test users with every method, and compare with what the paper says."""
        sizes = self.sizes or (self.study.quick if context.quick else self.study.full)
        found = compute(self.study, sizes, context)
        made = tables(found)
        paper = self.study is HEARTSTEPS_STUDY
        agreements = claims(found, made, paper=paper)
        opening, sections, drawn = page_of(self.study, sizes, found, made, agreements)
        pool = self.study.pool(found.cohort.covariates)
        results = {
            "settings": {
                "sizes": sizes.to_json(),
                "pool": {str(product): p for product, p in zip(pool.products, pool.probabilities, strict=True)},
                "reward": None if self.study.reward is None else list(self.study.reward.names),
                "models": {label: model.settings.to_json() for label, model in found.models.items()},
            },
            "absent_covariates": list(absent_covariates(found.cohort.covariates)) if paper else [],
            "metrics": made["metrics"],
            "paired": made["paired"],
            "first_split": {"metrics": made["first_metrics"], "paired": made["first_paired"]},
            "failures": [str(each) for one in (found.first, found.splits) if one for each in one.failures],
            "learning_seconds": sum(found.learning.values()),
        }
        return Outcome(
            self.study.title,
            "The trajectory model learns from some users of a real study which kernels suit them, and follows the "
            "others; beside it, every method that it is compared with.",
            results,
            made,
            drawn,
            opening,
            sections,
            agreements,
            found.models[TRAJECTORY],
            follow_users(found.models[TRAJECTORY], found.test.raw, detailed=8),
        )


HEARTSTEPS, FITBIT = RealUsers(HEARTSTEPS_STUDY), RealUsers(FITBIT_STUDY)
