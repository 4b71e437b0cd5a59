"""Methods side by side: error, log density and seconds per batch, with intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kerneltrail.errors import DataError
from kerneltrail.evaluation.result import Average, Difference, Evaluation
from kerneltrail.evaluation.verdicts import VERDICTS, tally, verdict
from kerneltrail.report.comparison_figures import by_batch, differences
from kerneltrail.report.model_page.numbers import NONE, duration, fixed, signed
from kerneltrail.report.page import Block, Paragraph, Picture, Section, Table

METRICS = {
    "rmse": ("RMSE of the next batch", True),
    "log_density": ("log density of the next batch", False),
    "cpu_seconds": ("processor seconds per update", True),
    "seconds": ("seconds per update", True),
}
"""What the page compares: what it is called, and whether less is better."""
PAIRED = (
    "{} minus each other method is over the same users and batches. t is the number of batches seen, 0 before any row. "
    "Where the interval of a difference, from resampling users, leaves out 0, it wins or loses; else it ties."
)
FEW = 5
"""Users below which intervals come with a warning."""
DIGITS = 3
"""After the point: methods that matter differ in the second one."""
LEVEL = 0.9
"""Coverage of intervals whose own level is not told."""


@dataclass(frozen=True)
class Comparison:
    """Methods compared, with averages over users and differences over the same users, as in an `Evaluation`.

    Attributes:
        averages: of each method after each batch.
        differences: of pairs of methods; may be empty.
        first: the method that stands out in the figures.
    """

    averages: tuple[Average, ...]
    differences: tuple[Difference, ...] = ()
    first: str | None = None

    @classmethod
    def of(cls, evaluation: Evaluation) -> Comparison:
        """What an evaluation says of its methods."""
        return cls(evaluation.summary(), evaluation.paired(), evaluation.first)

    @classmethod
    def from_results(cls, results: Mapping[str, Any]) -> Comparison | None:
        """From the JSON of an experiment or of an evaluation; None where it compares no methods.

        An experiment's ``metrics`` is a list of {method, t, users, rmse, log_density, seconds}; the interval of
        ``rmse`` stands beside it as ``rmse_low`` and ``rmse_high``. Its ``paired`` is a list of {method, against, t,
        metric, mean, low, high}. An evaluation's are ``summary`` and ``paired``, as `Average` and `Difference` write
        themselves.
        """
        try:
            if results.get("summary"):
                averages = [Average(**row) for row in results["summary"]]
                pairs = [Difference(**row) for row in results.get("paired", ())]
            else:
                rows = results.get("metrics") or ()
                averages = [_average(row, metric) for row in rows for metric in METRICS if row.get(metric) is not None]
                pairs = [_difference(row) for row in results.get("paired") or () if row.get("mean") is not None]
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise DataError(f"the results compare methods in a way that cannot be read: {problem!r}") from None
        averages = [row for row in averages if row.metric in METRICS]
        if not averages:
            return None
        methods = [row.method for row in averages]
        first = "trajectory" if "trajectory" in methods else methods[0]
        return cls(tuple(averages), tuple(row for row in pairs if row.metric in METRICS), first)

    @property
    def methods(self) -> tuple[str, ...]:
        """In order of first appearance."""
        return tuple(dict.fromkeys(row.method for row in self.averages))

    @property
    def fewer(self) -> dict[str, int]:
        """Methods that followed clearly fewer users than the first did, with how many: their means are not comparable.

        One user in ten may be missing: a failure or two are no reason to leave a method out.
        """
        most = {method: max(row.users for row in self.averages if row.method == method) for method in self.methods}
        return {method: users for method, users in most.items() if users < 0.9 * most.get(self.first or "", 0)}

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of `METRICS` that were measured, in that order; one kind of seconds is enough."""
        present = {row.metric for row in self.averages}
        if "cpu_seconds" in present:  # not disturbed by what else the machine does
            present -= {"seconds"}
        return tuple(metric for metric in METRICS if metric in present)


def _average(row: Mapping[str, Any], metric: str) -> Average:
    mean, users = float(row[metric]), int(row.get("users") or 0)
    ends = (row.get(f"{metric}_{end}") for end in ("low", "high"))
    low, high = (mean if value is None else float(value) for value in ends)
    return Average(str(row["method"]), int(row["t"]), metric, mean, low, high, LEVEL, users, users)


def _difference(row: Mapping[str, Any]) -> Difference:
    users = int(row.get("users") or 0)
    mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
    first, second, metric = str(row["method"]), str(row["against"]), str(row["metric"])
    return Difference(first, second, int(row["t"]), metric, mean, low, high, LEVEL, users, users)


