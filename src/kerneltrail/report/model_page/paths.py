"""Users one by one: the path over the graph and, where rows are known, the fit and its parts after every batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Schema
from kerneltrail.evaluation.metrics import rmse
from kerneltrail.kernels import Composition
from kerneltrail.report import figures
from kerneltrail.report.figures import Curve, Dots, Panel
from kerneltrail.report.graph import colour_of, name_of
from kerneltrail.report.model_page.facts import batches, facts
from kerneltrail.report.model_page.followed_user import PartView, UserView
from kerneltrail.report.page import Block, Picture, Table
from kerneltrail.trajectory.model import TrajectoryModel

PRINTED = 12
"""Users whose last fit is drawn on paper."""
LETTERS = 32
"""Letters of a title that fit above a small panel."""
MOST_DOTS = 400
"""Rows drawn beside a part; of more, every so manyth."""


def with_unit(name: str, schema: Schema) -> str:
    """A column's name for an axis."""
    unit = schema.unit(name)
    return f"{name} ({unit})" if unit else name


@dataclass(frozen=True)
class PathsBlock(Block):
    """A user to be chosen, and a batch: the path so far, the fit, its parts with bands, and the words.

    Needs the page's script. Without it, and on paper, the last fit of each user is shown instead (`last_fits`).

    Attributes:
        model: the graph.
        users: followed; if there are none, the pilot users' learnt paths are shown without fits.
    """

    template: ClassVar[str] = "user_paths.html.jinja"
    scripts: ClassVar[tuple[str, ...]] = ("graph.js", "plot.js", "users.js")

    model: TrajectoryModel
    users: Sequence[UserView] = ()

    def data(self) -> dict[str, Any]:
        """What the script draws from."""
        schema = self.model.schema
        numbers = {node.composition: i + 1 for i, node in enumerate(self.model.nodes)}
        shown = [one for one in self.users if one.steps]
        return {
            "nodes": [{"name": "root", "colour": "#222222"}]
            + [{"name": name_of(node.composition), "colour": colour_of(i)} for i, node in enumerate(self.model.nodes)],
            "target": with_unit(schema.target, schema),
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

    def last_fits(self) -> Picture | None:
        """Each user's fit after the last batch, for paper; None where no rows are known."""
        shown = [one for one in self.users if one.steps][:PRINTED]
        if not shown:
            return None
        schema = self.model.schema
        panels = [_panel(one, schema) for one in shown]
        columns = min(3, len(panels))
        return Picture(
            figures.svg(figures.grid(panels, columns=columns, share=True, height=2.1)),
            None,  # for paper above all: on a telephone the script draws them one by one
            f"Observations and fits of {', '.join(one.user.name for one in shown)} after their last batch.",
            f"Each user after the last batch: what was observed and what the fit says"
            f"{f' (the first {len(shown)} of {len(self.users)} users)' if len(shown) < len(self.users) else ''}.",
        )


def brief(values: NDArray[np.float64]) -> list[float]:
    """Numbers to four digits, which is finer than a pixel."""
    return [float(f"{value:.4g}") for value in values.tolist()]


def _x(one: UserView) -> NDArray[np.float64]:
    """Where a user's rows stand on the axis of the fits."""
    return np.arange(1.0, one.user.rows + 1.0) if one.by_row else one.user.X[:, 0]


def _user(one: UserView, numbers: dict[Composition, int], schema: Schema) -> dict[str, Any]:
    steps = []
    for t, step in enumerate(one.steps):
        entry = {
            "node": numbers[step.composition],
            "rows": step.rows,
            "probabilities": brief(np.array(step.probabilities)),
            "words": list(step.words),
            "fit": _curve(step.fit, rows=one.by_row),
            "parts": [_part(part, schema) for part in step.parts],
        }
        if t + 1 < len(one.ahead):
            ahead = one.ahead[t + 1]
            entry["next"] = {"mean": brief(ahead.mean), "sd": brief(ahead.sd), "rmse": rmse(ahead.mean, ahead.y)}
        steps.append(entry)
    return {
        "name": one.user.name,
        "pilot": one.pilot,
        "byRow": one.by_row,
        "xlabel": "row, oldest first" if one.by_row else with_unit(one.user.covariates[0], schema),
        "x": brief(_x(one)),
        "y": brief(one.user.y),
        "steps": steps,
    }


def _curve(curve: Curve, *, rows: bool = False) -> dict[str, Any]:
    values = {"mean": brief(curve.mean), "sd": brief(curve.sd)}
    if not rows:
        values["x"] = brief(curve.x)
    if curve.total_sd is not None:
        values["total"] = brief(curve.total_sd)
    return values


def _part(part: PartView, schema: Schema) -> dict[str, Any]:
    every = slice(None, None, max(1, -(-len(part.x) // MOST_DOTS)))
    medians = f"; {', '.join(part.others)} at the median" if part.others else ""
    return {
        "title": part.title,
        "share": None if part.share is None else float(f"{part.share:.3g}"),
        "xlabel": with_unit(part.covariate, schema) + medians,
        "curve": _curve(part.curve),
        "x": brief(part.x[every]),
        "y": brief(part.y[every]),
    }


def _panel(one: UserView, schema: Schema) -> Panel:
    step = one.steps[-1]
    label = "row" if one.by_row else with_unit(one.user.covariates[0], schema)
    return Panel(
        "\n".join([one.user.name, *wrap(name_of(step.composition), LETTERS)]),
        label,
        with_unit(schema.target, schema),
        step.fit,
        (Dots(_x(one), one.user.y, "observed"),),
        band_label="90 % of the function",
        total_label="90 % of new observations",
        reach=figures.WITHIN_90,
    )


def path_table(model: TrajectoryModel, users: Sequence[UserView] = ()) -> Table:
    """Everybody's kernels, batch by batch: runs of the same kernel drawn together."""
    followed = [one for one in users if one.steps and not one.pilot]
    rows = [[name, "pilot", _runs([name_of(kernel) for kernel in path])] for name, path in model.table()]
    rows += [[one.user.name, "new", _runs([name_of(step.composition) for step in one.steps])] for one in followed]
    return Table("Everybody's kernels, batch by batch", ("user", "", "kernels"), rows, words=True)


def _runs(names: Sequence[str]) -> str:
    """Names in order, with the batches at which each held.

    >>> _runs(["SE[x]", "SE[x]", "LIN[x]"])
    'SE[x] (batches 1–2), then LIN[x] (batch 3)'
    """
    runs = groupby(enumerate(names, start=1), key=lambda at: at[1])
    return ", then ".join(f"{name} ({batches([t for t, _ in run])})" for name, run in runs)
