"""Lines from layer to layer, and how the two axes of a layout become those of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.path import Path
from numpy.typing import NDArray

from kerneltrail.report.graph.layered import Layout, Size
from kerneltrail.report.graph.parts import Box

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Paper:
    """From (main, cross) to paper: to the right and downwards, or downwards and to the right."""

    down: bool
    margin: float
    heading: float
    height: float

    def point(self, main: float, cross: float) -> tuple[float, float]:
        """A point's x and y."""
        if self.down:
            return self.margin + self.heading + cross, self.height - self.margin - main
        return self.margin + main, self.height - self.margin - self.heading - cross

    def box(self, layout: Layout, size: Size, place: int) -> Box:
        """A box of the layout."""
        x, y = self.point(layout.places[place].main, layout.places[place].cross)
        return Box(x, y, size.cross, size.main) if self.down else Box(x, y, size.main, size.cross)

    def loop_label(self, box: Box, label: tuple[float, float], reach: float) -> Box:
        """The label of a box's arrow to itself, beyond the loop."""
        wide, high = label
        if self.down:
            return Box(box.x - box.width / 2 - reach - wide / 2 - 0.08, box.y, wide, high)
        return Box(box.x, box.y + box.height / 2 + reach + high / 2 + 0.06, wide, high)

    def line(self, pen: Pen) -> tuple[Path, Array, Array]:
        """What a pen drew: the line, points along it, and the corners of the head, its tip first."""
        points = np.array([self.point(*point) for point in pen.points])
        tip = np.array(self.point(*pen.end))
        back = points[-1] - tip
        across = 0.5 * np.array([-back[1], back[0]])
        head = np.array([tip, points[-1] + across, points[-1] - across])
        line = Path(points, pen.codes)
        return line, sampled(line), head


class Pen:
    """A line in (main, cross), piece by piece."""

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []
        self.codes: list[np.uint8] = []
        self.end = (0.0, 0.0)

    def start(self, main: float, cross: float) -> None:
        """Set down."""
        self.points.append((main, cross))
        self.codes.append(Path.MOVETO)

    def straight(self, main: float) -> None:
        """On along the main axis."""
        if abs(main - self.points[-1][0]) > 1e-9:
            self.points.append((main, self.points[-1][1]))
            self.codes.append(Path.LINETO)

    def curve(self, main: float, cross: float, via: float | None = None) -> None:
        """To a point, leaving and arriving along the main axis; by way of the middle, or of another place on it."""
        begin = self.points[-1]
        bend = (begin[0] + main) / 2 if via is None else via
        self.cubic((bend, begin[1]), (bend, cross), (main, cross))

    def cubic(self, *points: tuple[float, float]) -> None:
        """A Bézier curve: two controls and the end."""
        self.points += points
        self.codes += [Path.CURVE4] * 3

    def tip(self, main: float) -> None:
        """Where the head points to, straight ahead."""
        self.end = (main, self.points[-1][1])

    def tip_at(self, main: float, cross: float) -> None:
        """Where the head points to."""
        self.end = (main, cross)


def sampled(line: Path, pieces: int = 24) -> Array:
    """Points along a line."""
    found, here = [], np.zeros(2)
    t = np.linspace(0.0, 1.0, pieces)[:, None]
    for vertices, code in line.iter_segments(simplify=False):
        points = np.asarray(vertices, dtype=np.float64).reshape(-1, 2)
        if code == Path.LINETO:
            found.append(here + t * (points[0] - here))
        elif code == Path.CURVE4:
            a, b, c = points
            found.append((1 - t) ** 3 * here + 3 * (1 - t) ** 2 * t * a + 3 * (1 - t) * t**2 * b + t**3 * c)
        here = points[-1]
    return np.concatenate(found)


def point_at(points: Array, share: float) -> tuple[float, float]:
    """The point at a share of a line's length."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    x, y = (float(np.interp(share * length[-1], length, points[:, k])) for k in (0, 1))
    return x, y
