from . import simulate
from .batching import Batching
from .checks import DataCheck, Finding, PilotSummary, check_table
from .cohort import Cohort
from .fitbit import load_fitbit
from .heartsteps import load_heartsteps, paper_split
from .intake import UnlabelledRows, read_unlabelled
from .intake_report import IntakeReport
from .scaling import Scaler
from .schema import Schema, default_priors
from .simulate import Simulation
from .units import in_data_units, in_scaled_units
from .user import User

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
