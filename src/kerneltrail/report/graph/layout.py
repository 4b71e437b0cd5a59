"""Where the boxes, arrows and labels of a learnt graph stand on paper, in inches from the upper left corner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, sqrt

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from kerneltrail.report.figures import WIDE
from kerneltrail.report.graph.layers import Extent, arrange
from kerneltrail.report.graph_structure import Graph, Link, wrapped

Array = NDArray[np.float64]

HIGHEST = 8.0
"""Inches: a graph from left to right that is higher is drawn from top to bottom instead."""
MARGIN, LOOP, HEAD, PORT, APART, SLACK = 0.12, 0.24, 0.13, 0.15, 0.2, 0.16
"""Inches: around everything; then, at the full size of letters: how far a loop reaches, the length of an arrow's head,
what an arrow needs of a box's side, and what boxes and passing arrows need of a layer."""
ALONG = tuple(0.5 + 0.03 * side * step for step in range(13) for side in ((1,) if not step else (1, -1)))
"""Where along an arrow its label may stand, best first."""
CROSSED = 1000.0
"""What it costs a label to lie on another arrow: more than any place along its own, so it is the last resort."""
ATTEMPTS = (
    (False, 9.0, 1.0), (False, 8.0, 1.0),
    (True, 9.0, 1.0), (True, 8.0, 1.0), (True, 8.0, 0.7), (True, 7.0, 0.7), (True, 7.0, 0.5),
)  # fmt: skip
"""What is tried in turn: from top to bottom or not, size of letters, and which share of the width a layer's boxes may
fill; arrows that pass the layer need the rest."""


@dataclass(frozen=True)
class Box:
    """A rectangle: its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two share any area."""
        wide, high = self.width + other.width, self.height + other.height
        return abs(self.x - other.x) * 2 < wide and abs(self.y - other.y) * 2 < high

    def holds(self, points: Array) -> int:
        """How many points lie inside."""
        return int((abs(points - [self.x, self.y]) * 2 < [self.width, self.height]).all(axis=1).sum())


@dataclass(frozen=True)
class Arrow:
    """A link as it is drawn.

    Attributes:
        curve: control points of cubic Bézier curves that follow one another, (3k + 1, 2).
        head: its corners, the tip first, (3, 2).
        label: the box of its text.
        thickness: of the line, in points; more for what is taken more often.
    """

    link: Link
    curve: Array
    head: Array
    label: Box
    thickness: float

    @cached_property
    def points(self) -> Array:
        """Points along the curve."""
        return sampled(self.curve)


@dataclass(frozen=True)
class GraphLayout:
    """Positions of everything that is drawn.

    Attributes:
        width, height: of the paper.
        size: of letters, in points.
        boxes: of the names.
        arrows: one for every link.
        headings: text, x and y of what stands at each layer.
        clear: whether no label overlaps a box or another label.
        crossed: labels that lie on another arrow than their own.
    """

    width: float
    height: float
    size: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    headings: tuple[tuple[str, float, float], ...]
    clear: bool
    crossed: int


def graph_layout(graph: Graph, *, width: float = WIDE) -> GraphLayout:
    """From left to right where that fits, else from top to bottom, with letters as large as possible."""
    refused = []
    for down, size, share in ATTEMPTS:
        layout = _roomy(_Arrangement(graph, down, size, width * share), width)
        if layout.clear and layout.width <= width and (down or layout.height <= HIGHEST):
            return layout
        refused.append(layout)
    return min(refused, key=lambda layout: (not layout.clear, layout.width))


def _roomy(arrangement: _Arrangement, width: float) -> GraphLayout:
    """A layout with gaps between layers so wide that no label overlaps anything, and wider where there is room."""
    gap = (0.62 if arrangement.down else 0.75) * arrangement.scale
    for _ in range(7):
        layout = arrangement.layout(gap, width)
        if layout.clear:
            break
        gap *= 1.3
    spare = width - arrangement.length(gap)
    if arrangement.down:
        wider = [gap * 1.3**step for step in range(1, 4)] if layout.crossed else []
    else:
        each = min(spare / max(len(arrangement.thick) - 1, 1), 1.1)
        wider = [gap + share * each for share in (1.0, 0.75, 0.5, 0.25)] if spare > 0 else []
    if layout.clear:  # with room to spare: as many labels as can be lie on their own arrow alone, then what is widest
        layouts = [arrangement.layout(more, width) for more in wider]
        layout = min([each for each in layouts if each.clear] + [layout], key=lambda each: each.crossed)
    return layout


