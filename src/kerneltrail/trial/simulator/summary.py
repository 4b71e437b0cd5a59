"""What a study of designs says: means over seeds with errors, pairs of policies, and how well effects are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kerneltrail.evaluation.intervals import Interval, exact_share, mean_over_users
from kerneltrail.trial.sections import Better
from kerneltrail.trial.simulator.design import Design
from kerneltrail.trial.simulator.policies import OURS
from kerneltrail.trial.simulator.study import Run

MEASURES = {
    "mean": "mean outcome",
    "p25": "25th percentile",
    "p75": "75th percentile",
    "regret": "regret",
    "at_limit": "share at a limit",
    "doses": "doses a day",
    "probability": "probability",
    "fallback": "fallback rate",
    "median_ms": "median ms",
    "p95_ms": "95 % of ms",
}
"""What is averaged over seeds, and how people call it. Of the percentiles a run has the one beyond which the quarter of
people lie who fare worst."""
PAIRED = ("mean", "p25", "p75")
LEVEL = 0.95


@dataclass(frozen=True)
class Average:
    """A mean over simulated trials with its standard error; none of a single one."""

    mean: float
    error: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Average:
        """Of one value for each seed."""
        error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        return cls(float(np.mean(values)), error)


@dataclass(frozen=True)
class Finding:
    """How well the effect is found by WCLS, over simulated trials.

    Attributes:
        truth: what being assigned adds, on average.
        bias: mean of the estimates, less the truth of their trial.
        coverage: share of 95 % intervals that hold the truth.
        power: share of trials in which p is below 0.05.
        length: mean width of the intervals.
    """

    truth: float
    bias: Average
    coverage: Interval
    power: Interval
    length: float


@dataclass(frozen=True)
class Line:
    """One design with one policy."""

    design: str
    policy: str
    seeds: int
    averages: Mapping[str, Average]
    finding: Finding | None
    deciles: tuple[tuple[float, float, float], ...]
    counts: Mapping[str, float]
    facts: tuple[Mapping[str, Any], ...]
    seconds: float


@dataclass(frozen=True)
class Pair:
    """The trial's own policy less another one, on the same people with the same chances; `better` outcomes are higher
    or lower.
    """

    design: str
    other: str
    measure: str
    difference: Interval
    better: Better = "higher"

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.difference.low <= 0.0 <= self.difference.high:
            return "no difference found"
        return "better" if (self.difference.low > 0.0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class Summary:
    """All of it."""

    lines: tuple[Line, ...]
    pairs: tuple[Pair, ...]

    @property
    def designs(self) -> tuple[str, ...]:
        """Labels, in their order."""
        return tuple(dict.fromkeys(line.design for line in self.lines))

    def of(self, design: str) -> tuple[Line, ...]:
        """The lines of one design."""
        return tuple(line for line in self.lines if line.design == design)


def summarised(runs: Sequence[Run], better: Better = "higher") -> Summary:
    """The summary of runs, of which `better` outcomes are higher or lower.

    Seeds that some policy of a design lacks do not enter its pairs.

    A run that is there twice, of the same design, policy and seed, counts once.
    """
    groups: dict[tuple[Design, str], dict[int, Run]] = {}
    for run in runs:
        groups.setdefault((run.design, run.policy), {})[run.seed] = run
    lines = [_line(design.label, policy, list(several.values())) for (design, policy), several in groups.items()]
    pairs = []
    for (design, policy), several in groups.items():
        ours = groups.get((design, OURS), {})
        if policy == OURS or not ours:
            continue
        both = [(ours[seed].values, run.values) for seed, run in several.items() if seed in ours]
        for measure in _measures(several.values(), PAIRED) if both else ():
            gains = [first[measure] - second[measure] for first, second in both]
            pairs.append(Pair(design.label, policy, measure, mean_over_users(gains, level=LEVEL), better))
    return Summary(tuple(lines), tuple(pairs))


def _measures(runs: Iterable[Run], of: Iterable[str] = MEASURES) -> list[str]:
    """Those that runs have."""
    return [name for name in of if all(name in run.values for run in runs)]


def _line(design: str, policy: str, runs: Sequence[Run]) -> Line:
    values = [run.values for run in runs]
    names = sorted({name for each in values for name in each["counts"]})
    return Line(
        design,
        policy,
        len(runs),
        {name: Average.of([each[name] for each in values]) for name in _measures(runs)},
        _finding(values),
        tuple(map(tuple, np.sum([each["deciles"] for each in values], axis=0).tolist())),
        {name: float(np.mean([each["counts"].get(name, 0) for each in values])) for name in names},
        tuple(each["facts"] for each in values if each["facts"]),
        float(np.mean([run.seconds for run in runs])),
    )


def _finding(values: Sequence[Mapping[str, Any]]) -> Finding | None:
    """Of trials in which an effect could be estimated.

    People differ, so the effect in one trial's people is not the effect that its estimate is of: that is the mean over
    all trials. Both are needed: estimates are compared with the former for the bias, which takes out the chance of who
    takes part, and intervals with the latter.
    """
    known = [each for each in values if each["wcls"] is not None]
    if not known:
        return None
    truth = float(np.mean([each["truth"] for each in known]))
    found = [each["wcls"] for each in known]
    covered = np.array([each["low"] <= truth <= each["high"] for each in found])
    seen = np.array([each["p"] < 0.05 for each in found])
    return Finding(
        truth,
        Average.of([each["wcls"]["estimate"] - each["truth"] for each in known]),
        exact_share(int(covered.sum()), len(covered)),
        exact_share(int(seen.sum()), len(seen)),
        float(np.mean([each["high"] - each["low"] for each in found])),
    )


def tables(summary: Summary, runs: Sequence[Run]) -> dict[str, tuple[list[str], list[dict[str, Any]]]]:
    """All tables, by name: columns and rows."""
    listed = {
        "designs": list(_designs(summary)),
        "pairs": list(_pairs(summary)),
        "deciles": list(_deciles(summary)),
        "trouble": [
            {"design": line.design, "policy": line.policy, "what": what, "per_trial": count}
            for line in summary.lines
            for what, count in line.counts.items()
        ],
        "runs": list(_runs(runs)),
    }
    return {name: (list(rows[0]) if rows else ["design"], rows) for name, rows in listed.items()}


def _designs(summary: Summary) -> Iterator[dict[str, Any]]:
    for line in summary.lines:
        row: dict[str, Any] = {"design": line.design, "policy": line.policy, "seeds": line.seeds}
        for name, average in line.averages.items():
            row |= {name: average.mean, f"{name}_se": average.error}
        found = line.finding
        row |= {
            "truth": None if found is None else found.truth,
            "bias": None if found is None else found.bias.mean,
            "bias_se": None if found is None else found.bias.error,
            "coverage": None if found is None else found.coverage.mean,
            "coverage_low": None if found is None else found.coverage.low,
            "coverage_high": None if found is None else found.coverage.high,
            "power": None if found is None else found.power.mean,
            "power_low": None if found is None else found.power.low,
            "power_high": None if found is None else found.power.high,
            "seconds": line.seconds,
        }
        yield row


def _pairs(summary: Summary) -> Iterator[dict[str, Any]]:
    for pair in summary.pairs:
        gap = pair.difference
        yield {
            "design": pair.design, "other": pair.other, "measure": pair.measure, "difference": gap.mean,
            "low": gap.low, "high": gap.high, "seeds": gap.users, "verdict": pair.verdict,
        }  # fmt: skip


def _deciles(summary: Summary) -> Iterator[dict[str, Any]]:
    for line in summary.lines:
        for number, (count, chance, acted) in enumerate(line.deciles):
            if count:
                yield {
                    "design": line.design, "policy": line.policy, "from": number / 10, "decisions": int(count),
                    "probability": chance / count, "realised": acted / count,
                }  # fmt: skip


def _runs(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        row = {"design": run.design.label, "policy": run.policy, "seed": run.seed}
        row |= {name: run.values[name] for name in (*_measures([run]), "truth")}
        found = run.values["wcls"] or {}
        yield row | {name: found.get(name) for name in ("estimate", "error", "low", "high", "p")}
