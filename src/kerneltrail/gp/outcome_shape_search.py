"""The shape of outcomes, learnt from how those of pilot users lie in their predictions (method (76))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from kerneltrail.gp.bell import Array, Bell
from kerneltrail.gp.outcome_shape import OutcomeShape, Places

STRETCH = 0.5
"""Length of a stretch, in standard deviations of the outcomes: for zeros and gaps, not for single rows."""

CENTRAL, LARGER = (0.1, 0.9), 1.25
"""Quantiles of the outcomes whose distance stands for a standard deviation, and how many times larger than that the
standard deviation may be: beyond it a few rows far out decide it, and it is no size of the others."""

ENDS = (0.005, 0.995)
"""Quantiles of the outcomes between which there are stretches with two ends."""

MANY = 0.05
"""Share of rows with exactly the lowest outcome, or the highest, from which it is an end of the range."""

FEW_VALUES, REPEATED, APART = 20, 5, 0.1
"""Outcomes are a rating if there are at most so many, each with so many rows on average, and all so many standard
deviations apart."""

PENALTY = 1.0
"""Of the squared log weights: a Normal prior of standard deviation 1 for each."""

WIDTHS = (1.0, 1.1, 1.2, 1.35, 1.5)
"""Factors of the bell's width that are tried: with a shape, it has less to say."""

PLAIN_WIDTHS = (0.6, 0.7, 0.8, 0.9, *WIDTHS)
"""Those of the bell alone: one that is only too wide or too narrow has no shape."""

GROUPS = 20
"""Most groups of users that are left out in turn."""

GAIN = 0.01
"""Nats a row that a shape must gain of users who were left out."""

SURE = 0.975
"""Probability, over users, with which its gain must be above 0, where no outcome is shared by many rows."""

FEWEST = 3
"""Users without whom a shape cannot be judged."""


class Predicted(NamedTuple):
    """What was predicted of a pilot user's rows, and what they were."""

    bell: Bell
    y: Array

    @classmethod
    def of(cls, batches: Sequence[tuple[Bell, Array]]) -> Predicted:
        """All batches of a user, one after another."""
        nothing = Bell(np.zeros(0), np.zeros(0), np.zeros(0))
        bell = Bell(*map(np.concatenate, zip(nothing, *(bell for bell, _ in batches), strict=True)))
        return cls(bell, np.concatenate([np.zeros(0), *(y for _, y in batches)]))


def learn_shape(users: Sequence[Predicted]) -> OutcomeShape | None:
    """The shape of all users' outcomes, or None where users who are left out are predicted as well without one.

    A rating always has one: where weights do not help, all are equal.

    Args:
        users: what was predicted of each one's batches from those before.
    """
    users = [user for user in users if len(user.y)]
    outcomes = np.concatenate([user.y for user in users]) if users else np.zeros(0)
    if len(users) < FEWEST or _all_alike(outcomes):
        return None
    start = _start(outcomes)
    groups = np.concatenate([np.full(len(user.y), i % GROUPS) for i, user in enumerate(users)])
    bell = Bell(*map(np.concatenate, zip(*(user.bell for user in users), strict=True)))
    plain = max((bell.wider(width).log_density(outcomes) for width in PLAIN_WIDTHS), key=lambda each: float(each.sum()))
    tried = [_with_width(start, width) for width in WIDTHS]
    gains = [_left_out(shape, bell, outcomes, groups) - plain for shape in tried]
    best = int(np.argmax([gain.sum() for gain in gains]))
    if float(gains[best].sum()) < _least_gain(start, gains[best], groups):
        return start if None not in start.points else None  # the values of a rating are a fact, weights or not
    return _weighted(tried[best], _Rows.of(tried[best], bell, outcomes))


class _Rows(NamedTuple):
    """Log probability of each stretch at rows, (n, k), and the stretch of each outcome, (n,)."""

    log: Array
    place: Places

    @classmethod
    def of(cls, shape: OutcomeShape, bell: Bell, outcomes: Array) -> _Rows:
        edges = np.array(shape.edges)
        log = np.log(bell.wider(shape.width).stretches(edges))
        return cls(log, np.searchsorted(edges, outcomes).astype(np.int64))


