"""The page about a trajectory model that a clinician reads: one file, nothing fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version

from kerneltrail.data import Finding
from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.report.explanation import besides_shared
from kerneltrail.report.findings import Findings
from kerneltrail.report.group_words import group_description
from kerneltrail.report.model_page.axes import with_unit
from kerneltrail.report.model_page.calibration import calibration
from kerneltrail.report.model_page.comparison import Comparison, comparison_section
from kerneltrail.report.model_page.errors import errors_section
from kerneltrail.report.model_page.everybody import effects_section, pilot_picture, treatment_section
from kerneltrail.report.model_page.followed_user import UserView
from kerneltrail.report.model_page.graph import GraphBlock
from kerneltrail.report.model_page.paths import PathsBlock, path_table
from kerneltrail.report.model_page.sampling import alternatives, chains_section, firmness
from kerneltrail.report.model_page.static_users import static_users
from kerneltrail.report.page import Block, Expert, Paragraph, Section, Sentences, Static, page
from kerneltrail.trajectory.model import TrajectoryModel


def trail_page(
    title: str | None = None,
    model: TrajectoryModel | None = None,
    users: Sequence[UserView] = (),
    comparison: Comparison | None = None,
    sections: Sequence[Section] = (),
    *,
    opening: Sequence[Section] = (),
    left_out: Sequence[str] = (),
    odd: Sequence[Finding] = (),
    lead: str | None = None,
    footer: str | None = None,
) -> str:
    """The page as HTML: opening, users, all side by side, errors, graph, comparison, further sections, chains.

    Every argument adds its part; what is left out is left out of the page. What was found of users comes first, since
    that is what most readers look for; without users, the graph.

    Args:
        title: heading; by default what was learnt about what.
        model: adds the interactive graph, the pilot users' paths, the alternatives and the chains.
        users: of that model, from `follow_users`: adds effects, what acting adds, fits, errors and calibration.
        comparison: adds methods side by side, with intervals.
        sections: further ones, shown after those on users and methods; give them names to have them in the menu.
        opening: further sections, shown before all others.
        left_out: a sentence for each user who could not be followed: who, and why.
        odd: what `against_pilot` found of the users' table; warnings stand at the top, before what is said of users.
        lead: below the heading.
        footer: at the end.
    """
    heading, about = _title_and_lead(model)
    parts: list[Section] = [*_cautions(odd), *opening]
    if model is not None:
        graph, one_by_one = _graph(model), _users(model, users, left_out)
        judged = (
            effects_section(model, users), treatment_section(model, users), errors_section(users, model.schema),
            calibration(users),
        )  # fmt: skip
        found = [section for section in judged if section is not None]
        parts += [one_by_one, *found, graph] if users else [graph, one_by_one]
    if comparison is not None:
        parts.append(comparison_section(comparison))
    parts += sections
    if model is not None:
        parts += [alternatives(model), chains_section(model)]
    return page(
        title or heading,
        about if lead is None else lead,
        parts,
        footer=footer if footer is not None else f"Written by kerneltrail {version('kerneltrail')}.",
        broad=model is not None,
    )


def _title_and_lead(model: TrajectoryModel | None) -> tuple[str, str]:
    if model is None:
        return "Methods compared", "How well several methods predict the next batch of a user's rows."
    schema = model.schema
    names = listing(with_unit(name, schema) for name in schema.covariates)
    return (
        f"What {counted(len(model.users), 'pilot user')} showed about {schema.label(schema.target)}",
        f"How {with_unit(schema.target, schema)} depends on {names}, and how what can be said of it changes as a "
        "user's rows come in: learnt from pilot users, to be used for new ones.",
    )


def _cautions(odd: Sequence[Finding]) -> list[Section]:
    """What has to be known before anything on the page is believed: the table is unlike the pilot users'."""
    warnings = [finding for finding in odd if finding.severity != "note"]
    if not warnings:
        return []
    doubt = Paragraph("Where the table is wrong, so is what is said of its users below, however sure it sounds.")
    return [Section("Before you read on", [Findings("warning", warnings), doubt], "cautions")]


def _graph(model: TrajectoryModel) -> Section:
    """What was found of the pilot users, and where they end, in words, since that matters most; then the graph."""
    block = GraphBlock(model)
    found = [sentence.text for sentence in group_description(model)]
    blocks: list[Block] = [Sentences("What was found of them", found)] if found else []
    picture = pilot_picture(model)
    blocks += [] if picture is None else [picture]
    blocks += [Sentences("What describes them best", _ends(model, block)), Paragraph(firmness(model)), block]
    return Section("What the pilot users showed", blocks, "graph")


def _ends(model: TrajectoryModel, block: GraphBlock) -> list[str]:
    """Where users end: the key kernels in words, and how many end elsewhere."""
    ends = Counter(path[-1] for path in model.paths if path)
    others = total = sum(ends.values())
    facts = {node.mask: fact for node, fact in zip(model.nodes, block.facts[1:], strict=True)}
    items = []
    for mask, count in ends.most_common():
        if facts[mask].key:
            who = f"all {total}" if count == total else f"{count} of {total}"
            beside = besides_shared(model, model.pool.composition(mask))
            items.append(f"In the end, {who} pilot users are described best by {facts[mask].noun}{beside}.")
            others -= count
    items += [f"The other {others} end elsewhere."] if others else []
    if model.mean is not None and any(path[-1] for path in model.paths if path):
        items.append("A description names what users may differ in. For whom each effect is clear is said above.")
    return items


def _users(model: TrajectoryModel, users: Sequence[UserView], left_out: Sequence[str]) -> Section:
    block = PathsBlock(model, users)
    blocks: list[Block] = []
    if users:
        new = sum(not one.pilot for one in users)
        kinds = {"pilot user": len(users) - new, "new user": new}
        who = " and ".join(counted(count, kind) for kind, count in kinds.items() if count)
        sentences = [f"{who}, batch by batch."]
        if new < len(users):
            sentences.append("A pilot user is shown on the learnt path, with the fit of its kernel.")
        if new:
            sentences.append(
                "For a new user the kernel is selected after every batch, without learning again, and what is shown is "
                "averaged over kernels by their probability."
            )
        blocks.append(Paragraph(" ".join(sentences)))
    elif not left_out:
        blocks.append(
            Paragraph(
                "The pilot users' ways over the graph. A model file keeps no rows; with --data, the pilot users' table "
                "or one of new users, the page also shows what was found of each user, the rows with the fit after "
                "every batch, and how good the predictions were."
            )
        )
    if left_out:
        blocks.append(Sentences("Users of the table who are not shown", left_out))
    blocks.append(block)
    fixed = static_users(users, model.schema)
    blocks += [Static(fixed)] if fixed else []
    everybody = Expert("Everybody's kernels, batch by batch", [path_table(model, users)])
    return Section("One user at a time", [*blocks, everybody], "users")
