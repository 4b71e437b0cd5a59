"""The context of a decision as the app sent it: checked field by field, and filled in where the protocol says how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from kerneltrail.data.arrays import LARGEST
from kerneltrail.data.columns import text_of
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import DataError, DecisionError
from kerneltrail.names import nearest, shortened
from kerneltrail.store.validate import short
from kerneltrail.trial.past import Past
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.sections import CovariateSection, Imputation


@dataclass(frozen=True)
class Imputed:
    """A covariate that was missing, and what stood in for it."""

    covariate: str
    rule: Imputation
    value: float


@dataclass(frozen=True)
class Context:
    """A context in the model's terms.

    Attributes:
        arrived: values that came, by covariate; a level as its code.
        missing: covariates that did not come.
    """

    arrived: Mapping[str, float]
    missing: tuple[str, ...]

    def filled(self, protocol: Protocol, past: Past, slot: str) -> tuple[dict[str, float], tuple[Imputed, ...]]:
        """All values, and those that were filled in.

        Raises:
            DataError: where nothing is known yet that could stand in.
        """
        values, imputed = dict(self.arrived), []
        for name in self.missing:
            rule = protocol.covariates[name].missing
            value = past.seen.get(name) if rule == "last_seen" else past.mean(slot, name)
            if value is None:
                known = "was never seen before" if rule == "last_seen" else f"was never seen at {slot!r}"
                raise DataError(f"{name} is missing and {known}, so nothing can stand in for it")
            values[name] = value
            imputed.append(Imputed(name, rule, value))
        return values, tuple(imputed)


def read_context(protocol: Protocol, given: Mapping[str, Any], past: Past, *, needed: bool = True) -> Context:
    """A context, checked.

    Args:
        protocol: says what should arrive.
        given: by field, a number, a level, or None where it is missing; a field that is left out is missing, too.
        past: of the participant, for the dose.
        needed: whether a decision will be made from it, so that what may not be missing must be there.

    Raises:
        DecisionError: naming the field.
    """
    fields = {each.field: name for name, each in protocol.covariates.items() if each.arrives == "context"}
    for field in given:
        if field not in fields:
            raise DecisionError(f"context has an unknown field {field!r}; {nearest(str(field), tuple(fields))}")
    arrived: dict[str, float] = {}
    missing = []
    for name, section in protocol.covariates.items():
        if section.arrives == "dose":
            arrived[name] = past.dose
        elif (value := given.get(section.field)) is not None:
            arrived[name] = _value(section, value)
        elif section.missing == "refuse" and needed:
            raise DecisionError(f"context.{section.field} is missing, and the protocol says to refuse that")
        else:
            missing.append(name)
    return Context(FrozenDict(arrived), tuple(missing))


def _value(section: CovariateSection, value: Any) -> float:
    where = f"context.{section.field}"
    if section.levels is not None:
        text = text_of(value) if isinstance(value, str | Real) and not isinstance(value, bool) else None
        if text not in section.levels:
            raise DecisionError(f"{where} must be one of {shortened(section.levels)}, got {value!r}")
        return float(section.levels.index(text))
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's numbers are real, too
        raise DecisionError(f"{where} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number that is too long
        number = inf
    if not abs(number) <= LARGEST:
        raise DecisionError(f"{where} must be a finite number of at most {LARGEST:g}, got {short(value)}")
    low, high, unit = section.low, section.high, section.unit and f" {section.unit}"
    if low is not None and number < low:
        raise DecisionError(f"{where} must be at least {low:g}{unit}, got {number:g}")
    if high is not None and number > high:
        raise DecisionError(f"{where} must be at most {high:g}{unit}, got {number:g}")
    return number
