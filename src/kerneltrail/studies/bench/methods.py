"""Seconds per update of every method on the paper's synthetic users, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from kerneltrail.data import simulate
from kerneltrail.errors import NumericalError
from kerneltrail.evaluation import follow
from kerneltrail.gp import one_blas_thread
from kerneltrail.gp.compilation import ensure_compiled
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.registry import build
from kerneltrail.methods.registry import methods as registered
from kerneltrail.studies.bench.rows import Row, row


@dataclass(frozen=True)
class Plan:
    """What to measure.

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
    batches: tuple[int, ...] = (3, 4, 10, 20, 50, 100)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def quick(cls) -> Plan:
        """Fewer users, and the last batches left out."""
        return cls(train=2, users=2, batches=(3, 4, 10))

    @property
    def steps(self) -> int:
        """Every method is built, and follows everybody."""
        return len(self.methods) * (1 + self.users)


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """A row for each method and batch: the median over users of the time of one update, by clock and by processor."""
    ensure_compiled()
    simulated = simulate.paper(plan.train, plan.users, seed, batches=plan.batches)
    shared = {"pool": Pool.paper(), "priors": Priors.synthetic()}
    for name in plan.methods:
        tick(f"{name}: {plan.train} training users")
        with one_blas_thread():
            method = build(name, simulated.train, {**shared, **plan.settings.get(name, {})}, seed=seed)
            follow(method, simulated.test.raw[0].upto(1))  # loads compiled code, which is not timed
            everybody = []
            for user in simulated.test.raw:
                tick(f"{name}: {user.name}")
                everybody.append(follow(method, user))
        failed = next((failure for one in everybody for failure in one.failures), None)
        if failed is not None:
            raise NumericalError(f"{name}: {failed}")
        for t in range(1, len(plan.batches) + 1):
            own = [one.steps[t] for one in everybody]
            ahead = [step.predict_seconds for step in own if step.predicted]
            yield row(
                "methods",
                "update",
                own[0].rows,
                name,
                median(step.seconds for step in own),
                batches=t,
                samples=plan.users,
                t=t,
                cpu_seconds=median(step.cpu_seconds for step in own),
                predict_seconds=median(ahead) if ahead else None,
            )
