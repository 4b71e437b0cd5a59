"""What was found of the pilot users, in words: for how many of them the target rises, falls, or turns, and by how much.

Each covariate's effect is stated over one span for all of them (`trajectory.pilot_effects`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kerneltrail.data.checks.findings import QUANTILES
from kerneltrail.data.frames import UNNAMED
from kerneltrail.gp.prediction import freedom_of
from kerneltrail.kernels.phrases import capitalised, counted, listing, with_unit
from kerneltrail.report.description import Description, Sentence
from kerneltrail.report.terms import Terms, chance
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser

Row = Mapping[str, Any]
"""One pilot user's effect of one covariate."""

FAR_OUT = 0.1
"""Heaviness of the tails from which it is worth a sentence: some 20 degrees of freedom, or fewer."""

MOST_FREEDOM = 100.0
"""Degrees of freedom from which a Student-t is as good as a Normal."""

NEAR = 0.1
"""Turning points within this share of the span, to either side, count as one place."""


def group_description(model: LearntGraph) -> Description:
    """A sentence for each covariate, the largest effects first; on what acting adds; on outcomes that are no bell.

    There are none for models that keep no pilot users' effects.
    """
    by_covariate: dict[str, list[Row]] = {}
    for row in model.pilot_effects:
        by_covariate.setdefault(row["covariate"], []).append(row)
    order = sorted(by_covariate, key=lambda name: (-_weight(by_covariate[name]), name))
    terms = Terms(model.schema)
    found = [Sentence(_sentence(name, by_covariate[name], terms), covariates=(name,)) for name in order]
    more = (*_acting(model, terms), *_left_out(model, terms), *_tails(model), *_shape(model, terms)) if found else ()
    return Description((*found, *map(Sentence, more)))


def _acting(model: LearntGraph, terms: Terms) -> list[str]:
    """What acting is expected to change for somebody new in a usual context, and how far people differ in it."""
    shared = None if model.mean is None else model.mean.reward
    if not model.takes_action or shared is None or not shared.acts:  # nothing of it was learnt from pilot users
        return []
    somebody, usual = NewUser.start(model, UNNAMED), [model.pilot.usual(name) for name in model.covariates]
    change = somebody.advantage([usual])
    size, (low, high) = float(change.mean[0]), (float(end[0]) for end in change.interval())
    return [
        f"For somebody new, {terms.action} is expected to {'raise' if size >= 0.0 else 'lower'} {terms.target} by "
        f"{terms.amount(abs(size), high - low)} in a usual context. The change for one person lies between "
        f"{terms.between(low, high)} (90 % interval; probability {chance(float(change.positive[0]))} that "
        f"{terms.action} raises it): people may differ, and {counted(len(model.users), 'pilot user')} tell the average "
        "only so well.",
        *(_along(model, terms, somebody, usual, name) for name in shared.features if name in model.pilot.quantiles),
    ]


def _along(model: LearntGraph, terms: Terms, somebody: NewUser, usual: Sequence[float], name: str) -> str:
    """What acting is expected to change at a low and at a high value of a feature, all else being usual."""
    known, place = model.pilot.quantiles[name], model.covariates.index(name)
    low, high = np.interp((0.1, 0.9), QUANTILES if len(known) == len(QUANTILES) else (0.0, 1.0), known).tolist()
    contexts = [[*usual[:place], value, *usual[place + 1 :]] for value in (low, high)]
    change = somebody.advantage(contexts)
    ends = np.transpose(change.interval())
    first, second = (
        f"by {terms.change(size, b - a)} where it is {terms.at(name, value, high - low)} "
        f"(between {terms.between(a, b)})"
        for size, value, (a, b) in zip(change.mean.tolist(), (low, high), ends.tolist(), strict=True)
    )
    return (
        f"By {terms.called(name)}: for somebody new, {terms.action} is expected to change {terms.target} {first}, and "
        f"{second}; 90 % intervals for one person."
    )


