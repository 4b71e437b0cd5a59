"""Small pieces of language that atoms use to say what they mean: numbers, units, places, and phrases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SINGULARS = {"feet": "foot", "inches": "inch", "people": "person", "entries": "entry", "%": "percentage point"}
_CLOSE = 0.15
"""A code this close to a level's is said as that level."""
_FEW = 6
"""Up to this many levels are listed by name."""


@dataclass(frozen=True)
class Phrase:
    """What an atom says.

    Attributes:
        clause: completes "the target will …" when the atom leads a product.
        modifier: narrows the clause of an atom on another covariate when it is multiplied with this one.
        within: the same, where the leading atom stands on the same covariate; `modifier` if left empty.
        lead: atoms with the lowest number lead; the others modify.
    """

    clause: str
    modifier: str
    within: str = ""
    lead: int = 2


class Unit(str):
    """A covariate's unit; for a categorical one also the names of its levels, in the order of their codes 0, 1, ….

    It is a `str`, so an atom that knows nothing of levels still has a unit to print.

    >>> Unit("hours"), Unit(levels=("still", "active")).levels
    ('hours', ('still', 'active'))
    """

    levels: tuple[str, ...]

    def __new__(cls, unit: str = "", levels: Iterable[str] = ()) -> Unit:
        """A unit, with levels if the covariate is categorical."""
        names = tuple(levels)
        self = super().__new__(cls, unit or ("levels" if names else ""))
        self.levels = names
        return self


def levels_of(unit: str) -> tuple[str, ...]:
    """The level names that a unit carries; none for a plain text."""
    return unit.levels if isinstance(unit, Unit) else ()


