"""Whether a trial did what its protocol says: draws, rungs, incidents, updates in time, deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt

import scipy

from kerneltrail.evaluation.intervals import Interval
from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial.alarms import GRACE
from kerneltrail.trial.analysis.record import Record
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.rhythm import last_planned

TENTHS = 10
UNDONE = ("failed", "killed", "superseded")
"""States of an update that did not do what was due."""


@dataclass(frozen=True)
class Tenth:
    """Decisions whose probability lies in one tenth of the scale.

    Attributes:
        low, high: of the tenth.
        decisions: how many.
        expected: the mean of their probabilities.
        realised: the share of them that acted, with an exact interval: given the probabilities, draws are independent.
    """

    low: float
    high: float
    decisions: int
    expected: float
    realised: Interval

    @property
    def agrees(self) -> bool:
        """Whether the interval of what was realised contains what was to be expected."""
        return self.realised.low <= self.expected <= self.realised.high


@dataclass(frozen=True)
class Ratio:
    """All draws of one policy version, or of all: how many acted, how many were to be expected.

    Attributes:
        version: of the policy; `all` for everything.
        decisions, acted, expected: the counts.
        z: the difference in standard deviations, and
        p_value: its two-sided p value, by the Normal approximation.
    """

    version: str
    decisions: int
    acted: int
    expected: float
    z: float
    p_value: float


@dataclass(frozen=True)
class Updates:
    """Updates of the policy.

    Attributes:
        states: how many ended in which state.
        planned: times at which the protocol wanted one, by the end of the record; 0 where it names no times.
        late: of those, how many were begun more than two hours late, or not at all.
        rows_late: rows that entered at a later update than rows of later decisions.
    """

    states: dict[str, int]
    planned: int
    late: int
    rows_late: int


@dataclass(frozen=True)
class Fidelity:
    """Whether the trial did what its protocol says.

    Attributes:
        tenths: realised shares by tenth of the probability.
        ratios: of all draws, then of each policy version.
        rungs: decisions by what decided.
        incidents: how many there were, by kind and severity.
        updates: of the policy.
        undelivered: decisions to act that did not arrive, and
        unreported: of which nobody said whether they arrived.
        acted: decisions to act.
    """

    tenths: tuple[Tenth, ...]
    ratios: tuple[Ratio, ...]
    rungs: dict[str, int]
    incidents: dict[tuple[str, str], int]
    updates: Updates
    undelivered: int
    unreported: int
    acted: int

    def words(self) -> list[str]:
        """All of it in sentences."""
        odd = [each for each in self.tenths if not each.agrees]
        lines = ["Nobody could act at any decision, so nothing was drawn."] if not self.ratios else []
        for every in self.ratios[:1]:
            lines.append(
                f"{every.acted} of {every.decisions} draws came out as acting; {every.expected:.1f} were to be "
                f"expected (p {every.p_value:.2g})."
            )
        if odd:
            where = listing(f"{each.low:g} to {each.high:g}" for each in odd)
            lines.append(f"The share that acted is off for probabilities of {where}.")
        open_ = {rung: count for rung, count in self.rungs.items() if rung != "unavailable"}
        total, other = sum(open_.values()), sum(count for rung, count in open_.items() if rung != "policy")
        fallen = _counts({rung: count for rung, count in open_.items() if rung != "policy"}, "by ")
        lines.append(
            f"The policy itself made {total - other} of {counted(total, 'decision')}"
            + (f"; another rung made {other}: {fallen}." if other else ".")
        )
        states = _counts(self.updates.states)
        late = f"; of {self.updates.planned} planned times, {self.updates.late} had none within two hours"
        lines.append(
            f"Updates: {states}{late if self.updates.planned else ''}. "
            f"{counted(self.updates.rows_late, 'row')} entered late."
        )
        severe = sum(count for (_, severity), count in self.incidents.items() if severity == "error")
        lines.append(f"Incidents: {sum(self.incidents.values())}, of which {severe} were errors.")
        lines.append(
            f"Of {counted(self.acted, 'decision')} to act, {self.undelivered} did not arrive, and of {self.unreported} "
            "nobody said whether they arrived."
        )
        return lines


def _counts(counts: Mapping[str, int], before: str = "") -> str:
    return listing(f"{count} {before}{name}" for name, count in counts.items()) if counts else "none"


def fidelity_of(record: Record) -> Fidelity:
    """Compute it from the record."""
    drawn = [point for point in record.points if point.available]
    tenths = []
    for place in range(TENTHS):
        low, high = place / TENTHS, (place + 1) / TENTHS
        inside = [each for each in drawn if min(int(each.probability * TENTHS + 1e-9), TENTHS - 1) == place]
        if inside:
            acted = sum(each.action for each in inside)
            mean = sum(each.probability for each in inside) / len(inside)
            tenths.append(Tenth(low, high, len(inside), mean, exact_share(acted, len(inside))))
    versions = sorted({each.version for each in drawn if each.version is not None}, key=int)
    groups = [("all", drawn), *((name, [each for each in drawn if each.version == name]) for name in versions)]
    acting = [each for each in drawn if each.action]
    return Fidelity(
        tenths=tuple(tenths),
        ratios=tuple(
            _ratio(name, [(each.probability, each.action) for each in several]) for name, several in groups if several
        ),
        rungs=dict(Counter(point.rung for point in record.points).most_common()),
        incidents=_incidents(record),
        updates=_updates(record),
        undelivered=sum(each.delivered == 0 for each in acting),
        unreported=sum(each.delivered is None for each in acting),
        acted=len(acting),
    )


def exact_share(hits: int, rows: int, level: float = 0.95) -> Interval:
    """A share with the interval of Clopper and Pearson, for rows that are independent."""
    tail = (1.0 - level) / 2.0
    low = float(scipy.stats.beta.ppf(tail, hits, rows - hits + 1)) if hits else 0.0
    high = float(scipy.stats.beta.ppf(1.0 - tail, hits + 1, rows - hits)) if hits < rows else 1.0
    return Interval(hits / rows, low, high, level, rows)


def _ratio(name: str, draws: list[tuple[float, int]]) -> Ratio:
    acted, expected = sum(action for _, action in draws), sum(chance for chance, _ in draws)
    spread = sqrt(sum(chance * (1.0 - chance) for chance, _ in draws))
    z = (acted - expected) / spread if spread else 0.0
    return Ratio(name, len(draws), acted, expected, z, float(2.0 * scipy.special.ndtr(-abs(z))))


def _incidents(record: Record) -> dict[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    for each in record.state.incidents.values():
        if instant(each.received_at) <= record.until and each.payload is not None:
            counts[each.payload["kind"], each.payload.get("severity", "warning")] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _updates(record: Record) -> Updates:
    updates = list(record.state.updates.values())
    states = Counter("running" if each.result is None else str(each.result["state"]) for each in updates)
    done = [each for each in updates if each.result is None or each.result["state"] not in UNDONE]
    begun = sorted(instant(each.started_at) for each in done)
    planned = _planned(record)
    late = sum(not any(time <= start <= time + GRACE for start in begun) for time in planned)
    rows = sum(
        len(change.get("late", ()))
        for each in updates
        if each.result is not None and each.result.get("policy") is not None
        for change in each.result["policy"]["participants"].values()
    )
    return Updates(dict(states.most_common()), len(planned), late, rows)


def _planned(record: Record) -> list[datetime]:
    """Times of planned updates between the first decision and the end of the record, as far as grace has passed."""
    first, end = min(point.at for point in record.points), record.until - GRACE
    times = []
    planned = last_planned(record.protocol, end) if end > first else None
    while planned is not None and planned > first:
        times.append(planned)
        planned = last_planned(record.protocol, planned - timedelta(minutes=1))
    return times[::-1]
