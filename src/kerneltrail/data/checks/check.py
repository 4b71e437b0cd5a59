"""A look at the data before anything is fitted: all checks, one after the other. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from kerneltrail.data.checks import clock, other_units, pairs, people, pilot, probabilities, texts, values
from kerneltrail.data.checks.data_check import DataCheck
from kerneltrail.data.checks.findings import SEVERITIES, Finding
from kerneltrail.data.checks.inspection import Check, Inspection
from kerneltrail.data.checks.pilot_summary import PilotSummary
from kerneltrail.data.checks.rows import Rows
from kerneltrail.data.checks.summaries import summaries
from kerneltrail.data.intake import UnlabelledRows, dropping_levels, read_users
from kerneltrail.data.intake_report import IntakeReport
from kerneltrail.data.schema import Schema
from kerneltrail.data.table import read_table
from kerneltrail.data.user import User
from kerneltrail.errors import DataError

CHECKS: tuple[Check, ...] = (
    *people.CHECKS, *other_units.CHECKS, *probabilities.CHECKS, *texts.CHECKS, *values.CHECKS, *pairs.CHECKS,
    *clock.CHECKS,
)  # fmt: skip
"""What is looked for in every table, in the order in which findings of one severity are told."""


class _Cohort(Protocol):
    """What a check needs of a cohort."""

    @property
    def schema(self) -> Schema: ...
    @property
    def raw(self) -> tuple[User, ...]: ...
    @property
    def report(self) -> IntakeReport: ...


def check(
    cohort: _Cohort, table: Any = None, *, pilot: PilotSummary | None = None, candidates: Sequence[str] = ()
) -> DataCheck:
    """A look at a cohort.

    Args:
        cohort: the users.
        table: what the cohort was read from; rows are then named as they stand there, and shares of missing values are
            known. Without it rows are counted within each user.
        pilot: what a model knows of its pilot users (`model.pilot`), if these are new ones.
        candidates: columns of the table that would have been covariates had all of their cells been numbers.
    """
    schema = cohort.schema
    if table is None:
        rows, source = Rows.from_users(schema, cohort.raw), "the cohort"
    else:
        source_table = read_table(table, delimiter=schema.delimiter, decimal=schema.decimal)
        unknown = [each.column for each in cohort.report.unknown]
        rows, source = Rows.from_table(schema, source_table, drop_levels=unknown), source_table.source
        names = {user.name for user in cohort.raw}
        if not names <= set(rows.groups):
            raise DataError(
                f"{source} is not what the cohort was read from: it has no user {min(names - set(rows.groups))!r}"
            )
    return _checked(Inspection(schema, cohort.raw, cohort.report, rows, pilot, tuple(candidates)), source)


def check_table(
    schema: Schema, table: Any, *, pilot: PilotSummary | None = None, candidates: Sequence[str] = ()
) -> DataCheck:
    """A look at a table, also where a fit would refuse it: users with cells that cannot be used are told and left out.

    Args:
        schema: what its columns mean, and what a fit would do about missing values.
        table: what `Cohort.from_table` takes.
        pilot, candidates: as in `check`.

    Raises:
        DataError: if the table cannot be read at all.
    """
    source_table = read_table(table, delimiter=schema.delimiter, decimal=schema.decimal)
    dropped = {name: "drop" for name in schema.values if schema.policy(name) == "error"}
    lenient = replace(schema, missing={**schema.missing, **dropped})
    drop_levels = () if pilot is None else dropping_levels(schema)  # a fit refuses a level that was not declared
    users, report = read_users(lenient, source_table, skip_refused=True, drop_levels=drop_levels)
    rows = Rows.from_table(schema, source_table, drop_levels=drop_levels)
    return _checked(Inspection(schema, users, report, rows, pilot, tuple(candidates)), source_table.source)


def against_pilot(cohort: _Cohort, known: PilotSummary) -> tuple[Finding, ...]:
    """What is odd about new users beside the pilot users, and nothing else."""
    rows = Rows.from_users(cohort.schema, cohort.raw)
    data = Inspection(cohort.schema, cohort.raw, cohort.report, rows, known)
    return tuple(finding for step in pilot.CHECKS for finding in step.run(data))


_SAY_SOMETHING = 5
"""Rows to predict of a user who has fewer are not compared: one hot day is no other unit."""


def rows_against_pilot(
    schema: Schema, rows: Sequence[UnlabelledRows], known: PilotSummary, source: str
) -> tuple[Finding, ...]:
    """Columns of a table of rows to predict, `source`, that lie elsewhere than those of the pilot users."""
    compared = [each for each in rows if len(each.rows) >= _SAY_SOMETHING]
    if not compared:
        return ()
    data = Inspection(schema, (), IntakeReport(), Rows.from_unlabelled(schema, compared), known)
    found = pilot.ranges(data)
    return tuple(replace(finding, message=f"in {source}, {finding.message}") for finding in found)


def _checked(data: Inspection, source: str) -> DataCheck:
    findings: list[Finding] = []
    silent: list[Check] = []
    for step in CHECKS if data.pilot is None else (*pilot.CHECKS, *CHECKS):
        if step.applies(data):
            results = list(step.run(data))
            findings += results
            silent += [] if results else [step]
    codes = {finding.code for finding in findings}
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return DataCheck(
        source=source,
        users=len(data.users),
        rows=sum(user.rows for user in data.users),
        batches=sum(user.batches for user in data.users) if data.is_cut else None,
        rows_per_user=_sizes([user.rows for user in data.users]),
        rows_per_batch=_sizes([size for user in data.users for size in np.diff((0, *user.ends)).tolist()]),
        columns=summaries(data),
        times=clock.time_summary(data),
        findings=tuple(findings),
        fine=tuple(step.label for step in silent if not codes & set(step.told)),
    )


def _sizes(counts: list[int]) -> tuple[int, float, int]:
    return (min(counts), float(np.median(counts)), max(counts)) if counts else (0, 0.0, 0)
