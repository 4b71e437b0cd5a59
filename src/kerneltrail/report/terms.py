"""What things are called in sentences: columns, values, spans, sizes and probabilities, by a table's schema."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.data import Schema
from kerneltrail.kernels.phrases import capitalised, quantity, rounded, singular, with_unit

CERTAIN = 0.99
"""A probability above this is said as "above 0.99"; one below 0.01 as "below 0.01"."""


def chance(probability: float) -> str:
    """A probability as people write it.

    >>> chance(0.999), chance(0.93), chance(0.002)
    ('above 0.99', '0.93', 'below 0.01')
    """
    if probability > CERTAIN:
        return f"above {CERTAIN:g}"
    return f"below {1.0 - CERTAIN:.2g}" if probability < 1.0 - CERTAIN else f"{probability:.2f}"


def sureness(probability: float) -> str:
    """How sure something is, in words and as a number.

    >>> sureness(0.999), sureness(0.98), sureness(0.93), sureness(0.7)
    ('almost certain (probability above 0.99)', 'very likely (probability 0.98)', 'likely (probability 0.93)', \
'more likely than not (probability 0.70)')
    """
    words = {CERTAIN: "almost certain", 0.95: "very likely", 0.8: "likely", 0.5: "more likely than not"}
    word = next((word for least, word in words.items() if probability > least), "not likely")
    return f"{word} (probability {chance(probability)})"


@dataclass(frozen=True)
class Terms:
    """The words of one table: labels where columns have them, else names; names of values, else numbers with units."""

    schema: Schema

    @property
    def target(self) -> str:
        """The target, within a sentence."""
        return self.schema.label(self.schema.target)

    @property
    def subject(self) -> str:
        """The target, at the start of a sentence."""
        return capitalised(self.target)

    @property
    def action(self) -> str:
        """The action, within a sentence."""
        return "the action" if self.schema.action is None else self.schema.label(self.schema.action)

    def called(self, column: str) -> str:
        """A column, within a sentence."""
        return self.schema.label(column)

    def amount(self, value: float, width: float) -> str:
        """A size of the target with its unit, to the digits that its uncertainty leaves."""
        return with_unit(rounded(value, width), self.schema.unit(self.schema.target))

    def change(self, value: float, width: float) -> str:
        """An amount with its sign: "+12 s", "−3 s", "0 s"."""
        text = self.amount(value, width)
        return text if text.startswith("−") or rounded(value, width) == "0" else f"+{text}"

    def interval(self, low: float, high: float) -> str:
        """An interval's ends without a unit: "0.55 to 1.02"."""
        return f"{rounded(low, high - low)} to {rounded(high, high - low)}"

    def between(self, low: float, high: float) -> str:
        """An interval that may hold 0, with signs and the target's unit: "−0.2 and +0.5 log steps"."""
        ends = (rounded(end, high - low) for end in (low, high))
        low_text, high_text = (text if text[0] in "0−" and not text.startswith("0.") else f"+{text}" for text in ends)
        return f"{low_text} and {with_unit(high_text, self.schema.unit(self.schema.target))}"

    def at(self, column: str, value: float, width: float = 0.0) -> str:
        """A value of a covariate within a range of that width: its name, or its number with its unit."""
        name = self.schema.name_of(column, value)
        return name if name is not None else with_unit(rounded(value, 0.5 * width), self._unit(column))

    def span(self, column: str, start: float, end: float) -> str:
        """From where to where on a covariate: "from 5 to 20 °C"."""
        if self.schema.name_of(column, start) or self.schema.name_of(column, end):
            return f"from {self.at(column, start, abs(end - start))} to {self.at(column, end, abs(end - start))}"
        low, high = (rounded(value, 0.5 * abs(end - start)) for value in (start, end))
        return f"from {low} to {with_unit(high, self._unit(column))}"

    def per(self, column: str) -> str:
        """One unit of a covariate: "per °C", "for each unit of steps"."""
        unit = self.schema.unit(column)
        return f"per {singular(unit)}" if unit else f"for each unit of {self.called(column)}"

    def period(self, column: str, length: float) -> str:
        """How far on a covariate a rhythm takes: "24 hours", or "day" for one day."""
        return quantity(length, self.schema.unit(column)).removeprefix("1 ")

    def _unit(self, column: str) -> str:
        """The unit, but not of a column that is called by it: "where hour is 5", not "where hour is 5 hours"."""
        unit = self.schema.unit(column)
        return "" if singular(unit).lower() == self.called(column).lower() else unit
