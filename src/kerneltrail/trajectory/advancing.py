"""Covariates that move on, such as the day of the study: do kernels on them tell what comes next (method (78))?

A new batch lies beyond all days that a user has had, so a kernel on the day always extrapolates, and how well it suits
the rows that are there says little of the next ones. Neighbouring rows that are alike for a reason that nobody
measured, as a sensor's are, look like a slow change over days; carried forward, it is noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

import numpy as np

from kerneltrail.data import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.kernels import Array, Composition, Pool, Product
from kerneltrail.trajectory.graph import Worth
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.pilot_predictions import predicted_batches, some_of

FEWEST = 3
"""Pilot users without whose later batches nothing can be judged."""

MOST = 0.5
"""Share of the batches in which it changes, above which a covariate that goes beyond all before moves on."""

ORDERED = 0.95
"""Share of its changes from row to row that go the same way: by chance, too, some batches go beyond."""

LEAST = float(np.log(np.finfo(np.float64).tiny))
"""Log density of a row that was as good as impossible, or for which there is no number."""

MOST_SAID = 5.0
"""Nats by which one row may say that a graph predicts better: a row far out must not decide alone."""

Followed = Mapping[tuple[str, int], Array]
"""Log densities of rows, by pilot user and number of the batch."""


def advancing(users: Sequence[User]) -> frozenset[str]:
    """Covariates that move on, all up or all down: batches in which they change begin where those before ended.

    Most of these batches must, and end beyond; in others, such as several of one day, they stay where they are. What
    has two values only, such as a phase of the study, does not move on, nor what stays as it is for most users.

    >>> days, hours = np.arange(6.0) // 2.0, np.array([8.0, 20.0, 9.0, 19.0, 8.0, 21.0])
    >>> sorted(advancing([User("Ann", ("day", "hour"), np.column_stack([days, hours]), days, (1, 3, 6))]))
    ['day']
    """
    names = users[0].covariates
    several = [any(len(np.unique(user.X[:, j])) > 2 for user in users) for j in range(len(names))]
    up, down = (_moving([sign * user.X for user in users], [user.ends for user in users]) for sign in (1.0, -1.0))
    return frozenset(name for name, *is_so in zip(names, several, up | down, strict=True) if all(is_so))


def _moving(rows: Sequence[Array], ends: Sequence[Sequence[int]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each column moves up, (d,)."""
    changes = np.concatenate([np.diff(X, axis=0) for X in rows])
    beyond, changing, users = (np.zeros(changes.shape[1]) for _ in range(3))
    for X, each in zip(rows, ends, strict=True):
        most, others = np.maximum.accumulate(X), np.zeros(X.shape[1])
        for start, end in pairwise(each):
            before, new = most[start - 1], X[start:end]
            beyond += (new.min(axis=0) >= before) & (new.max(axis=0) > before)
            others += (new != X[start - 1]).any(axis=0)
        changing += others
        users += others > 0.0
    ordered = (changes > 0.0).sum(axis=0) >= ORDERED * (changes != 0.0).sum(axis=0)
    # A weight that few have measured twice may well have gone one way by chance.
    return ordered & (beyond > MOST * changing) & (users > 0.5 * sum(len(each) > 1 for each in ends))


def without(pool: Pool, mask: int, moving: Set[str]) -> int:
    """A composition without what it reads of covariates that move on.

    Products keep their other factors where the pool has such products: what else is in a composition must not be lost
    with them, or they would be judged by that.

    >>> pool = Pool.of("SE[day] + SE[hour] + SE[day]*PER[hour]")
    >>> pool.composition(without(pool, pool.mask(Composition(pool.products)), {"day"}))
    Composition('SE[hour]')
    """
    kept = (tuple(a for a in each.atoms if a.covariate not in moving) for each in pool.composition(mask))
    products = dict.fromkeys(Product(atoms) for atoms in kept if atoms)
    return pool.mask(Composition(tuple(each for each in products if each in pool.products)))


def followed(model: TrajectoryModel, users: Sequence[User]) -> Followed:
    """Log densities of the rows of pilot users' batches after the first, each predicted from those before."""
    with one_blas_thread():
        return {
            (user.name, t): np.fmax(ahead.bell.log_density(batch.y), LEAST)
            for user in some_of(users)
            for t, batch, ahead in predicted_batches(model, user)
            if t > 1
        }


def worth_of(covariates: tuple[str, ...], kept: Followed, left_out: Followed) -> Worth | None:
    """What kernels on such covariates are worth, from the same batches with and without them; None of too few users."""
    rows: dict[str, list[Array]] = {}
    for user, t in kept.keys() & left_out.keys():
        gain = kept[user, t] - left_out[user, t]
        rows.setdefault(user, []).append(np.clip(gain, -MOST_SAID, MOST_SAID))
    gains = np.array([np.mean(np.concatenate(rows[user])) for user in sorted(rows)])
    if len(gains) < FEWEST:
        return None
    return Worth(covariates, float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains))), len(gains))
