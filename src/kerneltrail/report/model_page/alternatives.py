"""Other graphs that the chains found, side by side with the chosen one, so that an expert can overrule."""

from __future__ import annotations

from kerneltrail.report import figures, graph
from kerneltrail.report.model_page.numbers import signed
from kerneltrail.report.page import Beside, Block, Paragraph, Picture, Section
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.structure import Structure

WIDTH = 4.6
"""Inches of one graph where two stand side by side."""


def alternatives(model: TrajectoryModel) -> Section:
    """The section on alternative structures."""
    chosen, *others = model.structures
    if not others:
        text = "None: every sample that the chains kept has this one graph."
        return Section("Which other graphs are near?", [Paragraph(text)], "alternatives")
    colours = {graph.name_of(node.composition): graph.colour_of(i) for i, node in enumerate(model.nodes)}
    blocks: list[Block] = [
        Paragraph(
            f"Chosen is the simplest graph within {model.settings.margin:g} of the best log "
            f"{model.settings.margin_of}; the others that follow have the highest log joint. Kernels of the chosen "
            "graph keep their colour, others are grey. An expert may find one of them more plausible."
        ),
        Beside([_picture(model, own, place, colours) for place, own in enumerate((chosen, *others))]),
    ]
    return Section("Which other graphs are near?", blocks, "alternatives")


def _picture(model: TrajectoryModel, own: Structure, place: int, colours: dict[str, str]) -> Picture:
    drawn = graph.Graph.of(model.pool, own.paths)
    svg = figures.svg(graph.draw(drawn, width=WIDTH, colours=colours))
    names = ", ".join(drawn.names[1:])
    return Picture(svg, None, f"A graph of {names}.", _caption(model, own, place, drawn.names[1:]))


def _caption(model: TrajectoryModel, own: Structure, place: int, names: tuple[str, ...]) -> str:
    nodes = "1 kernel" if own.nodes == 1 else f"{own.nodes} kernels"
    edges = "1 arrow" if own.edges == 1 else f"{own.edges} arrows"
    counts = f"{nodes}, {edges}, sampled {'once' if own.visits == 1 else f'{own.visits} times'}"
    if place == 0:
        return f"The chosen graph: {counts}."
    by = own.log_joint - model.structures[0].log_joint
    mine = {graph.name_of(node.composition) for node in model.nodes}
    more, less = [name for name in names if name not in mine], sorted(mine - set(names))
    changes = [f"with {' and '.join(more)}"] if more else []
    changes += [f"without {' and '.join(less)}"] if less else []
    said = ", ".join(changes) or "the same kernels on other ways"
    return f"Alternative {place}: {said}. Log joint {signed(by)} against the chosen; {counts}."
