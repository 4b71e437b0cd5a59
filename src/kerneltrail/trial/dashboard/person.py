"""One participant: what was decided and why, what arrived, what came of it, and what the model has found, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from kerneltrail.kernels.phrases import counted, listing, rounded, with_unit
from kerneltrail.report.model_page.numbers import NONE, fixed
from kerneltrail.report.page import Block, Expert, Paragraph, Section, Sentences, Table
from kerneltrail.report.terms import chance
from kerneltrail.store.canonical import real
from kerneltrail.trial.dashboard.drawing import (
    GALLERY,
    Advantages,
    Chances,
    draw_advantages,
    draw_chances,
    places,
)
from kerneltrail.trial.dashboard.foresight import Foreseen
from kerneltrail.trial.dashboard.texts import dated, moment
from kerneltrail.trial.decided import Point
from kerneltrail.trial.protocol import Protocol

RECENT = 20
"""Decisions that are listed."""
RUNG_WORDS = {
    "policy": "the policy",
    "last_good": "the last policy that worked",
    "group_prior": "what pilot users say of anybody",
    "fixed": "a fixed probability",
    "unavailable": "nobody, it was not possible to act",
}
"""What decided, in words."""
FATES = {
    "arrived": "It arrived.",
    "lost": "It did not arrive.",
    "sent": "Nobody has reported whether it arrived.",
}
"""What became of a message, in words."""


@dataclass(frozen=True)
class PersonView:
    """What a page on a participant rests on.

    Attributes:
        id: of the participant.
        zone: of their clock.
        protocol: of the trial.
        points: their decisions up to now.
        updates: when the policy changed.
        foreseen: of outcomes, by the sequence of the decision; empty where it cannot be computed.
        now: what time it is.
    """

    id: str
    zone: str
    protocol: Protocol
    points: Sequence[Point]
    updates: Sequence[datetime]
    foreseen: Mapping[int, Foreseen]
    now: datetime

    @property
    def sending(self) -> str:
        """What acting is called."""
        return self.protocol.reward.action

    @property
    def unit(self) -> str:
        """Of the outcome; empty where it is called so."""
        reward = self.protocol.reward
        return "" if reward.unit == reward.outcome else reward.unit

    @property
    def outcome_label(self) -> str:
        """The outcome with its unit."""
        return f"{self.protocol.reward.outcome}{f' ({self.unit})' if self.unit else ''}"

    def lines(self) -> tuple[float, ...]:
        """Where updates are drawn: those since the first decision."""
        if not self.points:
            return ()
        return places([each for each in self.updates if each >= self.points[0].at], self.zone)


def last_decision(person: PersonView) -> Section:
    """Why the last message was or was not sent, and how sure the model was."""
    if not person.points:
        return Section("The last decision", [Paragraph("No decision has been made yet.")], "last")
    last = person.points[-1]
    blocks: list[Block] = []
    if not last.available:
        why = f"{dated(last.at, person.zone)}, nobody could act"
        blocks.append(Sentences(why, [str(last.record.get("words", ""))]))
        able = [each for each in person.points if each.available]
        if able:
            blocks += [Paragraph("The last decision at which it was possible to act:"), _explained(person, able[-1])]
    else:
        blocks.append(_explained(person, last))
    return Section("Why the last message was or was not sent", blocks, "last")


def _explained(person: PersonView, last: Point) -> Sentences:
    """A decision in words: what was decided and why, how sure the model was, what became of it."""
    sentences = [str(last.record.get("words", ""))]
    if last.record.get("draw") is not None:
        number, relation = real(last.record["draw"]), "below" if last.action else "not below"
        sentences.append(
            f"The number that was drawn, {number:.3f}, is {relation} the probability {last.probability:.3f}, so it was "
            f"{'sent' if last.action else 'not sent'}. The draw depends on nothing that was observed."
        )
    sentences += _sureness(person, last)
    if last.action:
        sentences.append(FATES[mark_of(last)])
    heading = f"{dated(last.at, person.zone)}, decided by {RUNG_WORDS.get(last.rung, last.rung)}"
    return Sentences(heading, sentences)


def _sureness(person: PersonView, last: Point) -> list[str]:
    advantage = last.advantage
    if advantage is None:
        return []
    threshold = last.record.get("threshold")
    level = 0.0 if threshold is None else real(threshold)
    reward = person.protocol.reward
    above = float(reward.benefit(advantage).above(level)[0])
    bar = "" if not level else f" by more than {with_unit(rounded(level, abs(level)), person.unit)}"
    return [
        f"How sure it was: the probability that {person.sending} {'raised' if reward.sign > 0 else 'lowered'} "
        f"{reward.outcome}{bar} in that context was {chance(above)}."
    ]


def mark_of(point: Point) -> str:
    """What became of a decision: a key of `drawing.MARKS`."""
    if not point.available:
        return "nobody"
    if not point.action:
        return "not sent"
    return "lost" if point.lost else "arrived" if point.delivered else "sent"


def decisions_section(person: PersonView) -> Section:
    """Probabilities with their limits, what was assigned and what arrived; the newest as a table."""
    points = person.points
    marks = Counter(mark_of(each) for each in points)
    chances = [each.probability for each in points if each.available]
    at_limit = sum(each.clipped is not None for each in points if each.available)
    lower, upper = person.protocol.limits.lower, person.protocol.limits.upper
    words = _counts(len(points), marks)
    blocks: list[Block] = []
    if chances:
        stood = f"stood at one of these {counted(at_limit, 'time')}" if at_limit else "never stood at either"
        words += (
            f" {_spread(chances, (lower, upper))}. The limits that the protocol sets for it are {lower:g} and "
            f"{upper:g}; it {stood}."
        )
        data = Chances(
            places([each.at for each in points], person.zone),
            tuple(each.probability if each.available else float("nan") for each in points),
            tuple(each.clipped is not None for each in points),
            tuple(map(mark_of, points)),
            (lower, upper),
            person.lines(),
        )
        caption = (
            "Each dot is a decision. Dotted upright lines: an update of the policy. Dashed: the limits that the "
            "protocol sets for the probability."
        )
        blocks = [GALLERY.picture(draw_chances, data, words, caption)]
    return Section("Decisions", [Paragraph(words), *blocks, _table(person)], "decisions")


def _counts(made: int, marks: Mapping[str, int]) -> str:
    """How many decisions there were, and what became of them; nothing is said of what there was none of.

    >>> _counts(10, Counter({"nobody": 2, "not sent": 3, "arrived": 4, "sent": 1}))
    '10 decisions. At 2 of them nobody could act. Of the other 8, 5 were sent: 4 arrived and of 1 nobody reported.'
    >>> _counts(1, Counter(sent=1)), _counts(0, Counter())
    ('1 decision. It was sent; nobody has reported whether it arrived.', 'No decision has been made yet.')
    """
    if not made:
        return "No decision has been made yet."
    nobody = marks["nobody"]
    able, fates = made - nobody, [name for name in ("arrived", "lost", "sent") for _ in range(marks[name])]
    words = [f"{counted(made, 'decision')}."]
    if nobody:
        where = ("it" if made == 1 else "all of them") if not able else f"{nobody} of them"
        words.append(f"At {where} nobody could act.")
    if able == 1:
        words.append(f"{'The other one' if nobody else 'It'} was {'sent' if fates else 'not sent'}{_fates(fates)}.")
    elif able:
        number = f"{len(fates)} {'was' if len(fates) == 1 else 'were'} sent" if fates else "none was sent"
        words.append(f"Of {f'the other {able}' if nobody else 'these'}, {number}{_fates(fates)}.")
    return " ".join(words)


def _fates(fates: Sequence[str]) -> str:
    """What became of messages that were sent, to go on with a sentence."""
    if len(fates) < 2:
        return f"; {FATES[fates[0]][:1].lower()}{FATES[fates[0]][1:].rstrip('.')}" if fates else ""
    numbers, words = (
        Counter(fates),
        {"arrived": "{} arrived", "lost": "{} did not arrive", "sent": "of {} nobody reported"},
    )
    return f": {listing([words[name].format(number) for name, number in numbers.items()])}"


def _spread(chances: Sequence[float], limits: tuple[float, float]) -> str:
    """Where probabilities lay, with the digits it takes to tell them apart and from limits; at most six.

    >>> _spread([0.5], (0.2, 0.8))
    'The probability of sending was 0.50'
    >>> _spread([0.76, 0.7993], (0.2, 0.8))
    'The probability of sending lay between 0.760 and 0.799; its mean is 0.780'
    """
    low, high = min(chances), max(chances)
    values = {low, high, *limits}
    digits = next((d for d in range(2, 6) if len({f"{value:.{d}f}" for value in values}) == len(values)), 6)
    if low == high:
        return f"The probability of sending was {low:.{digits}f}"
    mean = f"{np.mean(chances):.{digits}f}"
    return f"The probability of sending lay between {low:.{digits}f} and {high:.{digits}f}; its mean is {mean}"


def _table(person: PersonView) -> Expert:
    words = {"nobody": "–", "not sent": "not sent", "lost": "did not arrive", "arrived": "arrived", "sent": "no report"}
    rows = []
    for each in reversed(person.points[-RECENT:]):
        came = "yes" if each.outcome is not None else "not yet" if each.waits(person.now) else "missing"
        rows.append(
            (
                moment(each.at, person.zone),
                fixed(each.probability) if each.available else NONE,
                ("sent" if each.action else "not sent") if each.available else "nobody could act",
                words[mark_of(each)] if each.action else NONE,
                came,
                RUNG_WORDS.get(each.rung, each.rung),
                each.version or NONE,
            )
        )
    columns = ("time", "probability of sending", "assigned", "delivery", "outcome is there", "decided by", "policy")
    caption = f"The newest {len(rows)} decisions, on the clock of {person.zone}"
    return Expert("The newest decisions as a table", [Table(caption, columns, rows, words=True)])


def advantage_section(person: PersonView) -> Section:
    """What acting was expected to add at each decision, with its interval."""
    known = [(each, mixture) for each in person.points if (mixture := each.advantage) is not None]
    heading = f"What {person.sending} was expected to change"
    if not known:
        return Section(heading, [Paragraph("The model has not been asked yet.")], "advantage")
    mean = [float(mixture.mean[0]) for _, mixture in known]
    ends = [mixture.interval(0.9) for _, mixture in known]
    low, high = ([float(each[side][0]) for each in ends] for side in (0, 1))
    width = high[-1] - low[-1]
    words = (
        f"At the last decision {person.sending} was expected to change {person.protocol.reward.outcome} by "
        f"{with_unit(rounded(mean[-1], width), person.unit)} (90 % interval {rounded(low[-1], width)} to "
        f"{rounded(high[-1], width)})."
    )
    if known[0][0].composition is None and len(known) > 1:
        words += (
            f" At the first one it was {rounded(mean[0], width)} ({rounded(low[0], width)} to "
            f"{rounded(high[0], width)}): that is what pilot users say of anybody."
        )
    data = Advantages(
        places([each.at for each, _ in known], person.zone),
        tuple(mean),
        tuple(low),
        tuple(high),
        person.lines(),
        f"change in\n{person.outcome_label}",
    )
    caption = "The model's belief when each decision was made, in that context. It is what sets the probability: "
    caption += f"{person.protocol.reward.direction}."
    return Section(heading, [Paragraph(words), GALLERY.picture(draw_advantages, data, words, caption)], "advantage")
