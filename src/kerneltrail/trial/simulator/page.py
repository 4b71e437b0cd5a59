"""The page about a trial that has not begun: what to expect of each design, in words, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from kerneltrail.kernels.phrases import counted, listing, with_unit
from kerneltrail.report.page import Block, Expert, Paragraph, Picture, Section, Sentences, Table, page
from kerneltrail.trial.simulator import figures
from kerneltrail.trial.simulator.numbers import averages, decimals, numbers, of_trials, percent, percents, written
from kerneltrail.trial.simulator.policies import OURS, POLICIES
from kerneltrail.trial.simulator.study import Study
from kerneltrail.trial.simulator.summary import MEASURES, Finding, Line, Pair, Summary

SHOWN = {
    "mean": "mean outcome",
    "p25": "25th percentile",
    "p75": "75th percentile",
    "regret": "regret",
    "probability": "probability",
    "at_limit": "at a limit",
    "doses": "doses a day",
}
"""What of people is shown, and how it is headed; of the percentiles the one that runs have."""
ESTIMATES = ("true effect", "bias", "coverage", "its 95 % interval", "power", "its 95 % interval", "interval's width")
FEW = 2
"""Designs that are shown in full."""
VERBS = {
    "better": "does better than",
    "worse": "does worse than",
    "no difference found": "cannot be told from",
}
"""What is said of a policy beside others."""


def study_page(study: Study, summary: Summary) -> str:
    """The whole page; it fetches nothing."""
    unit = study.protocol.reward.unit
    sections = [
        Section("In short", [Sentences("What these simulations say", _in_short(summary, study))], "short"),
        Section("What people get", _gains(summary, study, unit), "gains"),
        Section("Will the effect be found?", _findings(summary), "effect"),
        Section("Are the probabilities what they say?", _probabilities(summary), "probabilities"),
        Section("What goes wrong, and what comes of it", _trouble(summary, study), "trouble"),
        Section("How it was computed", _how(summary, study), "how"),
    ]
    reward = study.protocol.reward
    seeds = max((line.seeds for line in summary.lines), default=0)
    lead = (
        f"{counted(seeds, 'simulated trial')} of each design, with simulated people ({study.population.name}), before "
        f"anybody takes part. Outcome: {reward.outcome}; {reward.direction}. {study.population.availability} After ±: "
        "standard errors over trials."
    )
    return page(
        f"Before the trial: {study.protocol.title}",
        lead,
        sections,
        footer=f"Written by kerneltrail {version('kerneltrail')}.",
    )


def _in_short(summary: Summary, study: Study) -> list[str]:
    """Sentences; designs of which the same is to be said are named together."""
    words = [
        f"{which}by the mean outcome, the trial's policy {said}."
        for which, said in _together(summary, {design: _verdicts(summary, design) for design in summary.designs})
    ]
    findings = {line.design: line.finding for line in summary.lines if line.policy == OURS and line.finding is not None}
    effects = {design: _effect(found, study) for design, found in findings.items()}
    words += [f"{which}{said}" for which, said in _together(summary, effects)]
    for label, found in findings.items():
        which = f"{label}: the" if len(summary.designs) > 1 else "The"
        words.append(
            f"{which} effect is found (p below 0.05) with the trial's policy in {of_trials(found.power)}; a trial's "
            f"95 % interval holds it in {of_trials(found.coverage)}."
        )
    if findings:
        words.append("In brackets: the share of trials, and the 95 % interval that so many trials leave it.")
    return [each[0].upper() + each[1:] for each in words] or [
        "Nothing can be said of the trial's own policy: it was not simulated."
    ]


def _together(summary: Summary, said: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is said of designs, each sentence once, with the names of the designs where that is not all of them."""
    groups: dict[str, list[str]] = {}
    for design, words in said.items():
        if words:
            groups.setdefault(words, []).append(design)
    whole = len(summary.designs)
    everywhere = "in all designs, " if whole > 1 else ""
    return [(everywhere if len(names) == whole else f"{'; '.join(names)}: ", words) for words, names in groups.items()]


def _verdicts(summary: Summary, design: str) -> str:
    """Which other policies the trial's own does better than, and so on."""
    pairs = [pair for pair in summary.pairs if pair.design == design and pair.measure == "mean"]
    parts = []
    for verdict, verb in VERBS.items():
        names = [pair.other for pair in pairs if pair.verdict == verdict]
        if names:
            parts.append(f"{verb} {listing(names)}")
    return "; it ".join(parts)


def _effect(found: Finding, study: Study) -> str:
    reward = study.protocol.reward
    size = with_unit(written(found.truth, decimals(abs(found.truth))), reward.unit)
    return f"the mean effect of {reward.action} is {size}."


