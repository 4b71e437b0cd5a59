"""The page of an experiment with a known truth: every table and figure, beside what the paper reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrail.report.figure_pair import FigurePair
from kerneltrail.report.graph_structure import NOTHING
from kerneltrail.report.page import Block, Paragraph, Section, Table
from kerneltrail.studies.experiments.agreement import Agreement, agreement_table
from kerneltrail.studies.experiments.simulated import figures
from kerneltrail.studies.experiments.simulated.compute import Found
from kerneltrail.studies.experiments.simulated.design import PRESETS, Set

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


class Page:
    """Sections as they are put together, and the figures in them.

    Attributes:
        opening: the section before all others.
        sections: so far.
        drawn: figures so far.
    """

    def __init__(self, *opening: Block) -> None:
        self.opening = Section("In short", opening, "short")
        self.sections: list[Section] = []
        self.drawn: list[FigurePair] = []

    def add(self, name: str, heading: str, *blocks: Block | FigurePair | None) -> None:
        """One section more, under a name for the menu; figures are kept as files too."""
        made: list[Block] = []
        for block in blocks:
            if isinstance(block, FigurePair):
                self.drawn.append(block)
                made.append(block.block())
            elif block is not None:
                made.append(block)
        self.sections.append(Section(heading, made, name))


def page_of(plan: Set, found: Found, tables: Tables, agreements: Sequence[Agreement]) -> Page:
    """The whole page."""
    made = Page(Paragraph(_short(found, tables["recovery"])), Paragraph(_held(agreements)))
    of = {p: {name: [row for row in rows if row.get("preset") == p] for name, rows in tables.items()} for p in PRESETS}

    def beside(topic: str, preset: str | None = None) -> Table | None:
        own = [each for each in agreements if each.topic == topic and preset in (None, each.of)]
        return agreement_table(own) if own else None

    made.add(
        "fits",
        "Two new users",
        Paragraph(
            f"{plan.said} {len(found.simulation.train)} pilot users teach a graph of kernels, and "
            f"{len(found.simulation.test)} new users are followed on it. Shown is the first new user of each kind."
        ),
        *(figures.example_fits(each) for each in found.examples),
    )
    for preset in PRESETS:
        model = found.models[preset]
        made.add(
            f"pilot-{preset}",
            f"What the pilot users teach: {preset} preset",
            Paragraph(WHY[preset]),
            figures.graph_of(
                found,
                preset,
                model.structures[0],
                f"graph-{preset}",
                "The learnt graph. 2/3 on an arrow: of three departures from a box two went this way; a loop is to "
                "stay for another batch.",
            ),
            _training(of[preset]["training"]),
            beside("training", preset),
            _chains(of[preset]["chains"][0]),
        )
    made.add(
        "recovery",
        "New users on the graph",
        figures.recovery(found, tables["recovery"]),
        _recovery(tables["recovery"]),
        *(figures.histogram(found, preset, of[preset]["selected"]) for preset in PRESETS),
        beside("selected"),
    )
    made.add(
        "confusion",
        f"True against selected kernels after {found.rows[-1]} rows",
        *(figures.confusion_of(preset, of[preset]["confusion"]) for preset in PRESETS),
    )
    made.add(
        "likelihood",
        "With few rows the true kernel is not the best one",
        Paragraph(FLIP),
        _likelihood(tables["log_likelihood"]),
    )
    first, *more = PRESETS  # the page's own section on the model shows the first one's
    made.drawn += figures.alternatives(found, first)
    made.add(
        "others",
        f"Alternative structures of the {' and '.join(more)} preset, and how likely all are",
        Paragraph(OTHERS),
        *(drawn for preset in more for drawn in figures.alternatives(found, preset)),
        *(_alternatives(preset, of[preset]["alternatives"]) for preset in PRESETS),
        beside("alternatives"),
    )
    return made


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


def _short(found: Found, recovery: Sequence[Row]) -> str:
    said = []
    for preset in PRESETS:
        own = [row for row in recovery if row["preset"] == preset]
        first, last = own[0], own[-1]
        said.append(
            f"under the {preset} preset {first['correct']} of {first['users']} new users have their true kernel after "
            f"{first['rows']} rows, and {last['correct']} after {last['rows']}"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. The truth is known here because the users are simulated."


def _held(agreements: Sequence[Agreement]) -> str:
    """How many claims hold, by preset, and which do not."""
    said = []
    for preset in PRESETS:
        own = [each for each in agreements if each.of in ("", preset) and each.agrees is not None]
        wrong = [f"“{each.claim[0].lower()}{each.claim[1:]}”" for each in own if not each.agrees]
        but = f"; not: {'; '.join(wrong)}" if wrong else ""
        said.append(f"Of {len(own)} claims held against the {preset} preset, {len(own) - len(wrong)} hold{but}.")
    return f"{' '.join(said)} Each stands beside the figure or table that it is about."


def _training(rows: Sequence[Row]) -> Table:
    sizes = list(dict.fromkeys(row["rows"] for row in rows))
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row["user"], []).append(row)
    lines = [
        [name, *(row["composition"] or NOTHING for row in sorted(own, key=lambda row: row["rows"])), own[0]["truth"]]
        for name, own in by.items()
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
    for measure, said in (("log_likelihood", "log likelihood"), ("log_laplace", "log evidence")):
        for kernel in kernels:
            lines.append([f"{kernel}, {said}", *(f"{value[kernel, size][measure]:.2f}" for size in sizes)])
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
