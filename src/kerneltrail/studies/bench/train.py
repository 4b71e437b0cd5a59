"""Seconds to learn a trajectory model: until chains agree, per sweep, and as users and batches grow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import simulate
from kerneltrail.kernels import Pool, Priors
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, number, silent, text, time
from kerneltrail.studies.sets import PAPER_BATCHES
from kerneltrail.trajectory.candidates import support
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings, MapTable
from kerneltrail.trajectory.sampler import bulk_ess
from kerneltrail.trajectory.sampler.chains import Chain, ChainTarget, spawn
from kerneltrail.trajectory.sampler.moves import PUBLISHED
from kerneltrail.trajectory.sampler.urn import Urn
from kerneltrail.trajectory.settings import Settings

AUTHORS_SECONDS_PER_SWEEP = 339.0
"""What the authors' code takes for a sweep of "distinct" on a 2-core machine (method §9.1)."""

AS_AUTHORS_RAN = Settings.published(
    moves=("published_seat",) * 10 + ("published_plate",), options={"published_plate": {"steps": 100}}
)
"""The published moves with the authors' numbers: 10 seatings, 100 Metropolis–Hastings steps a table (method §9.1)."""

GROWTH_POOL = ("LIN[x]", "PER[x]", "SE[x]")


@dataclass(frozen=True)
class TrainBenchmark(Benchmark):
    """Learning a trajectory model.

    Attributes:
        synthetic: users of the paper's synthetic set, with its batches; learnt until R-hat is below 1.05.
        rows: in each batch of that set.
        pool: products on offer there and for "distinct".
        distinct: users of the authors' set "distinct".
        sweeps: of each chain on it, for the exact moves, the published moves, and those as the authors ran them.
        users: numbers of users to grow to, with the first number of batches.
        batches: numbers of batches to grow to, with the first number of users.
        growth: sweeps of each of two chains there.
        settings: of the default procedure.
    """

    synthetic: int = 6
    rows: tuple[int, ...] = PAPER_BATCHES
    pool: Pool = field(default_factory=Pool.paper)
    distinct: int = 10
    sweeps: tuple[int, int, int] = (300, 300, 10)
    users: tuple[int, ...] = (50, 100, 200)
    batches: tuple[int, ...] = (3, 6, 12)
    growth: int = 50
    settings: Settings = field(default_factory=Settings)

    name = "train"
    title = "Learning a trajectory model (size: users × batches); authors' sweep of 'distinct': 339 s"
    columns: ClassVar = {
        "case": text("case"), "size": lambda row: f"{row['samples']}×{row['batches']}", "method": text("method"),
        "fits": time("seconds_fits"), "chains": time("seconds_chains"), "sweep": time("seconds_per_sweep"),
        "ESS/s": number("ess_per_second", ".0f"), "R-hat": number("rhat", ".3f"),
    }  # fmt: skip

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth: fewer users, batches, products and searches."""
        return cls(
            synthetic=4,
            rows=(3, 7, 20),
            pool=Pool.of(*GROWTH_POOL),
            distinct=4,
            sweeps=(100, 100, 4),
            users=(5, 10),
            batches=(2, 4),
            growth=20,
            settings=Settings(largest=2, maps=MapSettings(starts=1, screen=8)),
        )

    @property
    def steps(self) -> int:
        """How many fits there are, and chains on "distinct"."""
        return 1 + 1 + 3 + len(self.users) + len(self.batches) - 1

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """Rows of four cases.

        ``synthetic``: seconds until the default chains agree, MAP fits of candidates included. ``distinct``: a sweep of
        one chain in one process, MAP fits (done once) apart. ``users`` and ``batches``: a whole fit as they grow.
        """
        yield self._synthetic(seed, tick)
        yield from self._distinct(seed, tick)
        yield from self._growth(seed, tick)

    def _synthetic(self, seed: int, tick: Tick) -> Row:
        tick(f"training on {self.synthetic} synthetic users until chains agree")
        users = simulate.paper(self.synthetic, 1, seed, batches=self.rows).train
        settings = replace(self.settings, seed=seed)
        start = perf_counter()
        model = fit(users, pool=self.pool, priors=Priors.synthetic(), settings=settings)
        seconds = perf_counter() - start
        diagnostics = model.diagnostics
        rhat = diagnostics.rhat["log_joint"]
        return self.row(
            "synthetic",
            sum(self.rows),
            "exact",
            seconds,
            batches=len(self.rows),
            samples=self.synthetic,
            seconds_to_converge=seconds if rhat < settings.rhat else None,
            rhat=rhat,
            sweeps=diagnostics.sweeps,
            chains=settings.chains,
            candidates=len(model.provenance["candidates"]),
            seconds_fits=diagnostics.seconds["fits"],
            seconds_chains=diagnostics.seconds["chains"],
            seconds_per_sweep=diagnostics.seconds["chains"] / diagnostics.sweeps,
            ess=diagnostics.ess["log_joint"],
            ess_per_second=diagnostics.ess["log_joint"] / diagnostics.seconds["chains"],
            workers=os.cpu_count(),
        )

    def _distinct(self, seed: int, tick: Tick) -> Iterator[Row]:
        users = simulate.distinct(self.distinct, 1, seed).train.users
        tick(f"MAP fits for {self.distinct} users of 'distinct'")
        table = MapTable(users, self.pool, Priors.synthetic(), self.settings.maps)
        start = perf_counter()
        candidates = support(table, self.settings.largest, self.settings.width, workers=os.cpu_count() or 1)
        seconds_fits = perf_counter() - start
        ways = {
            "exact": self.settings,
            # On the evidence of the exact moves: the same work per look-up, so that the moves alone are compared.
            "published": replace(self.settings, moves=PUBLISHED, options={}),
            "as authors": replace(AS_AUTHORS_RAN, largest=self.settings.largest),
        }
        for (method, settings), sweeps in zip(ways.items(), self.sweeps, strict=True):
            tick(f"{sweeps} sweeps of 'distinct', {method}")
            problem = ChainTarget(table, Urn(self.pool), settings, candidates)
            chains, seconds = _chains(problem, seed, sweeps)
            half = sweeps // 2
            traces = {
                "ess": [chain.log_joint[half:] for chain in chains],
                "ess_edges": [list(map(float, chain.visited.since(half).edges())) for chain in chains],
            }
            # Ten sweeps say nothing of an effective sample size.
            sizes = {name: _ess(np.array(values)) if sweeps >= 50 else None for name, values in traces.items()}
            per_sweep = seconds / (sweeps * len(chains))
            yield self.row(
                "distinct",
                users[0].rows,
                method,
                per_sweep,
                batches=users[0].batches,
                samples=len(users),
                seconds_per_sweep=per_sweep,
                authors_seconds_per_sweep=AUTHORS_SECONDS_PER_SWEEP,
                ratio_to_authors=per_sweep / AUTHORS_SECONDS_PER_SWEEP,
                evidence=settings.evidence,
                moves=list(settings.moves),
                options={name: dict(options) for name, options in settings.options.items()},
                sweeps=sweeps,
                chains=len(chains),
                candidates=len(candidates),
                seconds_fits=seconds_fits,
                seconds_chains=seconds,
                **sizes,
                # Of the half that was kept, per second that it took.
                ess_per_second=None if sizes["ess"] is None else sizes["ess"] / (seconds * (sweeps - half) / sweeps),
                workers=1,
            )

    def _growth(self, seed: int, tick: Tick) -> Iterator[Row]:
        pool = Pool.of(*GROWTH_POOL)
        # One look, at the end: every size gets the same number of sweeps.
        settings = replace(self.settings, chains=2, sweeps=self.growth, check=self.growth, largest=2, seed=seed)
        sizes = [("users", users, self.batches[0]) for users in self.users]
        sizes += [("batches", self.users[0], batches) for batches in self.batches[1:]]
        first: Row | None = None
        for case, users, batches in sizes:
            tick(f"a fit of {users} users with {batches} batches")
            cohort = simulate.paper(users, 1, seed, batches=(5,) * batches).train
            start = perf_counter()
            model = fit(cohort, pool=pool, priors=Priors.synthetic(), settings=settings)
            seconds = perf_counter() - start
            spent = model.diagnostics.seconds
            growth = self.row(
                case,
                5 * batches,
                "exact",
                seconds,
                batches=batches,
                samples=users,
                seconds_fits=spent["fits"],
                seconds_chains=spent["chains"],
                seconds_per_sweep=spent["chains"] / self.growth,
                sweeps=self.growth,
                chains=2,
                candidates=len(model.provenance["candidates"]),
                ratio_to_first=1.0 if first is None else seconds / first["seconds"],
                workers=os.cpu_count(),
            )
            first = first or growth
            yield growth

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """Sentences about convergence, sweeps and growth."""
        paragraphs = [
            f"Learning from {row['samples']} synthetic users until R-hat of {row['chains']} chains is "
            f"{row['rhat']:.3f}: {duration(row['seconds'])}, of which {duration(row['seconds_fits'])} for MAP fits of "
            "candidates."
            for row in rows
            if row["case"] == "synthetic"
        ]
        sweeps = ", ".join(
            f"{duration(row['seconds_per_sweep'])} ({row['method']})" for row in rows if row["case"] == "distinct"
        )
        paragraphs.append(f'A sweep of the set "distinct": {sweeps}; by the authors\' code: 339 s.')
        sizes = ", ".join(
            f"{duration(row['seconds'])} for {row['samples']} users with {row['batches']} batches"
            for row in rows
            if "ratio_to_first" in row
        )
        return [*paragraphs, f"A whole fit as the group grows: {sizes}."]


def _chains(problem: ChainTarget, seed: int, sweeps: int) -> tuple[list[Chain], float]:
    """Two chains one after the other, in this process, and their seconds; both start at each user's best candidate."""
    table = problem.table
    paths = tuple(
        (max(problem.candidates, key=lambda mask: (float(table.get(m, mask).log_laplace[-1]), -mask)),) * user.batches
        for m, user in enumerate(table.users)
    )
    begun = [Chain.begin(k, rng, paths, problem.book) for k, rng in enumerate(spawn(seed, 2))]
    problem.advance(begun[0], 1)  # warms up compiled code
    start = perf_counter()
    return [problem.advance(chain, sweeps) for chain in begun], perf_counter() - start


def _ess(draws: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(bulk_ess(draws)) if np.ptp(draws) > 1e-9 else float(draws.size)
