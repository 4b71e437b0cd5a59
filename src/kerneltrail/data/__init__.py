"""Users and cohorts: tables in, scaling, loaders of public data, simulators."""

from kerneltrail.data.batching import Batching
from kerneltrail.data.cohort import Cohort
from kerneltrail.data.intake import Inputs
from kerneltrail.data.report import Report
from kerneltrail.data.scaling import Scaler
from kerneltrail.data.schema import Schema
from kerneltrail.data.user import User

__all__ = ["Batching", "Cohort", "Inputs", "Report", "Scaler", "Schema", "User"]
