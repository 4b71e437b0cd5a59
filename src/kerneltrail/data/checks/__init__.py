"""Looking at the data before fitting: what is probably a mistake is named, with column, rows and users."""

from kerneltrail.data.checks.check import against_pilot, check, check_table
from kerneltrail.data.checks.data_check import DataCheck
from kerneltrail.data.checks.findings import ColumnSummary, Finding, Histogram, TimeSummary
from kerneltrail.data.checks.page import brief
from kerneltrail.data.checks.pilot_summary import PilotSummary, quantiles_of_columns

__all__ = [
    "ColumnSummary",
    "DataCheck",
    "Finding",
    "Histogram",
    "PilotSummary",
    "TimeSummary",
    "against_pilot",
    "brief",
    "check",
    "check_table",
    "quantiles_of_columns",
]
