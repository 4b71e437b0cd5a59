"""A learnt graph as a figure and as SVG inside a page: boxes with kernels, arrows with the share of users ("2/3")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path

from kerneltrail.report.figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    STYLE,
    VERMILION,
    WIDE,
    NotebookFigure,
)  # fmt: skip
from kerneltrail.report.graph.layout import Array, GraphLayout, graph_layout
from kerneltrail.report.graph_structure import Graph, wrapped
from kerneltrail.report.templating import render

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, "#56B4E9")
"""Of compositions in order of first use, from Okabe and Ito's palette; further ones are grey."""
LINE = "#6B6B6B"
PIXELS = 96.0
"""Of a page to an inch."""
LARGEST = 1.3
"""How much a graph that does not fill its paper is enlarged on a page."""


def colour_of(index: int) -> str:
    """The colour of a model's node, by its number in the model."""
    return COLOURS[index] if index < len(COLOURS) else FAINT


def tint(colour: str, strength: float = 0.14) -> str:
    """A colour thinned with white."""
    return to_hex([1.0 - strength * (1.0 - part) for part in to_rgb(colour)])


def box_colours(graph: Graph, index: int, colours: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Edge and inside of a box; `colours`, if given, are by the box's name, else by its number."""
    if index == 0:
        return INK, "#F3F3F3"
    edge = colour_of(index - 1) if colours is None else colours.get(graph.names[index], FAINT)
    return edge, tint(edge, 0.26 if index in graph.key else 0.12)


def draw(graph: Graph, *, width: float = WIDE, colours: Mapping[str, str] | None = None) -> Figure:
    """The graph as a figure of at least that width, in inches; `colours` are by the box's name, else by its number."""
    layout = graph_layout(graph, width=width)
    with matplotlib.rc_context(STYLE):
        figure = NotebookFigure(figsize=(layout.width, layout.height))
        draw_on(figure.add_axes((0.0, 0.0, 1.0, 1.0)), graph, layout, colours)
    return figure


def draw_on(ax: Axes, graph: Graph, layout: GraphLayout, colours: Mapping[str, str] | None = None) -> None:
    """Draw a layout on axes that have its width and height."""
    ax.set(xlim=(0.0, layout.width), ylim=(layout.height, 0.0))
    ax.set_axis_off()
    size, paper = layout.size, {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
    for arrow in layout.arrows:
        path = Path(arrow.curve, [Path.MOVETO] + [Path.CURVE4] * (len(arrow.curve) - 1))
        line = PathPatch(path, fill=False, edgecolor=LINE, linewidth=arrow.thickness, capstyle="butt", zorder=1)
        line.set_gid(f"edge {arrow.link.parent} {arrow.link.child}")
        ax.add_patch(line)
        ax.add_patch(Polygon(arrow.head, closed=True, facecolor=LINE, linewidth=0, zorder=1))
        at, text = arrow.label, arrow.link.label
        ax.text(at.x, at.y, text, size=size, ha="center", va="center_baseline", bbox=paper, zorder=3)
    for index, (name, box) in enumerate(zip(graph.names, layout.boxes, strict=True)):
        edge, inside = box_colours(graph, index, colours)
        key, corner = index in graph.key, 0.07
        x, y = box.x - box.width / 2 + corner, box.y - box.height / 2 + corner
        rounded = FancyBboxPatch((x, y), box.width - 2 * corner, box.height - 2 * corner, f"round,pad={corner}")
        rounded.set(facecolor=inside, edgecolor=edge, linewidth=2.2 if key else 1.2, zorder=4)
        ax.add_patch(rounded)
        weight = "bold" if key else "normal"
        ax.text(
            box.x, box.y, wrapped(name), size=size, weight=weight, linespacing=1.2, ha="center", va="center", zorder=5,
            parse_math=False,  # a column's name may hold dollars
        )  # fmt: skip
    for text, x, y in layout.headings:
        ax.text(x, y, text, size=size - 1.0, color="#666666", ha="center", va="center")


def inline_svg(graph: Graph, layout: GraphLayout, *, css_class: str, label: str, box_labels: Sequence[str]) -> Markup:
    """The SVG of a layout, to stand inside a page; the labels are for those who cannot see it.

    Boxes are ``<g class="node" data-node="3">``, arrows ``<g class="edge" data-edge="1 3">``, numbered as in the graph,
    so that a script and a style sheet find them.
    """
    reach = 0.45 * layout.size / 9.0  # half the width of "from batch 1"
    spans = [(box.x - box.width / 2, box.x + box.width / 2) for box in layout.boxes]
    spans += [(at.x - at.width / 2, at.x + at.width / 2) for at in (arrow.label for arrow in layout.arrows)]
    spans += [(arrow.points[:, 0].min(), arrow.points[:, 0].max()) for arrow in layout.arrows]
    spans += [(x - reach, x + reach) for _, x, _ in layout.headings]
    left = max(min(start for start, _ in spans) - 0.12, 0.0)
    width = min(max(end for _, end in spans) + 0.12, layout.width) - left
    return render(
        "graph.svg.jinja", graph=graph, layout=layout, css_class=css_class, label=label, box_labels=box_labels,
        left=left, width=width, enlarged=min(max(layout.width / width, 1.0), LARGEST), letter=layout.size / 72.0,
        line=LINE, colours=[box_colours(graph, index) for index in range(len(graph.names))],
        lines=[wrapped(name).split("\n") for name in graph.names], px=_pixels, points=_points,
    )  # fmt: skip


def _pixels(inches: float, digits: int = 1) -> str:
    return f"{PIXELS * inches:.{digits}f}"


def _points(points: Array) -> str:
    return " ".join(f"{_pixels(x)},{_pixels(y)}" for x, y in points.tolist())
