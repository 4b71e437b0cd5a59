"""Seconds for the MAP hyperparameters of one user, and how often they are the true ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from kerneltrail.data import simulate
from kerneltrail.gp import find_map, find_map_path, inputs_for, one_blas_thread
from kerneltrail.kernels import Priors, parse
from kerneltrail.studies.bench.evidence import dpotrf_of
from kerneltrail.studies.bench.rows import Row, row

CASE, KERNEL, PERIOD = "LIN+PER", "LIN[x] + PER[x]", "PER[x].period"
CLOSE = 0.05
"""Relative error at which a period counts as found."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        users: how many simulated users, all with the kernel that is fitted.
        starts: searches for each.
        batches: rows in each batch.
    """

    users: int = 100
    starts: int = 8
    batches: tuple[int, ...] = (3, 4, 10, 20, 50, 100)

    @classmethod
    def quick(cls) -> Plan:
        """A few seconds' worth."""
        return cls(users=10)

    @property
    def steps(self) -> int:
        """How many users there are."""
        return self.users


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """Two rows: all rows of a user at once, and all batches one after the other."""
    composition, priors = parse(KERNEL), Priors.synthetic()
    simulation = simulate.paper(train=1, test=2 * plan.users, seed=seed, batches=plan.batches)
    users = [user for user in simulation.test if simulation.truth[user.name] == composition]
    rng = np.random.default_rng(seed)
    spent: dict[str, list[float]] = {"find_map": [], "find_map_path": []}
    found: list[bool] = []
    converged: list[bool] = []
    dpotrf: list[float] = []
    with one_blas_thread():
        find_map(users[0], composition, priors, rng=np.random.default_rng(seed), starts=plan.starts)  # warms up
        for user in users:
            tick(f"MAP of {CASE}, {user.name}")
            start = perf_counter()
            best = find_map(user, composition, priors, rng=rng, starts=plan.starts)
            spent["find_map"].append(perf_counter() - start)
            start = perf_counter()
            find_map_path(user, composition, priors, rng=rng, starts=plan.starts)
            spent["find_map_path"].append(perf_counter() - start)
            true = simulation.hyperparameters[user.name][PERIOD]
            found.append(abs(best.hyperparameters[PERIOD] / true - 1.0) <= CLOSE)
            converged.append(best.converged)
            dpotrf += [work() for work in dpotrf_of(inputs_for(user, composition), best.hyperparameters.vector[None])]
    for method, seconds in spent.items():
        own = {"found": float(np.mean(found)), "converged": float(np.mean(converged))} if method == "find_map" else {}
        yield row(
            "map",
            CASE,
            users[0].rows,
            method,
            float(np.median(seconds)),
            batches=1 if method == "find_map" else users[0].batches,
            samples=len(users),
            dpotrf=float(np.median(dpotrf)),
            kernel=composition.text,
            starts=plan.starts,
            slowest=max(seconds),
            **own,
        )
