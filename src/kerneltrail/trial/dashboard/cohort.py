"""All participants together: probabilities, whether draws kept them, doses, missing outcomes, kept predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

import numpy as np

from kerneltrail.evaluation.intervals import Interval, mean_over_users, share_over_users
from kerneltrail.kernels.phrases import counted, listing, rounded, with_unit
from kerneltrail.report.model_page.numbers import fixed, percent
from kerneltrail.report.page import Block, Expert, Paragraph, Section, Table
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.alarms import DUE_WORDS
from kerneltrail.trial.checks import LEVEL
from kerneltrail.trial.dashboard.cohort_figures import Histogram, Series, draw_histogram, draw_series
from kerneltrail.trial.dashboard.descriptions import descriptions_section
from kerneltrail.trial.dashboard.drawing import GALLERY, places
from kerneltrail.trial.dashboard.outcomes import HIDDEN, settled_mean
from kerneltrail.trial.dashboard.texts import day_of, moment, share
from kerneltrail.trial.decided import Point
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.ratio import RARE, Ratio, by_version, ratio, tenths, unlikely
from kerneltrail.trial.realised import Realised, draw_realised

NOON = time(12)


@dataclass(frozen=True)
class CohortView:
    """What the page rests on.

    Attributes:
        state: of the ledger, and
        protocol: in force.
        points: all decisions up to now of those who were not removed, in the order of their times.
        updates: when the policy changed.
        zone: of the trial's clock.
        now: what time it is.
        users: of whom the policy that serves knows outcomes, as it follows them; None where that is not at hand.
    """

    state: State
    protocol: Protocol
    points: Sequence[Point]
    updates: Sequence[datetime]
    zone: str
    now: datetime
    users: Mapping[str, NewUser | None] = field(default_factory=dict)

    @property
    def able(self) -> list[Point]:
        """Decisions at which somebody could act."""
        return [each for each in self.points if each.available]

    def lines(self) -> tuple[float, ...]:
        """Where updates are drawn."""
        return places(self.updates, self.zone)

    def noon(self, day: date) -> datetime:
        """Where a day stands on a time axis."""
        return datetime.combine(day, NOON, ZoneInfo(self.zone))


def sections(cohort: CohortView, nouns: Mapping[str, str]) -> list[Section]:
    """All of the page; `nouns` are kernels in words."""
    if not cohort.able:
        return [Section("Nothing yet", [Paragraph("No decision has been made at which somebody could act.")])]
    return [
        _probabilities(cohort),
        _ratio(cohort),
        _outcomes(cohort),
        _doses(cohort),
        _missing(cohort),
        _calibration(cohort),
        descriptions_section(cohort.state, cohort.users, nouns, cohort.zone, cohort.lines()),
    ]


TENTHS = ("probabilities of the tenth", "their mean", "share sent", "95 % interval of the share")
"""Headings: two ranges stand side by side, so each says of what it is."""


def _probabilities(cohort: CohortView) -> Section:
    values = [each.probability for each in cohort.able]
    clipped = Counter(each.clipped for each in cohort.able)
    limits = (cohort.protocol.limits.lower, cohort.protocol.limits.upper)
    quarters = np.quantile(values, [0.25, 0.5, 0.75])
    words = (
        f"{counted(len(values), 'decision')} at which somebody could act. Half of the probabilities that were recorded "
        f"lie between {quarters[0]:.2f} and {quarters[2]:.2f}; the middle one is {quarters[1]:.2f}. The limits that "
        f"the protocol sets for all of them are {limits[0]:g} and {limits[1]:g}: at the lower one stand "
        f"{share(clipped['lower'], len(values))}, at the upper one {share(clipped['upper'], len(values))}."
    )
    caption = "Shaded: within the limits of the protocol. Probabilities outside would be a mistake."
    picture = GALLERY.picture(draw_histogram, Histogram(tuple(values), limits), words, caption)
    return Section("Probabilities of sending", [Paragraph(words), picture], "probabilities")


def ratio_words(whole: Ratio, off: Sequence[str]) -> str:
    """How many messages were sent beside how many should have been, and whether somebody should be told."""
    words = (
        f"The probabilities add up to {whole.expected:.0f} messages, and {whole.sent} were sent; chance makes between "
        f"{whole.low} and {whole.high} in 95 of 100 trials. "
    )
    if off:
        return (
            words
            + f"More than chance makes: {listing(off)}. Draws or records are not as they should be: tell somebody."
        )
    if whole.low <= whole.sent <= whole.high:
        return words + "No version of the policy differs from its probabilities by more than chance makes."
    return words + (
        "This number is outside, as it is in 5 of 100 trials in which nothing is wrong. Somebody should be told of "
        f"what chance makes once in {1 / RARE:,.0f} looks; no version of the policy is so far off."
    )


def _ratio(cohort: CohortView) -> Section:
    able = cohort.able
    versions = by_version(able)
    flags = unlikely(list(versions.values()))
    whole = ratio([each.probability for each in able], sum(each.action for each in able))
    words = ratio_words(whole, [name for name, flag in zip(versions, flags, strict=True) if flag])
    split = tenths(able)
    data = Realised.of(split)
    caption = (
        "Decisions in tenths by their probability: the share that was sent beside the mean probability. Nearly all "
        "intervals should touch the dashed line; one in twenty misses it by chance."
    )
    rows = [
        (name, "more than chance" if flag else "as drawn", f"{r.decisions:,}", fixed(r.expected, 1), str(r.sent),
         f"{r.low} to {r.high}", f"{r.p:.3f}")
        for (name, r), flag in zip(versions.items(), flags, strict=True)
    ]  # fmt: skip
    columns = ("decided by", "verdict", "decisions", "expected", "sent", "95 % by chance", "p")
    note = (
        f"Exact two-sided p of the number sent, given the probabilities. The verdict takes all lines together: a false "
        f"alarm in {1 / RARE:.0f} looks."
    )
    shown = [
        (f"{each.low:.2f} to {each.high:.2f}", fixed(each.mean), fixed(each.share.mean),
         f"{each.share.low:.2f} to {each.share.high:.2f}")
        for each in split
    ]  # fmt: skip
    numbers = Table("Decisions in tenths", TENTHS, shown)
    blocks: list[Block] = [
        Paragraph(words),
        GALLERY.picture(draw_realised, data, words, caption),
        Table(note, columns, rows, marked=[i for i, flag in enumerate(flags) if flag], names=2),
        Expert("The numbers of the figure", [numbers]),
    ]
    return Section("Were messages sent as often as the probabilities say?", blocks, "ratio")


def _outcomes(cohort: CohortView) -> Section:
    """How participants fare, whatever was assigned: as a rule, and those who fare worst.

    Of the outcomes whose means are shown on participants' pages: a number that moved with each outcome would tell it.
    """
    heading, reward = "How participants fare", cohort.protocol.reward
    points: dict[str, list[Point]] = {}
    for each in cohort.points:
        points.setdefault(each.participant, []).append(each)
    means = [mean for several in points.values() if (mean := settled_mean(several, cohort.now)) is not None]
    if len(means) < 2:
        words = f"There are not yet enough outcomes of two participants. {HIDDEN}"
        return Section(heading, [Paragraph(words)], "outcomes")
    unit = "" if reward.unit == reward.outcome else reward.unit
    whole, quarter = mean_over_users(means, level=0.95), reward.worst.of(means)
    width = whole.high - whole.low
    words = (
        f"Each participant's mean {reward.outcome} is taken first. Over {counted(len(means), 'participant')} it is "
        f"{with_unit(rounded(whole.mean, width), unit)} on average (95 % interval {rounded(whole.low, width)} to "
        f"{rounded(whole.high, width)}); a quarter of them lie {reward.worst.side} "
        f"{with_unit(rounded(quarter, width), unit)}. This is over decisions of settled days, whatever was assigned. "
        f"{HIDDEN}"
    )
    return Section(heading, [Paragraph(words)], "outcomes")


def _by_day(cohort: CohortView) -> dict[date, list[Point]]:
    days: dict[date, list[Point]] = {}
    for each in cohort.points:
        days.setdefault(each.at.date(), []).append(each)
    return dict(sorted(days.items()))


def _doses(cohort: CohortView) -> Section:
    days = _by_day(cohort)
    per, rows, total, person_days = [], [], 0, 0
    for day, points in days.items():
        people, sent = len({each.participant for each in points}), sum(each.action for each in points)
        arrived = sum(each.action and each.delivered == 1 for each in points)
        per.append(sent / people)
        total, person_days = total + sent, person_days + people
        rows.append((day_of(cohort.noon(day), cohort.zone), str(people), str(sent), str(arrived), fixed(per[-1])))
    words = (
        f"On {rows[-1][0]}, the last day, {counted(sent, 'message')} {'was' if sent == 1 else 'were'} sent among "
        f"{counted(people, 'participant')} with a decision: {per[-1]:.2f} each. {_arrivals(sent, arrived)}Over "
        f"{counted(len(days), 'day')} it is {total / person_days:.2f} a day for each participant: "
        f"{counted(total, 'message')} on {counted(person_days, 'day')} of participants."
    )
    at = places([cohort.noon(day) for day in days], cohort.zone)
    data = Series(at, tuple(per), (), (), cohort.lines(), "messages a day\nper participant", "sent")
    caption = "Messages sent a day, for each participant of whom a decision was made that day. Dotted: updates."
    table = Table("Messages a day", ("day", "participants", "sent", "known to have arrived", "sent each"), rows)
    blocks: list[Block] = [Paragraph(words), GALLERY.picture(draw_series, data, words, caption), _numbers(table)]
    return Section("Messages a day", blocks, "doses")


def _arrivals(sent: int, arrived: int) -> str:
    """How many of the messages of a day are known to have arrived.

    >>> _arrivals(41, 38), _arrivals(3, 0), _arrivals(0, 0)
    ('38 of them are known to have arrived. ', 'None of them is known to have arrived. ', '')
    """
    if not sent:
        return ""
    if sent == 1:
        return "It is known to have arrived. " if arrived else "It is not known to have arrived. "
    return f"{arrived or 'None'} of them {'is' if arrived < 2 else 'are'} known to have arrived. "


def _numbers(table: Table) -> Expert:
    return Expert("The numbers", [table])


def _missing(cohort: CohortView) -> Section:
    found: list[tuple[date, Interval, int, int]] = []
    for day, points in _by_day(cohort).items():
        hits: dict[str, list[bool]] = {}
        for each in points:
            if each.available and each.is_due(cohort.now):
                hits.setdefault(each.participant, []).append(each.outcome is None)
        if hits:
            gone = sum(map(sum, hits.values()))
            everybody = [np.array(several) for several in hits.values()]
            found.append((day, share_over_users(everybody), gone, sum(map(len, everybody))))
    if not found:
        return Section("Missing outcomes", [Paragraph("No outcome should be there yet.")], "missing")
    gone, due = sum(each[2] for each in found), sum(each[3] for each in found)
    words = (
        f"Of the outcomes that should be there, {share(gone, due)} are missing: {DUE_WORDS}. The pages Today and "
        "Participants and kerneltrail trial status count the same; the analysis does so up to the last entry of the "
        "record. Missing is not 0: such decisions teach the policy nothing."
    )
    at = places([cohort.noon(day) for day, *_ in found], cohort.zone)
    low, high = (tuple(getattr(each[1], side) for each in found) for side in ("low", "high"))
    value = tuple(each[1].mean for each in found)
    data = Series(at, value, low, high, cohort.lines(), "share missing", "missing, with 95 % interval", top=1.0)
    rows = [
        (day_of(cohort.noon(day), cohort.zone), share(gone, due), f"{100 * each.low:.0f} to {100 * each.high:.0f} %")
        for day, each, gone, due in found
    ]
    caption = "Share of each day's decisions without an outcome; intervals count participants, not decisions."
    table = Table("Missing outcomes by the day of the decision", ("day", "missing", "95 % interval"), rows)
    return Section(
        "Missing outcomes",
        [Paragraph(words), GALLERY.picture(draw_series, data, words, caption), _numbers(table)],
        "missing",
    )


def _calibration(cohort: CohortView) -> Section:
    heading = "Do predictions keep their word?"
    found: list[tuple[datetime, str, Interval, int]] = []
    everybody: dict[str, list[bool]] = {}
    for update in cohort.state.updates.values():
        result = update.result
        if result is None or update.finished_at is None:
            continue
        hits = []
        for name, each in result.get("calibration", {}).items():
            person = cohort.state.participants.get(name)
            if person is not None and person.removed is None:
                rows = [i < each["inside"] for i in range(each["rows"])]
                hits.append(np.array(rows))
                everybody.setdefault(name, []).extend(rows)
        if hits:
            found.append((instant(update.finished_at), update.id, share_over_users(hits), sum(map(len, hits))))
    if not found:
        return Section(heading, [Paragraph("No update has compared predictions with outcomes yet.")], "calibration")
    whole = share_over_users([np.array(several) for several in everybody.values()])
    kept = whole.low <= LEVEL <= whole.high
    verdict = "as promised, as far as these outcomes can tell" if kept else (
        "the intervals are too narrow" if whole.mean < LEVEL else "the intervals are too wide"
    )  # fmt: skip
    words = (
        f"{percent(whole.mean)} of the outcomes lay in the {percent(LEVEL)} interval that was predicted before they "
        f"were seen (95 % interval {100 * whole.low:.0f} to {100 * whole.high:.0f} %): {verdict}."
    )
    at = places([each[0] for each in found], cohort.zone)
    low, high = (tuple(getattr(each[2], side) for each in found) for side in ("low", "high"))
    value = tuple(each[2].mean for each in found)
    data = Series(
        at, value, low, high, cohort.lines(), "share inside", "inside, with 95 % interval", goal=LEVEL, top=1.05
    )
    rows = [
        (number, moment(when, cohort.zone), f"{count:,}", percent(each.mean),
         f"{100 * each.low:.0f} to {100 * each.high:.0f} %")
        for when, number, each, count in found
    ]  # fmt: skip
    caption = "At each update: the share of new outcomes inside their interval. Intervals count participants."
    table = Table("Predictions by update", ("update", "when", "outcomes", "inside", "95 % interval"), rows)
    blocks: list[Block] = [Paragraph(words), GALLERY.picture(draw_series, data, words, caption), _numbers(table)]
    return Section(heading, blocks, "calibration")


def all_points(everybody: Sequence[Sequence[Point]]) -> list[Point]:
    """Decisions of several participants in the order of their times."""
    return sorted((each for points in everybody for each in points), key=lambda each: (each.at, each.sequence))
