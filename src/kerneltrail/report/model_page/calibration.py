"""Do predictions keep their word? Coverage of intervals for batches that were predicted before they were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kerneltrail.evaluation.intervals import Interval, share_over_users
from kerneltrail.gp import Prediction
from kerneltrail.kernels.phrases import counted
from kerneltrail.report.figures import BLUE, FAINT, INK, is_narrow, rule, styled
from kerneltrail.report.model_page.followed_user import Ahead, UserView, caution
from kerneltrail.report.model_page.numbers import fixed, percent
from kerneltrail.report.page import Block, Expert, Paragraph, Picture, Section, Sentences, Table

Array = NDArray[np.float64]

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Levels of the intervals of the curve."""
TOLD = (0.5, 0.9)
"""Those of which the words tell."""
BINS = 10
SURE = 0.95
"""Coverage of the intervals by which the words are chosen: one in twenty verdicts on good predictions is wrong."""
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
"""Multiples of it, less their whole parts, are spread evenly between 0 and 1, however many there are."""
LITTLE = 0.04
"""A coverage that is off by less is off by a little, however sure that is."""


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
        error = float(np.sqrt(np.mean(np.concatenate([a.y - a.mean for a in predicted]) ** 2)))
        density = float(np.mean(np.concatenate([a.prediction.log_density(a.y) for a in predicted])))
        sure = float(np.mean([one.sure[t] for one in users if t < len(one.sure)]))
        inside = [np.concatenate([a.inside(level) for a in predicted]) for level in TOLD]
        half, ninety = (float(np.mean(each)) for each in inside)
        batches.append(Coverage(t + 1, len(predicted), len(inside[0]), half, ninety, error, density, sure))
    return tuple(batches)


def curve(users: Sequence[UserView]) -> dict[float, tuple[float, float]]:
    """For the intervals of each level, from the second batch on: the share of rows they should hold, and do hold.

    They are the intervals of which the words tell: the shortest ones, which need not lie in the middle of the
    distribution, and hold more than their level where they end with an outcome that many rows have.
    """
    together = [(_joined(alike), np.concatenate([a.y for a in alike])) for alike in _alike(users)]
    found = {}
    for level in LEVELS:
        promised = np.concatenate([prediction.held(level) for prediction, _ in together])
        ends = [(prediction.interval(level), y) for prediction, y in together]
        inside = np.concatenate([(low <= y) & (y <= high) for (low, high), y in ends])
        found[level] = float(np.mean(promised)), float(np.mean(inside))
    return found


def _alike(users: Sequence[UserView]) -> list[list[Ahead]]:
    """Batches from the second on, those together whose predictions are of one kind: many at a time are quicker."""
    kinds: dict[tuple[int, bool], list[Ahead]] = {}
    for one in users:
        for ahead in one.ahead[1:]:
            kinds.setdefault((id(ahead.prediction.shape), ahead.prediction.freedom is None), []).append(ahead)
    return list(kinds.values())


def _joined(alike: Sequence[Ahead]) -> Prediction:
    """Predictions of one kind as one."""
    predictions = [ahead.prediction for ahead in alike]
    freedoms = [each.freedom for each in predictions if each.freedom is not None]
    return Prediction(
        np.concatenate([each.mean for each in predictions]),
        np.concatenate([each.total for each in predictions]),
        0.0,
        freedom=np.concatenate(freedoms) if freedoms else None,
        shape=predictions[0].shape,
        location=np.concatenate([each.bell.mean for each in predictions]),
    )


def places(users: Sequence[UserView]) -> list[Array]:
    """Where each user's rows from the second batch on fell in their predicted distributions, from 0 to 1.

    Users with one batch are left out. Rows with one and the same outcome, such as zero, are spread evenly over its
    probability: then places are even if as many rows have it as predicted.
    """
    found, before = [], 0
    for one in users:
        if len(one.ahead) > 1:
            low, high = map(np.concatenate, zip(*(ahead.below for ahead in one.ahead[1:]), strict=True))
            number = before + np.cumsum(high > low)
            before = int(number[-1]) if len(number) else before
            found.append(low + (high - low) * ((0.5 + GOLDEN * number) % 1.0))
    return found


