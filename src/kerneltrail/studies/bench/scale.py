"""What learning takes as pilot users become many: processor seconds, memory, bytes sent, and the model's file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np
from rich.table import Table

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool
from kerneltrail.store.cache import KEY, Cache, Format, json_format
from kerneltrail.store.digest import code, digest
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent
from kerneltrail.studies.bench.footprint import Footprint
from kerneltrail.trajectory.fit import STAGES, fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.chains import FitProgress
from kerneltrail.trajectory.settings import Settings

COVARIATES = ("hour", "day", "steps", "sleep", "mood", "weather")
PRODUCTS = (*(f"SE[{name}]" for name in COVARIATES), "LIN[steps]", "LIN[sleep]", "PER[hour]")
"""Nine, so that there are 45 compositions of one or two, and all are fitted to every user."""

FULL = 10_000
"""Users of ``--full``."""
SHORT = 2
"""Rows of a batch where only sweeps are measured: a sweep reads evidences of batches, not rows."""
ROUGH = MapSettings(starts=1, screen=4, tol=1e-2, accuracy=1e-2)
"""How those rows are fitted, since nobody asks for their seconds."""
PARTS = 50
"""Steps of one fit on the display."""
KEPT: Format[dict[str, Any]] = json_format(dict, dict)
"""How what was measured is kept."""


@dataclass(frozen=True)
class ScaleBenchmark(Benchmark):
    """A fit as pilot users become many. One round of sweeps is taken, whether or not chains agree by then.

    Attributes:
        users: numbers of pilot users.
        full: whether to go on to `FULL` users.
        batches, rows: of each user, and rows in a batch.
        fits: users to whom compositions are fitted in earnest; all if None. If fewer, their seconds are multiplied up,
            and the sweeps are measured on all users with `SHORT` rows a batch.
        sweeps, chains: of the one round.
        products: on offer, at most two of them in a composition.
        out: folder that keeps what was measured, size by size, so that a second run measures only what is missing.
    """

    users: tuple[int, ...] = (10, 100, 1_000)
    full: bool = False
    batches: int = 10
    rows: int = 40
    fits: int | None = None
    sweeps: int = 20
    chains: int = 2
    products: tuple[str, ...] = field(default=PRODUCTS)
    out: Path | None = None

    name = "scale"
    title = "Many pilot users, {batches} batches of {batch} rows, {products} products: processor seconds"
    in_all = False
    columns: ClassVar = {
        "users": number("samples"), "fitted": number("fitted"), "candidates": number("candidates"),
        "fits": lambda row: f"{'' if row['short'] is None else '≈ '}{row['seconds_fits']:,.1f}",
        "fits a user": number("seconds_fits_user", ".2f"), "a sweep": number("seconds_sweep", ".3f"),
        "choice": number("seconds_choice", ",.1f"),
    }  # fmt: skip
    sizes: ClassVar[Mapping[str, Callable[[Row], str]]] = {
        "parent": lambda row: size_of(row["peak"]), "a worker": lambda row: size_of(row["worker_peak"]),
        "together": lambda row: size_of(row.get("together")),
        "sent to chains": lambda row: size_of(row["sent"]), "model file": lambda row: size_of(row["model_bytes"]),
    }  # fmt: skip

    def __post_init__(self) -> None:
        if self.fits is not None and self.fits < 1:
            raise DataError(f"--fits is a number of users, at least 1, got {self.fits}")

    @classmethod
    def quick(cls) -> Self:
        """A quarter of a minute's worth."""
        return cls((4, 8), batches=3, rows=8, fits=2, sweeps=8, products=PRODUCTS[:3])

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (*self.users, FULL) if self.full and FULL not in self.users else self.users

    @property
    def steps(self) -> int:
        """Parts of all fits: one for each number of users, and one of the few users whose fits are multiplied up."""
        return PARTS * (len(self._sizes) + self._few)

    @property
    def _few(self) -> bool:
        """Whether some size has more users than are fitted in earnest."""
        return self.fits is not None and max(self._sizes) > self.fits

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each number of users; its seconds are those of the fits, the sweeps and the choice together."""
        few = self._measured(self.fits or 0, self.rows, seed, tick) if self._few else {}
        for users in self._sizes:
            all_fitted = self.fits is None or users <= self.fits
            taken = self._measured(users, self.rows if all_fitted else SHORT, seed, tick)
            each = taken["seconds_fits"] / users if all_fitted else few["seconds_fits"] / few["samples"]
            taken |= {"seconds_fits": each * users, "seconds_fits_user": each}
            yield self.row(
                f"{users} users",
                self.batches * self.rows,
                "measured" if all_fitted else "fits multiplied up",
                taken["seconds_fits"] + taken["seconds_chains"] + taken["seconds_choice"],
                batches=self.batches,
                batch=self.rows,
                products=len(self.products),
                fitted=users if all_fitted else few["samples"],
                short=None if all_fitted else SHORT,
                sweeps=self.sweeps,
                chains=self.chains,
                **taken,
            )

    def _measured(self, users: int, rows: int, seed: int, tick: Tick) -> dict[str, Any]:
        """What a fit takes, measured now or kept from a run before."""
        about = (users, self.batches, rows, self.sweeps, self.chains, self.products, seed, os.cpu_count())
        cache = None if self.out is None else Cache.at(self.out)
        entry = f"scale-{users}-{digest(*about, code('trajectory'))[:KEY]}"
        stored = None if cache is None else cache.get(entry, KEPT)
        if stored is not None:
            for _ in range(PARTS):
                tick(f"{users:,} users: kept from a run before")
            return stored.value
        taken = self._take(users, rows, seed, tick)
        return taken if cache is None else cache.put(entry, taken, KEPT)

    def _take(self, users: int, rows: int, seed: int, tick: Tick) -> dict[str, Any]:
        shown = _Parts(f"{users:,} users of {rows} rows a batch", tick)
        shown.tick("drawing users, starting workers")
        cohort = _pilots(users, self.batches, rows, seed)
        _ = self._fit(_pilots(2, 2, 4, seed), seed, lambda now: None)  # workers are started and compiled code is loaded
        marks: dict[str, float] = {}
        with Footprint() as taken, TemporaryDirectory() as folder:
            began = {"written": taken.written()}

            def hear(now: FitProgress) -> None:
                if now.stage == STAGES[1]:
                    if "fits" not in marks:
                        marks["fits"], began["written"] = taken.seconds, taken.written()
                    marks["chains"], began["sent"] = taken.seconds, taken.written()
                shown.hear(now)

            model = self._fit(cohort, seed, hear)
            marks["choice"] = taken.seconds
            written, sent = began["written"], began["sent"]
            model.save(Path(folder) / "model.trail")
            model_bytes = (Path(folder) / "model.trail").stat().st_size
        shown.finish()
        chains = marks["chains"] - marks["fits"]
        return {
            "samples": users,
            "candidates": len(model.provenance["candidates"]),
            "seconds_fits": marks["fits"],
            "seconds_chains": chains,
            "seconds_sweep": chains / (self.sweeps * self.chains),
            "seconds_choice": marks["choice"] - marks["chains"],
            "peak": taken.peak if taken.known else None,
            "worker_peak": taken.worker_peak or None,
            "together": taken.together or None,
            "sent": None if written is None or sent is None else sent - written,
            "model_bytes": model_bytes,
            "workers": os.cpu_count(),
        }

    def _fit(self, cohort: Cohort, seed: int, hear: Callable[[FitProgress], None]) -> TrajectoryModel:
        maps = ROUGH if cohort.users[0].rows < self.batches * self.rows else MapSettings()
        settings = Settings(largest=2, chains=self.chains, sweeps=self.sweeps, check=self.sweeps, seed=seed, maps=maps)
        return fit(cohort, pool=Pool.of(*self.products), settings=settings, progress=hear)

    @classmethod
    def tables(cls, rows: Sequence[Row]) -> Iterator[Table]:
        """Seconds, and what memory and bytes they took."""
        yield cls.table(rows)
        table = cls.empty_table(rows, "users", *cls.sizes)
        table.title = "The same: most memory of a process, and bytes"
        for row in rows:
            table.add_row(f"{row['samples']:,}", *(cell(row) for cell in cls.sizes.values()))
        yield table

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """What is meant, and a table."""
        first, columns = rows[0], {**cls.columns, **cls.sizes}
        lines = [list(columns), ["--:"] * len(columns), *([cell(row) for cell in columns.values()] for row in rows)]
        paragraphs = [
            f"Processor seconds; {first['batches']} batches of {first['batch']} rows for each user, "
            f"{first['products']} products, {first['workers']} workers. A sweep is that of one of {first['chains']} "
            f"chains, with what it takes to begin divided among {first['sweeps']} sweeps. What is sent to chains is "
            "all that is written while they run. Memory is the most that one process had at one time; together, the "
            "most that all had, with what they have in common counted once.",
        ]
        if any(row["short"] for row in rows):
            paragraphs.append(
                "≈: fits were measured on as many users as `fitted` says, and multiplied up in proportion to users. "
                f"Sweeps, choice, memory, bytes and file are then of all users, with {SHORT} rows a batch. A sweep "
                "does not read rows, but the choice and the memory would take more with all of them."
            )
        return [*paragraphs, "\n".join(f"| {' | '.join(line)} |" for line in lines)]


class _Parts:
    """A fit as a number of steps that is known beforehand: fits fill the first four fifths."""

    def __init__(self, label: str, tick: Tick) -> None:
        self._label, self._tick, self._done = label, tick, 0

    def tick(self, said: str) -> None:
        if self._done < PARTS:
            self._done += 1
            self._tick(f"{self._label}: {said}")

    def hear(self, now: FitProgress) -> None:
        share = now.done / now.total if now.total else 0.0
        part = 0.8 * share if now.stage == STAGES[0] else 0.8 + 0.2 * share
        while self._done < 1 + part * (PARTS - 2):
            self.tick(f"{now.stage} {now.count}")

    def finish(self) -> None:
        while self._done < PARTS:
            self.tick("finished")


def _pilots(users: int, batches: int, rows: int, seed: int) -> Cohort:
    """Pilot users of three kinds: a line, a wave of the day, a bend; on levels of their own."""
    everybody = []
    n = batches * rows
    for i in range(users):
        rng = np.random.default_rng([seed, i])
        X = rng.uniform(0.0, 1.0, (n, len(COVARIATES)))
        kind = (X[:, 2], np.sin(2.0 * np.pi * X[:, 0]), np.exp(-8.0 * (X[:, 3] - 0.5) ** 2))[i % 3]
        y = rng.normal() + (1.0 + 0.3 * rng.normal()) * kind + 0.5 * rng.standard_normal(n)
        everybody.append(User(f"user {i}", COVARIATES, X, y, range(rows, n + 1, rows)))
    return Cohort.from_users(everybody, target="y", target_scaling="standard")


def size_of(count: int | None) -> str:
    """Bytes with two or three digits and a unit; nothing where nobody knows.

    >>> size_of(512), size_of(161_000_000), size_of(5_120_000_000), size_of(None)
    ('512 B', '161 MB', '5.1 GB', '')
    """
    if count is None:
        return ""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.{0 if count >= 10 * factor else 1}f} {unit}"
    return f"{count} B"
