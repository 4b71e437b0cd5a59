"""What acting changed in a trial: over everybody, by kind of decision, and by each moderator, with plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.errors import DataError
from kerneltrail.kernels.phrases import counted, limit, listing, quantity, rounded
from kerneltrail.trial.analysis.excursion import INTERCEPT, Estimate, ExcursionEffects
from kerneltrail.trial.analysis.record import TIME, Record
from kerneltrail.trial.analysis.wcls import wcls

EVERYBODY = "all decisions"
LOW, HIGH = 10, 90
"""Percentiles of a moderator at which the effect is stated."""
ROOM = 2
"""Covariates are controls only with so many participants for each coefficient."""


@dataclass(frozen=True)
class ActingEffect:
    """One estimate: of the effect over everybody, or of how it changes with a moderator.

    Attributes:
        name: `all decisions`, a kind of decisions, or a moderator.
        moderators: its columns; none for an effect over everybody.
        fitted: the estimate; None where it cannot be had.
        problem: why not.
        places: values of a moderator of one column at which the effect is stated: low and high.
        curve: values over its range, for a drawing.
    """

    name: str
    moderators: tuple[str, ...] = ()
    fitted: ExcursionEffects | None = None
    problem: str = ""
    places: tuple[float, ...] = ()
    curve: tuple[float, ...] = ()

    def at(self, value: float) -> Estimate:
        """What acting adds where the moderator has a value."""
        if self.fitted is None:
            raise DataError(f"the effect by {self.name} could not be estimated: {self.problem}")
        return self.fitted.combined({INTERCEPT: 1.0, self.moderators[0]: value})

    @property
    def change(self) -> Estimate | None:
        """How the effect differs between the high and the low place; None where there are none."""
        if self.fitted is None or len(self.places) < 2:
            return None
        return self.fitted.combined({self.moderators[0]: self.places[1] - self.places[0]})


@dataclass(frozen=True)
class ActingEffects:
    """All estimates of an analysis; `primary` is the effect over everybody.

    Attributes:
        primary: over all decisions.
        by_kind: over the decisions of each kind, where there are several.
        moderated: by each moderator.
        controls: covariates that explain the outcome without acting.
        level: of intervals.
    """

    primary: ActingEffect
    by_kind: tuple[ActingEffect, ...]
    moderated: tuple[ActingEffect, ...]
    controls: tuple[str, ...]
    level: float


def estimate_effects(
    record: Record, moderators: Sequence[str], *, controls: Sequence[str] | None = None, level: float = 0.95
) -> ActingEffects:
    """Estimate everything; what cannot be is said where it would stand.

    Args:
        record: of the trial.
        moderators: covariates, or `time`.
        controls: covariates; all of them if None, where there are enough participants.
        level: of intervals.

    Raises:
        DataError: for a name that is none.
    """
    columns = record.columns()
    people = len({point.participant for point in record.points})
    if controls is None:
        every = tuple(column for several in record.covariates.values() for column in several)
        chosen = every if people > ROOM * (len(every) + 3) else ()
    else:
        chosen = tuple(column for name in controls for column in record.moderator(name))

    def fitted(name: str, rows: dict[str, NDArray[Any]], columns_of: tuple[str, ...] = ()) -> ActingEffect:
        try:
            found = wcls(rows, columns_of, chosen, level=level)
        except DataError as problem:
            return ActingEffect(name, columns_of, problem=str(problem))
        if len(columns_of) != 1:
            return ActingEffect(name, columns_of, found)
        if not record.is_number(name):  # one of two levels
            return ActingEffect(name, columns_of, found, "", (0.0, 1.0))
        used = rows[columns_of[0]][(rows["availability"] == 1) & ~np.isnan(rows["outcome"])]
        low, high = (float(value) for value in np.nanpercentile(used, [LOW, HIGH]))
        least, largest = float(np.nanmin(used)), float(np.nanmax(used))
        if low == high:
            low, high = least, largest
        grid = tuple(np.linspace(least, largest, 41).tolist())
        return ActingEffect(name, columns_of, found, "", (low, high), grid)

    kinds = record.kinds if len(record.kinds) > 1 else ()
    return ActingEffects(
        fitted(EVERYBODY, columns),
        tuple(fitted(kind, record.of_kind(kind).columns()) for kind in kinds),
        tuple(fitted(_shown(name, record), columns, record.moderator(name)) for name in moderators),
        chosen,
        level,
    )


def _shown(name: str, record: Record) -> str:
    return TIME if record.moderator(name) == (TIME,) else name


def sized(estimate: Estimate, unit: str, level: float) -> str:
    """An estimate with its interval, in words."""
    width = estimate.upper - estimate.lower
    after = f" {unit}" if unit else ""
    low, high = limit(estimate.lower, width), limit(estimate.upper, width)
    return f"{rounded(estimate.value, width)}{after} ({100 * level:g} % interval {low} to {high})"


def verdict(estimate: Estimate, verb: str = "acting") -> str:
    """What an interval lets one say of a sign."""
    if estimate.lower > 0:
        return f"{verb} raised it"
    if estimate.upper < 0:
        return f"{verb} lowered it"
    return f"the data do not tell whether {verb} raises or lowers it"


def primary_words(effects: ActingEffects, record: Record) -> list[str]:
    """The effect over everybody, in sentences."""
    return [
        sentence
        for effect in (effects.primary, *effects.by_kind)
        for sentence in _marginal(effect, record, effects.level)
    ]


def _marginal(effect: ActingEffect, record: Record, level: float) -> list[str]:
    over = "On average over all decisions" if effect.name == EVERYBODY else f"Over decisions of the kind {effect.name}"
    if effect.fitted is None:
        return [f"{over}, what acting changed could not be estimated: {effect.problem}."]
    each = effect.fitted["acting"]
    size = sized(each, record.unit, level)
    lines = [f"{over} at which somebody could act, acting changed {record.outcome} by {size}: {verdict(each)}."]
    if effect.name == EVERYBODY:
        used = f"{counted(effect.fitted.n, 'participant')} and {counted(effect.fitted.rows, 'decision')}"
        lines.append(f"This rests on {used} with an outcome. {effect.fitted.left_out()}".strip())
    return lines


def moderated_words(effect: ActingEffect, record: Record, level: float) -> list[str]:
    """How the effect changes with a moderator, in sentences."""
    if effect.fitted is None:
        return [f"{record.label(effect.name)}: could not be estimated. {effect.problem}."]
    change = effect.change
    if change is None:
        changes = [
            f"{record.label(name)}: {sized(effect.fitted[name], record.unit, level)}" for name in effect.moderators
        ]
        name = record.label(effect.name)
        return [f"By {name}, beside the first level the effect of acting changes so: {listing(changes)}."]
    states = [
        f"{where(effect, place, record)}, acting changed {record.outcome} by "
        f"{sized(effect.at(place), record.unit, level)}"
        for place in effect.places
    ]
    first = f"{states[0][0].upper()}{states[0][1:]}"
    sure = "the effect differs" if change.clear else "the data do not tell whether the effect differs"
    return [f"{first}; {states[1]}. The difference is {sized(change, record.unit, level)}: {sure}."]


def where(effect: ActingEffect, place: float, record: Record) -> str:
    """A value of a moderator, in words."""
    if effect.moderators == (TIME,):
        return f"after {counted(round(place), 'day')}"
    section = record.protocol.covariates.get(effect.name)
    if section is not None and section.levels:
        return f"where {record.label(effect.name)} is {section.levels[round(place)]}"
    value = quantity(place, section.unit if section is not None else "").replace("-", "−")
    return f"where {record.label(effect.name)} is {value}"
