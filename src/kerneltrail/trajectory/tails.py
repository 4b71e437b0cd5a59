"""Tails of observations: how far out pilot users' outcomes lie of what is predicted for them, batch by batch.

Each pilot user is followed as a new one would be. What is learnt is one number, the tails' heaviness beyond what is not
known of the noise (method (53)), and whether drawing in outcomes far out predicts the next ones better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from kerneltrail.data import User
from kerneltrail.errors import KerneltrailError
from kerneltrail.gp.prediction import freedom_of, student_log_density
from kerneltrail.kernels import Array
from kerneltrail.trajectory.model import TrajectoryModel

MOST_USERS = 40
"""Pilot users who are followed: one number needs no more."""

SPREADS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75)
"""Values of the heaviness that are tried: 0.2 is about 11 degrees of freedom, 0.75 about 4."""

SCALES = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5)
"""Of a group of residuals, by which predictions may be too wide or too narrow."""

LEAST_GAIN = 0.002
"""Nats a row that heavy tails must gain over none."""

HEAVY = 0.2
"""Heaviness from which drawing in is tried at all."""

CLIP = 3.0
"""Standard deviations beyond which an outcome is drawn in."""

GAIN = 0.005
"""Nats a row by which drawing in must predict better."""


def with_tails(model: TrajectoryModel, users: Sequence[User]) -> TrajectoryModel:
    """The model with what pilot users, in data units, say of the tails."""
    kind = model.settings.tails
    if kind == "normal":
        return model
    step = max(-(-len(users) // MOST_USERS), 1)
    some = users[::step]
    tails, density = heaviness(_residuals(replace(model, tails=0.0), some))
    plain = replace(model, tails=tails)
    if kind == "student" or (kind == "automatic" and tails < HEAVY):
        return plain
    drawn = replace(model, tails=0.0, clip=CLIP)
    drawn_tails, drawn_density = heaviness(_residuals(drawn, some))
    if kind == "automatic" and drawn_density < density + GAIN:
        return plain
    return replace(drawn, tails=drawn_tails)


def heaviness(residuals: Sequence[tuple[Array, Array]]) -> tuple[float, float]:
    """The spread with the highest mean log density of standardised residuals, and that density without it.

    Predictions that are too wide or too narrow as a whole are no tails: each group of residuals has a scale of its own.

    Args:
        residuals: groups of residuals in standard deviations, (n,), and what is not known of the log variance of each,
            (n,).
    """
    groups = [(z, known) for z, known in residuals if len(z)]
    rows = sum(len(z) for z, _ in groups)
    if not rows:
        return 0.0, 0.0
    densities, stated = [], []
    for spread in SPREADS:
        total, plain = 0.0, 0.0
        for z, known in groups:
            freedom = freedom_of(known + spread)
            unit = np.sqrt((freedom - 2.0) / freedom)
            each = {
                scale: float(np.sum(student_log_density(z / (scale * unit), freedom) - np.log(scale * unit)))
                for scale in SCALES
            }
            total, plain = total + max(each.values()), plain + each[1.0]
        densities.append(total / rows)
        stated.append(plain / rows)
    best = int(np.argmax(densities))
    if densities[best] < densities[0] + LEAST_GAIN:
        best = 0
    return SPREADS[best], stated[best]


def _residuals(model: TrajectoryModel, users: Sequence[User]) -> list[tuple[Array, Array]]:
    """Of first batches, and of later ones given those before: standardised, and what is not known of log variances."""
    groups: list[list[tuple[Array, Array]]] = [[], []]
    for user in users:
        followed = model.new_user(user.name)
        for t in range(1, user.batches + 1):
            batch = user.batch(t)
            action = batch.assignment if model.takes_action else None
            try:
                ahead = followed.predict(batch.X, action=action)
                if t < user.batches:
                    followed.update(batch.X, batch.y, action=action)
            except (
                KerneltrailError,
                ArithmeticError,
                ValueError,
            ):  # a finished fit is worth more than one user's tails
                break
            assert ahead.freedom is not None  # its tails are not Normal
            known = np.asarray(scipy.special.polygamma(1, 0.5 * ahead.freedom))
            groups[t > 1].append(((batch.y - ahead.mean) / ahead.sd, known))
    return [(np.concatenate([z for z, _ in group]), np.concatenate([v for _, v in group])) for group in groups if group]
