"""A learnt graph as a figure: boxes with compositions, arrows with the share of customers ("2/3", as in the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon

from kerneltrail.report.figures import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, STYLE, VERMILION, WIDE
from kerneltrail.report.graph.parts import Graph, Link, Plan, wrapped
from kerneltrail.report.graph.plan import planned

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, "#56B4E9")
"""Of compositions in order of first use, from Okabe and Ito's palette; further ones are grey."""
LINE = "#6B6B6B"


def colour_of(place: int) -> str:
    """The colour of a model's node, by its place among them."""
    return COLOURS[place] if place < len(COLOURS) else FAINT


def tint(colour: str, strength: float = 0.14) -> tuple[float, float, float]:
    """A colour thinned with white."""
    r, g, b = (1.0 - strength * (1.0 - part) for part in to_rgb(colour))
    return r, g, b


def thickness(link: Link, most: int) -> float:
    """Of an arrow's line, in points; `most` is the count of the arrow taken most often."""
    return 0.8 + 2.4 * sqrt(link.count / most)


def draw(graph: Graph, *, width: float = WIDE, colours: Mapping[str, str] | None = None) -> Figure:
    """The graph as a figure of at least that width, in inches; `colours` by name where other than by place."""
    plan = planned(graph, width=width)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(plan.width, plan.height))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set_xlim(0.0, plan.width)
        ax.set_ylim(0.0, plan.height)
        ax.set_axis_off()
        put(ax, graph, plan, colours)
    return figure


def put(ax: Axes, graph: Graph, plan: Plan, colours: Mapping[str, str] | None = None) -> None:
    """Draw a plan on axes that measure inches."""
    most = max(link.count for link in graph.links)
    for arrow in plan.arrows:
        thick = thickness(arrow.link, most)
        line = PathPatch(arrow.line, fill=False, edgecolor=LINE, linewidth=thick, capstyle="butt", zorder=1)
        line.set_gid(f"edge {arrow.link.parent} {arrow.link.child}")
        ax.add_patch(line)
        tip, left, right = arrow.head
        wide = (0.6 + thick / 5.0) * (left - right) / 2.0
        base = (left + right) / 2.0
        ax.add_patch(Polygon([tip, base + wide, base - wide], closed=True, facecolor=LINE, linewidth=0, zorder=1))
    for arrow in plan.arrows:
        at = arrow.label
        paper = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
        ax.text(at.x, at.y, arrow.link.label, size=plan.size, ha="center", va="center_baseline", bbox=paper, zorder=3)
    for place, (name, box) in enumerate(zip(graph.names, plan.boxes, strict=True)):
        colour = INK if place == 0 else colour_of(place - 1) if colours is None else colours.get(name, FAINT)
        key = place in graph.key
        corner = 0.07
        ax.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2 + corner, box.y - box.height / 2 + corner),
                box.width - 2 * corner,
                box.height - 2 * corner,
                boxstyle=f"round,pad={corner}",
                facecolor="#F3F3F3" if place == 0 else tint(colour, 0.26 if key else 0.12),
                edgecolor=colour,
                linewidth=2.2 if key else 1.2,
                zorder=4,
            )
        )
        weight = "bold" if key else "normal"
        style: dict[str, Any] = {"size": plan.size, "weight": weight, "linespacing": 1.2, "zorder": 5}
        ax.text(box.x, box.y, wrapped(name), ha="center", va="center", **style)
    for text, x, y in plan.headings:
        ax.text(x, y, text, size=plan.size - 1.0, color="#666666", ha="center", va="center")
