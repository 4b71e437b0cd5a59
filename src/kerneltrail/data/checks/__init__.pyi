from .check import against_pilot, check, check_table, rows_against_pilot
from .data_check import DataCheck
from .findings import ColumnSummary, Finding, Histogram, TimeSummary
from .page import brief
from .pilot_summary import PilotSummary, quantiles_of_columns

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
    "rows_against_pilot",
]
