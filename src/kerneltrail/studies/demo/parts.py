"""What the demonstration's sections are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.gp import Posterior
from kerneltrail.kernels import Product
from kerneltrail.report.page import Section
from kerneltrail.studies.figure_pair import FigurePair
from kerneltrail.trajectory.model import TrajectoryModel

Array = NDArray[np.float64]
POINTS = 240
"""Points at which curves are drawn."""


@dataclass(frozen=True)
class Part:
    """A section of the page, the figures in it, which are written as files too, and a model to keep beside them."""

    section: Section
    drawn: tuple[FigurePair, ...]
    model: TrajectoryModel | None = None


def across(x: Array) -> Array:
    """Points over the range of a covariate and a little beyond."""
    margin = 0.04 * (x.max() - x.min())
    return np.linspace(x.min() - margin, x.max() + margin, POINTS)


def along(user: User, column: int) -> Array:
    """Rows that vary in one covariate, over the user's own range, the others at their medians."""
    at = np.tile(np.median(user.X, axis=0), (POINTS, 1))
    at[:, column] = np.linspace(user.X[:, column].min(), user.X[:, column].max(), POINTS)
    return at


def shares(posterior: Posterior) -> dict[Product, float]:
    """The products' shares of the variance, as words want them."""
    return {part: share for part, share in posterior.shares().items() if isinstance(part, Product)}


def with_unit(name: str, units: Mapping[str, str]) -> str:
    """A column's name for an axis."""
    unit = units.get(name, "")
    return f"{name} ({unit})" if unit else name


def listed(numbers: Sequence[int]) -> str:
    """Numbers in a sentence."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