def _gains(summary: Summary, study: Study, unit: str) -> list[Block]:
    what, worst = "sum" if study.population.sums else "mean", study.protocol.reward.worst
    blocks: list[Block] = [
        Paragraph(
            f"Each participant's {what} of outcomes is one number; a trial's is their mean, and their {worst.name}, "
            f"{worst.side} which a quarter of the people lie: a policy can be good on average and leave some "
            "behind. Regret is what the best probability within the limits would gain at the next outcome, for each "
            "decision, if the truth were known. The policies never and always do not keep to the limits, so nothing "
            "could be learnt from their trials, and always can even have less regret than none. Draws during an "
            "outage, with the fixed probability, are in the shares and doses of all of them."
        )
    ]
    ours = [line for line in summary.lines if line.policy == OURS]
    if len(ours) > 1:
        rows = [[line.design, *cells] for line, cells in zip(ours, _got(ours), strict=True)]
        blocks.append(Table("The trial's policy, by design", ("design", *_shown(ours).values()), rows))
    return [*blocks, *_by_design(summary, lambda design: _policies(summary, design, unit))]


def _got(lines: Sequence[Line]) -> list[list[str]]:
    """What people get, a row for each line; the numbers of a column are written alike."""
    columns = {name: averages([line.averages[name] for line in lines]) for name in _shown(lines)}
    columns["at_limit"] = [percent(line.averages["at_limit"].mean) for line in lines]
    columns["probability"] = [f"{line.averages['probability'].mean:.2f}" for line in lines]
    return [list(row) for row in zip(*columns.values(), strict=True)]


def _shown(lines: Sequence[Line]) -> dict[str, str]:
    """What all lines have of what is shown, with its headings."""
    return {name: words for name, words in SHOWN.items() if all(name in line.averages for line in lines)}


def _policies(summary: Summary, design: str, unit: str) -> list[Block]:
    lines = summary.of(design)
    marked = [i for i, line in enumerate(lines) if line.policy == OURS]
    rows = [[line.policy, *cells] for line, cells in zip(lines, _got(lines), strict=True)]
    blocks: list[Block] = [Table(design, ("policy", *_shown(lines).values()), rows, marked)]
    pairs = [pair for pair in summary.pairs if pair.design == design]
    if any(pair.difference.users > 1 for pair in pairs):
        blocks.append(_picture(pairs, unit, design))
        blocks.append(Expert("These differences in numbers", [_pairs(pairs, design)]))
    return blocks


def _by_design(summary: Summary, blocks_of: Callable[[str], list[Block]]) -> list[Block]:
    """What is to be said of each design; behind a click where there are many."""
    designs = summary.designs
    if len(designs) <= FEW:
        return [block for design in designs for block in blocks_of(design)]
    return [Expert(design, blocks_of(design)) for design in designs]


def _picture(pairs: Sequence[Pair], unit: str, design: str) -> Picture:
    return Picture.of(
        lambda width: figures.advantage(pairs, unit, width=width),
        f"The trial's policy less each other policy: {design}",
        "Ours less each other policy, on the same people with the same chances, with 95 % intervals over trials. To "
        f"the {'right' if pairs[0].better == 'higher' else 'left'} of the line, ours is better. Hollow dots: the "
        "interval holds 0.",
    )


def _pairs(pairs: Sequence[Pair], design: str) -> Table:
    rows = []
    places = decimals(max(pair.difference.high - pair.difference.low for pair in pairs))
    for pair in pairs:
        gap = pair.difference
        cells = [written(each, places) for each in (gap.mean, gap.low, gap.high)]
        rows.append([f"{pair.other}, {MEASURES[pair.measure]}", *cells, str(gap.users), pair.verdict])
    return Table(
        f"Ours less the other: {design}", ("other policy", "difference", "from", "to", "trials", "verdict"), rows
    )


def _findings(summary: Summary) -> list[Block]:
    known = [line for line in summary.lines if line.finding is not None]
    if not known:
        return [Paragraph("No effect can be estimated: it needs a policy that randomises, and at least two people.")]
    blocks: list[Block] = [
        Paragraph(
            "After each trial the effect of being assigned is estimated by weighted and centred least squares, as one "
            "would from the exported table. Coverage should be 95 %. Power is the share of trials with p below 0.05; "
            "without an effect it should be 5 %."
        )
    ]
    ours = [line for line in known if line.policy == OURS]
    if len(ours) > 1:
        rows = [[line.design, *cells] for line, cells in zip(ours, _estimates(ours), strict=True)]
        blocks.append(Table("The trial's policy, by design", ("design", *ESTIMATES), rows))
    if len(summary.designs) > 1:
        blocks.append(
            Picture.of(
                lambda width: figures.designs(known, width=width),
                "Power of each design",
                "Share of trials in which the effect is found, with 95 % intervals.",
            )
        )

    def each(design: str) -> list[Block]:
        lines = [line for line in known if line.design == design]
        marked = [i for i, line in enumerate(lines) if line.policy == OURS]
        rows = [[line.policy, *cells] for line, cells in zip(lines, _estimates(lines), strict=True)]
        return [Table(design, ("policy", *ESTIMATES), rows, marked)]

    return [*blocks, *_by_design(summary, each)]


