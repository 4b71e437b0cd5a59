"""What the simulator's tests share: small populations, a model that was learnt in a second, and a study of it."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from kerneltrail.data import Cohort
from kerneltrail.trial.simulator.design import designs_of
from kerneltrail.trial.simulator.people import Source, population_of
from kerneltrail.trial.simulator.pilot import PilotSize, made_for, pilot_cohort
from kerneltrail.trial.simulator.study import Study
from kerneltrail.trial.simulator.trouble import Outage, Trouble

SMALL = PilotSize(users=5, days=6, sweeps=12)
TROUBLE = Trouble(0.1, 0.1, 0.1, 0.5, 0.1, (Outage(1, "10:00", "16:00"),))


@cache
def protocol_and_model(kind="heartsteps"):
    return made_for(population_of(kind), Path(mkdtemp()), size=SMALL)


@cache
def pilot(kind="heartsteps") -> Cohort:
    return pilot_cohort(population_of(kind), SMALL)


def source():
    return Source(protocol_and_model()[1], pilot())


def study(kind="heartsteps", effect=None, trouble=TROUBLE, drive="quick", **changes):
    protocol, model = protocol_and_model(kind)
    if changes:
        protocol = type(protocol).from_json({**protocol.to_json(), **changes})
    return Study(protocol, model, population_of(kind, effect=effect), trouble, drive)


def stress(**changes):
    """A study of the same people, of whom a lower outcome is better."""
    reward = {**protocol_and_model()[0].to_json()["reward"], "better": "lower"}
    return study(reward=reward, **changes)


def design(participants=3, days=4, *grid):
    return designs_of(participants, days, grid)[0]
