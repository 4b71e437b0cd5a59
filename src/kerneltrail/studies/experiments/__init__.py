"""The paper's experiments, each end to end with one command: ``kerneltrail experiment NAME --out DIR``.

An *experiment* is an object with a line about itself and ``run(context) -> Outcome``, registered once under its name.
One from outside is run by ``kerneltrail.cli.app.main()`` after it is registered, or by `run`.

    @dataclass(frozen=True)
    class Mine:
        about: str = "what it shows, in a line"

        def run(self, context: Context) -> Outcome:
            model = context.model("fit", lambda folder, tell: fit(cohort, checkpoint=folder, progress=tell), about={…})
            found = context.stage("metrics", lambda: measured(model, context), about={…})
            return Outcome("A title", "A lead.", {"metrics": found}, tables={"metrics": found}, model=model, …)

    EXPERIMENTS.add("mine", Mine())

**Stages.** All that takes time is done in ``context.stage(name, compute, about=…)``, ``context.model(…)`` or
``context.evaluation(…)``. What they return is kept in ``DIR/stages``, written whole and with a sum, under a key of the
experiment, the stage, `about`, the seed, the content of the data, and the code (the library's layers up to the one that
computes, and the module of `compute`; comments and docstrings aside). A run that was stopped goes on with what is
there, and ends with the same results; a fit goes on from its checkpoint, an evaluation from what it had finished. What
older code or data left is removed once a run is finished. So *draw in another module than you compute in*: then a
figure can be changed without computing anything again. What `compute` returns is passed through its file form even when
it is new, so a resumed run cannot differ from one that was not stopped. Use ``context.tell(stage, done, total, said)``
within long stages; ``stages(context)`` of an experiment, if it has that, names its stages so that they can be counted;
``context.workers`` as ``engine`` of fits and evaluations; ``context.quick`` to choose smaller sizes, which belong in
`about`.

**Outcome.** ``results`` (plain values), ``tables`` (tidy, a mapping per row), ``drawn`` (figures), ``sections`` (of the
page), ``agreements`` (the paper's claims beside what was found, computed) and ``model``. `methods` turns an evaluation
into the rows of ``metrics`` and ``paired``. `run` writes them:

    DIR/results.json   everything, with seed, versions, machine and seconds; written last
    DIR/tables/*.csv   DIR/figures/*.png and *.svg   DIR/model.trail   DIR/index.html   DIR/stages/
"""

from __future__ import annotations

from kerneltrail.store.cache import ARRAYS, JSON
from kerneltrail.studies.experiments.agreement import Agreement, agreement_table
from kerneltrail.studies.experiments.context import Context
from kerneltrail.studies.experiments.experiment import EXPERIMENTS, Experiment, run, stages_of
from kerneltrail.studies.experiments.outcome import MODEL, PAGE, RESULTS, Outcome, write_outcome
from kerneltrail.studies.experiments.real.experiment import RealExperiment
from kerneltrail.studies.experiments.simulated.experiment import SimulatedExperiment

EXPERIMENTS.complete()

__all__ = [
    "ARRAYS",
    "Agreement",
    "Context",
    "EXPERIMENTS",
    "Experiment",
    "JSON",
    "MODEL",
    "Outcome",
    "PAGE",
    "RESULTS",
    "RealExperiment",
    "SimulatedExperiment",
    "agreement_table",
    "run",
    "stages_of",
    "write_outcome",
]
