"""What the model has found of a participant, in words, and the path on the graph that led there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.figure import Figure

from kerneltrail.kernels import Composition
from kerneltrail.kernels.phrases import counted
from kerneltrail.report.description import noun_of
from kerneltrail.report.explanation import explain
from kerneltrail.report.figures import BLUE, FAINT, VERMILION
from kerneltrail.report.graph import Graph, draw, name_of
from kerneltrail.report.page import Block, Expert, Paragraph, Picture, Section, Sentences, Table
from kerneltrail.report.terms import chance
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_state import SelectionStep
from kerneltrail.trial.dashboard.drawing import GALLERY, Shares, draw_shares, places
from kerneltrail.trial.dashboard.texts import moment
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.versions import Version, Versions

MOST = 4
"""Kernels whose probabilities are drawn."""

Paths = tuple[Graph, tuple[tuple[str, str], ...]]
"""A graph, and colours of boxes by their names."""


def findings_section(user: NewUser | None, policy: str) -> Section:
    """What was found, in words and in data units with its uncertainty."""
    heading = "What the model has found"
    if user is None:
        words = "Nothing yet: no outcome of this participant has entered an update, so decisions rest on pilot users."
        return Section(heading, [Paragraph(words)], "found")
    note = (
        f"As of policy {policy}. A row is a decision with its outcome. An interval holds the truth with a probability "
        "of 90 %, if the model is right."
    )
    sentences = [str(each) for each in explain(user)]
    return Section(heading, [Paragraph(note), Sentences("In words", sentences)], "found")


def steps_of(versions: Versions, version: Version, participant: str) -> dict[int, Version]:
    """At which version each batch of a participant, counted from 1, was first there."""
    first: dict[int, Version] = {}
    for each in versions.chain(version.version):
        for batch in range(1, len(versions.batches(each.version, participant)) + 1):
            first.setdefault(batch, each)
    return first


def path_section(
    user: NewUser, model: LearntGraph, made: Mapping[int, Version], zone: str, updates: Sequence[float]
) -> Section:
    """The kernels that were selected update by update, how probable they were, and where they lie on the graph."""
    steps = [step for step in user.history if step.batch in made]
    blocks: list[Block] = [Paragraph(_lead(user, steps))]
    if steps:
        blocks.append(_probabilities(user, steps, made, zone, updates))
    path = [_table(user, steps, made, zone), _graph(user, model)]
    blocks.append(Expert("The path, and where it lies on the graph", path))
    return Section("Which description fits, update by update", blocks, "path")


def _noun(user: NewUser, composition: Composition) -> str:
    fitted = user.node_posterior(composition).fit.hyperparameters
    return noun_of(fitted, user.model.schema, user.model.scaler, shared=user.model.mean is not None)


def _lead(user: NewUser, steps: Sequence[SelectionStep]) -> str:
    changes = sum(1 for _ in groupby(step.composition for step in steps)) - 1
    now = f"{_noun(user, user.composition)} (probability {chance(user.probabilities[user.composition])})"
    changed = "never changed" if changes < 1 else f"changed {counted(changes, 'time')}"
    return (
        f"Each description is a kernel of the pilot users' graph. In {counted(len(steps), 'update')} the one that fits "
        f"best {changed}. Now it is {now}."
    )


def _probabilities(
    user: NewUser, steps: Sequence[SelectionStep], made: Mapping[int, Version], zone: str, updates: Sequence[float]
) -> Picture:
    at = places([instant(made[step.batch].made_at) for step in steps], zone)
    shown = list(user.probabilities)[:MOST]
    lines = tuple(
        (_noun(user, each), at, tuple(float(step.probabilities.get(each, 0.0)) for step in steps)) for each in shown
    )
    now = "; ".join(f"{_noun(user, each)}: {chance(user.probabilities[each])}" for each in shown)
    alt = f"Probabilities of descriptions after each of {len(steps)} updates. Now: {now}."
    caption = "How probable each description is, after each update."
    return GALLERY.picture(draw_shares, Shares(lines, tuple(updates), "probability"), alt, caption)


def _table(user: NewUser, steps: Sequence[SelectionStep], made: Mapping[int, Version], zone: str) -> Table:
    rows = [
        (
            made[step.batch].version,
            moment(made[step.batch].made_at, zone),
            str(step.rows),
            _noun(user, step.composition),
            name_of(step.composition),
            chance(step.probabilities[step.composition]),
        )
        for step in steps
    ]
    columns = ("policy", "made", "rows by then", "description", "kernel", "its probability")
    return Table(f"The description selected at each update, on the clock of {zone}", columns, rows, words=True)


def _graph(user: NewUser, model: LearntGraph) -> Picture:
    graph = Graph.of(model.pool, model.paths)
    passed = {name_of(composition) for composition, number in user.selected.items() if number}
    here = name_of(user.composition)
    colours = {name: VERMILION if name == here else BLUE if name in passed else FAINT for name in graph.names}
    others = sorted(passed - {here})
    earlier = f"; earlier at {', '.join(others)}" if others else ""
    alt = f"The pilot users' graph. This participant is at {here}{earlier}."
    caption = (
        "Boxes are kernels of the pilot users; 2/3 on an arrow: of three who left a box, two went this way. Orange: "
        "where this participant is now; blue: where they were before; grey: not visited. In bold: where many pilot "
        "users ended."
    )
    return GALLERY.picture(_draw_path, (graph, tuple(sorted(colours.items()))), alt, caption)


def _draw_path(data: Paths, *, width: float) -> Figure:
    graph, colours = data
    return draw(graph, width=width, colours=dict(colours))