@lru_cache(maxsize=4096)
def text_size(text: str, size: float, *, bold: bool = False) -> tuple[float, float]:
    """Width and height of lines of text, in inches."""
    lines = text.split("\n")
    prop = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    wide = max(TextPath((0, 0), line, size=size, prop=prop).get_extents().width for line in lines)
    return float(wide) / 72.0, len(lines) * 1.2 * size / 72.0


class _Arrangement:
    """A graph in one direction with letters of one size, whatever the gap between its layers.

    Points are (main, cross): `main` runs from layer to layer, `cross` along a layer. On paper they are (x, y) from left
    to right, and (y, x) from top to bottom.
    """

    def __init__(self, graph: Graph, down: bool, size: float, width: float) -> None:
        self.graph, self.down, self.size, self.scale = graph, down, size, size / 9.0
        self.turn = slice(None, None, -1 if down else 1)
        self.edges = [(link.parent, link.child) for link in graph.links]
        self.labels = [np.array(text_size(link.label, size)[self.turn]) for link in graph.links]
        heading = max(text_size(_heading(batch), size - 1.0)[0] for batch in graph.batch if batch)
        self.heading = heading + 0.1 if down else 0.3
        ways = [way for a, b in self.edges if a != b for way in ((a, b), (b, a))]
        meeting = Counter((here, graph.batch[there] >= graph.batch[here]) for here, there in ways)
        self.sizes, extents = [], []
        for index, name in enumerate(graph.names):
            text = text_size(wrapped(name), size, bold=index in graph.key)
            main, cross = (np.array(text) + self.scale * np.array([0.24, 0.16]))[self.turn]
            arrows = max(meeting[index, True], meeting[index, False])  # that meet one side of the box
            self.sizes.append(np.array([main, max(cross, PORT * self.scale * arrows)]))
            loop = self.labels[self.edges.index((index, index))][1] if (index, index) in self.edges else None
            extents.append(Extent(self.sizes[-1][1], 0.0 if loop is None else LOOP * self.scale + loop + 0.12))
        room = [extent.box + extent.spare + APART * self.scale for extent in extents]
        self.rank = self._ranks(room, width - self.heading - 2 * MARGIN)
        self.thick = [
            max(box[0] for box, layer in zip(self.sizes, self.rank, strict=True) if layer == number)
            for number in range(max(self.rank) + 1)
        ]
        apart, slack = APART * self.scale, SLACK * self.scale
        self.cross = arrange(extents, self.rank, self.edges, apart=apart, slack=slack)
        self.ports = self._ports()

    def _ranks(self, room: list[float], width: float) -> list[int]:
        """Layer of each box: by batch; from top to bottom, a batch too wide for the paper takes several layers."""
        batch, layer = self.graph.batch, -1
        leads_on = {link.parent for link in self.graph.links if batch[link.child] > batch[link.parent]}
        rank = [0] * len(batch)
        for number in sorted(set(batch)):
            boxes = [box for box, first in enumerate(batch) if first == number]
            total = sum(room[box] for box in boxes)
            rows = max(1, ceil(total / width)) if self.down else 1
            boxes.sort(key=lambda box: (rows > 1 and box in leads_on, box))  # those that lead on stand lowest
            filled, layer = 0.0, layer + 1
            for box in boxes:
                if filled and filled + room[box] / 2 > total / rows:
                    layer, filled = layer + 1, 0.0
                rank[box], filled = layer, filled + room[box]
        return rank

    def _ports(self) -> dict[tuple[int, int], float]:
        """Where link i leaves its parent (i, 0) and meets its child (i, 1), spread over the side of the box."""
        sides: dict[tuple[int, bool], list[tuple[tuple[int, float, int], tuple[int, int]]]] = {}
        for i, (parent, child) in enumerate(self.edges):
            if parent == child:
                continue
            way = [self.cross.boxes[parent], *self.cross.routes.get((parent, child), ()), self.cross.boxes[child]]
            forward, within = self.rank[child] > self.rank[parent], self.rank[child] == self.rank[parent]
            for end, box, here, there in ((0, parent, way[0], way[1]), (1, child, way[-1], way[-2])):
                order = (0, there, i)
                if within:  # arrows within a layer nest: those to the near neighbours innermost
                    order = (1, here - there, -i) if there > here else (-1, here - there, i)
                sides.setdefault((box, within or forward == (end == 0)), []).append((order, (i, end)))
        ports = {}
        for (box, _), meeting in sides.items():
            step = min(0.8 * self.sizes[box][1] / len(meeting), 2 * PORT * self.scale)
            for position, (_, port) in enumerate(sorted(meeting)):
                ports[port] = self.cross.boxes[box] + (position - (len(meeting) - 1) / 2) * step
        return ports

    def length(self, gap: float) -> float:
        """Of the paper along the main axis; arrows within the last layer pass it."""
        last = len(self.thick) - 1
        beside = any(a != b and self.rank[a] == self.rank[b] == last for a, b in self.edges)
        return sum(self.thick) + (last + 0.6 * beside) * gap + 2 * MARGIN

    def layout(self, gap: float, width: float) -> GraphLayout:
        """Everything with so much room between layers, in the middle of paper of at least that width."""
        starts = np.concatenate([[0.0], np.cumsum(np.array(self.thick) + gap)])[:-1]
        ends = starts + self.thick
        centres = np.column_stack([((starts + ends) / 2)[self.rank], self.cross.boxes])
        lines = [self._line(i, centres, starts, ends, gap) for i in range(len(self.edges))]
        boxes = [Box(*centre, *size) for centre, size in zip(centres.tolist(), self.sizes, strict=True)]
        labels, clear, crossed = self._placed(boxes, lines)
        paper = np.array([self.length(gap), self.cross.extent + 2 * MARGIN + self.heading])[self.turn]
        by = max(width - paper[0], 0.0) / 2.0
        shift = np.array([MARGIN, MARGIN + self.heading])[self.turn] + [by, 0.0]

        def on_paper(box: Box) -> Box:
            centre = np.array([box.x, box.y])[self.turn] + shift
            return Box(*centre.tolist(), *np.array([box.width, box.height])[self.turn].tolist())

        most = max(link.count for link in self.graph.links)
        arrows = []
        for link, (curve, tip), label in zip(self.graph.links, lines, labels, strict=True):
            thick = 0.8 + 2.4 * sqrt(link.count / most)
            back = curve[-1] - tip
            across = 0.5 * (0.6 + thick / 5.0) * np.array([-back[1], back[0]])
            head = np.array([tip, curve[-1] + across, curve[-1] - across])
            arrows.append(Arrow(link, curve[:, self.turn] + shift, head[:, self.turn] + shift, on_paper(label), thick))
        headings = []
        for batch in sorted(set(self.graph.batch) - {0}):
            layer = min(rank for rank, first in zip(self.rank, self.graph.batch, strict=True) if first == batch)
            x, y = np.array([(starts[layer] + ends[layer]) / 2, -MARGIN - self.heading / 2])[self.turn] + shift
            headings.append((_heading(batch), float(x), float(y)))
        return GraphLayout(
            max(float(paper[0]), width), float(paper[1]), self.size, tuple(map(on_paper, boxes)), tuple(arrows),
            tuple(headings), clear, crossed,
        )  # fmt: skip

    def _line(self, i: int, centres: Array, starts: Array, ends: Array, gap: float) -> tuple[Array, Array]:
        """Curve of a link, and the tip of its head."""
        (parent, child), head = self.edges[i], HEAD * self.scale
        a, b = self.rank[parent], self.rank[child]
        if parent == child:
            top = centres[parent] - [0.0, self.sizes[parent][1] / 2]
            bend = -1.25 * LOOP  # a cubic reaches three quarters of the way to its controls
            loop = np.array([(-0.1, 0.0), (-0.15, bend), (0.1, bend), (0.1, -HEAD), (0.1, 0.0)])
            return (top + self.scale * loop)[:4], (top + self.scale * loop)[4]
        onward = -1 if b < a else 1
        goal = -onward if a != b else 1  # the side of the child that the arrow meets
        face = centres[child][0] + goal * self.sizes[child][0] / 2
        edge = (starts, ends) if onward > 0 else (ends, starts)
        out, into = self.ports[i, 0], self.ports[i, 1]
        curve = [(centres[parent][0] + onward * self.sizes[parent][0] / 2, out)]

        def to(main: float, cross: float, via: float | None = None) -> None:
            """On to a point, leaving and arriving along the main axis."""
            begin = curve[-1]
            bend = (begin[0] + main) / 2 if via is None else via
            curve.extend([(bend, begin[1]), (bend, cross), (main, cross)])

        to(edge[1][a], out)
        if a == b:
            far = abs(out - into)
            to(ends[a] + head, into, via=ends[a] + head + (0.3 + 0.6 * far / (far + 1.0)) * gap)
        else:
            for layer, cross in zip(range(a + onward, b, onward), self.cross.routes[parent, child], strict=True):
                to(edge[0][layer], cross)
                to(edge[1][layer], cross)
            to(edge[0][b] - onward * head, into)
        to(face + goal * head, into)
        return np.array(curve), np.array([face, into])

    def _placed(self, boxes: list[Box], lines: list[tuple[Array, Array]]) -> tuple[list[Box], bool, int]:
        """Labels where they overlap no box and no other label, whether they do, and how many lie on another arrow."""
        points, heads = [sampled(curve) for curve, _ in lines], [_head_points(curve, tip) for curve, tip in lines]
        labels: dict[int, Box] = {}
        taken, clear, crossed = list(boxes), True, 0
        loops = [i for i, (parent, child) in enumerate(self.edges) if parent == child]
        for i in sorted(range(len(lines)), key=lambda i: i not in loops):
            others = np.concatenate([*heads, *points[:i], *points[i + 1 :]])
            least = float("inf")
            for preferred, box in enumerate(self._choices(i, boxes, lines[i][0])):
                cost = preferred + CROSSED * (box.holds(others) > 0) + 1e6 * sum(box.overlaps(each) for each in taken)
                if cost < least:
                    least, labels[i] = cost, box
                if cost < CROSSED:  # nothing is wrong with it, and those after it are worse
                    break
            clear, crossed = clear and least < 1e6, crossed + (least % 1e6 >= CROSSED)
            taken.append(labels[i])
        return [labels[i] for i in range(len(lines))], clear, crossed

    def _choices(self, i: int, boxes: list[Box], curve: Array) -> Iterator[Box]:
        """Places of a label, best first: along its arrow; of a loop, above it or at its sides."""
        parent, child = self.edges[i]
        size = self.labels[i]
        if parent != child:
            line = sampled(curve)
            paper = size + np.array([0.06, 0.02])[self.turn]
            for share in ALONG:
                yield Box(*point_at(line, share), *paper)
            for share in ALONG[::2]:  # or beside it
                (x, y), (near, far) = point_at(line, share), (point_at(line, share + by) for by in (-0.03, 0.03))
                way = np.array([far[0] - near[0], far[1] - near[1]])
                across = np.array([-way[1], way[0]]) / (float(np.hypot(*way)) or 1.0)
                off = 0.5 * float(np.abs(across) @ paper) + 0.03
                for side in (1, -1):
                    yield Box(x + side * off * across[0], y + side * off * across[1], *paper)
            return
        box, loop = boxes[parent], LOOP * self.scale
        up = box.height / 2 + loop + size[1] / 2 + 0.07
        yield Box(box.x, box.y - up, *size)
        for side in (1, -1):
            yield Box(box.x + side * (0.14 * self.scale + size[0] / 2 + 0.05), box.y - box.height / 2 - loop, *size)


def _head_points(curve: Array, tip: Array) -> Array:
    """Points of an arrow's head, as broad as heads are at most."""
    base = curve[-1]
    across = 0.62 * np.array([tip[1] - base[1], base[0] - tip[0]])
    corners = np.array([tip, base + across, base - across])
    return np.concatenate([corners, 0.5 * (corners + np.roll(corners, 1, axis=0))])


def _heading(batch: int) -> str:
    return f"from batch {batch}"


def sampled(curve: Array) -> Array:
    """Points along cubic Bézier curves."""
    t = np.linspace(0.0, 1.0, 24)[:, None]
    pieces = [curve[i : i + 4] for i in range(0, len(curve) - 1, 3)]
    return np.concatenate(
        [(1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d for a, b, c, d in pieces]
    )


def point_at(points: Array, share: float) -> tuple[float, float]:
    """The point at a share of a line's length."""
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    x, y = (float(np.interp(share * length[-1], length, points[:, k])) for k in (0, 1))
    return x, y
