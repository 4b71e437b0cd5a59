"""Effects that are known: does a followed user's effect have the right sign, and do intervals hold what is true?

Every user has a line in one covariate (up for one half, down for the other), two levels in a second, a curve over the
hour, and nothing in a fourth; sizes, the curve's peak and the level of the target differ between users.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Array
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.trajectory.effects import Effect
from kerneltrail.trajectory.fit import fit

COVARIATES = ("stress", "evening", "hour", "temperature")
LEVEL = 60.0
"""Where the target lies: far from zero, as a glucose or a heart rate does."""

Truth = Mapping[str, Callable[[float], float]]


def person(name: str, rng: np.random.Generator, *, falls: bool, rows: int, batch: int) -> tuple[User, Truth]:
    """A user in data units, and the effect of every covariate."""
    X = np.column_stack(
        [rng.normal(5, 2, rows), rng.integers(0, 2, rows), rng.uniform(8, 21, rows), rng.normal(12, 5, rows)]
    )
    slope = rng.normal(-0.4 if falls else 0.4, 0.2)
    evening, peak, height = rng.normal(0.8, 0.5), rng.normal(15, 1.5), abs(rng.normal(1.0, 0.3))

    def curve(hour: Array | float) -> Array:
        return height * np.exp(-0.5 * ((np.asarray(hour) - peak) / 2.5) ** 2)

    level = LEVEL + rng.normal(0, 0.7)
    y = level + slope * X[:, 0] + evening * X[:, 1] + curve(X[:, 2]) + rng.standard_normal(rows)
    truth: Truth = {
        "stress": lambda x: slope * x,
        "evening": lambda x: evening * x,
        "hour": lambda x: float(curve(x)),
        "temperature": lambda x: 0.0,
    }
    return User(name, COVARIATES, X, y, tuple(range(batch, rows + 1, batch))), truth


@dataclass(frozen=True)
class EffectsBenchmark(Benchmark):
    """Effects of new users who are followed on a model of pilot users.

    Attributes:
        pilots, users: numbers of users.
        batches: of each, of `batch` rows.
        sweeps: of the chains.
    """

    pilots: int = 12
    users: int = 100
    batches: int = 3
    batch: int = 40
    sweeps: int = 400

    name = "effects"
    title = (
        "Effects of new users against what is true; one line of {samples} users for each covariate and number of rows"
    )
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "n": number("n"), "interval holds truth": number("covered", ".0%"),
        "said to be clear": number("clear", ".0%"), "above 2 errors": number("large"),
        "direction stated": number("stated", ".0%"), "direction right": number("right", ".0%"),
        "error": number("rmse", ".2f"), "stated error": number("sd", ".2f"),
    }  # fmt: skip
    sections = ("n",)

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth."""
        return cls(6, 10, 2, 40, 40)

    @property
    def steps(self) -> int:
        """The fit, and every user."""
        return 1 + self.users

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each covariate after the first and after the last batch."""
        rng = np.random.default_rng(seed)
        rows = self.batches * self.batch

        def made(kind: str, count: int) -> list[tuple[User, Truth]]:
            return [person(f"{kind} {i}", rng, falls=i % 2 == 1, rows=rows, batch=self.batch) for i in range(count)]

        tick("pilot users")
        pilots = [user for user, _ in made("pilot", self.pilots)]
        model = fit(Cohort.from_users(pilots, target="y", target_scaling="standard"), sweeps=self.sweeps, seed=seed)
        judged: dict[tuple[int, str], list[tuple[Effect, float, float]]] = {}
        for user, truth in made("new", self.users):
            tick(user.name)
            followed = model.new_user(user.name)
            for t in range(1, user.batches + 1):
                followed.update(user.batch(t).X, user.batch(t).y)
                if t not in (1, user.batches):
                    continue
                began = time.process_time()
                effects = followed.effects()
                seconds = time.process_time() - began
                for effect in effects:
                    true = truth[effect.covariate](effect.end) - truth[effect.covariate](effect.start)
                    judged.setdefault((user.ends[t - 1], effect.covariate), []).append((effect, true, seconds))
        for (n, covariate), each in sorted(judged.items(), key=lambda item: (item[0][0], COVARIATES.index(item[0][1]))):
            yield self._judged(n, covariate, each)

    def _judged(self, n: int, covariate: str, judged: list[tuple[Effect, float, float]]) -> Row:
        sd = np.array([float(effect.change.sd[0]) for effect, _, _ in judged])
        size = np.array([effect.size for effect, _, _ in judged])
        true = np.array([value for _, value, _ in judged])
        clear = np.array([effect.clear for effect, _, _ in judged])
        intervals = np.array([effect.interval() for effect, _, _ in judged])
        said = (
            clear | (intervals[:, 0] > 0.0) | (intervals[:, 1] < 0.0)
        )  # then a sentence says where it "probably" goes
        large = np.abs(size) > 2.0 * sd
        return self.row(
            covariate,
            n,
            "effects",
            float(np.mean([seconds for _, _, seconds in judged])),
            batches=n // self.batch,
            samples=len(judged),
            covered=float(np.mean((intervals[:, 0] <= true) & (true <= intervals[:, 1]))),
            clear=float(clear.mean()),
            large=int(large.sum()),
            stated=float(said[large].mean()) if large.any() else None,
            right=float((np.sign(size) == np.sign(true))[large].mean()) if large.any() and true.any() else None,
            rmse=float(np.sqrt(np.mean((size - true) ** 2))),
            sd=float(np.sqrt(np.mean(sd**2))),
        )
