"""Replay: a recorded decision beside the one that is made anew from the same protocol, policy, state and request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kerneltrail.trial.answer import Decision

TOLERANCE = 1e-9
"""On another kind of machine sums round otherwise; a probability may differ by so much."""

COMPUTED = ("advantage", "advantage_parts", "probability", "probability_of_action", "raw_hex", "probability_hex")
"""What a model computed, in a record. Words are made of it, and not compared."""


@dataclass(frozen=True)
class Comparison:
    """How a recorded decision and the one made anew agree.

    Attributes:
        exact: whether they are the same to the last bit, words included.
        difference: the first thing that differs by more than the tolerance; empty if nothing does.
        close_call: whether the draw lies so close to the probability that the action could have been the other.
    """

    exact: bool
    difference: str
    close_call: bool

    @property
    def equal(self) -> bool:
        """Whether they agree: to the last bit, or within the tolerance with the same action."""
        return not self.difference


def compare(record: Mapping[str, Any], decision: Decision, tolerance: float = TOLERANCE) -> Comparison:
    """A record, as of `Decision.record`, beside a decision made anew."""
    new = decision.record()
    near = decision.number is not None and abs(decision.number - decision.probability) <= tolerance
    if dict(record) == new:
        return Comparison(True, "", near)
    for key in (*new, *(key for key in record if key not in new)):
        one, other = record.get(key), new.get(key)
        if key != "words" and not _agree(one, other, tolerance if key in COMPUTED else 0.0):
            return Comparison(False, f"{key} was {one!r} and is now {other!r}", near)
    return Comparison(False, "", near)


def _agree(one: Any, other: Any, tolerance: float) -> bool:
    if one == other or not tolerance:
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        return all(_agree(one[key], other[key], tolerance) for key in one)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(_agree(a, b, tolerance) for a, b in zip(one, other, strict=True))
    try:
        first, second = (float.fromhex(each) if isinstance(each, str) else float(each) for each in (one, other))
    except (TypeError, ValueError):
        return False
    return abs(first - second) <= tolerance * max(1.0, abs(first))
