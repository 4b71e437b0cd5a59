"""Seconds for one selection step of a new user: after few rows, and after many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import simulate
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.studies.bench.rows import Row, row
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.settings import Settings

Array = NDArray[np.float64]

BATCH, LAST = 40, 100
"""Rows in a batch, and in the paper's last one."""

EARLY = 80
"""Rows up to which hyperparameters are refined for a user that is frozen at every size measured."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        sizes: rows seen after the step that is timed; the first is what ratios refer to.
        pilots: training users.
        rows: in each of their batches.
        settings: of the fit.
        effort: how long to measure.
    """

    sizes: tuple[int, ...] = (187, 1_000, 10_000)
    pilots: int = 6
    rows: tuple[int, ...] = (3, 4, 10, 20, 50, 100)
    settings: Settings = field(default_factory=lambda: Settings(largest=2))
    effort: Effort = field(default_factory=lambda: Effort(least=20, most=200, seconds=20.0))

    @classmethod
    def quick(cls) -> Plan:
        """A few seconds' worth."""
        return cls(sizes=(187, 1_000), rows=(3, 14, 20), effort=Effort(least=3, most=10, seconds=1.0))

    @property
    def steps(self) -> int:
        """The fit, and how many users are followed."""
        return 1 + 3 * len(self.sizes)


class Key(NamedTuple):
    """What one row of results is about."""

    method: str
    size: int
    batch: int


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """A row for each way of following and number of rows seen, the timed batch included.

    ``filter`` and ``greedy`` as by default: hyperparameters follow the data up to 400 rows, and are kept from then on.
    ``kept`` is a filter that has kept them since `EARLY` rows, so that all sizes do the same work. ``+predict`` also
    predicts the next batch.
    """
    tick(f"training on {plan.pilots} users")
    train = simulate.paper(plan.pilots, 1, seed, batches=plan.rows).train
    model = fit(train, pool=Pool.of("LIN[x]", "PER[x]", "SE[x]"), priors=Priors.synthetic(), settings=plan.settings)
    ways = {
        "filter": partial(model.new_user, selection="filter"),
        "greedy": partial(model.new_user, selection="greedy"),
        "kept": partial(model.new_user, selection="filter", refine=EARLY),
    }
    ahead = _rows(BATCH, np.random.default_rng([seed, 1]))[0]
    work: dict[Key, Work] = {}
    with one_blas_thread():
        for method, start in ways.items():
            for size in plan.sizes:
                tick(f"{method}: a user of {size:,} rows")
                for batch in (BATCH, LAST) if size == plan.sizes[0] else (BATCH,):
                    rng = np.random.default_rng(seed)
                    user = _followed(start(), size - batch, rng)
                    X, y = _rows(batch, rng)
                    work[Key(method, size, batch)] = _step(user, X, y, None)
                    work[Key(f"{method}+predict", size, batch)] = _step(user, X, y, ahead)
        names = {key: f"{key.method} {key.size} {key.batch}" for key in work}
        rounds = in_turns({names[key]: [run] for key, run in work.items()}, plan.effort)
    found = {key: min(rounds[name][0]) for key, name in names.items()}
    for key, seconds in found.items():
        yield row(
            "select",
            "select",
            key.size,
            key.method,
            seconds,
            batches=1,
            samples=1,
            batch=key.batch,
            median=median(rounds[names[key]][0]),
            nodes=len(model.nodes),
            ratio_to_first=seconds / found[Key(key.method, plan.sizes[0], BATCH)],
        )


def _rows(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a line and a wave, as the paper's LIN+PER users have; a GP of 10,000 rows would take hours to draw."""
    x = rng.uniform(-4.0, 4.0, count)
    wave = np.sin(2.0 * np.pi * x / np.e) + 0.5 * np.cos(4.0 * np.pi * x / np.e)
    return x[:, None], 1.5 * x + 1.5 * wave + 0.4 * rng.standard_normal(count)


def _followed(user: NewUser, size: int, rng: np.random.Generator) -> NewUser:
    """A user followed to so many rows, batch by batch."""
    while user.rows < size:
        user.update(*_rows(min(BATCH, size - user.rows), rng))
    return user


def _step(user: NewUser, X: Array, y: Array, ahead: Array | None) -> Work:
    def step() -> None:
        own = user.copy()
        own.update(X, y)
        if ahead is not None:
            own.predict(ahead)

    return timed(step)
