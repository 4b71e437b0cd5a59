"""The page of an experiment with a known truth: every table and figure, beside what the paper reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrail.kernels import NOTHING
from kerneltrail.report.page import Paragraph, Table
from kerneltrail.studies.experiments.agreement import Agreement
from kerneltrail.studies.experiments.page import Page
from kerneltrail.studies.experiments.simulated import figures
from kerneltrail.studies.experiments.simulated.compute import Findings
from kerneltrail.studies.experiments.simulated.design import PRESETS, SimulatedStudy

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


def page_of(study: SimulatedStudy, findings: Findings, tables: Tables, agreements: Sequence[Agreement]) -> Page:
    """The whole page."""
    page = Page(agreements)
    page.open("short", "In short", Paragraph(_short(findings, tables["recovery"])), Paragraph(_held(agreements)))
    of = {p: {name: [row for row in rows if row.get("preset") == p] for name, rows in tables.items()} for p in PRESETS}

    page.add(
        "fits",
        "Two new users",
        Paragraph(
            f"{study.description} {len(findings.simulation.train)} pilot users teach a graph of kernels, and "
            f"{len(findings.simulation.test)} new users are followed on it. Shown is the first new user of each kind."
        ),
        *(figures.example_fits(each) for each in findings.examples),
    )
    for preset in PRESETS:
        model = findings.models[preset]
        page.add(
            f"pilot-{preset}",
            f"What the pilot users teach: {preset} preset",
            Paragraph(WHY[preset]),
            figures.graph_of(
                findings,
                preset,
                model.structures[0],
                f"graph-{preset}",
                "The learnt graph. 2/3 on an arrow: of three departures from a box two went this way; a loop is to "
                "stay for another batch.",
            ),
            _training(of[preset]["training"]),
            page.beside("training", preset),
            _chains(of[preset]["chains"][0]),
        )
    page.add(
        "recovery",
        "New users on the graph",
        figures.recovery(findings, tables["recovery"]),
        _recovery(tables["recovery"]),
        *(figures.histogram(findings, preset, of[preset]["selected"]) for preset in PRESETS),
        page.beside("selected"),
    )
    page.add(
        "confusion",
        f"True against selected kernels after {findings.rows[-1]} rows",
        *(figures.confusion_of(preset, of[preset]["confusion"]) for preset in PRESETS),
    )
    page.add(
        "likelihood",
        "With few rows the true kernel is not the best one",
        Paragraph(FLIP),
        _likelihood(tables["log_likelihood"]),
    )
    first, *more = PRESETS  # the page's own section on the model shows the first one's
    page.drawn += figures.alternatives(findings, first)
    page.add(
        "others",
        f"Alternative structures of the {' and '.join(more)} preset, and how likely all are",
        Paragraph(OTHERS),
        *(drawn for preset in more for drawn in figures.alternatives(findings, preset)),
        *(_alternatives(preset, of[preset]["alternatives"]) for preset in PRESETS),
        page.beside("alternatives"),
    )
    return page


WHY = {
    "default": (
        "The default preset judges a kernel by its evidence, hyperparameters integrated out, and samples exactly what "
        "the model states. A step that nobody has taken costs several nats, more than kernels differ by after a few "
        "rows; so it explains everybody by few arrows, often without an intermediary."
    ),
    "published": (
        "The published preset follows the paper's procedure: a kernel is judged at hyperparameters fitted to those who "
        "have it, seating leaves out what a choice means for the next batch, and new users are followed greedily. "
        "Paths tend to begin simple and grow; kernels that can imitate each other, such as SE and PER with a long "
        "period, are confused."
    ),
}
FLIP = (
    "A kernel that is too rich for the rows at hand explains them worse than a simple one: its likelihood at the best "
    "hyperparameters that the prior allows, and more so its evidence, in which hyperparameters are integrated out. "
    "With many rows the order turns."
)
OTHERS = (
    "The samples contain other graphs that are nearly as probable; an expert may prefer one of them. Their log joint "
    "is relative to that of the chosen structure. Those of the default preset are drawn further down."
)


def _short(findings: Findings, recovery: Sequence[Row]) -> str:
    shares = []
    for preset in PRESETS:
        rows = [row for row in recovery if row["preset"] == preset]
        first, last = rows[0], rows[-1]
        shares.append(
            f"under the {preset} preset {first['correct']} of {first['users']} new users have their true kernel after "
            f"{first['rows']} rows, and {last['correct']} after {last['rows']}"
        )
    text = "; ".join(shares)
    return f"{text[0].upper()}{text[1:]}. The truth is known here because the users are simulated."


def _held(agreements: Sequence[Agreement]) -> str:
    """How many claims hold, by preset, and which do not."""
    lines = []
    for preset in PRESETS:
        judged = [each for each in agreements if each.of in ("", preset) and each.agrees is not None]
        wrong = [f"“{each.claim[0].lower()}{each.claim[1:]}”" for each in judged if not each.agrees]
        but = f"; not: {'; '.join(wrong)}" if wrong else ""
        lines.append(f"Of {len(judged)} claims held against the {preset} preset, {len(judged) - len(wrong)} hold{but}.")
    return f"{' '.join(lines)} Each stands beside the figure or table that it is about."


def _training(rows: Sequence[Row]) -> Table:
    sizes = list(dict.fromkeys(row["rows"] for row in rows))
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row["user"], []).append(row)
    lines = [
        [name, *(row["composition"] or NOTHING for row in sorted(path, key=lambda row: row["rows"])), path[0]["truth"]]
        for name, path in by.items()
    ]
    columns = ("pilot user", *(f"{size} rows" for size in sizes), "truth")
    return Table("The pilot users' kernels after each batch, in the chosen structure", columns, lines, words=True)


def _chains(row: Row) -> Paragraph:
    return Paragraph(
        f"{row['chains']} chains of {row['sweeps']} sweeps over {row['candidates']} candidate kernels; R-hat of the "
        f"log joint {row['rhat_log_joint']:.3f}, of the number of arrows {row['rhat_edges']:.3f}; effective sample "
        f"size of the log joint {row['ess_log_joint']:.0f}. Fits took {row['seconds_fits']:.1f} s, chains "
        f"{row['seconds_chains']:.1f} s."
    )


def _recovery(rows: Sequence[Row]) -> Table:
    lines = [
        [
            row["preset"],
            str(row["rows"]),
            f"{row['correct']} of {row['users']}",
            f"{100 * row['low']:.0f}–{100 * row['high']:.0f} %",
            f"{100 * row['said']:.0f} %",
            f"{row['products']:.2f}",
            f"{100 * row['changed']:.0f} %",
            f"{row['rmse']:.3f}",
            f"{row['log_density']:.3f}",
        ]
        for row in rows
    ]
    columns = (
        "preset", "rows", "true kernel", "90 % interval", "probability said", "products", "changed", "RMSE",
        "log density",
    )  # fmt: skip
    caption = (
        "New users by rows seen: how many have their true kernel, the mean probability of the kernel selected, its "
        "mean number of products, the share whose kernel is another than a batch before, and how well the batch was "
        "predicted before it was seen"
    )
    return Table(caption, columns, lines)


def _likelihood(rows: Sequence[Row]) -> Table:
    sizes = list(dict.fromkeys(row["rows"] for row in rows))
    kernels = list(dict.fromkeys(row["composition"] for row in rows))
    value = {(row["composition"], row["rows"]): row for row in rows}
    lines, marked = [], []
    for measure, label in (("log_likelihood", "log likelihood"), ("log_laplace", "log evidence")):
        for kernel in kernels:
            lines.append([f"{kernel}, {label}", *(f"{value[kernel, size][measure]:.2f}" for size in sizes)])
        marked.append(len(lines) - 1)
    caption = (
        f"Means over {rows[0]['users']} new users whose true kernel is {kernels[-1]} (bold): log likelihood at the MAP "
        "hyperparameters, and Laplace's log evidence"
    )
    return Table(caption, ("kernel", *(f"{size} rows" for size in sizes)), lines, marked)


def _alternatives(preset: str, rows: Sequence[Row]) -> Table | None:
    first: dict[int, Row] = {}
    for row in rows:
        first.setdefault(row["structure"], row)
    if not first:
        return None
    lines = [
        [str(n), f"{row['log_joint_difference']:+.2f}", str(row["nodes"]), str(row["edges"]), str(row["visits"])]
        for n, row in first.items()
    ]
    columns = ("alternative", "log joint", "kernels", "arrows", "samples")
    return Table(f"Alternatives under the {preset} preset", columns, lines)
