"""Where the boxes, arrows and labels of a learnt graph go on paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from kerneltrail.report.figures import WIDE
from kerneltrail.report.graph.layered import Layout, Size, arrange
from kerneltrail.report.graph.parts import Arrow, Box, Graph, Plan, wrapped
from kerneltrail.report.graph.pen import Paper, Pen, point_at

Array = NDArray[np.float64]
Direction = Literal["right", "down"]

HIGHEST = 8.0
"""Inches: a graph from left to right that is higher is drawn from top to bottom instead."""
LOOP, HEAD = 0.24, 0.13
"""Inches: how far a loop reaches, and how long the head of an arrow is, at the full size of letters."""
PORT = 0.15
"""Inches of a box's side that an arrow needs."""
ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8, 0.14, 0.86)
"""Where along an arrow its label may stand, best first."""
ATTEMPTS: tuple[tuple[Direction, float, float], ...] = (
    ("right", 9.0, 1.0),
    ("right", 8.0, 1.0),
    ("down", 9.0, 1.0),
    ("down", 8.0, 1.0),
    ("down", 8.0, 0.7),
    ("down", 7.0, 0.7),
    ("down", 7.0, 0.5),
)
"""What is tried in turn: direction, size of letters, and which share of the width a layer's boxes may fill; edges that
pass the layer need the rest."""


def planned(graph: Graph, *, width: float = WIDE) -> Plan:
    """From left to right where that fits, else from top to bottom, with letters as large as possible."""
    narrowest: Plan | None = None
    for direction, size, share in ATTEMPTS:
        plan = _roomy(graph, direction, size, width, share)
        if plan.clear and plan.width <= width and (direction == "down" or plan.height <= HIGHEST):
            return _centred(plan, width)
        if narrowest is None or (not plan.clear, plan.width) < (not narrowest.clear, narrowest.width):
            narrowest = plan
    assert narrowest is not None  # there are attempts
    return _centred(narrowest, width)


def _roomy(graph: Graph, direction: Direction, size: float, width: float, share: float) -> Plan:
    """A plan with gaps wide enough that no label overlaps anything, and wider where there is room."""
    gap = (0.75 if direction == "right" else 0.62) * size / 9.0
    drawing = _Drawing(graph, direction, size, width * share)
    plan = drawing.plan(gap)
    for _ in range(6):
        if plan.clear:
            break
        gap *= 1.3
        plan = drawing.plan(gap)
    if direction == "right" and plan.clear and plan.width < width:
        more = min((width - plan.width) / max(drawing.layers - 1, 1), 1.1)
        wider = drawing.plan(gap + more)
        plan = wider if wider.clear else plan
    return plan


def _centred(plan: Plan, width: float) -> Plan:
    """On paper of the width asked for, in its middle."""
    by = max(width - plan.width, 0.0) / 2.0
    shift = np.array([by, 0.0])
    arrows = tuple(
        replace(
            arrow,
            line=Path(arrow.line.vertices + shift, arrow.line.codes),
            points=arrow.points + shift,
            head=arrow.head + shift,
            label=replace(arrow.label, x=arrow.label.x + by),
        )
        for arrow in plan.arrows
    )
    boxes = tuple(replace(box, x=box.x + by) for box in plan.boxes)
    headings = tuple((text, x + by, y) for text, x, y in plan.headings)
    return replace(plan, width=plan.width + 2 * by, boxes=boxes, arrows=arrows, headings=headings)


@lru_cache(maxsize=4096)
def _text_size(text: str, size: float, *, bold: bool = False) -> tuple[float, float]:
    """Width and height of lines of text, in inches."""
    lines = text.split("\n")
    prop = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    wide = max(TextPath((0, 0), line, size=size, prop=prop).get_extents().width for line in lines)
    return float(wide) / 72.0, len(lines) * 1.2 * size / 72.0