def comparison_section(comparison: Comparison) -> Section:
    """The section on methods: figures, tables of means, and differences with what they say."""
    users = max(row.users for row in comparison.averages)
    who = f" for {users} users" if users else ""
    blocks: list[Block] = [
        Paragraph(
            f"After each batch, {len(comparison.methods)} methods predict the next one{who}. Low RMSE and high log "
            "density are good; bars are 90 % intervals over users."
        )
    ]
    pairs = [row for row in comparison.differences if row.metric in comparison.metrics]
    if pairs:
        blocks.append(Paragraph(PAIRED.format(pairs[0].first)))
        if 0 < users < FEW:
            blocks.append(Paragraph(f"Only {users} of them: an interval over so few is hardly more than their range."))
        blocks += [_tally(pairs, metric) for metric in comparison.metrics if any(row.metric == metric for row in pairs)]
    for metric in comparison.metrics:
        blocks += [_picture(comparison, metric), _means(comparison, metric)]
        of_metric = [row for row in pairs if row.metric == metric]
        if of_metric:
            blocks += [_gap(of_metric, metric), _differences(of_metric, metric)]
    return Section("How do methods compare?", blocks, "comparison")


def _picture(comparison: Comparison, metric: str) -> Picture:
    """Means of the methods that followed everybody; those of the others are over fewer users, so not comparable."""
    title, fewer = METRICS[metric][0], comparison.fewer
    shown = [row for row in comparison.averages if row.method not in fewer]
    alt = f"{title} by number of batches seen, for {', '.join(dict.fromkeys(row.method for row in shown))}."
    caption = f"{title[0].upper()}{title[1:]}, by the batches seen before."
    if fewer:
        caption += f" Not drawn, for fewer users: {', '.join(fewer)}."
    return Picture.of(lambda width: by_batch(shown, metric, first=comparison.first, width=width), alt, caption)


def _means(comparison: Comparison, metric: str) -> Table:
    write = duration if metric.endswith("seconds") else partial(fixed, digits=DIGITS)
    cells = {(row.method, row.t): write(row.mean) for row in comparison.averages if row.metric == metric}
    fewer = comparison.fewer
    names = {name: f"{name} ({fewer[name]} users)" if name in fewer else name for name in comparison.methods}
    caption = f"Mean {METRICS[metric][0]}"
    if fewer:
        caption += "; where it is over fewer users, only the differences below compare like with like"
    return _by_time(caption, "method", names, cells)


def _gap(pairs: Sequence[Difference], metric: str) -> Picture:
    title, less = METRICS[metric]
    alt = f"{pairs[0].first} minus each other method in {title}, by number of batches seen."
    side = "below" if less else "above"
    caption = f"The difference over the same users: {side} the line {pairs[0].first} is better."
    if not all(row.t for row in pairs):
        caption += " What is said before the first row may lie outside a panel."
    return Picture.of(lambda width: differences(pairs, metric, width=width), alt, caption)


def _differences(pairs: Sequence[Difference], metric: str) -> Table:
    cells = {(row.second, row.t): _cell(row) for row in pairs}
    caption = f"{pairs[0].first} minus each other method, {METRICS[metric][0]}, with its interval"
    return _by_time(caption, "against", {name: name for name, _ in cells}, cells, words=True)


def _by_time(
    caption: str, what: str, names: Mapping[str, str], cells: Mapping[tuple[str, int], str], *, words: bool = False
) -> Table:
    """Methods down, batches seen across."""
    times = sorted({t for _, t in cells})
    rows = [[label, *(cells.get((name, t), NONE) for t in times)] for name, label in names.items()]
    return Table(caption, (what, *(f"t = {t}" for t in times)), rows, words=words)


def _cell(row: Difference) -> str:
    write = partial(duration, sign=True) if row.metric.endswith("seconds") else partial(signed, digits=DIGITS)
    return f"{write(row.mean)} ({write(row.low)} to {write(row.high)}) {verdict(row.metric, row.low, row.high)}"


def _tally(pairs: Sequence[Difference], metric: str) -> Table:
    """Against each other method: the t at which the first one wins, ties and loses."""
    verdicts = tally(pairs, metric).items()
    rows = [[second, *(", ".join(map(str, times)) or NONE for times in at.values())] for second, at in verdicts]
    title = METRICS[metric][0]
    return Table(
        f"{title[0].upper()}{title[1:]}: t at which {pairs[0].first}", ("against", *VERDICTS), rows, words=True
    )
