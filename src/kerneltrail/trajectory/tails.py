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
    step = max(len(users) // MOST_USERS, 1)
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


def heaviness(residuals: tuple[Array, Array]) -> tuple[float, float]:
    """The spread with the highest mean log density of standardised residuals, and that density.

    Args:
        residuals: in standard deviations, (n,), and what is not known of the log variance of each, (n,).
    """
    z, known = residuals
    if not len(z):
        return 0.0, 0.0
    densities = []
    for spread in SPREADS:
        freedom = freedom_of(known + spread)
        scale = np.sqrt((freedom - 2.0) / freedom)
        densities.append(float(np.mean(student_log_density(z / scale, freedom) - np.log(scale))))
    best = int(np.argmax(densities))
    return SPREADS[best], densities[best]


def _residuals(model: TrajectoryModel, users: Sequence[User]) -> tuple[Array, Array]:
    """Of every batch given those before it: standardised, and what is not known of its log variance."""
    z, known = [], []
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
            z.append((batch.y - ahead.mean) / ahead.sd)
            assert ahead.freedom is not None  # its tails are not Normal
            known.append(scipy.special.polygamma(1, 0.5 * ahead.freedom))
    return (np.concatenate(z), np.concatenate(known)) if z else (np.empty(0), np.empty(0))
