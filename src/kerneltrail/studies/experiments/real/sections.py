"""The page of an experiment on real users: what was found, beside what the paper reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrail.report import comparison_figures
from kerneltrail.report.figures import NARROW, WIDE
from kerneltrail.report.page import Block, Paragraph, Sentences, Table
from kerneltrail.studies.experiments.agreement import Agreement
from kerneltrail.studies.experiments.page import Page, graph_figure
from kerneltrail.studies.experiments.real.compute import Findings
from kerneltrail.studies.experiments.real.design import PUBLISHED, TRAJECTORY, WITHOUT, RealStudy, Sizes
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.trajectory.model import TrajectoryModel

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
METRICS = {"rmse": "RMSE", "log_density": "Log predictive density", "cpu_seconds": "Processor seconds per update"}
NODES = 6
"""Compositions that are put into words, those of most users first."""


def page_of(
    study: RealStudy, sizes: Sizes, findings: Findings, tables: Tables, agreements: Sequence[Agreement]
) -> Page:
    """The whole page."""
    page = Page(agreements)
    page.open("", "In short", *_short(tables))
    page.open(
        "",
        "The data",
        Paragraph(f"{study.description} {_rows_used(findings)}"),
        _users(tables["users"]),
        page.beside("data"),
    )
    for label in (TRAJECTORY, PUBLISHED):
        model = findings.models[label]
        nodes = sorted((row for row in tables["nodes"] if row["model"] == label), key=lambda row: -row["customers"])
        page.add(
            "",
            f"What the training users teach: {label}",
            Paragraph(f"{WHY[label]} {_size(model)}"),
            graph_figure(model, model.paths, f"graph-{label}", "A graph of kernels", GRAPH),
            *(Sentences(row["composition"], [row["words"]]) for row in nodes[:NODES]),
            Paragraph(AROUND) if model.mean is not None else None,
        )
    if (named := page.beside("graph")) is not None:
        page.add("", "Compositions that the paper names", named)
    page.add(
        "",
        "How methods were compared, and what the paper says of it",
        Paragraph(_how(sizes, findings)),
        page.beside("accuracy"),
        _growth(tables["growth"]),
        page.beside("time"),
    )
    # The page's own section on methods shows these; here they become files.
    page.drawn += [_by_batch(findings, metric) for metric in METRICS]
    page.drawn += [_differences(findings, metric) for metric in ("rmse", "log_density")]
    page.add("", "One user", _compositions(tables["compositions"]))
    return page


WHY = {
    TRAJECTORY: (
        "The recommended settings: evidence with hyperparameters integrated out, candidates that are best for all "
        "users together, a population mean, and the exact posterior of paths. Where noise is as high as here, users' "
        "rows hardly tell kernels apart, and one more arrow costs more than it explains: graphs tend to be small."
    ),
    PUBLISHED: (
        "The paper's procedure: a kernel is judged at hyperparameters fitted to those who have it, and followed "
        "greedily. Kernels with few customers are judged too kindly, so graphs tend to have more boxes."
    ),
}
AROUND = (
    "The kernels describe how users depart from a population mean, a ridge regression on all training rows, which "
    "carries the straight-line effects that users have in common."
)
GRAPH = (
    "The learnt graph; compositions in which many users end are bold. 2/3 on an arrow: of three departures from a box "
    "two went this way; a loop is to stay for another batch."
)


def _short(tables: Tables) -> list[Block]:
    """How often the trajectory model wins, ties and loses; every loss by name."""
    sentences = []
    for metric in ("rmse", "log_density"):
        rows = [row for row in tables["paired"] if row["metric"] == metric]
        if not rows:
            continue
        count = Counter(row["verdict"] for row in rows)
        lost: dict[str, list[str]] = {}
        for row in rows:
            if row["verdict"] == "loses":
                lost.setdefault(row["against"], []).append(str(row["t"]))
        to = "; ".join(f"to {other} at t = {', '.join(times)}" for other, times in lost.items())
        sentences.append(
            f"{METRICS[metric]}: of {len(rows)} differences to another method at some t, the trajectory model wins "
            f"{count['wins']}, ties in {count['ties']} and loses {count['loses']}{f' ({to})' if to else ''}."
        )
    return [Sentences("The next batch, predicted for users who were not learnt from", sentences)]


def _size(model: TrajectoryModel) -> str:
    kernels, arrows = len(model.nodes), len(model.edges)
    return f"This one has {kernels} kernel{'s' if kernels > 1 else ''} and {arrows} arrow{'s' if arrows > 1 else ''}."


def _rows_used(findings: Findings) -> str:
    rows = sum(user.rows for user in findings.cohort.users)
    report = str(findings.cohort.report).replace("\n", "; ")
    return f"The file: {report}. Used are {len(findings.cohort)} users with {rows} rows."


def _how(sizes: Sizes, findings: Findings) -> str:
    text = f"{len(findings.train)} training and {len(findings.test)} test users in the first split"
    if findings.splits is not None:
        persons = len({step.person for step in findings.splits.steps})
        text += (
            f"; then {sizes.splits} random splits with {sizes.test} test users each, in which {persons} different "
            "users are tested. Shown are the random splits: a user tested in several counts as one"
        )
        if 0 < sizes.published < sizes.splits:
            some = " and ".join([PUBLISHED, *([WITHOUT] if sizes.without else [])])
            text += (
                f". On the first {sizes.published} of them alone: {some}; their means are over fewer users than the "
                "others', so compare them by the differences, which are over the same users"
            )
    text += ". t is the number of batches seen; t = 0 is before any row."
    if sizes.own:
        text += (
            " Covariates are scaled on the training users for methods that learn from them, and on the user's own rows "
            f"for {', '.join(sizes.own)}."
        )
    if "cks" in sizes.own:
        limit = "" if sizes.search.fits is None else f" or {sizes.search.fits} fits"
        text += f" Each search of CKS ended at depth {sizes.search.depth}{limit}."
    return text


def _by_batch(findings: Findings, metric: str) -> FigurePair:
    averages = findings.most.summary()
    return FigurePair(
        f"methods-{metric.replace('_', '-')}",
        comparison_figures.by_batch(averages, metric, first=TRAJECTORY, width=WIDE),
        comparison_figures.by_batch(averages, metric, first=TRAJECTORY, width=NARROW),
        f"{METRICS[metric]} of every method after each batch; the numbers are in the table.",
        f"{METRICS[metric]}: means over users, with 90 % intervals.",
    )


def _differences(findings: Findings, metric: str) -> FigurePair:
    rows = findings.most.paired(TRAJECTORY)
    return FigurePair(
        f"differences-{metric.replace('_', '-')}",
        comparison_figures.differences(rows, metric, width=WIDE),
        comparison_figures.differences(rows, metric, width=NARROW),
        f"Differences in {METRICS[metric]} between the trajectory model and every other method; in the table below.",
        f"{METRICS[metric]}: trajectory minus other, with 90 % intervals over users.",
    )


def _users(rows: Sequence[Row]) -> Table:
    return Table(
        "Users of the first split",
        ("user", "side", "rows", "batches"),
        [[row["user"], row["side"], str(row["rows"]), str(row["batches"])] for row in rows],
    )


def _growth(rows: Sequence[Row]) -> Table:
    return Table(
        "Milliseconds of processor time per update after a user's first and last batch, means over users; their ratio "
        "within users with its 90 % interval; and the largest mean of any t",
        ("method", "first", "last", "ratio", "largest"),
        [
            [
                row["method"],
                f"{row['first_ms']:.1f}",
                f"{row['last_ms']:.1f}",
                f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
                f"{row['peak_ms']:.1f} (t = {row['peak_t']})",
            ]
            for row in rows
        ],
        [index for index, row in enumerate(rows) if row["method"] == TRAJECTORY],
    )


def _compositions(rows: Sequence[Row]) -> Table:
    """A line per method; a kernel that is kept is said once."""
    user = rows[0]["user"] if rows else ""
    stays: dict[str, list[tuple[str, list[int]]]] = {}
    for row in rows:
        runs, kernel = stays.setdefault(row["method"], []), row["composition"] or "none"
        if runs and runs[-1][0] == kernel:
            runs[-1][1].append(row["t"])
        else:
            runs.append((kernel, [row["t"]]))
    return Table(
        f"Kernels selected for user {user}, a test user, after t batches (the paper shows a training user)",
        ("method", "kernels"),
        [
            [method, ", then ".join(f"{kernel} ({_times(times)})" for kernel, times in runs)]
            for method, runs in stays.items()
        ],
        words=True,
    )


def _times(times: Sequence[int]) -> str:
    return f"t = {times[0]}" if len(times) == 1 else f"t = {times[0]}–{times[-1]}"
