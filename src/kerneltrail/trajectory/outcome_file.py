"""What a model's file holds of outcomes: their tails, how they are drawn in, and which there are."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np

from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.gp.student import Drawing
from kerneltrail.store.validate import Malformed, conform
from kerneltrail.trajectory.graph import LIGHT


def decode_drawing(stored: Any) -> Drawing | None:
    """Models whose outcomes are not drawn in do not speak of it."""
    if stored is None:
        return None
    conform(stored, {"freedom": float}, "its drawing in of outcomes")
    if not 2.0 < stored["freedom"] < np.inf:
        raise Malformed("the degrees of freedom by which it draws outcomes in are not a number above 2")
    alike = stored.get("alike", 1.0)  # of files of before
    conform(alike, float, "how alike users' noises are to it")
    if not 0.0 < alike <= 1.0:
        raise Malformed("the share of the variance of noises between users is not a number above 0 and up to 1")
    return Drawing(stored["freedom"], alike)


def decode_shape(stored: Any) -> OutcomeShape | None:
    """Files of before, and of models whose outcomes lie like a bell, do not have one."""
    if stored is None:
        return None
    conform(stored, get_type_hints(OutcomeShape), "the shape of its outcomes")
    edges, weights = (tuple(stored[name]) for name in ("edges", "log_weights"))
    points = tuple(stored["points"])
    shape = OutcomeShape(edges, weights, points, stored["width"], stored["length"])
    ends = np.array([-np.inf, *edges, np.inf])
    if not edges or len({len(weights), len(points), len(ends) - 1}) > 1 or not (np.diff(ends) > 0.0).all():
        raise Malformed("the shape of its outcomes does not have ascending edges and a weight between any two")
    if not (np.isfinite([*edges, *weights]).all() and 1.0 <= shape.width < np.inf and 0.0 < shape.length < np.inf):
        raise Malformed("the shape of its outcomes makes predictions narrower, or is not made of numbers")
    if not all(each is None or low < each < high for each, low, high in zip(points, ends, ends[1:], strict=False)):
        raise Malformed("a single outcome of its shape is not in its stretch")
    return shape


def decode_tails(stored: Any) -> tuple[float, tuple[float, float] | None, float]:
    """Files of before do not speak of them, or not of their interval."""
    conform(stored, {"spread": float}, "its tails")
    interval = stored.get("interval")
    stretch = stored.get("stretch", 1.0)
    conform({"interval": interval, "stretch": stretch}, {"interval": list[float] | None, "stretch": float}, "its tails")
    if not 1.0 <= stretch < np.inf:
        raise Malformed("its tails make predictions narrower, or endlessly wide")
    values = [stored["spread"], *(interval or ())]
    if not all(LIGHT <= value < np.inf for value in values):
        raise Malformed("the heaviness of its tails is not a variance")
    if interval is None:
        return stored["spread"], None, stretch
    if len(interval) != 2 or interval[0] > interval[1]:
        raise Malformed("the interval of its tails is not a lower and an upper end")
    return stored["spread"], (interval[0], interval[1]), stretch
