"""How quickly a served trial answers: alone, at a fixed rate, and while an update runs; on SQLite and on PostgreSQL."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Self

from kerneltrail.errors import TrialError
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, number, silent, text, time

FAST, STEADY, UPDATING = "flat out", "fixed rate", "updating"
"""The measurements, in their order: as fast as it goes, at a fixed rate, and at that rate while an update runs."""
BAR = 0.05
"""Seconds within which 95 of 100 decisions should be answered while an update runs."""
NEEDED = ("fastapi", "uvicorn")
"""Packages of kerneltrail[trial] without which nothing is served."""


@dataclass(frozen=True)
class ServeBenchmark(Benchmark):
    """Decisions over HTTP on this machine: one server process, called from this one.

    At a fixed rate, the time of a decision begins when it should have been asked for, so that waiting behind others
    counts. Every participant has rows that the policy knows and rows that the update takes in.

    Attributes:
        participants: of the trial.
        few: of them, with whom the server's memory is measured first.
        nodes: of the model's graph.
        rows: of each participant that the policy knows, and
        new: that the update takes in.
        callers: that ask at the same time.
        rate: decisions a second.
        seconds: of each measurement; the one during the update ends
        after: so many seconds after it, so that the change to the new policy is in it.
        databases: which of SQLite and PostgreSQL; one that is not there is left out.
    """

    participants: int = 500
    few: int = 50
    nodes: int = 5
    rows: int = 10
    new: int = 5
    callers: int = 8
    rate: float = 50.0
    seconds: float = 10.0
    after: float = 5.0
    databases: tuple[str, ...] = ("SQLite", "PostgreSQL")

    name = "serve"
    title = "Decisions over HTTP, {samples} participants, {nodes} nodes"
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "method": text("method"), "n": number("n"),
        "per s": number("per_second", ".1f"), "p50": time(), "p95": time("p95"), "p99": time("p99"),
        "p95 of a call": time("p95_call"),
        "cpu": time("processor"), "other rung": number("fallbacks"), "late": number("late"),
        "refused": number("refused"),
        "load": text("load"),
    }  # fmt: skip
    sections = ("case",)

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth, on SQLite."""
        return cls(participants=30, few=10, rows=10, new=5, callers=4, seconds=3.0, after=2.0, databases=("SQLite",))

    @property
    def steps(self) -> int:
        """Preparing and measuring on each database."""
        return 4 * len(self.databases)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each database and measurement.

        Raises:
            TrialError: if the packages for trials are not installed, or the server refuses a decision.
        """
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            raise TrialError(f"bench serve needs {', '.join(missing)}: install kerneltrail[trial]")
        # What serves is loaded only now: the other benchmarks do without these packages.
        serving: Any = importlib.import_module("kerneltrail.studies.bench.serving")
        for database in self.databases:
            with serving.location(database) as address:
                if address is None:
                    continue
                for measured in serving.measure(self, database, address, seed, tick):
                    yield self._row(database, measured)

    def _row(self, database: str, measured: Mapping[str, Any]) -> Row:
        facts = dict(measured)
        return self.row(
            database,
            facts.pop("decisions"),
            facts.pop("method"),
            facts.pop("p50"),
            batches=1,
            samples=self.participants,
            nodes=self.nodes,
            rows_before=self.rows,
            rows_new=self.new,
            callers=self.callers,
            load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            **facts,
        )

    @classmethod
    def style(cls, row: Row) -> str:
        """Red where the bar is missed."""
        return "red" if row["method"] == UPDATING and not cls.is_met(row) else ""

    @staticmethod
    def is_met(row: Row) -> bool:
        """Whether a row keeps the bar: 95 of 100 decisions in time, no other rung for lateness, all recorded."""
        return bool(row["p95"] <= BAR and row["late"] == 0 and row["refused"] == 0)

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A table, and a sentence for each database."""
        cells = [[cell(row) for cell in cls.columns.values()] for row in rows]
        table = [list(cls.columns), ["---"] * len(cls.columns), *cells]
        parts = [
            f"Decisions over HTTP on this machine, one server process, {rows[0]['samples']} participants with "
            f"{rows[0]['rows_before']} rows each, {rows[0]['nodes']} nodes, {rows[0]['callers']} callers. `cpu` "
            "is the server's processor time for each decision, without that of the update's own process; the time of a "
            "call leaves out how long a caller was busy with an earlier one:",
            "\n".join(f"| {' | '.join(line)} |" for line in table),
        ]
        for row in rows:
            if row["method"] == UPDATING:
                memory = row["memory"]
                parts.append(
                    f"{row['case']}: the update of all participants took {duration(row['update_seconds'])}; at "
                    f"{row['rate']:g} decisions a second meanwhile, p95 {duration(row['p95'])} (bar: {duration(BAR)}), "
                    f"{row['late']} late, {row['refused']} not recorded: {'met' if cls.is_met(row) else 'missed'}."
                    + ("" if memory is None else f" Memory for each participant: {memory / 1024:.0f} KiB.")
                )
        return parts
