"""A planned graph as SVG inside a page: boxes that can be reached and chosen, arrows that can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.path import Path

from kerneltrail.report.figures import INK
from kerneltrail.report.graph.draw import LINE, colour_of, thickness, tint
from kerneltrail.report.graph.parts import Arrow, Graph, Plan, wrapped

DOTS = 96.0
"""Pixels of a page to an inch."""
CORNER, MARGIN = 7, 0.12
"""Of a box's corner, in pixels; around the drawing, in inches."""
LARGEST = 1.3
"""How much a graph that does not fill the paper is enlarged."""


def inline(graph: Graph, plan: Plan, *, kind: str, label: str, said: Sequence[str]) -> str:
    """The SVG of a plan.

    Boxes are ``<g class="node" data-node="3">``, arrows ``<g class="edge" data-edge="1 3">``, numbered as in the graph,
    so that a script and a style sheet find them.

    Args:
        graph: what is drawn.
        plan: where.
        kind: class of the drawing.
        label: what the whole shows, for those who cannot see it.
        said: the same for every box.
    """
    left, right = _sides(plan)
    wide, high = right - left, plan.height * DOTS
    scale = min(max(plan.width * DOTS / wide, 1.0), LARGEST)
    size = plan.size * DOTS / 72.0
    parts = [
        f'<svg class="{kind}" viewBox="{left:.0f} 0 {wide:.0f} {high:.0f}" width="{scale * wide:.0f}" '
        f'height="{scale * high:.0f}" role="group" aria-label="{escape(label)}" font-size="{size:.1f}">'
    ]
    most = max(link.count for link in graph.links)
    parts += [_edge(arrow, plan, thickness(arrow.link, most) * DOTS / 72.0) for arrow in plan.arrows]
    parts += [_label(arrow, plan, size) for arrow in plan.arrows]
    parts += [
        f'<text class="heading" x="{x * DOTS:.1f}" y="{_down(plan, y):.1f}" dy=".35em" '
        f'font-size="{size * (plan.size - 1.0) / plan.size:.1f}">{escape(text)}</text>'
        for text, x, y in plan.headings
    ]
    parts += [_node(graph, plan, place, size, said[place]) for place in range(len(graph.names))]
    return "".join((*parts, "</svg>"))


def _sides(plan: Plan) -> tuple[float, float]:
    """Where the drawing begins and ends on paper that may be wider, in pixels."""
    boxes = [*plan.boxes, *(arrow.label for arrow in plan.arrows)]
    reach = 0.45 * plan.size / 9.0  # half the width of "from batch 1"
    low = [box.x - box.width / 2 for box in boxes] + [arrow.points[:, 0].min() for arrow in plan.arrows]
    high = [box.x + box.width / 2 for box in boxes] + [arrow.points[:, 0].max() for arrow in plan.arrows]
    low += [x - reach for _, x, _ in plan.headings]
    high += [x + reach for _, x, _ in plan.headings]
    return max(min(low) - MARGIN, 0.0) * DOTS, min(max(high) + MARGIN, plan.width) * DOTS


def _down(plan: Plan, y: float) -> float:
    """From inches above the lower edge to pixels below the upper one."""
    return (plan.height - y) * DOTS


def _points(plan: Plan, points: Sequence[Sequence[float]]) -> str:
    return " ".join(f"{x * DOTS:.1f},{_down(plan, y):.1f}" for x, y in points)


def _edge(arrow: Arrow, plan: Plan, thick: float) -> str:
    line = []
    for vertices, code in arrow.line.iter_segments(simplify=False):
        points = np.asarray(vertices, dtype=np.float64).reshape(-1, 2).tolist()
        letter = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE4: "C"}[code]
        line.append(f"{letter}{_points(plan, points)}")
    tip, left, right = arrow.head
    wide = (0.6 + thick * 72.0 / DOTS / 5.0) * (left - right) / 2.0
    base = (left + right) / 2.0
    head = _points(plan, [tip.tolist(), (base + wide).tolist(), (base - wide).tolist()])
    link = arrow.link
    return (
        f'<g class="edge" data-edge="{link.parent} {link.child}"><path d="{"".join(line)}" fill="none" '
        f'stroke="{LINE}" stroke-width="{thick:.1f}"/><polygon points="{head}" fill="{LINE}"/></g>'
    )


def _label(arrow: Arrow, plan: Plan, size: float) -> str:
    at, link = arrow.label, arrow.link
    x, y = at.x * DOTS, _down(plan, at.y)
    wide, high = at.width * DOTS, 1.15 * size
    return (
        f'<g class="count" data-edge="{link.parent} {link.child}"><rect x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}" '
        f'width="{wide:.1f}" height="{high:.1f}" fill="#fff"/><text x="{x:.1f}" y="{y:.1f}" dy=".35em">'
        f"{escape(link.label)}</text></g>"
    )


def _node(graph: Graph, plan: Plan, place: int, size: float, said: str) -> str:
    box = plan.boxes[place]
    colour = INK if place == 0 else colour_of(place - 1)
    key = place in graph.key
    fill = "#F3F3F3" if place == 0 else to_hex(tint(colour, 0.26 if key else 0.12))
    x, y = (box.x - box.width / 2) * DOTS, _down(plan, box.y + box.height / 2)
    lines = wrapped(graph.names[place]).split("\n")
    first = _down(plan, box.y) - (len(lines) - 1) * 0.6 * size
    spans = "".join(
        f'<tspan x="{box.x * DOTS:.1f}" y="{first + i * 1.2 * size:.1f}" dy=".35em">{escape(line.strip())}</tspan>'
        for i, line in enumerate(lines)
    )
    return (
        f'<g class="node{" key" if key else ""}" data-node="{place}" role="button" tabindex="0" aria-pressed="false" '
        f'aria-label="{escape(said)}"><rect x="{x:.1f}" y="{y:.1f}" width="{box.width * DOTS:.1f}" '
        f'height="{box.height * DOTS:.1f}" rx="{CORNER}" fill="{fill}" stroke="{colour}"/>'
        f"<text>{spans}</text></g>"
    )
