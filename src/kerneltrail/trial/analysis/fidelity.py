"""Whether a trial did what its protocol says: draws, rungs, incidents, updates in time, deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial.alarms import GRACE
from kerneltrail.trial.analysis.record import Record
from kerneltrail.trial.decided import present
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.ratio import RARE, Ratio, Tenth, by_version, ratio_of, tenths, unlikely
from kerneltrail.trial.rhythm import counts, last_planned, takes_part


@dataclass(frozen=True)
class Updates:
    """Updates of the policy.

    Attributes:
        states: how many ended in which state.
        planned: times at which the protocol wanted one while somebody took part; 0 where it names no times.
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
        ratios: the check of all draws, then of each policy version and fallback.
        rungs: decisions by what decided.
        incidents: how many there were, by kind and severity.
        updates: of the policy.
        undelivered: decisions to act that did not arrive, and
        unreported: of which nobody said whether they arrived.
        acted: decisions to act.
    """

    tenths: tuple[Tenth, ...]
    ratios: Mapping[str, Ratio]
    rungs: dict[str, int]
    incidents: dict[tuple[str, str], int]
    updates: Updates
    undelivered: int
    unreported: int
    acted: int

    def words(self) -> list[str]:
        """All of it in sentences."""
        rare = unlikely([each.ratio for each in self.tenths])
        odd = [each for each, is_rare in zip(self.tenths, rare, strict=True) if is_rare]
        lines = ["Nobody could act at any decision, so nothing was drawn."] if not self.ratios else []
        if self.ratios:
            every = self.ratios["all"]
            lines.append(
                f"{every.sent} of {every.decisions} draws came out as acting; {every.expected:.1f} were to be "
                f"expected, and chance makes {every.low} to {every.high} in 95 of 100 trials (p {every.p:.2g})."
                + (" That is more than chance explains: the draws need a look." if any(unlikely([every])) else "")
            )
        if odd:
            where = listing(f"{each.low:.2g} to {each.high:.2g}" for each in odd)
            lines.append(
                f"The share that acted is off for probabilities of {where}: chance makes that in fewer than one of "
                f"{round(1 / RARE)} trials, all tenths looked at together."
            )
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
        lines.append(self._arrived())
        return lines

    def _arrived(self) -> str:
        """How many decisions to act did not arrive, and of how many that is not known."""
        if not self.acted:
            return "No decision was to act."
        lost = [f"{self.undelivered} did not arrive"] if self.undelivered else []
        they = "it" if self.unreported == 1 else "they"
        unknown = [f"of {self.unreported} nobody said whether {they} arrived"] if self.unreported else []
        return f"Of {counted(self.acted, 'decision')} to act, {', and '.join([*lost, *unknown]) or 'all arrived'}."


def _counts(numbers: Mapping[str, int], before: str = "") -> str:
    return listing(f"{count} {before}{name}" for name, count in numbers.items()) if numbers else "none"


def fidelity_of(record: Record, level: float = 0.95) -> Fidelity:
    """Compute it from the record, with intervals of a level."""
    drawn = [point for point in record.points if point.available]
    acting = [each for each in drawn if each.action]
    return Fidelity(
        tenths=tuple(tenths(drawn, level)) if drawn else (),
        ratios={"all": ratio_of(drawn), **by_version(drawn)} if drawn else {},
        rungs=dict(Counter(point.rung for point in record.points).most_common()),
        incidents=_incidents(record),
        updates=_updates(record),
        undelivered=sum(each.lost for each in acting),
        unreported=sum(each.delivered is None and not each.lost for each in acting),
        acted=len(acting),
    )


def _incidents(record: Record) -> dict[tuple[str, str], int]:
    numbers: Counter[tuple[str, str]] = Counter()
    for each in record.state.incidents.values():
        if each.payload is not None:
            numbers[each.payload["kind"], each.payload.get("severity", "warning")] += 1
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


def _updates(record: Record) -> Updates:
    updates = list(record.state.updates.values())
    states = Counter("running" if each.result is None else str(each.result["state"]) for each in updates)
    begun = sorted(instant(each.started_at) for each in updates if counts(each))
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
    """Times of planned updates while the trial ran and somebody took part, as far as grace has passed.

    It ran from when its protocol was frozen and its first decision recorded, whatever time that decision names, to the
    newest entry; that somebody looked at outcomes is no entry in this sense, else an analysis would change the next.
    What was planned at a time is what the protocol in force then says.
    """
    state = record.state
    people = present(state)
    recorded = min(
        instant(each.received_at) for person in state.participants.values() for each in person.decisions.values()
    )
    entries = [each.received_at for each in state.incidents.values()]
    entries += [each.finished_at or each.started_at for each in state.updates.values()]
    end = max([record.until, *map(instant, entries)]) - GRACE
    frozen = [instant(each.received_at) for each in state.protocols]
    times: list[datetime] = []
    for version, begins, stops in zip(state.protocols, frozen, [*frozen[1:], end], strict=True):
        protocol = Protocol.from_json(version.payload["protocol"])
        times += _between(protocol, max(begins, recorded), min(stops, end))
    return [
        planned
        for planned in times
        if any(takes_part(person, planned) and person.status(planned) != "withdrawn" for person in people)
    ]


def _between(protocol: Protocol, first: datetime, last: datetime) -> list[datetime]:
    """Times of updates by a protocol's schedule, after `first` and up to `last`."""
    times: list[datetime] = []
    planned = last_planned(protocol, last) if last > first else None
    while planned is not None and planned > first:
        times.append(planned)
        planned = last_planned(protocol, planned - timedelta(minutes=1))
    return times[::-1]