def calibration(users: Sequence[UserView]) -> Section | None:
    """The section on calibration; None where nobody has a second batch."""
    errors = places(users)
    if not errors:
        return None
    rows = sum(map(len, errors))
    intro = (
        "Each batch was predicted before it was seen, with intervals that promise to hold 50 % and 90 % of the rows. "
        f"Counted are {rows:,} rows of {counted(len(errors), 'user')}, from the second batch on.{caution(users)}"
    )
    coverage = curve(users)
    tenths = [share_over_users(hits, level=1.0 - (1.0 - SURE) / BINS) for hits in _tenths(errors)]
    blocks: list[Block] = [
        Paragraph(intro),
        Sentences("What the rows say", [*verdicts(users, errors), _flatness(tenths, errors)]),
        Picture.of(
            partial(_figure, coverage, tenths),
            "Promised against observed coverage of intervals, and a histogram of where observations fell.",
            "Left (above, on a narrow screen): the share of rows inside their intervals, for intervals of every size; "
            f"on the dashed line, they hold what they promise.{_smallest(coverage)} The dots are the 50 % and the 90 % "
            "intervals of which the sentences tell. Right: where observations fell in their predicted distribution, "
            "in tenths. Flat is right; a hump in the middle says that intervals are too wide, high ends that they are "
            "too narrow, a slope that predictions are too high or too low. "
            f"Thin bars: {_basis(errors)}.",
            broad=True,
        ),
        Expert("Batch by batch", [_table(users)]),
    ]
    return Section("Do the intervals keep their word?", blocks, "calibration")


def _smallest(coverage: Mapping[float, tuple[float, float]]) -> str:
    """Why the curve does not begin at the left, where it does not."""
    least = coverage[LEVELS[0]][0]
    if percent(least) == percent(LEVELS[0]):
        return ""
    return f" The smallest should hold {percent(least)}, as many rows have one and the same outcome."


def _basis(errors: Sequence[Array]) -> str:
    if len(errors) == 1:
        return "what chance allows if the rows of this one user were independent, which they hardly are"
    return f"what chance allows, from how much the {len(errors)} users differ"


def verdicts(users: Sequence[UserView], errors: Sequence[Array]) -> list[str]:
    """What the coverages say, by whether their intervals over users contain what was promised; and the balance.

    Args:
        users: whose intervals are meant.
        errors: their `places`.
    """
    later = [one.ahead[1:] for one in users if len(one.ahead) > 1]
    sentences = []
    for level in reversed(TOLD):
        share = share_over_users([np.concatenate([a.inside(level) for a in own]) for own in later], level=SURE)
        promised = float(np.mean(np.concatenate([a.prediction.held(level) for own in later for a in own])))
        sentences.append(_kept(level, promised, share, errors))
    return [*sentences, _balance(share_over_users([place > 0.5 for place in errors], level=SURE))]


def _kept(level: float, promised: float, share: Interval, errors: Sequence[Array]) -> str:
    rows = sum(map(len, errors))
    inside = f"{percent(share.mean)} of the rows fell inside their {percent(level)} interval"
    if percent(promised) != percent(level):  # it ends with outcomes that many rows have, and holds all of them
        inside += f", which should hold {percent(promised)} as it cannot end between outcomes"
    if share.low <= promised <= share.high:
        told = f"as promised, as far as {rows:,} rows of {counted(share.users, 'user')} can tell"
    else:
        little = "a little " if abs(share.mean - promised) < LITTLE else ""
        told = f"the intervals are {little}too {'wide' if share.mean > promised else 'narrow'}"
    return f"{inside}: {told} ({_range(share)})."


