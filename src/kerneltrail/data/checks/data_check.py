"""A data check: the columns in numbers and all findings, to be printed, drawn or stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kerneltrail.data.checks import page
from kerneltrail.data.checks.findings import ColumnSummary, Finding, Severity, TimeSummary
from kerneltrail.store.validate import plain


@dataclass(frozen=True)
class DataCheck:
    """A look at a table of users before anything is fitted. Make one with `Cohort.check` or `check_table`.

    Printing it gives a short page: the columns, then the findings, the worst first.

    Attributes:
        source: what the table is called.
        users, rows, batches: how many are left after rows with missing values were dropped; batches are None where
            nobody said how they are cut.
        rows_per_user, rows_per_batch: fewest, median and most.
        columns: the target, then the covariates, then the others.
        times: None where the order column does not tell the time.
        findings: the worst first.
        fine: what was looked for and not found.
    """

    source: str
    users: int
    rows: int
    batches: int | None
    rows_per_user: tuple[int, float, int]
    rows_per_batch: tuple[int, float, int]
    columns: tuple[ColumnSummary, ...]
    times: TimeSummary | None
    findings: tuple[Finding, ...]
    fine: tuple[str, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def __str__(self) -> str:
        return "\n".join(page.lines(self))

    def to_json(self) -> dict[str, Any]:
        """As plain lists and numbers."""
        return dict(plain(self))
