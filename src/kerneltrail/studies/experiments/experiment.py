"""What an experiment is, and running one by name or as an object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kerneltrail.errors import DataError
from kerneltrail.gp import one_blas_thread
from kerneltrail.registry import Registry
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.outcome import Outcome, write_outcome


class Experiment(Protocol):
    """Something that can be run end to end."""

    @property
    def about(self) -> str:
        """What it shows, in a line."""
        ...

    def run(self, context: Context) -> Outcome:
        """Do it all; long parts in stages of the context."""
        ...


@dataclass(frozen=True)
class StudyExperiment:
    """What experiments with a study of their own have in common.

    Attributes:
        study: which data, and how large.
        sizes: other sizes than the study's own, full or quick.
    """

    study: Any
    sizes: Any = None

    @property
    def about(self) -> str:
        """What it shows."""
        return str(self.study.title)

    def sizes_in(self, context: Context) -> Any:
        """How large it is in a context."""
        return self.sizes or (self.study.quick if context.quick else self.study.full)


EXPERIMENTS: Registry[Experiment] = Registry("experiment", DataError)
"""All experiments by name: what ``kerneltrail experiment NAME`` runs."""


PAGE_STAGE = "page"
"""The last stage of every experiment: drawing and writing."""


def stages_of(experiment: Experiment, context: Context) -> tuple[str, ...]:
    """Names of the stages that an experiment will have; none where it does not say them."""
    stages = getattr(experiment, "stages", None)
    return () if stages is None else (*stages(context), PAGE_STAGE)


def run(experiment: Experiment, context: Context) -> tuple[Path, Outcome]:
    """Run an experiment and write everything; returns the page's path and what was found."""
    context.begin()
    with one_blas_thread():
        outcome = experiment.run(context)
        context.tell(PAGE_STAGE, said="drawing and writing")
        page = write_outcome(outcome, context)
    context.tidy()  # now that all is written: what was kept of older runs has had its use
    return page, outcome
