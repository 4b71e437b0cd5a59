"""Users and cohorts: tables in, scaling, loaders of public data, simulators."""

from kerneltrail.data.batching import Batching
from kerneltrail.data.cohort import Cohort
from kerneltrail.data.fitbit import load_fitbit
from kerneltrail.data.gaussian_draw import simulate_user
from kerneltrail.data.heartsteps import load_heartsteps, paper_split
from kerneltrail.data.intake import Inputs
from kerneltrail.data.intake_report import Report
from kerneltrail.data.mhealth import simulate_mhealth
from kerneltrail.data.scaling import Scaler
from kerneltrail.data.schema import Schema
from kerneltrail.data.simulate import (
    Simulation,
    simulate_complex,
    simulate_distinct,
    simulate_paper,
    simulate_similar,
)
from kerneltrail.data.units import in_data_units, in_scaled_units
from kerneltrail.data.user import User

__all__ = [
    "Batching",
    "Cohort",
    "Inputs",
    "Report",
    "Scaler",
    "Schema",
    "Simulation",
    "User",
    "in_data_units",
    "in_scaled_units",
    "load_fitbit",
    "load_heartsteps",
    "paper_split",
    "simulate_complex",
    "simulate_distinct",
    "simulate_mhealth",
    "simulate_paper",
    "simulate_similar",
    "simulate_user",
]