def _all_alike(outcomes: Array) -> bool:
    """Whether outcomes do not differ, but for rounding."""
    return not np.ptp(outcomes) > 1e-9 * float(np.abs(outcomes).max(initial=0.0))


def _least_gain(start: OutcomeShape, gains: Array, groups: Array) -> float:
    """Nats that weights must gain of users who were left out: more where it all may be chance."""
    enough = GAIN * len(gains)
    if any(point is not None for point in start.points):
        return enough
    by_group = np.bincount(groups, weights=gains)
    error = float(np.std(by_group, ddof=1)) * np.sqrt(len(by_group))
    return max(enough, float(scipy.special.stdtrit(len(by_group) - 1, SURE)) * error)


def _start(outcomes: Array) -> OutcomeShape:
    """Stretches and single outcomes, all with the same weight."""
    values, counts = np.unique(outcomes, return_counts=True)
    length, gaps = STRETCH * _size(outcomes), np.diff(values)
    if len(values) <= min(FEW_VALUES, len(outcomes) / REPEATED) and gaps.min() >= APART * np.std(outcomes):
        edges, points = values[:-1] + 0.5 * gaps, tuple(values.tolist())
        return OutcomeShape(tuple(edges.tolist()), (0.0,) * len(points), points, length=length)
    low, high = np.quantile(outcomes, ENDS)
    edges = low + length * (np.arange(int(np.ceil((high - low) / length + 0.5)) + 1) - 0.5)
    many = counts >= MANY * len(outcomes)
    floor, ceiling = (float(values[i]) if many[i] else None for i in (0, -1))
    # Between an end and the outcome next to it: in the end's stretch there is nothing else.
    if floor is not None:
        edges = np.array([min(edges[1], values[0] + 0.5 * gaps[0]), *edges[2:]])
    if ceiling is not None:
        edges = np.array([*edges[:-2], max(edges[-2], values[-1] - 0.5 * gaps[-1])])
    edges = np.unique(edges)
    points = (floor, *(None,) * (len(edges) - 1), ceiling)
    return OutcomeShape(tuple(edges.tolist()), (0.0,) * len(points), points, length=length)


def _size(outcomes: Array) -> float:
    """The standard deviation of the outcomes, or what their middle says of it where that is much less."""
    low, high = np.quantile(outcomes, CENTRAL).tolist()
    middle = (high - low) / float(scipy.special.ndtri(CENTRAL[1]) - scipy.special.ndtri(CENTRAL[0]))
    deviation = float(np.std(outcomes))
    return min(deviation, LARGER * middle) if middle > 0.0 else deviation


def _with_width(shape: OutcomeShape, width: float) -> OutcomeShape:
    return OutcomeShape(shape.edges, shape.log_weights, shape.points, width, shape.length)


def _weighted(shape: OutcomeShape, rows: _Rows) -> OutcomeShape:
    return OutcomeShape(shape.edges, tuple(_weights(rows).tolist()), shape.points, shape.width, shape.length)


def _left_out(shape: OutcomeShape, bell: Bell, outcomes: Array, groups: Array) -> Array:
    """Log density of every outcome by the weights of the other groups' users."""
    rows, density = _Rows.of(shape, bell, outcomes), np.empty(len(outcomes))
    for group in np.unique(groups):
        out = groups == group
        learnt = _weighted(shape, _Rows(rows.log[~out], rows.place[~out]))
        density[out] = learnt.log_density(Bell(*(part[out] for part in bell)), outcomes[out])
    return density


def _weights(rows: _Rows) -> Array:
    """The log weights of the highest penalised likelihood, which is concave: Newton's steps lead there."""
    size = rows.log.shape[1]
    seen = np.bincount(rows.place, minlength=size)
    weights = np.zeros(size)
    for _ in range(100):
        shares = scipy.special.softmax(rows.log + weights, axis=1)
        slope = seen - shares.sum(axis=0) - PENALTY * weights
        curvature = np.diag(shares.sum(axis=0) + PENALTY) - shares.T @ shares
        step = np.linalg.solve(curvature, slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))  # far steps overshoot: at most 1 at a time
        if np.abs(step).max() < 1e-8:
            break
    return weights
