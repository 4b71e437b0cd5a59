"""The paper's experiments, each end to end with one command: ``kerneltrail experiment NAME --out DIR``.

An *experiment* is an object with a name, a line about itself, and ``run(context) -> Outcome``. Its module has it as
``EXPERIMENT`` and is listed in `MODULES`; it is imported when asked for.

    @dataclass(frozen=True)
    class Mine:
        name: str = "mine"
        about: str = "what it shows, in a line"

        def run(self, context: Context) -> Outcome:
            model = context.model("fit", lambda folder, tell: fit(cohort, checkpoint=folder, progress=tell), about={…})
            found = context.stage("metrics", lambda: measured(model, context), about={…})
            return Outcome("A title", "A lead.", {"metrics": found}, tables={"metrics": found}, model=model, …)

    EXPERIMENT = Mine()

**Stages.** All that takes time is done in ``context.stage(name, compute, about=…)``, ``context.model(…)`` or
``context.evaluation(…)``. What they return is kept in ``DIR/stages``, written whole and with a sum, under a key of the
experiment, the stage, `about`, the seed, the content of the data, and the code (the library's layers up to the one that
computes, and the module of `compute`; comments and docstrings aside). A run that was stopped goes on with what is
there, and ends with the same results; a fit goes on from its checkpoint, an evaluation from what it had finished. What
older code or data left is removed once a run is finished. So *draw in another module than you compute in*: then a
figure can be changed without computing anything again. What `compute` returns is passed through its file form even when
it is new, so a resumed run cannot differ from one that was not stopped. Use ``context.tell(stage, done, total, said)``
within long stages; ``context.workers`` for processes; ``context.quick`` to choose smaller sizes, which belong in
`about`.

**Outcome.** ``results`` (plain values), ``tables`` (tidy, a mapping per row), ``drawn`` (figures), ``sections`` (of the
page), ``agreements`` (the paper's claims beside what was found, computed) and ``model``. `methods` turns an evaluation
into the rows of ``metrics`` and ``paired``. `run` writes them:

    DIR/results.json   everything, with seed, versions, machine and seconds; written last
    DIR/tables/*.csv   DIR/figures/*.png and *.svg   DIR/model.trail   DIR/index.html   DIR/stages/
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from kerneltrail.errors import DataError
from kerneltrail.gp import one_blas_thread
from kerneltrail.store.cache import ARRAYS, JSON
from kerneltrail.studies.experiments.agreement import Agreement, agreement_table
from kerneltrail.studies.experiments.context import Context, StageProgress
from kerneltrail.studies.experiments.outcome import MODEL, PAGE, RESULTS, Outcome, write_outcome


class Experiment(Protocol):
    """Something that can be run end to end."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    @property
    def about(self) -> str:
        """What it shows, in a line."""
        ...

    def run(self, context: Context) -> Outcome:
        """Do it all; long parts in stages of the context."""
        ...


_KNOWN = "kerneltrail.studies.experiments.simulated.experiment"
_REAL = "kerneltrail.studies.experiments.real.experiment"
MODULES: dict[str, str] = {
    "synthetic": f"{_KNOWN}:SYNTHETIC",
    "distinct": f"{_KNOWN}:DISTINCT",
    "similar": f"{_KNOWN}:SIMILAR",
    "complex": f"{_KNOWN}:COMPLEX",
    "heartsteps": f"{_REAL}:HEARTSTEPS",
    "fitbit": f"{_REAL}:FITBIT",
}
"""Where each experiment is: a module whose ``EXPERIMENT`` it is, or ``module:name``."""


def names() -> tuple[str, ...]:
    """Names of all experiments."""
    return tuple(MODULES)


def find(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in MODULES:
        raise DataError(f"no experiment is called {name!r}; there are {', '.join(MODULES)}")
    module, _, own = MODULES[name].partition(":")
    found: Experiment = getattr(import_module(module), own or "EXPERIMENT")
    return found


def run(experiment: Experiment, context: Context) -> tuple[Path, Outcome]:
    """Run an experiment and write everything; returns the page's path and what was found."""
    context.begin()
    with one_blas_thread():
        outcome = experiment.run(context)
        page = write_outcome(outcome, context)
    context.tidy()  # now that all is written: what was kept of older runs has had its use
    return page, outcome


__all__ = [
    "ARRAYS",
    "Agreement",
    "Context",
    "Experiment",
    "JSON",
    "MODEL",
    "MODULES",
    "Outcome",
    "PAGE",
    "RESULTS",
    "StageProgress",
    "agreement_table",
    "find",
    "names",
    "run",
    "write_outcome",
]
