"""New users predicted over random splits into pilot and new users: who is followed, what is kept, how it is shown."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from kerneltrail.errors import DataError
from kerneltrail.evaluation import Evaluation, Interval, Spec, Step, evaluate, follow, merged, over_users
from kerneltrail.gp import Reward
from kerneltrail.store.cache import KEY, Cache
from kerneltrail.store.digest import code, digest
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text
from kerneltrail.studies.bench.between_sets import SIMULATED, TRUTH, Blind, Split, UserSet, sets_in, simulated
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.model import MODEL, TrajectoryModel
from kerneltrail.trajectory.settings import Settings

QUICK_MAPS = MapSettings(starts=1, screen=16, tol=1e-3, accuracy=1e-4)
"""Evidences differ by tenths of nats from one random start to the next here, and there are thousands of fits."""
SHORTER: tuple[tuple[str, Any], ...] = (("scope", "together"), ("maps", QUICK_MAPS))
"""What makes a fit eight times as fast: candidates searched by the evidence of all pilot users, shorter searches."""
MEASURES = ("rmse", "log_density", "coverage90", "coverage50", "length90")
"""What is shown, in the target's units, nats a row, and shares; last, the length of 90 % intervals."""
LATER = "1+"
"""All predictions after the first batch, together."""


@dataclass(frozen=True, kw_only=True)
class OverSplits(Benchmark):
    """Next-batch predictions for new users, over random splits into pilot and new users, side by side.

    Differences are paired over users and splits. Their intervals are from a bootstrap over people, so somebody who is
    new in several splits counts once; they do not say how much the choice of pilot users matters.

    Attributes:
        splits: random splits of each set.
        data: files or folders of HeartSteps and Fitbit; simulated users where there are none.
        out: folder that keeps what is finished, for every set, split, method and user.
        blind: ``choose`` for data to choose settings on, ``report`` for data that those have not seen (`RealSet` says
            how far that holds); all data if None.
        simulated: names of simulated sets besides; `SIMULATED` where there is neither one nor data.
        sets: further sets.
        changes: of the trajectory model's settings, by name.
        engine: what runs the jobs, as `fit` takes it.
        first: what the others are compared with, where it is among them.
        reversed: whether a difference is what is shown minus `first`, not `first` minus what is shown.
    """

    splits: int = 20
    data: tuple[Path, ...] = ()
    out: Path | None = None
    blind: Blind | None = None
    simulated: tuple[str, ...] = ()
    sets: tuple[UserSet, ...] = ()
    changes: tuple[tuple[str, Any], ...] = SHORTER
    engine: Any = "serial"

    first: ClassVar[str]
    reversed: ClassVar[bool] = False
    in_all = False
    columns: ClassVar = {
        "t": text("t"), "users": number("samples"), "values": number("values"), "method": text("method"),
        "rmse": number("rmse", ".3f"), "log density": number("log_density", ".3f"),
        "in 90 %": number("coverage90", ".1%"), "in 50 %": number("coverage50", ".1%"),
        "length": number("length90", ".2f"),
        "Δ rmse": lambda row: _interval(row, "rmse"), "Δ log density": lambda row: _interval(row, "log_density"),
    }  # fmt: skip
    sections = ("t",)

    def __post_init__(self) -> None:
        if self.splits < 1:
            raise DataError(f"there must be at least one split, got {self.splits}")
        if self.blind not in (None, "choose", "report"):
            raise DataError(f"--blind is 'choose' or 'report', not {self.blind!r}")
        simulated(self.simulated)  # refuses one that there is not

    @property
    def steps(self) -> int:
        """Splits of all sets."""
        return self.splits * len(self._sets())

    def _sets(self) -> tuple[UserSet, ...]:
        return (*sets_in(self.data), *simulated(self.simulated), *self.sets) or SIMULATED

    @abstractmethod
    def specs(self, split: Split, reward: Reward | None, seed: int) -> Mapping[str, Spec]:
        """The methods that a split's new users are followed with, by label."""

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each set, t and method."""
        for each in self._sets():
            evaluations = []
            for split in each.splits(self.splits, seed, self.blind):
                tick(f"{each.name}, {split.label}")
                evaluations.append(self._evaluated(each, split, seed))
            evaluation = merged(evaluations)
            for failure in evaluation.failures:
                warnings.warn(f"{each.name}: {failure}", stacklevel=2)
            yield from self.rows_of(evaluation, each.name)

    def _evaluated(self, users: UserSet, split: Split, seed: int) -> Evaluation:
        specs = self.specs(split, users.reward, seed)
        evaluation = evaluate(
            split.pilots, split.new, specs, seed=seed, engine=self.engine, out=self.out, run=split.label
        )
        if split.truth is None:
            return evaluation
        steps = [
            replace(step, run=split.label, method=TRUTH)
            for user in split.new.raw
            for step in follow(split.truth, user, catch=()).steps
        ]
        return replace(evaluation, steps=(*evaluation.steps, *steps))

    def model(self, split: Split, reward: Reward | None, settings: Settings) -> TrajectoryModel:
        """The trajectory model of a split, with `changes`; one that was stopped halfway goes on."""
        settings = settings.changed(dict(self.changes))

        def learnt(checkpoint: Path | None) -> TrajectoryModel:
            return fit(split.pilots, reward=reward, settings=settings, engine=self.engine, checkpoint=checkpoint)

        if self.out is None:
            return learnt(None)
        cache = Cache.at(self.out)
        entry = f"model-{digest(split.pilots.fingerprint, reward, settings.to_json(), code('trajectory'))[:KEY]}"
        stored = cache.get(entry, MODEL)
        return cache.put(entry, learnt(cache.folder / f"{entry}.work"), MODEL) if stored is None else stored.value

    def rows_of(self, evaluation: Evaluation, case: str) -> Iterator[Row]:
        """An evaluation of splits as rows, one for each method at each t, and over all t after the first batch."""
        first = self.first if self.first in evaluation.methods else evaluation.methods[0]
        judged = [step for step in evaluation.steps if step.predicted]
        reference = {(step.run, step.user, step.t): step for step in judged if step.method == first}
        last = max(step.t for step in judged)
        for t in (*range(last + 1), LATER):
            for method in evaluation.methods:
                steps = [s for s in judged if s.method == method and (s.t == t or (t == LATER and s.t > 0))]
                if not steps:
                    continue
                pairs = [(one, step) for step in steps if (one := reference.get((step.run, step.user, step.t)))]
                if self.reversed:
                    pairs = [(step, one) for one, step in pairs]
                means = {name: _mean(((step, None) for step in steps), name) for name in MEASURES}
                seconds = [step.cpu_seconds for step in steps if step.t > 0]
                minus = {name: _mean(pairs, name).to_json() for name in MEASURES} if method != first and pairs else {}
                yield self.row(
                    case,
                    round(sum(step.rows for step in steps) / len(steps)),
                    method,
                    sum(seconds) / len(seconds) if seconds else 0.0,
                    batches=last if t == LATER else int(t),
                    samples=means["rmse"].users,
                    t=t,
                    values=len(steps),
                    splits=self.splits,
                    blind=self.blind,
                    first=first,
                    failures=sum(failure.method == method for failure in evaluation.failures),
                    **{name: mean.mean for name, mean in means.items()},
                    intervals={name: mean.to_json() for name, mean in means.items()},
                    minus="this minus first" if self.reversed else "first minus this",
                    difference=minus,
                )

    @classmethod
    def tables(cls, rows: Sequence[Row]) -> Iterator[Table]:
        """A table for each set."""
        for _, group in groupby(rows, key=lambda row: row["case"]):
            yield cls.table(list(group))

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A paragraph and a table for each set."""
        parts = []
        for case, group in groupby(rows, key=lambda row: row["case"]):
            lines = list(group)
            blind = f" of the data to {lines[0]['blind']} on" if lines[0]["blind"] else ""
            first = lines[0]["first"]
            minus = f"this method minus {first}" if cls.reversed else f"{first} minus this method"
            parts.append(
                f"{case}, {lines[0]['splits']} splits{blind}: predictions of the next batch after t batches; "
                f"differences are {minus}, with 90 % intervals over people:"
            )
            cells = [[cell(row) for cell in cls.columns.values()] for row in lines]
            table = [list(cls.columns), ["---"] * len(cls.columns), *cells]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in table))
        return parts


def _mean(pairs: Iterable[tuple[Step, Step | None]], metric: str) -> Interval:
    """The mean of a metric, or of its difference, over users and splits, with people resampled."""
    every = list(pairs)
    values = [one.value(metric) - (0.0 if other is None else other.value(metric)) for one, other in every]
    return over_users(values, [one.person for one, _ in every])


def _interval(row: Row, metric: str) -> str:
    stored = row["difference"].get(metric)
    return "" if stored is None else "{mean:+.3f} ({low:+.3f}, {high:+.3f})".format(**stored)
