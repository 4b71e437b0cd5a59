"""Kinds of simulated participants, each an environment of Gymnasium."""

from kerneltrail.trial.simulator.people.brushing import Brushing
from kerneltrail.trial.simulator.people.drawn import Drawn
from kerneltrail.trial.simulator.people.heartsteps import HeartSteps
from kerneltrail.trial.simulator.people.participant import (
    POPULATIONS,
    Participant,
    Population,
    Potential,
    Source,
    population_of,
)
from kerneltrail.trial.simulator.people.resampled import Resampled
from kerneltrail.trial.simulator.people.stepcount import StepCount, StepCountGame

POPULATIONS.complete()

__all__ = [
    "Brushing",
    "Drawn",
    "HeartSteps",
    "POPULATIONS",
    "Participant",
    "Population",
    "Potential",
    "Resampled",
    "Source",
    "StepCount",
    "StepCountGame",
    "population_of",
]
