"""Seconds per update of every method on the paper's synthetic users, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from typing import Any, Self

from rich.table import Table

from kerneltrail.data import simulate
from kerneltrail.errors import NumericalError
from kerneltrail.evaluation import follow
from kerneltrail.gp import one_blas_thread
from kerneltrail.gp.compilation import ensure_compiled
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.registry import build
from kerneltrail.methods.registry import methods as registered
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, silent
from kerneltrail.studies.sets import PAPER_BATCHES


@dataclass(frozen=True)
class MethodsBenchmark(Benchmark):
    """Updates of every method.

    Attributes:
        methods: which.
        train: training users.
        users: followed users, over whom the median is taken.
        batches: rows in each batch.
        settings: of single methods, by name.
    """

    methods: tuple[str, ...] = field(default_factory=registered)
    train: int = 6
    users: int = 6
    batches: tuple[int, ...] = PAPER_BATCHES
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    name = "methods"
    title = "One update of every method, by rows seen in the end: median over {samples} users"
    in_all = False

    @classmethod
    def quick(cls) -> Self:
        """Fewer users, and the last batches left out."""
        return cls(train=2, users=2, batches=(3, 4, 10))

    @property
    def steps(self) -> int:
        """Every method is built, and follows everybody."""
        return len(self.methods) * (1 + self.users)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each method and batch: the median time of an update over users, by clock and by processor."""
        ensure_compiled()
        simulated = simulate.paper(self.train, self.users, seed, batches=self.batches)
        shared = {"pool": Pool.paper(), "priors": Priors.synthetic()}
        for name in self.methods:
            tick(f"{name}: {self.train} training users")
            with one_blas_thread():
                method = build(name, simulated.train, {**shared, **self.settings.get(name, {})}, seed=seed)
                follow(method, simulated.test.raw[0].upto(1))  # loads compiled code, which is not timed
                everybody = []
                for user in simulated.test.raw:
                    tick(f"{name}: {user.name}")
                    everybody.append(follow(method, user))
            failed = next((failure for one in everybody for failure in one.failures), None)
            if failed is not None:
                raise NumericalError(f"{name}: {failed}")
            for t in range(1, len(self.batches) + 1):
                steps = [one.steps[t] for one in everybody]
                ahead = [step.predict_seconds for step in steps if step.predicted]
                yield self.row(
                    "update",
                    steps[0].rows,
                    name,
                    median(step.seconds for step in steps),
                    batches=t,
                    samples=self.users,
                    t=t,
                    cpu_seconds=median(step.cpu_seconds for step in steps),
                    predict_seconds=median(ahead) if ahead else None,
                )

    @classmethod
    def table(cls, rows: Sequence[Row]) -> Table:
        """Methods down, batches across."""
        sizes = dict.fromkeys((row["t"], row["n"]) for row in rows)
        table = cls.empty_table(rows, "method", *(f"{n} rows" for _, n in sizes))
        for method, group in groupby(rows, key=lambda row: row["method"]):
            table.add_row(method, *(duration(row["seconds"]) for row in group))
        return table
