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

ENDS = (0.005, 0.995)
"""Quantiles of the outcomes between which there are stretches with two ends."""

MANY = 0.05
"""Share of rows with exactly the lowest outcome, or the highest, from which it is an end of the range."""

PENALTY = 1.0
"""Of the squared log weights: a Normal prior of standard deviation 1 for each."""

WIDTHS = (1.0, 1.1, 1.2, 1.35, 1.5)
"""Factors of the bell's width that are tried: with a shape, it has less to say."""

GROUPS = 20
"""Most groups of users that are left out in turn."""

GAIN = 0.01
"""Nats a row that a shape must gain of users who were left out."""

ERRORS = 2.0
"""Standard errors over users by which its gain must be above 0."""

FEWEST = 3
"""Users without whom a shape cannot be judged."""


class Predicted(NamedTuple):
    """What was predicted of a pilot user's rows, and what they were."""

    bell: Bell
    y: Array


def learn_shape(users: Sequence[Predicted]) -> OutcomeShape | None:
    """The shape of all users' outcomes, or None where users who are left out are predicted as well without one.

    Args:
        users: what was predicted of each one's batches from those before.
    """
    users = [user for user in users if len(user.y)]
    outcomes = np.concatenate([user.y for user in users]) if users else np.zeros(0)
    if len(users) < FEWEST or not np.std(outcomes) > 0.0:
        return None
    edges = _edges(outcomes)
    groups = np.concatenate([np.full(len(user.y), i % GROUPS) for i, user in enumerate(users)])
    bell = Bell(*map(np.concatenate, zip(*(user.bell for user in users), strict=True)))
    plain = bell.log_density(outcomes)
    gains = [_left_out(bell.wider(width), outcomes, edges, groups) - plain for width in WIDTHS]
    best = int(np.argmax([gain.sum() for gain in gains]))
    by_group = np.bincount(groups, weights=gains[best])
    error = float(np.std(by_group, ddof=1)) * np.sqrt(len(by_group))
    if gains[best].sum() < max(GAIN * len(outcomes), ERRORS * error):
        return None
    log_weights = _weights(_Rows.of(bell.wider(WIDTHS[best]), outcomes, edges))
    floor, ceiling = (
        float(end) if np.mean(outcomes == end) >= MANY else None for end in (outcomes.min(), outcomes.max())
    )
    return OutcomeShape(tuple(edges.tolist()), tuple(log_weights.tolist()), WIDTHS[best], floor, ceiling)


class _Rows(NamedTuple):
    """Log probability of each stretch at rows, (n, k), and the stretch of each outcome, (n,)."""

    log: Array
    place: Places

    @classmethod
    def of(cls, bell: Bell, outcomes: Array, edges: Array) -> _Rows:
        return cls(np.log(bell.stretches(edges)), np.searchsorted(edges, outcomes).astype(np.int64))


def _edges(outcomes: Array) -> Array:
    """Between stretches of one length; the lowest outcome of many is in the middle of its own."""
    low, high = np.quantile(outcomes, ENDS)
    length = STRETCH * float(np.std(outcomes))
    return low + length * (np.arange(int(np.ceil((high - low) / length + 0.5)) + 1) - 0.5)


def _left_out(bell: Bell, outcomes: Array, edges: Array, groups: Array) -> Array:
    """Log density of every outcome by the weights of the other groups' users."""
    rows, density = _Rows.of(bell, outcomes, edges), bell.log_density(outcomes)
    for group in np.unique(groups):
        out = groups == group
        weights = _weights(_Rows(rows.log[~out], rows.place[~out]))
        total = scipy.special.logsumexp(rows.log[out] + weights, axis=1)
        density[out] += weights[rows.place[out]] - total
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
