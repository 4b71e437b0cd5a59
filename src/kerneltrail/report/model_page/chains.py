"""Can the sampling be trusted? Traces of the chains, R-hat, effective sample sizes, seconds."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.report import figures
from kerneltrail.report.figures import FAINT, INK, NARROW, RULE, STYLE, TICKS, WIDE
from kerneltrail.report.graph.draw import COLOURS
from kerneltrail.report.model_page.numbers import fixed, percent
from kerneltrail.report.page import Block, Paragraph, Picture, Section, Table
from kerneltrail.trajectory.model import TrajectoryModel

NAMES = {"log_joint": "log joint", "edges": "arrows", "agreement": "agreement with the chosen paths"}
BEGUN = {"apart": "begun apart", "best": "begun with each pilot user in the kernels that suit it best by itself"}
MOST_POINTS = 600
"""Sweeps drawn of a chain; of more, every so manyth."""


def chains_section(model: TrajectoryModel) -> Section:
    """The section on the chains."""
    told = model.diagnostics
    chains = len(told.log_joint)
    blocks: list[Block] = [
        Paragraph(_said(model)),
        Picture(
            figures.svg(trace(model, width=WIDE)),
            figures.svg(trace(model, width=NARROW)),
            f"Log joint of {chains} chains over {told.sweeps} sweeps.",
            "Log joint of each chain, sweep by sweep. The first half, left of the line, is warm-up and is not used. "
            "Chains that agree wander over the same heights.",
        ),
        Table(
            "Agreement of the chains: R-hat is 1 where they agree; the effective sample size says how many independent "
            "draws they are worth",
            ("of", "R-hat", "effective sample size"),
            [
                [NAMES.get(name, name), fixed(value, 3), fixed(told.ess.get(name, math.nan), 0)]
                for name, value in told.rhat.items()
            ],
        ),
    ]
    if told.acceptance:
        rows = [[name, percent(share)] for name, share in told.acceptance.items()]
        blocks.append(Table("Proposals accepted, by move", ("move", "accepted"), rows))
    return Section("Can the sampling be trusted?", blocks, "chains")


def _said(model: TrajectoryModel) -> str:
    told = model.diagnostics
    rhat = told.rhat.get("log_joint", math.nan)
    goal = model.settings.agreed
    behind = [
        f"{NAMES.get(name, name)} ({value:.3f})"
        for name, value in told.rhat.items()
        if name != "log_joint" and value >= goal
    ]
    if not math.isfinite(rhat):
        verdict = "R-hat of the log joint could not be computed"
    elif rhat < goal:
        verdict = f"R-hat of the log joint is {rhat:.3f}, below {goal:g}"
        verdict += "" if behind else ": the chains agree"
    else:
        verdict = (
            f"R-hat of the log joint is {rhat:.3f}, not below {goal:g}: the chains do not agree yet, and a longer run "
            "may choose another graph"
        )
    if behind:
        verdict += f". Not below it: {' and '.join(behind)}"
    seconds = " and ".join(f"{value:.1f} s for {name}" for name, value in told.seconds.items())
    took = f" It took {seconds}." if seconds else ""
    count = len(told.log_joint)
    begun = BEGUN[model.settings.start]
    return f"{count} {'chain' if count == 1 else 'chains'} of {told.sweeps} sweeps, {begun}. {verdict}.{took}"


def trace(model: TrajectoryModel, *, width: float) -> Figure:
    """The log joint of every chain over the sweeps."""
    draws = model.diagnostics.log_joint
    every = max(1, -(-draws.shape[1] // MOST_POINTS))
    sweeps = np.arange(1, draws.shape[1] + 1)[::every]
    half = draws.shape[1] // 2
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(width, 2.7), layout="constrained")
        ax = made.subplots()
        for place, chain in enumerate(draws):
            ax.plot(
                sweeps, chain[::every], color=COLOURS[place % len(COLOURS)], linewidth=1.1, label=f"chain {place + 1}"
            )
        ax.axvline(half, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        # The climb from where chains begin would flatten what matters: look at where they settle, and a little below.
        settled = draws[:, half:]
        low, high = float(settled.min()), float(settled.max())
        room = max(high - low, 1.0)
        ax.set_ylim(max(low - 1.2 * room, float(draws.min()) - 0.1 * room), high + 0.15 * room)
        ax.set(xlabel="sweep", ylabel="log joint")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=TICKS))
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
        ax.grid(axis="y", color=RULE, linewidth=0.6)
        ax.tick_params(color=FAINT)
        figures.legend(made, columns=4)
    return made
