"""Do predictions keep their word? Coverage of intervals for batches that were predicted before they were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kerneltrail.report.figures import BLUE, FAINT, INK, rule, styled
from kerneltrail.report.model_page.followed_user import UserView
from kerneltrail.report.model_page.numbers import digits, fixed, percent
from kerneltrail.report.page import Block, Paragraph, Picture, Section, Table

Array = NDArray[np.float64]

LEVELS = np.linspace(0.05, 0.95, 19)
"""Nominal coverages of the curve."""
BINS = 10


@dataclass(frozen=True)
class Coverage:
    """Next-batch predictions at one batch, over all users who have it.

    Attributes:
        batch: the batch predicted, from 1.
        users, rows: how many.
        half, ninety: shares of rows inside the 50 % and the 90 % interval.
        rmse: root mean squared error over the rows.
        log_density: mean log density of a row.
        sure: mean probability of the composition selected once the batch was seen.
    """

    batch: int
    users: int
    rows: int
    half: float
    ninety: float
    rmse: float
    log_density: float
    sure: float


def coverages(users: Sequence[UserView]) -> tuple[Coverage, ...]:
    """One for each batch, the first included, which is predicted from the pilot users alone."""
    batches = []
    for t in range(max((len(one.ahead) for one in users), default=0)):
        predicted = [one.ahead[t] for one in users if t < len(one.ahead)]
        z, sd = np.concatenate([a.z for a in predicted]), np.concatenate([a.sd for a in predicted])
        error = float(np.sqrt(np.mean((z * sd) ** 2)))
        density = float(np.mean(-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)))
        sure = float(np.mean([one.sure[t] for one in users if t < len(one.sure)]))
        half, ninety = _inside(z, 0.5), _inside(z, 0.9)
        batches.append(Coverage(t + 1, len(predicted), len(z), half, ninety, error, density, sure))
    return tuple(batches)


def _inside(z: Array, level: float) -> float:
    """Share of standardised errors inside the central interval of that level."""
    return float(np.mean(np.abs(z) <= scipy.special.ndtri(0.5 + level / 2.0)))


def pooled(users: Sequence[UserView]) -> Array:
    """Standardised errors of all rows from the second batch on."""
    every = [ahead.z for one in users for ahead in one.ahead[1:]]
    return np.concatenate(every) if every else np.empty(0)


def calibration(users: Sequence[UserView]) -> Section | None:
    """The section on calibration; None where nobody has a second batch."""
    z = pooled(users)
    if not len(z):
        return None
    table = coverages(users)
    half, ninety = _inside(z, 0.5), _inside(z, 0.9)
    blocks: list[Block] = [
        Paragraph(
            f"Each batch was predicted before it was seen. Of {len(z):,} rows from the second batch on, "
            f"{percent(ninety)} fell inside their 90 % interval and {percent(half)} inside their 50 % interval: "
            f"{_verdict(z)}.{_caution(users)}"
        ),
        Picture.of(
            partial(_figure, z),
            f"Nominal against observed coverage, and a histogram of where observations fell; {percent(ninety)} of rows "
            "lie inside their 90 % interval.",
            "Left (above, on a narrow screen): the share of rows inside intervals of every level; on the dashed line, "
            "intervals hold what they promise. Right: where observations fell in their predicted distribution, in "
            "tenths; flat is right, a hump in the middle says that intervals are too wide, high ends that they are too "
            "narrow.",
        ),
        Table(
            "Batches predicted before they were seen; last, how probable the kernel is that is selected once they are",
            ("batch", "users", "rows", "in 50 % interval", "in 90 % interval", "RMSE", "log density", "then how sure"),
            [
                [
                    f"{row.batch}" + (", from the pilot users alone" if row.batch == 1 else ""),
                    str(row.users),
                    f"{row.rows:,}",
                    percent(row.half),
                    percent(row.ninety),
                    digits(row.rmse),
                    fixed(row.log_density),
                    percent(row.sure),
                ]
                for row in table
            ],
        ),
    ]
    return Section("Are the predictions well calibrated?", blocks, "calibration")


def _verdict(z: Array) -> str:
    """What the coverage of 90 % intervals says, allowing for chance in so many rows."""
    covered = _inside(z, 0.9)
    # Rows of one user are not independent, so this margin of two standard errors is, if anything, too small.
    margin = max(2.0 * float(np.sqrt(0.9 * 0.1 / len(z))), 0.02)
    if covered < 0.9 - margin:
        return "the intervals are too narrow"
    if covered > 0.9 + margin:
        return "the intervals are too wide"
    return "the intervals hold about what they promise"


def _caution(users: Sequence[UserView]) -> str:
    pilots = sum(one.pilot for one in users)
    if not pilots:
        return ""
    who = "All of these users" if pilots == len(users) else f"{pilots} of these {len(users)} users"
    return f" {who} taught the model, so this flatters it: new users are the real test."


def _figure(z: Array, width: float) -> Figure:
    narrow = width < 6
    with styled(width, 5.6 if narrow else 3.0) as figure:
        first, second = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
        observed = [_inside(z, float(level)) for level in LEVELS]
        first.plot([0, 1], [0, 1], color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        first.plot([0.0, *LEVELS, 1.0], [0.0, *observed, 1.0], color=BLUE, linewidth=2.0)
        first.scatter([0.5, 0.9], [_inside(z, 0.5), _inside(z, 0.9)], color=BLUE, s=28, zorder=3)
        first.set(xlabel="interval (%)", ylabel="rows inside (%)", xlim=(0, 1), ylim=(0, 1))
        for set_ticks in (first.set_xticks, first.set_yticks):
            set_ticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
        first.set_title("coverage")
        shares, edges = np.histogram(scipy.special.ndtr(z), bins=BINS, range=(0.0, 1.0))
        look = {"color": BLUE, "alpha": 0.75, "edgecolor": "white"}
        second.bar(edges[:-1], shares / len(z), width=1.0 / BINS, align="edge", **look)
        second.axhline(1.0 / BINS, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        second.set(xlabel="place in the predicted distribution", ylabel="share of rows", xlim=(0, 1))
        second.set_title("where observations fell")
        for ax in (first, second):
            rule(ax)
            ax.tick_params(color=FAINT)
    return figure
