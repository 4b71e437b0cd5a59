"""What the chains say: other graphs that they found, so that an expert can overrule, and whether to trust them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kerneltrail.kernels.phrases import counted
from kerneltrail.report import figures
from kerneltrail.report.figures import FAINT, INK, TICKS
from kerneltrail.report.graph import COLOURS, Graph, colour_of, draw, name_of
from kerneltrail.report.model_page.numbers import fixed, percent, signed
from kerneltrail.report.model_text import advancing_text, limit_text
from kerneltrail.report.page import Beside, Block, Expert, Paragraph, Picture, Section, Table
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.joint import Structure

NAMES = {"log_joint": "log joint", "edges": "arrows", "agreement": "agreement with the chosen paths"}
BEGUN = {
    "apart": "begun apart",
    "best": "begun with each pilot user in the kernels that suit it best by itself",
    "drawn": "begun with kernels drawn at random",
}
CHOSEN = {
    "simplest": "Chosen is the simplest graph",
    "typical": "Chosen is the graph with which the others agree most, of those",
}
MOST_POINTS = 600
"""Sweeps drawn of a chain; of more, every so manyth."""
WIDTH = 4.6
"""Inches of one graph where two stand side by side."""


MANY, MOST = 0.1, 0.5
"""Shares of draws: below the first, many graphs are nearly as good; from the second on, most draws agree."""


def draws_of(model: TrajectoryModel) -> int:
    """How many graphs the chains drew after warm-up, which is half of the sweeps."""
    chains, sweeps = model.diagnostics.log_joint.shape
    return int(chains * (sweeps - sweeps // 2))


def firmness(model: TrajectoryModel) -> str:
    """How firm the chosen graph is: how often it was drawn, and how far other draws agree with it."""
    visits, draws = model.structures[0].visits, draws_of(model)
    if len(model.nodes) == 1:
        alone = (
            "The graph has one kernel only, so everybody goes the same way: shares of 100 % on its arrows, and a "
            "probability of 100 % for a user's kernel, are so by construction and say nothing about how sure it is."
        )
        return f"{alone} {_drawn(visits, draws)}.{_agreeing(model)}"
    share = visits / draws
    if share >= MOST:
        words = "most draws are this very graph"
    elif share >= MANY:
        words = "other graphs are nearly as good, so read single arrows with care"
    else:
        words = "many graphs are nearly as good; do not read much into single arrows"
    return f"{_drawn(visits, draws)}: {words}.{_agreeing(model)}"


def _drawn(visits: int, draws: int) -> str:
    return f"This very graph, with every pilot user on the same way, was sampled in {visits:,} of {draws:,} draws"


def _agreeing(model: TrajectoryModel) -> str:
    """How much of the pilot users' batches have the same kernel in an average draw."""
    trace = model.diagnostics.traces.get("agreement")
    if trace is None:
        return ""
    late = float(np.mean(trace[:, trace.shape[1] // 2 :]))
    return f" An average draw gives {percent(late)} of the pilot users' batches the same kernel as this graph."


def alternatives(model: TrajectoryModel) -> Section:
    """The section on alternative structures."""
    chosen, *others = model.structures
    judged: list[Block] = [Paragraph(text) for text in (limit_text(model), advancing_text(model)) if text]
    if not others:
        none = Paragraph("None: every sample that the chains kept has these arrows.")
        return Section("Which other graphs are near?", [none, *judged], "alternatives")
    colours = {name_of(node.composition): colour_of(i) for i, node in enumerate(model.nodes)}
    walked = "its steps are as pilot users take them when each is judged by what the others share; "
    walked = walked if model.settings.walks_again else ""
    blocks: list[Block] = [
        Paragraph(
            f"{CHOSEN[model.settings.choice]} within {model.settings.margin:g} of the best log "
            f"{model.settings.margin_of}; {walked}the others that follow have the highest log joint. Kernels of the "
            "chosen graph keep their colour, others are grey. An expert may find one of them more plausible."
        ),
        Beside([_picture(model, structure, rank, colours) for rank, structure in enumerate((chosen, *others))]),
        *judged,
    ]
    return Section("Which other graphs are near?", blocks, "alternatives")


def _picture(model: TrajectoryModel, structure: Structure, rank: int, colours: dict[str, str]) -> Picture:
    graph = Graph.of(model.pool, structure.paths)
    svg = figures.svg(draw(graph, width=WIDTH, colours=colours))
    names = graph.names[1:]
    return Picture(svg, None, f"A graph of {', '.join(names)}.", _caption(model, structure, rank, names))


def _caption(model: TrajectoryModel, structure: Structure, rank: int, names: tuple[str, ...]) -> str:
    often = f"sampled in {structure.visits:,} of {draws_of(model):,} draws"
    counts = f"{counted(structure.nodes, 'kernel')}, {counted(structure.edges, 'arrow')}, {often}"
    if rank == 0:
        return f"The chosen graph: {counts}."
    gain = structure.log_joint - model.structures[0].log_joint
    chosen = {name_of(node.composition) for node in model.nodes}
    added, missing = [name for name in names if name not in chosen], sorted(chosen - set(names))
    changes = [f"with {' and '.join(added)}"] if added else []
    changes += [f"without {' and '.join(missing)}"] if missing else []
    difference = ", ".join(changes) or "the same kernels on other ways"
    return f"Alternative {rank}: {difference}. Log joint {signed(gain)} against the chosen; {counts}."


def chains_section(model: TrajectoryModel) -> Section:
    """The section on the chains."""
    diagnostics = model.diagnostics
    chains = len(diagnostics.log_joint)
    blocks: list[Block] = [
        Paragraph(_verdict(model)),
        Picture.of(
            partial(_trace, model),
            f"Log joint of {chains} chains over {diagnostics.sweeps} sweeps.",
            "Log joint of each chain, sweep by sweep. The first half, left of the line, is warm-up and is not used. "
            "Chains that agree wander over the same heights.",
        ),
        Table(
            "Agreement of the chains: R-hat is 1 where they agree; the effective sample size says how many independent "
            "draws they are worth",
            ("of", "R-hat", "effective sample size"),
            [
                [NAMES.get(name, name), fixed(value, 3), fixed(diagnostics.ess.get(name, math.nan), 0)]
                for name, value in diagnostics.rhat.items()
            ],
        ),
    ]
    if diagnostics.acceptance:
        rows = [[name, percent(share)] for name, share in diagnostics.acceptance.items()]
        caption = (
            "Proposals accepted, by move. A move proposes another way for some users; a share near 0 says that the "
            "chains hardly get away from where they are, one near 100 % that nothing speaks against most proposals"
        )
        blocks.append(Expert("Proposals accepted", [Table(caption, ("move", "accepted"), rows)]))
    return Section("Can the sampling be trusted?", blocks, "chains")


def _verdict(model: TrajectoryModel) -> str:
    """Whether the chains agree, in words."""
    diagnostics = model.diagnostics
    rhat = diagnostics.rhat.get("log_joint", math.nan)
    goal = model.settings.agreed
    behind = [
        f"{NAMES.get(name, name)} ({value:.3f})"
        for name, value in diagnostics.rhat.items()
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
    seconds = " and ".join(f"{value:.1f} s for {name}" for name, value in diagnostics.seconds.items())
    took = f" It took {seconds}." if seconds else ""
    chains, begun = counted(len(diagnostics.log_joint), "chain"), BEGUN[model.settings.start]
    return f"{chains} of {diagnostics.sweeps} sweeps, {begun}. {verdict}.{took}"


def _trace(model: TrajectoryModel, width: float) -> Figure:
    """The log joint of every chain over the sweeps."""
    draws = model.diagnostics.log_joint
    every = max(1, -(-draws.shape[1] // MOST_POINTS))
    sweeps = np.arange(1, draws.shape[1] + 1)[::every]
    half = draws.shape[1] // 2
    with figures.styled(width, 2.7) as figure:
        ax = figure.subplots()
        for index, chain in enumerate(draws):
            colour = COLOURS[index % len(COLOURS)]
            ax.plot(sweeps, chain[::every], color=colour, linewidth=1.1, label=f"chain {index + 1}")
        ax.axvline(half, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        # The climb from where chains begin would flatten what matters: look at where they settle, and a little below.
        settled = draws[:, half:]
        low, high = float(settled.min()), float(settled.max())
        room = max(high - low, 1.0)
        ax.set_ylim(max(low - 1.2 * room, float(draws.min()) - 0.1 * room), high + 0.15 * room)
        ax.set(xlabel="sweep", ylabel="log joint")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=TICKS))
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=TICKS))
        figures.rule(ax, below=False)
        ax.tick_params(color=FAINT)
        figures.legend(figure, columns=4)
    return figure
