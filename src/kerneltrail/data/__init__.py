"""Users and cohorts: tables in, scaling, loaders of public data, simulators."""

from kerneltrail.data import simulate
from kerneltrail.data.batching import Batching
from kerneltrail.data.checks import DataCheck, Finding, PilotSummary, check_table
from kerneltrail.data.cohort import Cohort
from kerneltrail.data.fitbit import load_fitbit
from kerneltrail.data.heartsteps import load_heartsteps, paper_split
from kerneltrail.data.intake import UnlabelledRows, read_unlabelled
from kerneltrail.data.intake_report import IntakeReport
from kerneltrail.data.scaling import Scaler
from kerneltrail.data.schema import Schema, default_priors
from kerneltrail.data.simulate import Simulation
from kerneltrail.data.units import in_data_units, in_scaled_units
from kerneltrail.data.user import User

__all__ = [
    "Batching",
    "Cohort",
    "DataCheck",
    "Finding",
    "IntakeReport",
    "PilotSummary",
    "Scaler",
    "Schema",
    "Simulation",
    "UnlabelledRows",
    "User",
    "default_priors",
    "check_table",
    "in_data_units",
    "in_scaled_units",
    "load_fitbit",
    "load_heartsteps",
    "paper_split",
    "read_unlabelled",
    "simulate",
]
