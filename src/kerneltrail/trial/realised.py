"""The figure of shares that acted beside the probabilities of acting, for the desk and for an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.report.figures import BLUE, INK, is_narrow, legend, rule, styled
from kerneltrail.trial.ratio import Tenth


@dataclass(frozen=True)
class Realised:
    """Shares that were sent beside the mean probability, with intervals."""

    mean: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float

    @classmethod
    def of(cls, tenths: Sequence[Tenth]) -> Realised:
        """Those of decisions in tenths by their probability."""
        shares = [each.share for each in tenths]
        return cls(
            tuple(each.mean for each in tenths),
            tuple(each.mean for each in shares),
            tuple(each.low for each in shares),
            tuple(each.high for each in shares),
            shares[0].level,
        )


def draw_realised(data: Realised, *, width: float, doing: str = "sending", done: str = "was sent") -> Figure:
    """On the dashed line messages were sent as often as the probabilities say."""
    with styled(width, 3.2) as figure:
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="as the probabilities say")
        share = np.array(data.share)
        ax.errorbar(
            data.mean, share, yerr=[share - np.array(data.low), np.array(data.high) - share], fmt="o", markersize=5,
            color=BLUE, elinewidth=1.4, capsize=3, label=f"{done}, with {100 * data.level:g} % interval",
        )  # fmt: skip
        ax.set(xlim=(0, 1), ylim=(-0.02, 1.02), xlabel=f"mean probability of {doing}", ylabel=f"share that {done}")
        rule(ax)
        legend(figure, columns=1 if is_narrow(width) else 2)
    return figure
