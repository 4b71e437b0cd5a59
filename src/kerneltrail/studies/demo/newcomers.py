"""New users, followed batch by batch on a learnt graph, without learning again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from kerneltrail.data import Simulation, User
from kerneltrail.evaluation import coverage, follow, rmse
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition
from kerneltrail.kernels.phrases import counted
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.progress import Progress, Tell
from kerneltrail.report import figures, graph
from kerneltrail.report.explanation import explain
from kerneltrail.report.figures import NARROW, STYLE, WIDE, Curve, Dots, Panel
from kerneltrail.report.page import Block, Paragraph, Section, Sentences, Table
from kerneltrail.studies import selection_figures
from kerneltrail.studies.demo.parts import Part, across, listed
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.studies.selection_figures import Chances, Tally
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser

SHOWN = 4
"""Users whose probabilities are drawn."""


@dataclass(frozen=True)
class Newcomer:
    """A user with the state after each batch and what was predicted of the next one."""

    user: User
    truth: Composition
    states: tuple[NewUser, ...]
    ahead: tuple[Prediction, ...]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether the true kernel was selected, after each batch."""
        return tuple(state.composition == self.truth for state in self.states)


FOLLOWING = "following new users"
"""The stage in which they are followed."""


def new_users(model: TrajectoryModel, simulation: Simulation, tell: Tell) -> Part:
    """Selection for the test users of a simulation, with the truth beside it."""
    followed = []
    for number, user in enumerate(simulation.test):
        tell(Progress(FOLLOWING, number, len(simulation.test), user.name))
        followed.append(_follow(model, user, simulation.truth[user.name]))
    tell(Progress(FOLLOWING, len(followed), len(followed), "figures of new users"))
    colours = {graph.name_of(node.composition): graph.colour_of(i) for i, node in enumerate(model.nodes)}
    one = _telling(followed)
    tallies, chances = _tallies(model, followed, colours), _chances(followed, colours)
    fits, forecast = _fits(one), _forecast(one)
    blocks: list[Block] = [
        Paragraph(
            f"On this graph {len(followed)} new users are followed: with every batch each kernel on it is fitted to "
            "the user's rows, starting from what the pilot users' fits have in common, and gets a probability. The "
            "graph is not learnt again. As probabilities are kept for all kernels, an early mistake can be put right."
        ),
        tallies.block(),
        _table(followed),
        chances.block(),
        Paragraph(_introduced(one)),
        fits.block(),
        Sentences(f"In words, after {one.user.rows} rows", [str(sentence) for sentence in explain(one.states[-1])]),
    ]
    drawn = [_story(model, followed, colours), tallies, chances, fits]
    if forecast is not None:
        blocks.append(forecast.block())
        drawn.append(forecast)
    return Part(Section("New users on the graph", blocks), tuple(drawn))


def _follow(model: TrajectoryModel, user: User, truth: Composition) -> Newcomer:
    states: list[NewUser] = []
    followed = follow(
        TrajectoryMethod(model), user, catch=(), after_update=lambda state, step: states.append(state.copy())
    )
    ahead = tuple(prediction for prediction in followed.predictions[1:] if prediction is not None)
    return Newcomer(user, truth, tuple(states), ahead)


def _telling(followed: Sequence[Newcomer]) -> Newcomer:
    """The user with the most to tell: right in the end after being wrong, the richer the true kernel the better."""
    return max(followed, key=lambda one: (one.right[-1], not one.right[0], len(one.truth), -sum(one.right)))


def _counts(model: TrajectoryModel, followed: Sequence[Newcomer]) -> list[Tally]:
    tallies = []
    for node in model.nodes:
        picked = [[state.composition == node.composition for state in one.states] for one in followed]
        truly = [one.truth == node.composition for one in followed]
        right = [sum(pick[t] for pick, true in zip(picked, truly, strict=True) if true) for t in range(len(picked[0]))]
        wrong = [
            sum(pick[t] for pick, true in zip(picked, truly, strict=True) if not true) for t in range(len(picked[0]))
        ]
        tallies.append(Tally(graph.name_of(node.composition), tuple(right), tuple(wrong)))
    return tallies


