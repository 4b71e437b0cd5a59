"""Tables for a paper: the numbers as CSV, and rounded in Markdown and LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerneltrail.evaluation.tables import csv_text
from kerneltrail.kernels.phrases import limit, number, rounded

_OURS = re.compile("[a-z_]+")
"""Names that are not a covariate's or a kernel's."""
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "…": r"\dots{}"}
_TEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
_GREEK = {"µ": "mu"} | {
    sign: unicodedata.name(sign).split()[-1].replace("LAMDA", "LAMBDA").lower() for sign in "αβγδεζηθικλμνξπρστυφχψω"
}
_GREEK |= {sign: _GREEK[sign.lower()].title() for sign in "ΓΔΘΛΞΠΣΦΨΩ"}
_SIGNS = {"×": "times", "≤": "le", "≥": "ge", "≈": "approx", "≠": "ne", "±": "pm", "√": "surd", "∞": "infty", "→": "to"}
_MATHS = {sign: f"$\\{name}$" for sign, name in (_GREEK | _SIGNS).items()} | {"°": r"$^\circ$"}
_RAISED = re.compile("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_LEVEL = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")


HEADINGS: Mapping[str, Mapping[str, str]] = {
    "": {
        "standard_error": "standard error",
        "p_value": "p value",
        "degrees": "degrees of freedom",
        "what": "what happened",
        "of": "over participants",
    },
    "effects": {"rows": "decisions used", "numerator": "share that acted"},
    "missing": {
        "number": "whose outcome was due",
        "observed": "with an outcome",
        "looked_for_in_vain": "looked for and not found",
        "share": "share missing",
    },
    "draws": {
        "probability": "probabilities of the tenth",
        "expected": "their mean",
        "share": "share that acted",
    },
    "versions": {
        "version": "policy version",
        "expected": "actions expected",
        "sent": "actions drawn",
        "low": "95 % of chance: from",
        "high": "to",
        "p": "p value",
    },
    "personalisation": {
        "observed": "in this trial",
        "null_median": "median of simulated trials",
        "against_the_null": "what speaks for it",
    },
}
"""What people read above a column, by table; those under the empty name are of all of them. Files have plain names."""


@dataclass(frozen=True)
class Table:
    """Rows of numbers and texts.

    Attributes:
        name: of the file.
        caption: above it.
        columns: their names.
        rows: values by column; None is missing.
        intervals: columns that stand beside each other as one number with its limits: estimate, lower, upper.
        labels: what people read in place of a text in a cell, such as a covariate's name.
        level: of the intervals.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    intervals: tuple[tuple[str, str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    level: float = 0.95

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        rows: Sequence[Mapping[str, Any]],
        intervals: Sequence[tuple[str, str, str]] = (),
        columns: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
    ) -> Table:
        """A table of rows that all have the same columns; `columns` names those of one without rows."""
        heads = tuple(rows[0]) if rows else tuple(columns)
        return cls(name, caption, heads, tuple(rows), tuple(intervals), labels or {})

    def heading(self, column: str) -> str:
        """What people read above a column."""
        known = {**HEADINGS[""], **HEADINGS.get(self.name, {})}
        return known.get(column, column.replace("_", " ") if _OURS.fullmatch(column) else column)

    def csv(self) -> str:
        """With every digit."""
        return csv_text(self.columns, self.rows)

    def shown(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells for people: rounded, an estimate and its limits in two cells."""
        inside = {name for _, *limits in self.intervals for name in limits}
        limits = {value: (low, high) for value, low, high in self.intervals}
        heads, cells = [], [list[str]() for _ in self.rows]
        for column in self.columns:
            if column in inside:
                continue
            heads.append(self.heading(column))
            for row, line in zip(self.rows, cells, strict=True):
                value, ends = row[column], limits.get(column)
                width = 0.0
                if ends is not None and row[ends[0]] is not None:
                    width = row[ends[1]] - row[ends[0]]
                line.append(self.labels.get(value, value) if isinstance(value, str) else _cell(value, width))
            if column in limits:
                heads.append(f"{100 * self.level:g} % interval of the {self.heading(column)}")
                low, high = limits[column]
                for row, line in zip(self.rows, cells, strict=True):
                    line.append(_between(row[low], row[high]))
        return heads, cells

    def markdown(self) -> str:
        """As a table of Markdown."""
        heads, cells = self.shown()
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *cells]
        body = "\n".join("| " + " | ".join(_piped(cell) for cell in line) + " |" for line in lines)
        return f"**{self.caption}**\n\n{body}\n"

    def latex(self) -> str:
        """As a table of LaTeX, for the package booktabs."""
        heads, cells = self.shown()
        lines = [" & ".join(map(_tex, line)) + r" \\" for line in (heads, *cells)]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_tex(self.caption)}}}",
                rf"\label{{tab:{self.name}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
                r"\toprule",
                lines[0],
                r"\midrule",
                *lines[1:],
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def _cell(value: Any, width: float) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return rounded(value, width) if width > 0 else number(value).replace("-", "−")
    return str(value)


def _between(low: Any, high: Any) -> str:
    if low is None or high is None:
        return "–"
    return f"{limit(low, high - low)} to {limit(high, high - low)}"


def _piped(text: str) -> str:
    return text.replace("|", "\\|")


def _tex(text: str) -> str:
    r"""A text for LaTeX; what pdfLaTeX does not know becomes mathematics.

    >>> print(_tex("6.16×10⁻⁶ µg"))
    6.16$\times$10$^{-6}$ $\mu$g
    """
    told = "".join(_TEX.get(sign, sign) for sign in text)
    raised = _RAISED.sub(lambda match: f"$^{{{match[0].translate(_LEVEL)}}}$", told)
    return "".join(_MATHS.get(sign, sign) for sign in raised)
