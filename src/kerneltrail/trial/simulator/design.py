"""Designs that are compared: a protocol with other limits, slopes, rhythms, and numbers of people and days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from kerneltrail.errors import DataError
from kerneltrail.names import nearest
from kerneltrail.trial.protocol import Protocol

KEYS = ("participants", "days", "rule", "clip", "slope", "updates", "delta", "per_dose")
"""What may vary in a grid."""


@dataclass(frozen=True)
class Design:
    """How a trial is run; what is None is as the protocol has it.

    Attributes:
        participants, days: how many.
        rule: of allocation, or a preset, by name.
        clip: the least and the largest probability.
        slope: of a smooth allocation, per noise standard deviation.
        updates: ``daily``, ``weekly``, ``never``, or a number of outcomes.
        delta: what the benefit must exceed, in units of the outcome.
        per_dose: what it must exceed besides for each unit of the dose.
    """

    participants: int
    days: int
    rule: str | None = None
    clip: tuple[float, float] | None = None
    slope: float | None = None
    updates: str | None = None
    delta: float | None = None
    per_dose: float | None = None

    @property
    def label(self) -> str:
        """What people read."""
        parts = [f"{self.participants} people", f"{self.days} days"]
        if self.rule is not None:
            parts.append(self.rule)
        if self.clip is not None:
            parts.append(f"limits {_shortest(self.clip[0])}–{_shortest(self.clip[1])}")
        if self.slope is not None:
            parts.append(f"slope {_shortest(self.slope)}")
        if self.updates is not None:
            parts.append(f"every {self.updates} outcomes" if self.updates.isdigit() else f"{self.updates} updates")
        if self.delta is not None:
            parts.append(f"at least {_shortest(self.delta)}")
        if self.per_dose is not None:
            parts.append(f"{_shortest(self.per_dose)} per dose")
        return ", ".join(parts)

    def protocol(self, base: Protocol, commitment: str) -> Protocol:
        """The protocol of the design, committed to the key of a simulated trial."""
        stored = base.to_json()
        stored["draw"] = {**stored["draw"], "commitment": commitment}
        if self.rule is not None:
            stored["allocation"] |= {"rule": self.rule, "parameters": {}}
        if self.clip is not None:
            lower, upper = self.clip
            stored["limits"] = {"lower": lower, "upper": upper}
            stored["fallback"]["fixed"] = min(max(stored["fallback"]["fixed"], lower), upper)
            if "p" in stored["allocation"]["parameters"]:
                stored["allocation"]["parameters"]["p"] = min(
                    max(stored["allocation"]["parameters"]["p"], lower), upper
                )
        if self.slope is not None:
            stored = Protocol.from_json(stored).to_json()
            if "slope" not in stored["allocation"]["parameters"]:
                raise DataError(f"the rule {stored['allocation']['rule']} has no slope that a grid could vary")
            stored["allocation"]["parameters"] |= {"slope": self.slope, "per": "noise sd"}
        if self.updates is not None:
            stored["updates"] = _updates(self.updates, stored["updates"])
        for name in ("delta", "per_dose"):
            if getattr(self, name) is not None:
                stored["burden"][name] = getattr(self, name)
        return Protocol.from_json(stored)


def _updates(text: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: stored[key] for key in ("timezone", "largest_shift") if key in stored}
    rhythms: dict[str, dict[str, Any]] = {
        "daily": {"daily": "03:00"},
        "weekly": {"weekly": "Monday 03:00"},
        "never": {"by_hand": True},
    }
    if text.isdigit() and int(text) > 0:
        return {**kept, "every": int(text)}
    if text not in rhythms:
        raise DataError(f"updates are daily, weekly, never, or a number of outcomes, got {text!r}")
    return {**kept, **rhythms[text]}


def designs_of(participants: int, days: int, grid: Sequence[str] = ()) -> tuple[Design, ...]:
    """All designs of a grid such as ``["clip=0.2:0.8,0.1:0.9", "updates=daily,weekly"]``.

    A key, or a value of one, that stands there twice is refused: it would be lost, or its trials counted twice.

    >>> [design.label for design in designs_of(40, 42, ["slope=5,10"])]
    ['40 people, 42 days, slope 5', '40 people, 42 days, slope 10']
    """
    values: dict[str, list[Any]] = {"participants": [participants], "days": [days]}
    seen: set[str] = set()
    for text in grid:
        key, equals, listed = text.partition("=")
        if key not in KEYS:
            raise DataError(f"a grid has no key {key!r}; {nearest(key, KEYS, 'there are')}")
        if not equals or not listed:
            raise DataError(f"a grid is written as KEY=VALUE,VALUE, such as slope=5,10; {text!r} has no value")
        parts = listed.split(",")
        if key in seen:
            raise DataError(f"the grid has {key} twice; write all its values into one, such as {key}={parts[0]},…")
        seen.add(key)
        values[key] = [_value(key, part) for part in parts]
        for place, value in enumerate(values[key]):
            if value in values[key][:place]:
                raise DataError(f"{key} in the grid has the value {parts[place].strip()} twice: {text!r}")
    return tuple(Design(**dict(zip(values, each, strict=True))) for each in product(*values.values()))


def _shortest(value: float) -> str:
    """A number in few digits, but in all that tell it from another."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _value(key: str, text: str) -> Any:
    try:
        if key in ("participants", "days"):
            number = int(text)
            if number < (2 if key == "participants" else 1):
                raise ValueError
            return number
        if key == "clip":
            lower, upper = map(float, text.split(":"))
            return lower, upper
        if key in ("updates", "rule"):
            word = text.strip()
            return str(int(word)) if word.isdecimal() else word
        return float(text)
    except ValueError:
        whole = {"participants": "a whole number from 2", "days": "a whole number from 1"}
        expected = {"clip": "two numbers such as 0.2:0.8", **whole}
        raise DataError(f"{key} in a grid is {expected.get(key, 'a number')}, got {text!r}") from None