def _tallies(model: TrajectoryModel, followed: Sequence[Newcomer], colours: Mapping[str, str]) -> FigurePair:
    tallies, ends = _counts(model, followed), followed[0].user.ends
    return FigurePair(
        "selected",
        selection_figures.tallies(tallies, ends, colours, width=WIDE),
        selection_figures.tallies(tallies, ends, colours, width=NARROW),
        f"How many of {len(followed)} new users have each kernel after {listed(ends)} rows, rightly or wrongly.",
        f"Which kernel is the most probable for the {len(followed)} new users, by the rows seen of each.",
    )


def _table(followed: Sequence[Newcomer]) -> Table:
    """What each batch brought: how many are right, how sure, and how well the next batch was predicted."""
    rows = []
    for t, end in enumerate(followed[0].user.ends):
        right = sum(one.right[t] for one in followed)
        sure = float(np.mean([one.states[t].probabilities[one.states[t].composition] for one in followed]))
        cells = [str(end), f"{right} of {len(followed)}", f"{sure:.0%}"]
        if t + 1 < followed[0].user.batches:
            errors, naive, inside = zip(*(_next_batch(one, t) for one in followed), strict=True)
            cells += [f"{np.mean(errors):.2f}", f"{np.mean(naive):.2f}", f"{np.mean(inside):.0%}"]
        else:
            cells += ["", "", ""]
        rows.append(cells)
    columns = (
        "rows",
        "true kernel selected",
        "mean probability",
        "RMSE of next batch",
        "of running mean",
        "in 95% interval",
    )
    caption = (
        f"Selection and prediction, means over the {len(followed)} new users: the probability of the selected kernel, "
        "the error in predicting the next batch beside that of the user's running mean, and the share of its rows "
        "inside the 95% interval"
    )
    return Table(caption, columns, rows)


def _next_batch(one: Newcomer, t: int) -> tuple[float, float, float]:
    """Error, error of the running mean, and share inside the interval, for the batch after the first t + 1."""
    ahead, batch = one.ahead[t], one.user.batch(t + 2)
    naive = one.user.upto(t + 1).y.mean()
    return rmse(ahead.mean, batch.y), rmse(naive, batch.y), coverage(ahead, batch.y, 0.95)


