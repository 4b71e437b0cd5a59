"""Users one by one: effects and words, the rows with the fit, and for experts the path over the graph and the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from kerneltrail.data import Schema
from kerneltrail.evaluation.metrics import rmse
from kerneltrail.kernels import Composition
from kerneltrail.report.figures import Curve
from kerneltrail.report.graph import colour_of, name_of
from kerneltrail.report.model_page.axes import brief, times_of, with_unit
from kerneltrail.report.model_page.effect_data import findings_data
from kerneltrail.report.model_page.errors import user_errors
from kerneltrail.report.model_page.facts import batches, facts
from kerneltrail.report.model_page.followed_user import StepView, UserView
from kerneltrail.report.model_page.numbers import digits
from kerneltrail.report.model_page.parts import PartView
from kerneltrail.report.page import Block, Table
from kerneltrail.report.terms import Terms
from kerneltrail.trajectory.model import TrajectoryModel

MOST_DOTS = 400
"""Rows drawn beside a part; of more, every so manyth."""


@dataclass(frozen=True)
class PathsBlock(Block):
    """A user to be chosen, and a batch: effects with bands and words, the rows with the fit, and the expert's view.

    Needs the page's script. Without it, and on paper, `static_users` shows every user after the last batch instead.

    Attributes:
        model: the graph.
        users: followed; if there are none, the pilot users' learnt paths are shown without fits.
    """

    template: ClassVar[str] = "user_paths.html.jinja"
    scripts: ClassVar[tuple[str, ...]] = ("graph.js", "plot.js", "effects.js", "users.js")

    model: TrajectoryModel
    users: Sequence[UserView] = ()

    @property
    def shown(self) -> list[UserView]:
        """Those whose batches are drawn."""
        return [one for one in self.users if one.steps]

    def data(self) -> dict[str, Any]:
        """What the script draws from."""
        schema = self.model.schema
        numbers = {node.composition: i + 1 for i, node in enumerate(self.model.selectable)}
        shown = self.shown
        return {
            "nodes": [{"name": "root", "colour": "#222222"}]
            + [
                {"name": name_of(node.composition), "colour": colour_of(i)}
                for i, node in enumerate(self.model.selectable)
            ],
            "target": with_unit(schema.target, schema),
            "action": Terms(schema).action,
            "shared": self.model.mean is not None,
            "users": [_user(one, numbers, schema) for one in shown] if shown else self._pilots(numbers),
        }

    def _pilots(self, numbers: dict[Composition, int]) -> list[dict[str, Any]]:
        words = {fact.number: list(fact.words) for fact in facts(self.model, ())}
        return [
            {
                "name": name,
                "pilot": True,
                "steps": [{"node": numbers[composition], "words": words[numbers[composition]]} for composition in path],
            }
            for name, path in self.model.table()
        ]


def _user(one: UserView, numbers: dict[Composition, int], schema: Schema) -> dict[str, Any]:
    times = times_of(one.user) if one.by_row else None
    if times is not None:
        x, xlabel = times.astype(np.int64).tolist(), "time"
    elif one.by_row:
        x, xlabel = list(range(1, one.user.rows + 1)), "row, oldest first"
    else:
        x, xlabel = brief(one.user.X[:, 0]), with_unit(one.user.covariates[0], schema)
    return {
        "name": one.user.name,
        "pilot": one.pilot,
        "byRow": one.by_row,
        "dates": times is not None,
        "xlabel": xlabel,
        "x": x,
        "y": brief(one.user.y),
        "errors": user_errors(one, schema),
        "columns": [brief(column) for column in one.user.X.T],
        "steps": [_step(one, t, step, numbers, schema) for t, step in enumerate(one.steps)],
    }


def _step(one: UserView, t: int, step: StepView, numbers: dict[Composition, int], schema: Schema) -> dict[str, Any]:
    entry = {
        "node": numbers[step.composition],
        "rows": step.rows,
        "probabilities": brief(np.array(step.probabilities)),
        "lead": step.lead,
        "words": list(step.words),
        "fit": _curve(step.fit, rows=one.by_row),
        "parts": [_part(part, schema) for part in step.parts],
        **findings_data(step.findings, schema),
    }
    if t + 1 < len(one.ahead):
        ahead = one.ahead[t + 1]
        errors = {name: digits(rmse(mean, ahead.y)) for name, mean in ahead.simple.items()}
        entry["next"] = {
            "mean": brief(ahead.mean),
            "ends": [brief(end) for end in ahead.prediction.interval(0.9)],
            "inside": int(ahead.inside(0.9).sum()),
            "rmse": digits(rmse(ahead.mean, ahead.y)),
            "simple": errors,
        }
    return entry


def _curve(curve: Curve, *, rows: bool = False) -> dict[str, Any]:
    values: dict[str, Any] = {"mean": brief(curve.mean), "sd": brief(curve.sd)}
    if not rows:
        values["x"] = brief(curve.x)
    if curve.total is not None:
        values["total"] = [brief(end) for end in curve.total]
    return values


def _part(part: PartView, schema: Schema) -> dict[str, Any]:
    every = slice(None, None, max(1, -(-len(part.x) // MOST_DOTS)))
    medians = f"; {', '.join(map(schema.label, part.others))} at the median" if part.others else ""
    return {
        "title": part.title,
        "share": float(f"{part.share:.3g}"),
        "xlabel": with_unit(part.covariate, schema) + medians,
        "curve": _curve(part.curve),
        "x": brief(part.x[every]),
        "y": brief(part.y[every]),
    }


def path_table(model: TrajectoryModel, users: Sequence[UserView] = ()) -> Table:
    """Everybody's kernels, batch by batch: runs of the same kernel drawn together."""
    followed = [one for one in users if one.steps and not one.pilot]
    rows = [[name, "pilot", _runs([name_of(kernel) for kernel in path])] for name, path in model.table()]
    rows += [[one.user.name, "new", _runs([name_of(step.composition) for step in one.steps])] for one in followed]
    caption = "A pilot user's kernels are those on the learnt path, a new user's those selected after each batch."
    return Table(
        caption if followed else "The kernels of the pilot users on the learnt path.",
        ("user", "pilot or new", "kernels"),
        rows,
        words=True,
    )


def _runs(names: Sequence[str]) -> str:
    """Names in order, with the batches at which each held.

    >>> _runs(["SE[x]", "SE[x]", "LIN[x]"])
    'SE[x] (batches 1–2), then LIN[x] (batch 3)'
    """
    runs = groupby(enumerate(names, start=1), key=lambda at: at[1])
    return ", then ".join(f"{name} ({batches([t for t, _ in run])})" for name, run in runs)