def _estimates(lines: Sequence[Line]) -> list[list[str]]:
    """How the effect is found, a row for each line; the numbers of a column are written alike."""
    known = [line.finding for line in lines if line.finding is not None]
    columns = [
        numbers([found.truth for found in known], 2),
        averages([found.bias for found in known]),
        [percent(found.coverage.mean) for found in known],
        [percents(found.coverage) for found in known],
        [percent(found.power.mean) for found in known],
        [percents(found.power) for found in known],
        numbers([found.length for found in known]),
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _probabilities(summary: Summary) -> list[Block]:
    def each(design: str) -> list[Block]:
        lines = [line for line in summary.of(design) if line.policy == OURS or POLICIES[line.policy].randomised]
        picture = Picture.of(
            lambda width: figures.realised(lines, width=width),
            f"Recorded probabilities and realised shares: {design}",
            f"{design}. Bars: within which 95 % of such shares lie if the probabilities are right.",
        )
        return [picture] if lines else []

    words = "Decisions are put into tenths by their recorded probability. If draws are sound, dots lie on the line."
    return [Paragraph(words), *_by_design(summary, each)]


def _trouble(summary: Summary, study: Study) -> list[Block]:
    def each(design: str) -> list[Block]:
        blocks: list[Block] = []
        line = next((one for one in summary.of(design) if one.policy == OURS), summary.of(design)[0])
        rows = [[what, f"{count:.1f}"] for what, count in line.counts.items()]
        blocks.append(Table(f"{line.design}: per trial, on average", ("what", "how often"), rows))
        blocks.extend(_facts(line))
        took = line.averages
        blocks.append(
            Paragraph(
                f"{percent(took['fallback'].mean)} of decisions are made by a fallback, not by the policy. Half of "
                f"the decisions took less than {took['median_ms'].mean:.2f} ms, 95 % less than "
                f"{took['p95_ms'].mean:.2f} ms (--drive {study.drive})."
            )
        )
        return blocks

    return _by_design(summary, each)


def _facts(line: Line) -> list[Block]:
    if not line.facts:
        return [Paragraph("Decisions were simulated without a ledger, so there is no record to replay (see --drive).")]
    same = sum(bool(each.get("replays")) for each in line.facts)
    sound = sum(bool(each.get("chain")) for each in line.facts)
    incidents: dict[str, int] = {}
    for each in line.facts:
        for kind, count in each.get("incidents", {}).items():
            incidents[kind] = incidents.get(kind, 0) + count
    noted = ", ".join(f"{kind} {count}" for kind, count in sorted(incidents.items())) or "none"
    return [
        Paragraph(
            f"Of {counted(len(line.facts), 'recorded trial')}, {same} replayed with every decision as recorded, and "
            f"the chain of {sound} was whole. Incidents: {noted}."
        )
    ]


def _how(summary: Summary, study: Study) -> list[Block]:
    about = [[OURS, "the trial's own policy, by its protocol"]]
    used = {line.policy for line in summary.lines}
    about += [[name, kind.about] for name, kind in POLICIES.items() if name in used]
    trouble = study.trouble
    shares = ", ".join(
        f"{100 * getattr(trouble, name):.0f} % {name}"
        for name in ("missing", "late", "corrected", "undelivered", "repeated")
    )
    parameters = ", ".join(
        f"{name} {value}" for name, value in study.population.parameters.items() if value is not None
    )
    seconds = ", ".join(
        f"{line.policy} {line.seconds:.2f}" for line in summary.lines if line.design == summary.designs[0]
    )
    return [
        Table("Policies", ("name", "what it does"), about, words=True),
        Paragraph(
            f"People: {study.population.name}{f' ({parameters})' if parameters else ''}. What goes wrong: {shares}, "
            f"and {counted(len(trouble.outages), 'outage')}. All policies meet the same people, contexts, noise and "
            "draws. Every policy but never, always, fixed and oracle starts from what the same pilot users taught."
        ),
        Paragraph(f"Processor seconds for each trial: {seconds}."),
    ]
