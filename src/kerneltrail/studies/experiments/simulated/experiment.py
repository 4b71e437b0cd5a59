"""Experiments with a known truth: `synthetic`, `distinct`, `similar` and `complex`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from kerneltrail.report.model_page import UserView, follow_users
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.experiment import EXPERIMENTS, StudyExperiment
from kerneltrail.studies.experiments.outcome import Outcome
from kerneltrail.studies.experiments.simulated.claims import claims
from kerneltrail.studies.experiments.simulated.compute import Findings, compute, stage_names
from kerneltrail.studies.experiments.simulated.design import PRESETS, STUDIES, SimulatedStudy, Sizes
from kerneltrail.studies.experiments.simulated.sections import page_of
from kerneltrail.studies.experiments.simulated.tables import results, tables


@dataclass(frozen=True)
class SimulatedExperiment(StudyExperiment):
    """A simulated set, learnt and followed under both presets, with all figures and tables of the paper."""

    study: SimulatedStudy
    sizes: Sizes | None = None

    def stages(self, context: Context) -> tuple[str, ...]:
        """Names of its stages, in order."""
        return stage_names(self.sizes_in(context))

    def run(self, context: Context) -> Outcome:
        """Fit both presets, follow the new users, and compare with what the paper says."""
        sizes: Sizes = self.sizes_in(context)
        findings = compute(self.study, sizes, context)
        table_rows = tables(findings)
        agreements = claims(self.study.name, findings)
        page = page_of(self.study, findings, table_rows, agreements)
        settings = {
            "sizes": sizes.to_json(),
            "pool": {
                str(product): p
                for product, p in zip(self.study.pool().products, self.study.pool().probabilities, strict=True)
            },
            "priors": repr(self.study.priors()),
            "presets": {preset: sizes.settings(preset, context.seed).to_json() for preset in PRESETS},
        }
        return Outcome(
            self.study.title,
            "Kernels that evolve as rows accrue, learnt from a few pilot users and followed for new ones; everything "
            "that the paper shows, computed again, with its claims beside it.",
            {"settings": settings, **results(findings, table_rows)},
            table_rows,
            tuple(page.drawn),
            tuple(page.opening),
            tuple(page.sections),
            agreements,
            findings.models[PRESETS[0]],
            shown(findings, sizes),
        )


def shown(findings: Findings, sizes: Sizes) -> tuple[UserView, ...]:
    """Users for the page: the first new ones of each kind with their fits, further ones for calibration alone."""
    test, half = findings.simulation.test.raw, -(-len(findings.simulation.test) // 2)
    kinds = (test[:half], test[half:])
    first = [user for pair in zip_longest(*kinds) for user in pair if user is not None]
    return follow_users(findings.models[PRESETS[0]], first[: sizes.page], detailed=4)


for _study in STUDIES:
    EXPERIMENTS.add(_study.name, SimulatedExperiment(_study))
