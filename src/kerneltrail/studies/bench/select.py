"""Seconds for one selection step of a new user: after few rows, and after many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import simulate
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.studies.bench.benchmark import GROWTH, Benchmark, Row, Tick, duration, silent
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed
from kerneltrail.studies.sets import PAPER_BATCHES
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.settings import Settings

Array = NDArray[np.float64]

BATCH, LAST = 40, 100
"""Rows in a batch, and in the paper's last one."""

EARLY = 80
"""Rows up to which hyperparameters are refined for a user that is frozen at every size measured."""


@dataclass(frozen=True)
class SelectBenchmark(Benchmark):
    """One selection step of a new user.

    Attributes:
        sizes: rows seen after the step that is timed; the first is what ratios refer to.
        pilots: training users.
        rows: in each of their batches.
        settings: of the fit.
        effort: how long to measure.
    """

    sizes: tuple[int, ...] = (187, 1_000, 10_000)
    pilots: int = 6
    rows: tuple[int, ...] = PAPER_BATCHES
    settings: Settings = field(default_factory=lambda: Settings(largest=2))
    effort: Effort = field(default_factory=lambda: Effort(least=20, most=200, seconds=20.0))

    name = "select"
    title = "One selection step of a new user, n rows seen in the end; {nodes} nodes"
    columns = GROWTH

    @classmethod
    def quick(cls) -> Self:
        """A few seconds' worth."""
        return cls(sizes=(187, 1_000), rows=(3, 14, 20), effort=Effort(least=3, most=10, seconds=1.0))

    @property
    def steps(self) -> int:
        """The fit, and how many users are followed."""
        return 1 + 3 * len(self.sizes)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each way of following and number of rows seen, the timed batch included.

        ``filter`` and ``greedy`` as by default: hyperparameters follow the data up to 400 rows, and are kept from then
        on. ``kept`` is a filter that has kept them since `EARLY` rows, so that all sizes do the same work. ``+predict``
        also predicts the next batch.
        """
        tick(f"training on {self.pilots} users")
        train = simulate.paper(self.pilots, 1, seed, batches=self.rows).train
        model = fit(train, pool=Pool.of("LIN[x]", "PER[x]", "SE[x]"), priors=Priors.synthetic(), settings=self.settings)
        ways = {
            "filter": partial(model.new_user, selection="filter"),
            "greedy": partial(model.new_user, selection="greedy"),
            "kept": partial(model.new_user, selection="filter", refine=EARLY),
        }
        ahead = _rows(BATCH, np.random.default_rng([seed, 1]))[0]
        work: dict[tuple[str, int, int], Work] = {}
        with one_blas_thread():
            for method, start in ways.items():
                for size in self.sizes:
                    tick(f"{method}: a user of {size:,} rows")
                    for batch in (BATCH, LAST) if size == self.sizes[0] else (BATCH,):
                        rng = np.random.default_rng(seed)
                        user = _followed(start(), size - batch, rng)
                        X, y = _rows(batch, rng)
                        work[method, size, batch] = _step(user, X, y, None)
                        work[f"{method}+predict", size, batch] = _step(user, X, y, ahead)
            rounds = in_turns({key: [run] for key, run in work.items()}, self.effort)
        best = {key: min(seconds) for key, (seconds,) in rounds.items()}
        for (method, size, batch), seconds in best.items():
            yield self.row(
                "select",
                size,
                method,
                seconds,
                batches=1,
                samples=1,
                batch=batch,
                median=median(rounds[method, size, batch][0]),
                nodes=len(model.nodes),
                ratio_to_first=seconds / best[method, self.sizes[0], BATCH],
            )

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A sentence for each way of following."""
        paragraphs = []
        for method in ("filter", "greedy"):
            steps = ", ".join(
                f"{duration(row['seconds'])} (batch {row['batch']}, n={row['n']:,})"
                for row in rows
                if row["method"] == method
            )
            paragraphs.append(f"One selection step, `{method}`: {steps}.")
        return paragraphs


def _rows(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a line and a wave, as the paper's LIN+PER users have; a GP of 10,000 rows would take hours to draw."""
    x = rng.uniform(-4.0, 4.0, count)
    wave = np.sin(2.0 * np.pi * x / math.e) + 0.5 * np.cos(4.0 * np.pi * x / math.e)
    return x[:, None], 1.5 * x + 1.5 * wave + 0.4 * rng.standard_normal(count)


def _followed(user: NewUser, size: int, rng: np.random.Generator) -> NewUser:
    """A user followed to so many rows, batch by batch."""
    while user.rows < size:
        user.update(*_rows(min(BATCH, size - user.rows), rng))
    return user


def _step(user: NewUser, X: Array, y: Array, ahead: Array | None) -> Work:
    def step() -> None:
        copy = user.copy()
        copy.update(X, y)
        if ahead is not None:
            copy.predict(ahead)

    return timed(step)
