"""The page about a trial, after it or so far: words, then drawings, then numbers; one file that fetches nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version

from markupsafe import Markup

from kerneltrail.kernels.phrases import counted
from kerneltrail.report.page import Block, Expert, Paragraph, Picture, Section, Sentences, page
from kerneltrail.report.page import Table as Shown
from kerneltrail.trial.alarms import WAIT
from kerneltrail.trial.analysis import drawings
from kerneltrail.trial.analysis.analysis import Analysis
from kerneltrail.trial.analysis.course import too_young, waited_for
from kerneltrail.trial.analysis.effects import moderated_words, primary_words
from kerneltrail.trial.analysis.record import Record
from kerneltrail.trial.analysis.tables import Table
from kerneltrail.trial.realised import Realised, draw_realised

GROUPS = ("all", "assigned to act", "assigned not to act")
"""Of missing outcomes; the others are periods."""


def analysis_page(analysis: Analysis, title: str | None = None, running: datetime | None = None) -> str:
    """The page as HTML.

    Args:
        analysis: what it shows.
        title: its heading; made from the protocol's if None.
        running: when it was made, if somebody still took part by then; None for a trial that has ended.
    """
    record = analysis.record
    tables = {table.name: table for table in analysis.tables()}
    lead = (
        f"{record.state.trial}: {counted(analysis.flow.analysed, 'participant')}, "
        f"{counted(len(record.points), 'decision')}, recorded by {record.until:%Y-%m-%d %H:%M} UTC. The page shows "
        "outcomes by action: it is not for people who must stay blinded."
    )
    if running is not None:
        lead = (
            f"This is an interim look: the trial was still running on {running:%Y-%m-%d %H:%M} UTC, when this page was "
            f"made, and all numbers may change. {lead}"
        )
    return page(
        title or f"{record.protocol.title}: {'after the trial' if running is None else 'so far'}",
        lead,
        [
            Section("What acting changed", _effects(analysis, tables), "effects"),
            Section("Did the policy personalise?", _personal(analysis, tables), "personal"),
            Section("How participants fared", _fared(analysis, tables), "fared"),
            Section("Who took part", _flow(analysis, tables), "flow"),
            Section("What is missing", _gaps(analysis, tables), "missing"),
            Section("Did the trial do what its protocol says?", _fidelity(analysis, tables), "fidelity"),
            Section("Kernels over time", _kernels(analysis, tables), "kernels"),
            Section("How it was computed", [Paragraph(text) for text in how_computed(analysis)], "how"),
        ],
        footer=f"Written by kerneltrail {version('kerneltrail')}. The numbers are in the tables beside this file.",
    )


def _shown(table: Table) -> Block:
    heads, cells = table.shown()
    if not cells:
        return Paragraph(f"{table.caption}: none.")
    return Shown(table.caption, heads, cells)


def _effects(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    effects, record, level = analysis.effects, analysis.record, analysis.settings.level
    blocks: list[Block] = [Sentences("Over all decisions", primary_words(effects, record))]
    if effects.moderated:
        told = [line for effect in effects.moderated for line in moderated_words(effect, record, level)]
        blocks.append(Sentences("When it changed more, and when less", told))
    if effects.primary.fitted is not None:
        caption = (
            f"Dots are estimates, lines their {100 * level:g} % intervals; a hollow dot's interval contains 0. A "
            "moderator is shown at its 10th and its 90th percentile."
        )
        alt = "Effects of acting with their intervals; the numbers are in the table below."
        draw = partial(drawings.effects_drawing, effects, record)
        blocks.append(Picture.of(lambda width: draw(width), alt, caption))
    curves = [effect for effect in effects.moderated if effect.fitted is not None and effect.curve]
    if curves:
        alt = f"What acting changes along {', '.join(record.label(effect.name) for effect in curves)}."
        caption = f"Straight lines by assumption; the band holds the line's {100 * level:g} % interval at each value."
        lines = partial(drawings.moderators_drawing, curves, record)
        blocks.append(Picture.of(lambda width: lines(width), alt, caption))
    note = Paragraph(
        "The degrees of freedom are those of the t distribution behind intervals and p values: participants less "
        "coefficients. Each decision is weighted by the share that acted over its own probability, so that unlikely "
        "actions count as much as likely ones."
    )
    more = Expert("All coefficients", [_shown(tables["moderators"])])
    return [*blocks, _shown(tables["effects"]), note, more]


def _personal(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    personal = analysis.personal
    if personal is None:
        more = Markup(
            "<code>kerneltrail trial analyse … --resamples 200</code> runs the trial anew 200 times to find out."
        )
        return [Paragraph(analysis.no_personal), *([] if analysis.settings.resamples else [Paragraph(more)])]
    alt = "Histograms of measures in simulated trials, with this trial's values as lines; numbers in the table below."
    caption = (
        "Each simulated trial has the same people, contexts and calendar, new draws, and an effect of acting that is "
        "the same for everybody at all times. The policy learns in it as it did in the trial."
    )
    return [
        Sentences("Between participants", personal.words()),
        Picture.of(lambda width: drawings.null_drawing(personal.statistics, width), alt, caption),
        _shown(tables["personalisation"]),
        Paragraph(
            "The first line was chosen beforehand as the one that decides. The others describe; with several lines, "
            "one below 0.05 is no surprise."
        ),
    ]


def _fared(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    words = analysis.fared_words()
    reward = analysis.record.protocol.reward
    heading = f"Mean and {'lower' if reward.better == 'higher' else 'upper'} quarter"
    first: Block = Sentences(heading, words) if words else Paragraph("Nobody has an outcome.")
    how = [] if analysis.fared is None else analysis.fared.notes()[:1]
    note = Paragraph(" ".join([*how, "All outcomes count, whatever was assigned;", f"{reward.direction}."]))
    return [first, _shown(tables["outcome"]), note]


def _flow(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    alt = analysis.flow.words()
    caption = "From enrolment to the analysis. Data that were removed on request are in no number but this one."
    drawn = Picture.of(lambda width: drawings.flow_drawing(analysis.flow, width), alt, caption)
    return [Paragraph(analysis.flow.words()), drawn, Expert("The numbers", [_shown(tables["flow"])])]


def _gaps(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    gaps = {gap.group: gap for gap in analysis.gaps}
    blocks: list[Block] = []
    if "all" in gaps:
        every = gaps["all"]
        words = (
            f"{every.decisions - every.observed} of {counted(every.decisions, 'decision')} at which somebody could "
            f"act, and whose outcome was due, have none ({100 * every.share.mean:.1f} %). Of these, "
            f"{every.looked_for} were looked for and not "
            "found; of the others nobody recorded anything."
        )
        arms = [f"{100 * gaps[name].share.mean:.1f} % where {name}" for name in GROUPS[1:] if name in gaps]
        blocks = [Paragraph(words), Paragraph(f"Missing: {'; '.join(arms)}.")]
    blocks += [Paragraph(waiting_words(analysis.record)), Paragraph(bridge_words(analysis.record))]
    periods = [gap for name, gap in gaps.items() if name not in GROUPS]
    if periods:
        alt = "Share of decisions without an outcome over time; the numbers are in the table below."
        blocks.append(
            Picture.of(lambda width: drawings.gaps_drawing(periods, width), alt, "Missing outcomes over time.")
        )
    return [*blocks, Expert("The numbers", [_shown(tables["missing"])])]


def waiting_words(record: Record) -> str:
    """How many outcomes may still come, in a sentence."""
    hours = WAIT // timedelta(hours=1)
    return (
        f"An outcome counts as missing {hours} hours after its decision. Younger decisions are in no number here, "
        f"counted from the end of the record; of these, {waited_for(record)} still wait for their outcome."
    )


def bridge_words(record: Record) -> str:
    """How the numbers of missing outcomes on this page, of the estimate, and on the team's pages hang together."""
    young = too_young(record)
    missing = sum(point.available and point.is_missing(record.until) for point in record.points)
    hours = WAIT // timedelta(hours=1)
    return (
        f"The estimate of the effect needs outcomes, so it leaves out all {counted(missing + young, 'decision')} "
        f"without one at which somebody could act: these {missing}, and {young} of the last {hours} hours of the "
        "record. The team's pages and trial status count as this section does, but up to the moment at which one "
        f"looks; the record ends {record.until:%Y-%m-%d %H:%M} UTC."
    )