def number(value: float) -> str:
    """A number as people write it: three significant digits, no exponent between 0.001 and a million.

    >>> number(3.0612), number(1465.2), number(0.21), number(-0.0), number(2.5e6), number(1.2e-7)
    ('3.06', '1465', '0.21', '0', '2.5×10⁶', '1.2×10⁻⁷')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) < 1e-12:
        return "0"
    rounded = float(f"{value:.3g}")  # decides the magnitude: 999.6 is written 1000, not 999.6
    size = abs(rounded)
    if size < 1e-3 or size >= 1e6:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{_trim(mantissa)}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return _trim(f"{value:.{max(0, 2 - math.floor(math.log10(size)))}f}")


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(value: float, width: float) -> str:
    """A number to the digits that mean something beside an interval or a span of that width: two of the width's.

    >>> rounded(1.2871, 0.853), rounded(-63.7, 46.0), rounded(-0.04, 12.4), rounded(12345.0, 4600.0), rounded(0.5, 0.0)
    ('1.29', '−64', '0', '12300', '0.5')
    """
    if not (math.isfinite(value) and math.isfinite(width)) or width <= 0.0 or abs(value) > 1e4 * width:
        return number(value).replace("-", "−")
    decimals = 1 - math.floor(math.log10(width))
    near = round(value, decimals)
    if decimals > 4 or abs(near) >= 1e6:
        return number(near).replace("-", "−")
    return _trim(f"{near + 0.0:.{max(decimals, 0)}f}").replace("-", "−")


def without_zero(low: float, high: float) -> bool:
    """Whether an interval leaves 0 out as it is printed: an end that reads as 0 does not.

    Kernels that have no effect at all put an end within rounding error of 0, on either side.

    >>> without_zero(0.2, 0.9), without_zero(-0.29, -1e-9), without_zero(-0.29, -0.004), without_zero(-1.0, 1.0)
    (True, False, False, False)
    """
    return not low <= 0.0 <= high and "0" not in (rounded(low, high - low), rounded(high, high - low))


def limit(value: float, width: float) -> str:
    """An end of an interval of that width, `rounded`; one that is not 0 never reads as 0: a verdict may hang on it.

    >>> limit(0.853, 1.6), limit(-0.004, 1.6), limit(0.004, 1.6), limit(0.0, 1.6)
    ('0.9', '−0.004', '0.004', '0')
    """
    text = rounded(value, width)
    return number(value).replace("-", "−") if text == "0" else text


def brief_chance(probability: float) -> str:
    """A probability where there is little room.

    >>> brief_chance(0.999), brief_chance(0.91), brief_chance(0.002)
    ('> 0.99', '0.91', '< 0.01')
    """
    if probability > 0.99:
        return "> 0.99"
    return "< 0.01" if probability < 0.01 else f"{probability:.2f}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns stand below each other.

    >>> aligned([("covariate", "change"), ("hour", "+0.3")])
    ['covariate  change', 'hour       +0.3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def capitalised(text: str) -> str:
    """Capital letter at the start of a sentence, but names of columns (`log_steps`, `y`, `V1`) stay as they are.

    >>> capitalised("step count"), capitalised("steps (log)"), capitalised("log_steps"), capitalised("y")
    ('Step count', 'Steps (log)', 'log_steps', 'y')
    """
    first, *others = text.split()
    plain = first.isalpha() and first.islower() and (len(first) > 1 or bool(others))
    return text[0].upper() + text[1:] if plain else text


def with_unit(text: str, unit: str) -> str:
    """A written number with its unit, if it has one: ``3 hours``, ``1 hour``, ``16%``."""
    if unit.startswith("%"):
        return text + unit
    return f"{text} {singular(unit) if text in ('1', '-1', '−1') else unit}".rstrip()


def singular(unit: str) -> str:
    """One of a unit: ``hour`` for hours, ``degree Celsius`` for degrees Celsius, ``°C`` for °C.

    >>> [singular(unit) for unit in ("hours", "degrees Celsius", "°C", "s", "mmHg", "beats per minute", "log steps")]
    ['hour', 'degree Celsius', '°C', 's', 'mmHg', 'beat per minute', 'log step']
    """
    words = unit.split(" ")
    for i, word in enumerate(words):  # the first word that is a plural: "log steps", but "beats per minute"
        if word in _SINGULARS:
            words[i] = _SINGULARS[word]
            break
        if len(word) > 2 and word.isalpha() and word.islower() and word[-1] == "s" and word[-2] not in "sui":
            words[i] = word[:-1]
            break
    return " ".join(words)


def quantity(value: float, unit: str) -> str:
    """A number with its unit, if it has one.

    >>> quantity(3.06, "hours"), quantity(1.0, "hours"), quantity(16, "%"), quantity(2.5, "")
    ('3.06 hours', '1 hour', '16%', '2.5')
    """
    return with_unit(number(value), unit)


def counted(count: int, one: str, several: str = "") -> str:
    """A count with its noun.

    >>> counted(1, "new user"), counted(2, "chain"), counted(2, "batch", "batches")
    ('1 new user', '2 chains', '2 batches')
    """
    return f"{count} {one if count == 1 else several or one + 's'}"


def every(value: float, unit: str) -> str:
    """How often something comes back: ``every 24 hours``, ``every hour``, or ``with period 2.72`` without a unit."""
    text = quantity(value, unit)
    return f"every {text.removeprefix('1 ')}" if unit else f"with period {text}"


def place(covariate: str, value: float, unit: str) -> str:
    """A point on a covariate: a level's name where there is one, else the number with its unit.

    >>> place("temperature", 15, "°C"), place("hour", 5, "hours"), place("weather", 1.04, Unit(levels=("dry", "rain")))
    ('15 °C', '5', 'rain')
    """
    levels = levels_of(unit)
    nearest = round(value)
    if levels:
        if 0 <= nearest < len(levels) and abs(value - nearest) <= _CLOSE:
            return levels[nearest]
        if 0 <= value <= len(levels) - 1:
            return f"somewhere between {levels[math.floor(value)]} and {levels[math.ceil(value)]}"
        return f"code {number(value)}"
    if singular(unit).lower() == covariate.lower():  # "where hour is 5", not "where hour is 5 hours"
        return number(value)
    return quantity(value, unit)


def listing(words: Iterable[str], last: str = "and") -> str:
    """Words as a list in a sentence.

    >>> listing(["still"]), listing(["still", "active"], "or"), listing(["a", "b", "c"])
    ('still', 'still or active', 'a, b and c')
    """
    *head, tail = words
    return f"{', '.join(head)} {last} {tail}" if head else tail


def likeness(covariate: str, lengthscale: float, unit: str) -> tuple[str, str]:
    """What counts as similar, for stationary atoms: as an object ("at …") and as a condition ("as long as …").

    Of a categorical covariate with a lengthscale below half a level, only the same level counts.

    >>> likeness("hour", 3.06, "hours")
    ('a similar hour, within about 3.06 hours', 'hour stays similar (within about 3.06 hours)')
    """
    extent = f"within about {quantity(lengthscale, unit)}"
    levels = levels_of(unit)
    if not levels:
        return f"a similar {covariate}, {extent}", f"{covariate} stays similar ({extent})"
    named = listing(levels, "or") if len(levels) <= _FEW else f"one of {len(levels)} levels"
    if lengthscale < 0.5:
        return f"the same {covariate} ({named})", f"{covariate} stays the same ({named})"
    return f"a similar {covariate} ({named}; {extent})", f"{covariate} stays similar ({named}; {extent})"
