"""What a notebook shows of a cohort, a model, a followed user and effects: HTML and figures.

`kerneltrail.views` knows these functions by name. Everything in the HTML goes through templates that escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.data import Cohort, User
from kerneltrail.kernels.phrases import counted, number
from kerneltrail.report.effect_figures import draw_effects
from kerneltrail.report.effect_words import effect_sentence, effects_description, interaction_sentence
from kerneltrail.report.figures import WIDE
from kerneltrail.report.graph import Graph, draw, key_masks, name_of
from kerneltrail.report.model_page.numbers import NONE, digits
from kerneltrail.report.model_text import describe_node
from kerneltrail.report.page import Block, Lines, Paragraph, Picture, Sentences, Table
from kerneltrail.report.templating import render
from kerneltrail.report.terms import chance
from kerneltrail.trajectory.effects import COLUMNS, Effects
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_state import SelectionStep

MANY = 30
"""No more users of a cohort are listed."""
FEW = 3
"""So many probable kernels are named."""


def view(title: str, blocks: Sequence[Block]) -> str:
    """Blocks below a title, with a style that stays within them."""
    return str(render("notebook.html.jinja", title=title, blocks=blocks))


def cohort_html(cohort: Cohort) -> str:
    """The users of a cohort: rows, batches, mean and spread of the target, from when to when."""
    columns = ("user", "rows", "batches", f"mean {cohort.target}", "sd", "from", "to")
    rows = [
        (row["user"], str(row["rows"]), str(row["batches"]), _number(row["mean"]), _number(row["sd"]), *_when(user))
        for row, user in zip(cohort.summary()[:MANY], cohort.raw, strict=False)
    ]
    more = f"; the first {MANY} of {len(cohort)} users" if len(cohort) > MANY else ""
    unit = cohort.schema.unit(cohort.target)
    caption = f"In data units{f' ({cohort.target} in {unit})' if unit else ''}, ordered by {cohort.schema.order}{more}."
    blocks: list[Block] = [Table(caption, columns, rows)]
    if cohort.report.rows_kept != cohort.report.rows_read:
        blocks.append(Lines("What happened to the table's rows", str(cohort.report).splitlines()))
    return view(repr(cohort), blocks)


def model_html(model: TrajectoryModel) -> str:
    """The learnt graph, and the key kernels in words."""
    graph = Graph.of(model.pool, model.paths)
    picture = Picture.of(
        lambda width: draw(graph, width=width),
        f"The learnt graph: {counted(len(model.nodes), 'kernel')} and the ways between them",
        "A box is a kernel: a way in which the target depends on the covariates. 2/3 on an arrow: of three who left a "
        "box, two went this way; a loop is to stay for another batch. In bold: the key kernels, in which at least a "
        "fifth of the pilot users end.",
    )
    words = []
    ends = [path[-1] for path in model.paths if path]
    for mask in key_masks(model.paths):
        node = next(node for node in model.nodes if node.mask == mask)
        heading = f"{name_of(node.composition)}: {counted(ends.count(mask), 'pilot user')} of {len(ends)}"
        words.append(Sentences(heading, [str(sentence) for sentence in describe_node(model, node)]))
    return view(f"What {counted(len(model.users), 'pilot user')} showed about {model.schema.target}", [picture, *words])


def model_figure(model: TrajectoryModel, *, width: float = WIDE) -> Figure:
    """The learnt graph."""
    return draw(Graph.of(model.pool, model.paths), width=width)


def user_html(user: NewUser) -> str:
    """A followed user: the path of kernels with their probabilities, and what was found, in a table and in words."""
    effects = user.effects()
    blocks: list[Block] = []
    if user.rows:
        blocks.append(_path(user))
    if user.rows or user.model.mean is not None:
        words = [str(sentence) for sentence in effects_description(user)]
        heading = f"What was found of {user.name}" if user.rows else "Expected, from the pilot users"
        blocks += [_effects_table(effects), Sentences(heading, words)]
    else:
        blocks.append(Paragraph("Nothing is known before the first rows: the model has no population mean."))
    return view(repr(user), blocks)


def user_figure(user: NewUser, *, width: float = WIDE) -> Figure:
    """A user's effects."""
    after = f"after {counted(user.rows, 'row')}" if user.rows else "before any row"
    return draw_effects(user.effects(), user.model.schema, title=f"{user.name}, {after}", width=width)


def effects_html(effects: Effects) -> str:
    """A table of effects, and the same in words."""
    blocks: list[Block] = [_effects_table(effects)]
    if effects.schema is not None:
        words = [effect_sentence(effect, effects.schema) for effect in effects]
        words += [interaction_sentence(each, effects.schema) for each in effects.interactions]
        blocks.append(Sentences("In words", words))
    return view(f"Effects after {counted(effects.rows, 'row')}", blocks)


def effects_figure(effects: Effects, *, width: float = WIDE) -> Figure:
    """Effects, a panel each."""
    return draw_effects(effects, effects.schema, width=width)


def _effects_table(effects: Effects) -> Table:
    target, unit = "the target", ""
    if effects.schema is not None:
        target = effects.schema.label(effects.schema.target)
        unit = effects.schema.unit(effects.schema.target)
    caption = (
        f"By how much {target} changes from one value of a covariate to another, all else equal"
        f"{f', in {unit}' if unit else ''}. Bold: it is clear which way."
    )
    rows = [effect.cells(effects.schema) for effect in effects]
    return Table(caption, COLUMNS, rows, marked=[i for i, effect in enumerate(effects) if effect.clear])


def _path(user: NewUser) -> Table:
    """The kernels selected so far, runs of the same one drawn together."""
    rows = [_run(list(run)) for _, run in groupby(user.state.steps, lambda step: step.composition)]
    likely = list(user.probabilities.items())[:FEW]
    listed = ", ".join(f"{name_of(composition)} ({chance(p)})" for composition, p in likely)
    caption = f"Kernels selected as rows came in. Most probable now: {listed}."
    if user.selection == "greedy":
        caption = "Kernels selected step by step, as rows came in; greedy selection has no probabilities."
        rows = [row[:-1] for row in rows]
    columns = ("batch", "rows seen", "kernel", "its probability")
    return Table(caption, columns[: len(rows[0])], rows, words=True)


def _run(steps: Sequence[SelectionStep]) -> tuple[str, ...]:
    """A row of the path: the first and the last step at which a kernel was selected."""
    first, last = steps[0], steps[-1]
    (kernel, begun), (_, now) = first.selected, last.selected
    return (
        _fromto(str(first.batch), str(last.batch), "–"),
        _fromto(str(first.rows), str(last.rows), "–"),
        kernel,
        _fromto(chance(begun), chance(now), " → "),
    )


def _fromto(first: str, last: str, between: str) -> str:
    return first if first == last else f"{first}{between}{last}"


def _number(value: float | None) -> str:
    return NONE if value is None else digits(value)


def _when(user: User) -> tuple[str, str]:
    """The first and the last value of the order column."""
    if user.order is None or not user.rows:
        return NONE, NONE
    return _moment(user.order[0]), _moment(user.order[-1])


def _moment(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, unit="m")).replace("T", " ")
    return str(value) if isinstance(value, str | np.integer) else number(float(value))
