"""A participant's outcomes beside what was predicted of them: for who is blinded, means that never tell a single one.

Assignments are listed on the page, so an outcome that could be worked out from two looks at it would be one by its
action. A mean is therefore of whole days, of several outcomes, after messages and after none; it is shown once its days
are settled (`Point.settles_at`), of what had come by then; and nothing that comes later changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10

import numpy as np

from kerneltrail.kernels.phrases import counted, rounded, with_unit
from kerneltrail.report.page import Block, Paragraph, Picture, Section
from kerneltrail.trial.alarms import DUE_WORDS
from kerneltrail.trial.dashboard.drawing import GALLERY, Outcomes, draw_outcomes, places
from kerneltrail.trial.dashboard.foresight import interval
from kerneltrail.trial.dashboard.person import PersonView
from kerneltrail.trial.dashboard.texts import share
from kerneltrail.trial.decided import Point

GROUP = 5
"""Outcomes that are averaged at least."""
HIDDEN = (
    f"Means are of whole days, of {GROUP} outcomes at least, some after a message and some after none. A day counts "
    "once it is over and its outcomes have had a day more to come; what comes later is left out."
)
"""What is shown to who is blinded."""


@dataclass(frozen=True)
class Shown:
    """A mark of the picture: what was observed, alone or as a mean, beside what was predicted of it.

    Attributes:
        at: when; of several decisions, the middle.
        value: observed.
        mean, low, high: predicted.
        action: assigned, −1 where nobody could act; of a mean None.
    """

    at: datetime
    value: float
    mean: float
    low: float
    high: float
    action: int | None = None


def outcome_section(person: PersonView, *, by_action: bool) -> Section:
    """Outcomes beside what was predicted of them: means of several, or, if it may be shown, each by its action."""
    marks = _each(person) if by_action else _means(person)
    due = [each for each in person.points if each.available and each.is_due(person.now)]
    missing = sum(each.is_missing(person.now) for each in due)
    words = f"Missing: {share(missing, len(due))} of the outcomes that should be there ({DUE_WORDS})." if due else ""
    blocks: list[Block] = [Paragraph(words)] if words else []
    if not marks:
        known = any(each.outcome is not None for each in person.points)
        none = f"There are not enough outcomes yet. {HIDDEN}" if known else "No outcome has been recorded yet."
        return Section("Outcomes", [*blocks, Paragraph(none)], "outcomes")
    blocks += [Paragraph(_inside(marks, person)), _picture(marks, person, by_action=by_action)]
    return Section("Outcomes by action" if by_action else "Outcomes", blocks, "outcomes")


def _each(person: PersonView) -> list[Shown]:
    """Every outcome that counts."""
    return [
        Shown(each.at, each.outcome, *interval([foreseen]), each.action if each.available else -1)
        for each in person.points
        if each.outcome is not None and (foreseen := person.foreseen.get(each.sequence)) is not None
    ]


def _means(person: PersonView) -> list[Shown]:
    """Means of settled outcomes, no more exact than is of use beside their interval."""
    marks = []
    for group in grouped(person.points, person.now):
        # Without those of whom nothing is predicted now: a mean that was shown must not change with them.
        foreseen = [person.foreseen[each.sequence] for each in group if each.sequence in person.foreseen]
        if foreseen:
            mean, low, high = interval(foreseen)
            value = _mean(group)
            middle = group[0].at + (group[-1].at - group[0].at) / 2
            marks.append(Shown(middle, _coarse(value, high - low), mean, low, high))
    return marks


def settled_mean(points: Iterable[Point], now: datetime) -> float | None:
    """The mean of a participant's outcomes that are in `grouped`; None where none are."""
    groups = grouped(points, now)
    return _mean([each for group in groups for each in group]) if groups else None


def _mean(group: Sequence[Point]) -> float:
    return float(np.mean([each.settled for each in group if each.settled is not None]))


def _coarse(value: float, width: float) -> float:
    """A value to two digits of a width.

    >>> _coarse(1.2871, 0.853), _coarse(-63.71, 46.0)
    (1.29, -64.0)
    """
    return round(value, 1 - floor(log10(width))) if width > 0.0 else value


def grouped(points: Iterable[Point], now: datetime) -> list[list[Point]]:
    """Decisions whose outcomes are averaged: settled days, joined until there are enough, after both actions.

    Args:
        points: of one participant.
        now: what time it is; what was a group before is one with the same decisions ever after.
    """
    groups: list[list[Point]] = []
    for each in sorted(points, key=lambda each: (each.at.date(), each.at, each.sequence)):  # days as they are settled
        if each.settled is None or each.settles_at > now:
            continue
        if not groups or (each.at.date() != groups[-1][-1].at.date() and _is_enough(groups[-1])):
            groups.append([])
        groups[-1].append(each)
    return [group for group in groups if _is_enough(group)]


def _is_enough(group: Sequence[Point]) -> bool:
    return len(group) >= GROUP and len({each.action for each in group}) > 1


def _inside(marks: Sequence[Shown], person: PersonView) -> str:
    inside = sum(each.low <= each.value <= each.high for each in marks)
    last, what = marks[-1], "means" if marks[-1].action is None else "outcomes"
    width = last.high - last.low
    words = (
        f"{inside} of {len(marks)} {what} lie in the 90 % interval that was predicted before they were seen. The last "
        f"is {with_unit(rounded(last.value, width), person.unit)}, predicted {rounded(last.low, width)} to "
        f"{rounded(last.high, width)}."
    )
    if person.protocol.pooling == "pooled":  # predictions are made anew by the newest model, which has seen them all
        words += " The model was learnt from everybody's outcomes, these among them, so this flatters it."
    return words


def _picture(marks: Sequence[Shown], person: PersonView, *, by_action: bool) -> Picture:
    data = Outcomes(
        places([each.at for each in marks], person.zone),
        value=tuple(each.value for each in marks),
        mean=tuple(each.mean for each in marks),
        low=tuple(each.low for each in marks),
        high=tuple(each.high for each in marks),
        action=tuple(each.action for each in marks if each.action is not None),
        updates=person.lines(),
        ylabel=person.outcome_label,
        words=f"observed, mean of {GROUP} or more",
    )
    alt = f"{counted(len(marks), 'value')} of {person.outcome_label} over time. {_inside(marks, person)}"
    if by_action:
        caption = (
            "Each mark is an outcome: triangles where a message was assigned, dots where none was, grey squares where "
            "nobody could act."
        )
    else:
        caption = (
            f"Each dot is a mean. {HIDDEN} Outcomes by action are shown to those whose key is “unblinded”, and each "
            "look is recorded."
        )
    caption += " Bars: predicted before the outcomes were seen, and before it was drawn whether to send."
    return GALLERY.picture(draw_outcomes, data, alt, caption)
