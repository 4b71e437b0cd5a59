"""Updates of users whose rows are hostile: the longest processor time of one update, and of the prediction after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.engines import one_blas_thread
from kerneltrail.kernels import Pool, parse
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.trajectory.beyond import judged
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.map_table import group_of
from kerneltrail.trajectory.model import TrajectoryModel

KERNELS = ("SE[day]", "LIN[day] + SE[hour]", "PER[day]*SE[hour]", "SE[day]*SE[hour]", "LIN[day] + PER[day]")
"""The nodes: two of them products of two covariates, which have no short series."""

CASES = {
    "as the pilot users": 14.0,
    "days to 423": 423.0,
    "days to 5,000": 5_000.0,
    "equal rows": 0.0,
    "one day of 1e8": 14.0,
    "constant target": 14.0,
}
"""What the rows are like, and the last day; pilot users had 14."""

BATCH = 40


def person(name: str, rows: int, days: float, rng: np.random.Generator) -> User:
    """Somebody whose target follows the hour."""
    hour = rng.uniform(8, 21, rows)
    y = np.sin(hour / 3.0) + 0.4 * rng.standard_normal(rows)
    return User(
        name, ("day", "hour"), np.column_stack([np.linspace(0, days, rows), hour]), y, range(BATCH, rows + 1, BATCH)
    )


def five_nodes(seed: int) -> TrajectoryModel:
    """A model with five nodes, whatever the pilot users would have."""
    rng = np.random.default_rng(seed)
    pilots = [person(f"pilot {i}", 2 * BATCH, 14.0, rng) for i in range(5)]
    pool = Pool.of(*KERNELS)
    cohort = Cohort.from_users(pilots, target="y", target_scaling="standard")
    model = fit(cohort, pool=pool, largest=2, chains=1, sweeps=16, check=8, workers=1, seed=seed)
    nodes = []
    for kernel in map(parse, KERNELS):
        thetas = model.priors.sample(kernel, 4, rng)
        group = group_of(kernel, list(thetas), model.priors)
        nodes.append(Node(pool.mask(kernel), kernel, thetas, group, model.users))
    paths = tuple(tuple(nodes[(i + t) % len(nodes)].mask for t in range(2)) for i in range(len(pilots)))
    return replace(model, nodes=tuple(nodes), structures=(replace(model.structures[0], paths=paths),))


@dataclass(frozen=True)
class HostileBenchmark(Benchmark):
    """The longest update of each kind of rows, up to the rows that are refined and past them."""

    rows: int = 800

    name = "hostile"
    title = "The longest update and prediction, in processor time: five nodes, batches of 40 rows"
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "rows up to": number("n"), "update, ms": number("longest", ".0f"),
        "prediction, ms": number("prediction", ".0f"), "nodes limited": number("limited"),
    }  # fmt: skip
    sections = ("case",)

    @classmethod
    def quick(cls) -> Self:
        """A few seconds' worth."""
        return cls(160)

    @property
    def steps(self) -> int:
        """The model, and every case."""
        return 1 + len(CASES)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """Two rows for each case: up to 400 rows, and past them."""
        tick("five nodes")
        model = five_nodes(seed)
        for case, days in CASES.items():
            tick(case)
            rng = np.random.default_rng(seed + 1)
            user = person("new", self.rows, days, rng)
            if case == "equal rows":
                user = user.with_X(np.repeat(user.X[:1], user.rows, axis=0))
            elif case == "one day of 1e8":
                X = user.X.copy()
                X[BATCH + 7, 0] = 1e8
                user = user.with_X(X)
            elif case == "constant target":
                user = user.with_y(np.full(user.rows, 3.0))
            yield from self._followed(model, user, case)

    def _followed(self, model: TrajectoryModel, user: User, case: str) -> Iterator[Row]:
        followed = model.new_user(user.name)
        times: dict[int, list[tuple[float, float, int]]] = {}
        with one_blas_thread(), judged(), np.errstate(all="ignore"):
            for t in range(1, user.batches + 1):
                batch = user.batch(t)
                began = time.process_time()
                followed.update(batch.X, batch.y)
                updated = time.process_time()
                followed.predict(batch.X)
                ended = time.process_time()
                part = min(user.rows, 400) if user.ends[t - 1] <= 400 else user.rows
                times.setdefault(part, []).append((updated - began, ended - updated, len(followed.limited)))
        for n, each in times.items():
            update, prediction, limited = (max(column) for column in zip(*each, strict=True))
            yield self.row(
                case, n, "update", update, batches=len(each), samples=1,
                longest=1e3 * update, prediction=1e3 * prediction, limited=int(limited),
            )  # fmt: skip