def _left_out(model: LearntGraph, terms: Terms) -> list[str]:
    """What is not carried forward over covariates that move on, if kernels on them were left out."""
    worth = model.diagnostics.advancing
    if worth is None or worth.clear:
        return []
    over = listing(terms.called(name) for name in worth.covariates)
    reward = model.reward
    own = " and a steady rise or fall of their own" if reward is not None and reward.slopes else ""
    return [
        f"Over {over}, people are predicted to follow what they have in common{own}. How somebody departs from that "
        "for a while is not carried forward: what came next for the pilot users was not predicted clearly better so."
    ]


def _tails(model: LearntGraph) -> list[str]:
    """What is done about outcomes far from their predictions, if pilot users have many."""
    if model.tails < FAR_OUT and model.drawing is None:
        return []
    text = (
        f"Now and then a pilot user's {model.schema.label(model.schema.target)} lies much further from its prediction "
        f"than usual; intervals allow for that{_freedom(model)}."
    )
    if model.drawing is not None:
        text += (
            " So that such rows do not mislead, one that lies far from what a user's other rows say counts as if it "
            "lay nearer: the pilot users' next rows were predicted better so."
        )
    return [text]


def _shape(model: LearntGraph, terms: Terms) -> list[str]:
    """How outcomes lie around what is predicted, if not like a bell."""
    shape = model.shape
    if shape is None:
        return []
    unit = model.schema.unit(model.schema.target)
    exactly = [f"{point:.6g}".replace("-", "−") for point in shape.points if point is not None]
    ends = [word for word, end in (("lowest", shape.floor), ("highest", shape.ceiling)) if end is not None]
    if None not in shape.points:
        found = f": it has {len(exactly)} values only, from {exactly[0]} to {with_unit(exactly[-1], unit)}"
    elif ends:
        each = [f"the {word}, {with_unit(end, unit)}" for word, end in zip(ends, exactly, strict=True)]
        found = f": in many rows it is exactly {' or '.join(each)}"
    else:
        found = ""
    return [
        f"{terms.subject} does not follow a bell curve around what is predicted{found}. Intervals of new rows are "
        "learnt from how the pilot users' rows lie; the effects above are on the mean."
    ]


def _freedom(model: LearntGraph) -> str:
    """How heavy the tails are, for those who want to know."""
    if model.tails_interval is None or model.tails <= 0.0:
        return ""
    ends = (model.tails_interval[1], model.tails, max(model.tails_interval[0], 1e-6))
    least, typical, most = (round(float(freedom_of(each)), 1) for each in ends)
    if least == most:  # both ends stand at the fewest that are considered
        return f" (a Student-t distribution with {typical:g} degrees of freedom or fewer)"
    upper = f"to {most:g}" if most <= MOST_FREEDOM else "upwards"
    return f" (a Student-t distribution with {typical:g} degrees of freedom, 90 % interval {least:g} {upper})"


def _weight(rows: Sequence[Row]) -> float:
    """How much a covariate matters to the group: the average size of what is clear."""
    return sum(abs(row["change"]) for row in rows if row["clear"]) / len(rows)


def _sentence(name: str, rows: Sequence[Row], terms: Terms) -> str:
    up, down, turning, unclear, unused = _sorted_out(rows)
    called, count = terms.called(name), len(rows)
    if len(unused) == count:
        return f"{capitalised(called)} plays no part for any of the {count} pilot users."
    if not (up or down or turning):
        aside = f"; for {len(unused)} of them it plays no part" if unused else ""
        return f"{capitalised(called)} has no clear effect for any of the {count} pilot users{aside}."
    directed = [row for row in rows if _has_direction(row)]
    parts: list[str] = []

    def add(what: str, some: Sequence[Row], detail: str) -> None:
        whom = f"{len(some) or 'none'}{'' if parts else f' of {count} pilot users'}"
        parts.append(f"{what} for {whom}{detail}")

    if up or down:
        verbs = ("rises", "falls") if directed[0]["levels"] is None else ("is higher", "is lower")
        many, few = sorted(zip(verbs, (up, down), strict=True), key=lambda pair: -len(pair[1]))
        add(*many, f" (by {_sizes(many[1], terms)})")
        if few[1]:
            add(*few, f" (by {_sizes(few[1], terms)})")
        elif len(up) + len(down) < count:
            add(*few, "")
    if turning:
        add(_course(name, turning, terms), turning, "")
    if unclear:
        parts.append(f"is not clear for {len(unclear)}")
    if unused:
        parts.append(f"{called} plays no part for {len(unused)}")
    text = f"{_condition(name, directed, terms)}, {terms.target} {_joined(parts)}."
    return f"{text} {_turning_points(name, turning, terms)}" if turning else text


