"""Seconds to take in one more batch after many rows: sufficient statistics, beside a growing Cholesky factor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.gp import OnlineState, Posterior, one_blas_thread
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.studies.bench.benchmark import GROWTH, Benchmark, Row, Tick, duration, silent
from kerneltrail.studies.bench.evidence import HIGH, LOW
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed

Array = NDArray[np.float64]

CASE, KERNEL = "LIN+PER", "LIN[x] + PER[x]"
CHUNK = 1000
"""Rows fed in at a time on the way to the size that is measured."""


@dataclass(frozen=True)
class UpdateBenchmark(Benchmark):
    """One more batch, taken in after many rows.

    Attributes:
        sizes: rows seen before the batch that is timed; the first is what ratios refer to.
        batch: rows in a batch.
        effort: how long to measure.
    """

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    batch: int = 40
    effort: Effort = field(default_factory=lambda: Effort(least=50, most=400, seconds=10.0))

    name = "update"
    title = "One batch more, after n rows"
    columns = GROWTH

    @classmethod
    def quick(cls) -> Self:
        """A second's worth."""
        return cls(sizes=(1_000, 10_000), effort=Effort(least=5, most=20, seconds=1.0))

    @property
    def steps(self) -> int:
        """How many states are prepared."""
        return len(self.sizes)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each method and number of rows seen.

        ``update`` takes the batch in; ``update+predict`` also computes the log evidence of all rows and predicts the
        next batch. ``grow`` and ``grow+predict`` do the same on a dense posterior, at the first size only.
        """
        rng = np.random.default_rng(seed)
        composition = parse(KERNEL)
        hyperparameters = Hyperparameters(composition, tuple(Priors.synthetic().moments(composition)[0]))
        X, y = _rows(self.batch, rng)
        ahead = _rows(self.batch, rng)[0]
        state = OnlineState.start(hyperparameters, composition.covariates, low=LOW, high=HIGH)
        work: dict[tuple[str, int], Work] = {}
        with one_blas_thread():
            for size in sorted(self.sizes):
                tick(f"online state of {size:,} rows")
                while state.rows < size:
                    state = state.update(*_rows(min(CHUNK, size - state.rows), rng))
                work["update", size] = _update(state, X, y)
                work["update+predict", size] = _step(state, X, y, ahead)
            first = min(self.sizes)
            old = User("bench", composition.covariates, *_rows(first, rng), ends=(first,))
            posterior = Posterior.fit(old, hyperparameters)
            work["grow", first] = timed(lambda: posterior.grow(X, y))
            work["grow+predict", first] = timed(lambda: _both(posterior.grow(X, y), ahead))
            rounds = in_turns({key: [run] for key, run in work.items()}, self.effort)
        best = {key: min(seconds) for key, (seconds,) in rounds.items()}
        for (method, size), seconds in best.items():
            yield self.row(
                CASE,
                size,
                method,
                seconds,
                batches=1,
                samples=1,
                kernel=composition.text,
                batch=self.batch,
                ratio_to_first=seconds / best[method, first],
            )

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A sentence about both ways."""
        flat = [row for row in rows if row["method"] == "update"]
        grown = [row for row in rows if row["method"] == "grow"]
        times = ", ".join(f"{duration(row['seconds'])} after {row['n']:,}" for row in flat)
        return [
            f"A batch of {flat[0]['batch']} rows more, by `OnlineState`: {times} (ratio of last to first "
            f"{flat[-1]['ratio_to_first']:.2f}). By growing a dense `Posterior`: {duration(grown[0]['seconds'])} after "
            f"{grown[0]['n']:,}."
        ]


def _rows(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows whose target is noise: the time does not depend on it."""
    return rng.uniform(LOW, HIGH, (count, 1)), rng.standard_normal(count)


def _update(state: OnlineState, X: Array, y: Array) -> Work:
    return timed(lambda: state.update(X, y))


def _step(state: OnlineState, X: Array, y: Array, ahead: Array) -> Work:
    return timed(lambda: _both(state.update(X, y), ahead))


def _both(state: OnlineState | Posterior, ahead: Array) -> None:
    _ = state.log_evidence
    state.predict(ahead)