class _Drawing:
    """One direction and one size of letters."""

    def __init__(self, graph: Graph, direction: Direction, size: float, width: float) -> None:
        self.graph, self.down, self.size = graph, direction == "down", size
        self.scale = size / 9.0
        self.margin = 0.12
        self.labels = [_text_size(link.label, size) for link in graph.links]
        self.texts = [_text_size(wrapped(name), size, bold=i in graph.key) for i, name in enumerate(graph.names)]
        heading = max(_text_size(self._heading(batch), size - 1.0)[0] for batch in graph.batch if batch)
        self.heading = heading + 0.1 if self.down else 0.3
        self.sizes = [self._size(place) for place in range(len(graph.names))]
        self.rank = self._ranks(width)
        self.layers = max(self.rank) + 1

    def _heading(self, batch: int) -> str:
        return f"from batch {batch}"

    def _size(self, place: int) -> Size:
        wide, high = self.texts[place]
        wide, high = wide + 0.24 * self.scale, high + 0.16 * self.scale
        ports = PORT * self.scale * self._meeting(place)
        wide, high = (max(wide, ports), high) if self.down else (wide, max(high, ports))
        spare = 0.0
        for link, label in zip(self.graph.links, self.labels, strict=True):
            if link.parent == link.child == place:
                spare = LOOP * self.scale + (label[0] + 0.12 if self.down else label[1] + 0.1)
        return Size(high, wide, spare) if self.down else Size(wide, high, spare)

    def _meeting(self, place: int) -> int:
        """Most arrows that meet one side of a box."""
        batch, sides = self.graph.batch, [0, 0]
        for link in self.graph.links:
            if link.parent != link.child and place in (link.parent, link.child):
                other = link.child if place == link.parent else link.parent
                sides[batch[other] >= batch[place]] += 1
        return max(sides)

    def _ranks(self, width: float) -> list[int]:
        """Layer of each box: by batch; from top to bottom, a batch too wide for the paper takes several layers."""
        room = width - self.heading - 2 * self.margin
        ahead = {
            link.parent for link in self.graph.links if self.graph.batch[link.child] > self.graph.batch[link.parent]
        }
        rank, layer = [0] * len(self.graph.names), -1
        for batch in sorted(set(self.graph.batch)):
            boxes = [place for place, own in enumerate(self.graph.batch) if own == batch]
            need = [self.sizes[place].cross + self.sizes[place].spare + self._apart for place in boxes]
            rows = max(1, int(np.ceil(sum(need) / room))) if self.down else 1
            boxes.sort(key=lambda place: (rows > 1 and place in ahead, place))  # those that lead on stand lowest
            filled, goal = 0.0, sum(need) / rows
            layer += 1
            for place in boxes:
                own = self.sizes[place].cross + self.sizes[place].spare + self._apart
                if filled and filled + own / 2 > goal:
                    layer, filled = layer + 1, 0.0
                rank[place], filled = layer, filled + own
        return rank

    @property
    def _apart(self) -> float:
        return 0.2 * self.scale

    def plan(self, gap: float) -> Plan:
        """Everything in place, with so much room between layers."""
        links = self.graph.links
        edges = [(link.parent, link.child) for link in links]
        layout = arrange(self.sizes, self.rank, edges, gap=gap, apart=self._apart, slack=0.16 * self.scale)
        beside = any(a != b and self.rank[a] == self.rank[b] == self.layers - 1 for a, b in edges)
        main = layout.main + (0.6 * gap if beside else 0.0) + 2 * self.margin
        cross = layout.cross + 2 * self.margin + self.heading
        width, height = (cross, main) if self.down else (main, cross)
        self._on = Paper(self.down, self.margin, self.heading, height)
        boxes = tuple(self._on.box(layout, size, place) for place, size in enumerate(self.sizes))
        lines = self._lines(layout, gap)
        arrows, clear = self._labelled(boxes, lines)
        return Plan(width, height, self.size, boxes, arrows, tuple(self._headings(layout, height)), clear)

    def _headings(self, layout: Layout, height: float) -> Iterator[tuple[str, float, float]]:
        said = set()
        for layer, (start, end) in enumerate(layout.layers):
            batch = self.graph.batch[self.rank.index(layer)]
            if batch and batch not in said:
                said.add(batch)
                middle = self.margin + (start + end) / 2
                x, y = (self.heading / 2, height - middle) if self.down else (middle, height - self.heading / 2)
                yield self._heading(batch), x, y

    def _lines(self, layout: Layout, gap: float) -> list[tuple[Path, Array, Array]]:
        """Line, points on it, and head of every link, on paper."""
        ports = self._ports(layout)
        found = []
        for number, link in enumerate(self.graph.links):
            pen = Pen()
            if link.parent == link.child:
                self._loop(pen, layout, link.parent)
                found.append(self._on.line(pen))
                continue
            a, b = self.rank[link.parent], self.rank[link.child]
            forward = 1.0 if b > a else -1.0
            out, into = ports[number]
            leave = 1.0 if a == b else forward
            begin = layout.layers[a][1] if leave > 0 else layout.layers[a][0]
            pen.start(self._face(layout, link.parent, leave), out)
            pen.straight(begin)
            head = HEAD * self.scale
            if a == b:
                far = abs(out - into)
                reach = begin + (0.3 + 0.6 * far / (far + 1.0)) * gap + head
                pen.curve(begin + head, into, via=reach)
                pen.straight(self._face(layout, link.child, 1.0) + head)
                pen.tip(self._face(layout, link.child, 1.0))
                found.append(self._on.line(pen))
                continue
            for step, place in enumerate(layout.routes[link.parent, link.child], start=1):
                start, end = layout.layers[a + int(forward) * step][:: int(forward)]
                pen.curve(start, place.cross)
                pen.straight(end)
            goal = layout.layers[b][0] if forward > 0 else layout.layers[b][1]
            pen.curve(goal - forward * head, into)
            face = self._face(layout, link.child, -forward)
            pen.straight(face - forward * head)
            pen.tip(face)
            found.append(self._on.line(pen))
        return found

    def _face(self, layout: Layout, place: int, side: float) -> float:
        return layout.places[place].main + side * self.sizes[place].main / 2

    def _loop(self, pen: Pen, layout: Layout, place: int) -> None:
        at, size = layout.places[place], self.sizes[place]
        half, reach, head = 0.1 * self.scale, LOOP * self.scale, HEAD * self.scale
        top = at.cross - size.cross / 2
        pen.start(at.main - half, top)
        bend = top - 1.25 * reach  # a cubic reaches three quarters of the way to its controls
        pen.cubic((at.main - 1.5 * half, bend), (at.main + half, bend), (at.main + half, top - head))
        pen.tip_at(at.main + half, top)

    def _ports(self, layout: Layout) -> list[tuple[float, float]]:
        """Where each link leaves its parent and meets its child on the cross axis: spread over the side of the box."""
        ends: dict[tuple[int, float], list[tuple[tuple[int, float, int], int, int]]] = {}
        for number, link in enumerate(self.graph.links):
            a, b = self.rank[link.parent], self.rank[link.child]
            if link.parent == link.child:
                continue
            start, goal = layout.places[link.parent].cross, layout.places[link.child].cross
            if a == b:
                ends.setdefault((link.parent, 1.0), []).append((_nested(start, goal, number), number, 0))
                ends.setdefault((link.child, 1.0), []).append((_nested(goal, start, number), number, 1))
                continue
            leave = 1.0 if b > a else -1.0
            route = [place.cross for place in layout.routes[link.parent, link.child]]
            ends.setdefault((link.parent, leave), []).append(((0, [*route, goal][0], number), number, 0))
            ends.setdefault((link.child, -leave), []).append(((0, [start, *route][-1], number), number, 1))
        found = [[0.0, 0.0] for _ in self.graph.links]
        for (place, _), meeting in ends.items():
            centre, across = layout.places[place].cross, self.sizes[place].cross
            step = min(0.8 * across / len(meeting), 0.3 * self.scale)
            for i, (_, number, end) in enumerate(sorted(meeting)):
                found[number][end] = centre + (i - (len(meeting) - 1) / 2) * step
        return [(out, into) for out, into in found]

    def _labelled(
        self, boxes: tuple[Box, ...], lines: list[tuple[Path, Array, Array]]
    ) -> tuple[tuple[Arrow, ...], bool]:
        """Labels where they overlap no box and no other label, and cover little of other arrows."""
        taken, clear = list(boxes), True
        labels: dict[int, Box] = {}
        loops = [i for i, link in enumerate(self.graph.links) if link.parent == link.child]
        for i in loops:
            labels[i] = self._on.loop_label(boxes[self.graph.links[i].parent], self.labels[i], LOOP * self.scale)
            taken.append(labels[i])
        for i in range(len(self.graph.links)):
            if i in labels:
                continue
            others = np.concatenate([points for j, (_, points, _) in enumerate(lines) if j != i] or [np.zeros((0, 2))])
            best: tuple[float, Box] | None = None
            for preferred, share in enumerate(ALONG):
                at = point_at(lines[i][1], share)
                box = Box(at[0], at[1], self.labels[i][0] + 0.06, self.labels[i][1] + 0.02)
                cost = preferred + 3.0 * box.holds(others) + 1e6 * sum(box.overlaps(other) for other in taken)
                if best is None or cost < best[0]:
                    best = cost, box
            assert best is not None  # there are places to try
            clear = clear and best[0] < 1e6
            labels[i] = best[1]
            taken.append(best[1])
        arrows = tuple(Arrow(link, *lines[i], labels[i]) for i, link in enumerate(self.graph.links))
        return arrows, clear


def _nested(here: float, there: float, number: int) -> tuple[int, float, int]:
    """Sorts arrows within a layer on the side of a box so that they nest: those to the near neighbours innermost."""
    return (1, here - there, -number) if there > here else (-1, here - there, number)