def _joined(parts: Sequence[str]) -> str:
    """Clauses as a list; each may hold "and" itself."""
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _has_direction(row: Row) -> bool:
    """Whether a row compares the same two values for everybody, rather than a user's highest with the lowest."""
    return row["shape"] in ("line", "trend") or row["levels"] == 2


def _sorted_out(rows: Sequence[Row]) -> tuple[list[Row], ...]:
    """Users for whom the target rises, falls, turns, is unclear, and has nothing to do with the covariate."""
    kinds: tuple[list[Row], ...] = tuple([] for _ in range(5))
    up, down, turning, unclear, unused = kinds
    for row in rows:
        if row["change"] == row["lower"] == row["upper"] == 0.0:
            unused.append(row)
        elif not row["clear"]:
            unclear.append(row)
        elif _has_direction(row):
            (up if row["change"] > 0 else down).append(row)
        else:
            turning.append(row)
    return kinds


def _condition(name: str, directed: Sequence[Row], terms: Terms) -> str:
    called = terms.called(name)
    if not directed:
        return f"Depending on {called}"
    start, end = directed[0]["from"], directed[0]["to"]
    if directed[0]["levels"] is not None:
        return f"Where {called} is {terms.at(name, end)} rather than {terms.at(name, start)}"
    return f"As {called} goes {terms.span(name, start, end)}"


def _sizes(rows: Sequence[Row], terms: Terms) -> str:
    """The least and the greatest of the users' estimates."""
    sizes = [abs(row["change"]) for row in rows]
    width = float(np.median([row["upper"] - row["lower"] for row in rows]))
    least, most = (terms.amount(size, width) for size in (min(sizes), max(sizes)))
    return most if least == most else f"{least.split(' ')[0]} to {most}"


def _course(name: str, rows: Sequence[Row], terms: Terms) -> str:
    """What most of those whose effects turn have in common."""
    if rows[0]["levels"] is not None:
        return "differs"
    periods = [row["period"] for row in rows if row["period"] is not None]
    if 2 * len(periods) <= len(rows):
        return "goes up and down"
    return f"goes up and down, every {terms.period(name, float(np.median(periods)))} or so,"


def _turning_points(name: str, rows: Sequence[Row], terms: Terms) -> str:
    """Where most of those whose effects turn are highest and lowest, and by how much that differs."""
    # The change is counted upwards: from where the effect is least to where it is greatest.
    peaks, troughs = ([row[key] for row in rows] for key in ("to", "from"))
    width = float(np.ptp([*peaks, *troughs]))
    near = 0.0 if rows[0]["levels"] is not None else NEAR * width
    about = "about " if near else ""
    places = []
    for word, values in (("highest", peaks), ("lowest", troughs)):
        centre, count = _most(values, near)
        if 2 * count > len(rows):
            whom = "" if len(rows) == 1 else "all " if count == len(rows) else f"{count} "
            where = f"where {terms.called(name)} is {about}{terms.at(name, centre, width)}"
            places.append(f"{whom}{'are ' if whom else 'is '}{word} {where}")
    within = "" if rows[0]["levels"] is not None else ", within the middle 80 % of all pilot users' rows"
    sizes = f"highest and lowest differ by {_sizes(rows, terms)}{within}"
    if len(rows) == 1:
        places = [place.removeprefix("is ") for place in places]
        return f"For this one it is {' and '.join(places)}; {sizes}."
    if not places:
        return f"Of these {len(rows)} users, no more than half are highest, or lowest, at the same place; {sizes}."
    return f"Of these {len(rows)} users, {' and '.join(places)}; {sizes}."


def _most(values: Sequence[float], near: float) -> tuple[float, int]:
    """Where most of some values lie: their middle, and how many lie that near."""
    groups = [[value for value in values if abs(value - centre) <= near] for centre in sorted(values)]
    largest = max(groups, key=len)
    return float(np.median(largest)) if near else largest[0], len(largest)
