"""Seconds for the MAP hyperparameters of one user, and how often they are the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import simulate
from kerneltrail.gp import find_map, find_map_path, inputs_for, one_blas_thread
from kerneltrail.kernels import Priors, parse
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, number, silent, text, time
from kerneltrail.studies.bench.evidence import dpotrf_of
from kerneltrail.studies.sets import PAPER_BATCHES

CASE, KERNEL, PERIOD = "LIN+PER", "LIN[x] + PER[x]", "PER[x].period"
CLOSE = 0.05
"""Relative error at which a period counts as found."""


@dataclass(frozen=True)
class MapBenchmark(Benchmark):
    """MAP searches for simulated users.

    Attributes:
        users: how many simulated users, all with the kernel that is fitted.
        starts: searches for each.
        batches: rows in each batch.
    """

    users: int = 100
    starts: int = 8
    batches: tuple[int, ...] = PAPER_BATCHES

    name = "map"
    title = "MAP hyperparameters of a user, from {starts} starts; found: true period within 5%"
    columns: ClassVar = {
        "case": text("case"), "n": number("n"), "batches": text("batches"), "users": text("samples"),
        "method": text("method"), "median": time(), "slowest": time("slowest"), "found": number("found", ".0%"),
    }  # fmt: skip

    @classmethod
    def quick(cls) -> Self:
        """A few seconds' worth."""
        return cls(users=10)

    @property
    def steps(self) -> int:
        """How many users there are."""
        return self.users

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """Two rows: all rows of a user at once, and all batches one after the other."""
        composition, priors = parse(KERNEL), Priors.synthetic()
        simulation = simulate.paper(train=1, test=2 * self.users, seed=seed, batches=self.batches)
        users = [user for user in simulation.test if simulation.truth[user.name] == composition]
        rng = np.random.default_rng(seed)
        spent: dict[str, list[float]] = {"find_map": [], "find_map_path": []}
        close: list[bool] = []
        converged: list[bool] = []
        dpotrf: list[float] = []
        with one_blas_thread():
            find_map(users[0], composition, priors, rng=np.random.default_rng(seed), starts=self.starts)  # warms up
            for user in users:
                tick(f"MAP of {CASE}, {user.name}")
                start = perf_counter()
                best = find_map(user, composition, priors, rng=rng, starts=self.starts)
                spent["find_map"].append(perf_counter() - start)
                start = perf_counter()
                find_map_path(user, composition, priors, rng=rng, starts=self.starts)
                spent["find_map_path"].append(perf_counter() - start)
                true = simulation.hyperparameters[user.name][PERIOD]
                close.append(abs(best.hyperparameters[PERIOD] / true - 1.0) <= CLOSE)
                converged.append(best.converged)
                inputs = inputs_for(user, composition)
                dpotrf += [work() for work in dpotrf_of(inputs, best.hyperparameters.vector[None])]
        for method, seconds in spent.items():
            whole = method == "find_map"
            quality = {"found": float(np.mean(close)), "converged": float(np.mean(converged))} if whole else {}
            yield self.row(
                CASE,
                users[0].rows,
                method,
                float(np.median(seconds)),
                batches=1 if whole else users[0].batches,
                samples=len(users),
                dpotrf=float(np.median(dpotrf)),
                kernel=composition.text,
                starts=self.starts,
                slowest=max(seconds),
                **quality,
            )

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A sentence about searches on all rows at once."""
        return [
            f"MAP of {row['kernel']} at {row['n']} rows from {row['starts']} starts: {duration(row['seconds'])} "
            f"(median); the true period is found within 5% for {row['found']:.0%} of {row['samples']} simulated users."
            for row in rows
            if row["method"] == "find_map"
        ]