def _balance(share: Interval) -> str:
    above = f"{percent(share.mean)} of the rows lay in the upper half of what was predicted ({_range(share)})"
    if share.low <= 0.5 <= share.high:
        return f"{above}: no sign that predictions are too high or too low."
    return f"{above}: predictions tend to be too {'low' if share.mean > 0.5 else 'high'}."


def _flatness(tenths: Sequence[Interval], errors: Sequence[Array]) -> str:
    """Whether observations are spread over their predicted distribution as they should be."""
    off = [i for i, share in enumerate(tenths) if not share.low <= 1.0 / BINS <= share.high]
    rows = sum(map(len, errors))
    if not off:
        return (
            "Observations are spread over their predicted distribution as they should be, as far as "
            f"{rows:,} rows of {counted(len(errors), 'user')} can tell (all tenths together)."
        )
    worst = max(off, key=lambda i: abs(tenths[i].mean - 1.0 / BINS))
    more = "more" if tenths[worst].mean > 1.0 / BINS else "fewer"
    return (
        f"Observations are not spread over their predicted distribution as they should be: {more} than a tenth of the "
        f"rows ({percent(tenths[worst].mean)}, {_range(tenths[worst])}) fell into tenth {worst + 1} of {BINS}, counted "
        "from the lowest."
    )


def _range(share: Interval) -> str:
    return f"{100.0 * share.low:.0f}–{100.0 * share.high:.0f} %"


def _tenths(errors: Sequence[Array]) -> list[list[NDArray[np.bool_]]]:
    """For each tenth of the predicted distribution, which rows of each user fell into it."""
    tenths = [np.minimum((BINS * place).astype(int), BINS - 1) for place in errors]
    return [[tenth == i for tenth in tenths] for i in range(BINS)]


def _table(users: Sequence[UserView]) -> Table:
    return Table(
        "Batches predicted before they were seen; last, how probable the kernel is that is selected once they are",
        ("batch", "users", "rows", "in 50 % interval", "in 90 % interval", "log density", "then how sure"),
        [
            [
                f"{row.batch}" + (", from the pilot users alone" if row.batch == 1 else ""),
                str(row.users),
                f"{row.rows:,}",
                percent(row.half),
                percent(row.ninety),
                fixed(row.log_density),
                percent(row.sure),
            ]
            for row in coverages(users)
        ],
    )


def _figure(coverage: Mapping[float, tuple[float, float]], tenths: Sequence[Interval], width: float) -> Figure:
    narrow = is_narrow(width)
    with styled(width, 5.6 if narrow else 3.0, rows=2 if narrow else 1) as figure:
        first, second = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
        first.plot([0, 1], [0, 1], color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        first.plot(*zip(*coverage.values(), strict=True), color=BLUE, linewidth=2.0)
        told = [coverage[level] for level in TOLD]
        first.scatter(*zip(*told, strict=True), s=30, color=BLUE, zorder=3)
        first.set(xlabel="rows that intervals should hold (%)", ylabel="rows inside (%)", xlim=(0, 1), ylim=(0, 1))
        for set_ticks in (first.set_xticks, first.set_yticks):
            set_ticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100"])
        first.set_title("coverage")
        shares, places = np.array([share.mean for share in tenths]), (np.arange(BINS) + 0.5) / BINS
        second.bar(places, shares, width=1.0 / BINS, color=BLUE, alpha=0.55, edgecolor="white")
        second.vlines(places, [s.low for s in tenths], [s.high for s in tenths], color=INK, linewidth=1.1)
        second.axhline(1.0 / BINS, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        # Intervals of few users may reach far; the bars are what is to be seen.
        top = max(2.2 / BINS, 1.25 * float(shares.max()))
        second.set(xlabel="place in the predicted distribution", ylabel="share of rows", xlim=(0, 1), ylim=(0, top))
        second.set_title("where observations fell")
        for ax in (first, second):
            rule(ax)
            ax.tick_params(color=FAINT)
    return figure