def _chances(followed: Sequence[Newcomer], colours: Mapping[str, str]) -> FigurePair:
    """Those who were wrong most often, as many of each true kernel as there is room for."""
    kinds: dict[Composition, list[Newcomer]] = {}
    for one in sorted(followed, key=lambda one: (sum(one.right), one.user.name)):
        kinds.setdefault(one.truth, []).append(one)
    each = max(SHOWN // len(kinds), 1)
    shown = [one for truth in sorted(kinds, key=str) for one in kinds[truth][:each]]
    panels = [
        Chances(
            f"{one.user.name}, truly {one.truth}",
            one.user.ends,
            {
                name: [{graph.name_of(k): p for k, p in state.probabilities.items()}[name] for state in one.states]
                for name in colours
            },
        )
        for one in shown
    ]
    names = " and ".join(f"{panel.title}" for panel in panels)
    return FigurePair(
        "probabilities",
        selection_figures.chances(panels, colours, columns=2, width=WIDE),
        selection_figures.chances(panels, colours, columns=1, width=NARROW),
        f"Probability of each kernel after each batch for {names}.",
        "How probable each kernel is, batch after batch, for those users of each kind whose selection was wrong most "
        "often.",
    )


def _introduced(one: Newcomer) -> str:
    begun, ended = (
        f"{graph.name_of(state.composition)} is selected, with probability {state.probabilities[state.composition]:.2f}"
        for state in (one.states[0], one.states[-1])
    )
    return (
        f"One of them, {one.user.name}, truly follows {one.truth}. After {one.user.ends[0]} rows {begun}; after "
        f"{one.user.rows} rows {ended}. The true kernel was selected at "
        f"{counted(sum(one.right), 'batch', 'batches')} of {len(one.right)}."
    )


def _fits(one: Newcomer) -> FigurePair:
    x = across(one.user.X[:, 0])
    panels = []
    for t in (1, one.user.batches):
        state, seen = one.states[t - 1], one.user.upto(t)
        fit = state.predict(x[:, None])
        dots = [Dots(seen.X[:, 0], seen.y, "observed")]
        if seen.rows < one.user.rows:
            dots.append(Dots(one.user.X[seen.rows :, 0], one.user.y[seen.rows :], "still to come", seen=False))
        curve = Curve(x, fit.mean, np.sqrt(fit.variance), fit.interval(0.95))
        title = f"after {seen.rows} rows: {graph.name_of(state.composition)}"
        panels.append(Panel(title, "x", "y", curve, tuple(dots)))
    return FigurePair(
        "newcomer",
        figures.grid(panels, columns=2, share=True, height=2.8),
        figures.grid(panels, columns=1, width=NARROW, height=2.2, share=True),
        f"The prediction for {one.user.name} after {one.user.ends[0]} and after {one.user.rows} rows, with bands.",
        f"What is predicted for {one.user.name} after the first and after the last batch, averaged over the kernels "
        "by their probability.",
    )


def _forecast(one: Newcomer) -> FigurePair | None:
    """A batch in the middle, predicted from those before it; the rows are few enough to be told apart."""
    able = [t for t in range(2, one.user.batches + 1) if one.user.batch(t).rows <= 60]
    if not able:
        return None
    t = able[len(able) // 2]
    batch, ahead = one.user.batch(t), one.ahead[t - 2]
    ends = ahead.interval(0.95)
    error, naive, inside = _next_batch(one, t - 2)
    seen, count = one.user.ends[t - 2], round(inside * batch.rows)

    def draw(width: float) -> Figure:
        return figures.forecast(ahead.mean, ends, batch.y, xlabel=f"row of batch {t}", ylabel="y", width=width)

    return FigurePair(
        "next-batch",
        draw(WIDE),
        draw(NARROW),
        f"Predicted intervals for the {batch.rows} rows of batch {t} and what was observed; {count} lie inside.",
        f"The {batch.rows} rows of batch {t}, predicted from the {seen} before: {count} of {batch.rows} fall inside "
        f"the 95% interval. The error (RMSE) is {error:.2f}; the user's running mean would have {naive:.2f}.",
    )


def _story(model: TrajectoryModel, followed: Sequence[Newcomer], colours: Mapping[str, str]) -> FigurePair:
    """The graph and what is selected on it, side by side: the story in one picture, as a file."""
    drawn = graph.Graph.of(model.pool, model.paths)
    layout = graph.graph_layout(drawn, width=3.4)
    tallies, ends = _counts(model, followed), followed[0].user.ends
    wide, high, top = max(WIDE, layout.width + 5.4), max(layout.height, 3.0), 0.35
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(wide, high + top))
        ax = figure.add_axes(
            (0.0, (high - layout.height) / 2 / (high + top), layout.width / wide, layout.height / (high + top))
        )
        graph.draw_on(ax, drawn, layout)
        left = layout.width + 0.65
        bars = figure.add_axes(
            (left / wide, 0.85 / (high + top), 1 - (left + 0.15) / wide, (high - 0.9) / (high + top))
        )
        selection_figures.put_tallies(bars, tallies, ends, colours)
        bars.legend(
            handles=selection_figures.tally_handles(tallies, colours),
            loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=4, frameon=False,
        )  # fmt: skip
        for x, text in (
            (0.12, f"learnt from {len(model.users)} pilot users"),
            (left, f"selected for {len(followed)} new users"),
        ):
            figure.text(x / wide, 1 - 0.22 / (high + top), text, weight="bold", size=9.5, va="center")
    return FigurePair("story", figure, figure, "The learnt graph beside the kernels selected for new users.", "")
