"""Seconds to take in one more batch after many rows: sufficient statistics, beside a growing Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.gp import OnlineState, Posterior, one_blas_thread
from kerneltrail.kernels import Hyperparameters, Priors, parse
from kerneltrail.studies.bench.evidence import HIGH, LOW
from kerneltrail.studies.bench.rows import Row, row
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed

Array = NDArray[np.float64]

CASE, KERNEL = "LIN+PER", "LIN[x] + PER[x]"
CHUNK = 1000
"""Rows fed in at a time on the way to the size that is measured."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        sizes: rows seen before the batch that is timed; the first is what ratios refer to.
        batch: rows in a batch.
        effort: how long to measure.
    """

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    batch: int = 40
    effort: Effort = field(default_factory=lambda: Effort(least=50, most=400, seconds=10.0))

    @classmethod
    def quick(cls) -> Plan:
        """A second's worth."""
        return cls(sizes=(1_000, 10_000), effort=Effort(least=5, most=20, seconds=1.0))

    @property
    def steps(self) -> int:
        """How many states are prepared."""
        return len(self.sizes)


class Key(NamedTuple):
    """What one row of results is about."""

    method: str
    size: int


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """A row for each method and number of rows seen.

    ``update`` takes the batch in; ``update+predict`` also computes the log evidence of all rows and predicts the next
    batch. ``grow`` and ``grow+predict`` do the same on a dense posterior, at the first size only.
    """
    rng = np.random.default_rng(seed)
    composition = parse(KERNEL)
    hyperparameters = Hyperparameters(composition, tuple(Priors.synthetic().moments(composition)[0]))
    X, y = _rows(plan.batch, rng)
    ahead = _rows(plan.batch, rng)[0]
    state = OnlineState.start(hyperparameters, composition.covariates, low=LOW, high=HIGH)
    work: dict[Key, Work] = {}
    with one_blas_thread():
        for size in sorted(plan.sizes):
            tick(f"online state of {size:,} rows")
            while state.rows < size:
                state = state.update(*_rows(min(CHUNK, size - state.rows), rng))
            work[Key("update", size)] = _update(state, X, y)
            work[Key("update+predict", size)] = _step(state, X, y, ahead)
        first = min(plan.sizes)
        old = User("bench", composition.covariates, *_rows(first, rng), ends=(first,))
        posterior = Posterior.fit(old, hyperparameters)
        work[Key("grow", first)] = timed(lambda: posterior.grow(X, y))
        work[Key("grow+predict", first)] = timed(lambda: _both(posterior.grow(X, y), ahead))
        names = {key: f"{key.method} {key.size}" for key in work}
        rounds = in_turns({names[key]: [run] for key, run in work.items()}, plan.effort)
    found = {key: min(rounds[name][0]) for key, name in names.items()}
    for key, seconds in found.items():
        yield row(
            "update",
            CASE,
            key.size,
            key.method,
            seconds,
            batches=1,
            samples=1,
            kernel=composition.text,
            batch=plan.batch,
            ratio_to_first=seconds / found[Key(key.method, first)],
        )


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