def _fidelity(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    fidelity = analysis.fidelity
    blocks: list[Block] = [Sentences("In short", fidelity.words())]
    if fidelity.tenths:
        alt = "Share that acted against the probability of acting; the numbers are in the table below."
        off = f"{100 * (1 - analysis.settings.level):.3g}"
        caption = (
            f"Decisions by tenth of their probability. In a sound trial about {off} of 100 such intervals miss the "
            "line by chance; what is more than chance is said above."
        )
        data = Realised.of(fidelity.tenths)
        blocks.append(
            Picture.of(lambda width: draw_realised(data, width=width, doing="acting", done="acted"), alt, caption)
        )
    more = [_shown(tables[name]) for name in ("draws", "versions", "conduct", "incidents")]
    return [*blocks, Expert("The numbers", more)]


def _kernels(analysis: Analysis, tables: dict[str, Table]) -> list[Block]:
    kernels = analysis.kernels
    if kernels is None:
        return [Paragraph("No policy has decided, so nobody had a kernel.")]
    words = "What the model took to shape each participant's outcome, at their last decision in each period."
    alt = "Shares of participants with each kernel over time; the numbers are in the table below."
    drawn = Picture.of(lambda width: drawings.kernels_drawing(kernels, width), alt, "")
    return [Paragraph(words), drawn, Expert("The numbers", [_shown(tables["kernels"])])]


def how_computed(analysis: Analysis) -> list[str]:
    """How the numbers came about, and when they are right, in sentences."""
    effects = analysis.effects
    controls = (
        f"the covariates {', '.join(map(analysis.record.label, effects.controls))}"
        if effects.controls
        else "no covariates"
    )
    pooled = (
        "The policy learnt from everybody together, so participants are not independent. The estimates stay right, but "
        "their errors leave that out: take the intervals for approximate.",
    )
    return [
        "Effects are causal excursion effects: what acting at one decision changes at the outcome that follows it, "
        "averaged over the situations that participants were in. They are estimated by weighted and centred least "
        "squares from the probabilities that the trial recorded, so no model of the outcome has to be right.",
        "Errors allow for the outcomes of one participant being alike, and are corrected for few participants. The "
        f"outcome without acting was explained by {controls}, to make intervals narrower. Intervals and p values are "
        "not adjusted for looking at several moderators.",
        "What was assigned counts as the treatment, whether or not it arrived. Decisions without an outcome are left "
        "out: that is right if, given the past, being missing has nothing to do with what the outcome would have "
        "been.",
        *(pooled if analysis.record.protocol.pooling == "pooled" else ()),
    ]
