"""Tails of observations: how far out pilot users' outcomes lie of what is predicted for them, batch by batch.

Each pilot user is followed as a new one would be. What is learnt is one number, the tails' heaviness beyond what is not
known of the noise (method (53)), or that there are none, by how much predictions are too narrow after the first batch,
and whether drawing in outcomes far out predicts the next ones better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from kerneltrail.data import Cohort, User
from kerneltrail.engines import one_blas_thread
from kerneltrail.gp.bell import student_log_density
from kerneltrail.gp.prediction import freedom_of
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Array
from kerneltrail.trajectory.graph import LIGHT
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.pilot_predictions import predicted_batches, some_of
from kerneltrail.trajectory.sharing import Pilots, learn_together

SPREADS = tuple(0.95 * (i / 32) ** 2 for i in range(33))
"""Values of the heaviness that are tried: 0.2 is about 11 degrees of freedom, 0.75 about 3½, 0.95 three."""

SCALES = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5)
"""Of a group of residuals, by which predictions may be too wide or too narrow."""

INTERVAL = 1.35277172704771
"""Nats below the best within which a heaviness is in the 90 % interval, by the profile likelihood: half the point above
which a χ² of one degree of freedom lies with probability 0.1."""

LEAST_GAIN = 0.002
"""Nats a row that heavy tails must gain over none."""

HEAVY = 0.2
"""Heaviness from which drawing in is tried at all."""

ALIKE = 0.1
"""Share of the variance of noises between users with which users are followed where tails are heavy."""

GAIN = 0.002
"""Nats a row by which drawing in must predict better."""

LOSS = 0.01
"""Share by which squared errors may be larger with outcomes drawn in: of skewed outcomes that would be no mean."""


class Residuals(NamedTuple):
    """A group of residuals in standard deviations, with what predictions said of each one's tails; all (n,).

    Attributes:
        z: the residuals.
        known: what is not known of the log variance of each.
        share: the noise's share of the variance of each.
    """

    z: Array
    known: Array
    share: Array


@dataclass(frozen=True)
class Heaviness:
    """How heavy tails are.

    Attributes:
        spread: τ of method (53); `LIGHT` for a Normal.
        interval: its 90 % interval, by the profile likelihood; from `LIGHT` to 0 for a Normal.
        density: mean log density of the residuals with it, in standard deviations.
    """

    spread: float = 0.0
    interval: tuple[float, float] = (0.0, SPREADS[-1])
    density: float = 0.0


def with_tails(
    model: TrajectoryModel, pilots: Pilots, cohort: Cohort, table: MapTable
) -> tuple[TrajectoryModel, Pilots]:
    """The model with what pilot users say of the tails, and those users as it was learnt from them.

    Args:
        model: with all else.
        pilots: as that was learnt from them.
        cohort: of them.
        table: fits of them, where the searches start if all is learnt anew from outcomes drawn in.
    """
    kind = model.settings.tails
    if kind == "normal":
        return model, pilots
    users = some_of(cohort.raw)

    def learnt(start: TrajectoryModel) -> tuple[float, float, TrajectoryModel]:
        residuals, error, width = _residuals(replace(start, tails=0.0), users)
        found = heaviness([group for group in residuals if len(group.z)])
        stretch, gain = stretch_of(residuals[1], found.spread)
        density = found.density - width + gain / max(sum(len(group.z) for group in residuals), 1)
        return density, error, replace(start, tails=found.spread, tails_interval=found.interval, stretch=stretch)

    with one_blas_thread():
        density, error, plain = learnt(model)
        if kind == "student" or (kind == "automatic" and plain.tails < HEAVY):
            return plain, pilots
        drawn, others = replace(model, drawing=Drawing(float(freedom_of(max(plain.tails, HEAVY))))), pilots
        if model.settings.sharing == "joint":
            drawn, others = learn_together(drawn, cohort.users, table)
        gained, lost, drawn = max((learnt(start) for start in (drawn, alike(drawn))), key=lambda found: found[0])
    if kind == "automatic" and (gained < density + GAIN or lost > (1.0 + LOSS) * error):
        return plain, pilots
    return drawn, others


def alike(model: TrajectoryModel) -> TrajectoryModel:
    """The model on which users who are followed hardly differ in their noise; its groups stay as they were learnt."""
    assert model.drawing is not None
    return replace(model, drawing=replace(model.drawing, alike=ALIKE))


def heaviness(residuals: Sequence[Residuals]) -> Heaviness:
    """The spread with the highest density of standardised residuals, its interval, and the density without scales.

    Predictions that are too wide or too narrow as a whole are no tails: each group of residuals has a scale of its own.
    """
    groups = [group for group in residuals if len(group.z)]
    rows = sum(len(group.z) for group in groups)
    if not rows:
        return Heaviness()
    sums, stated = np.array([_densities(groups, spread) for spread in SPREADS]).T
    best = int(np.argmax(sums))
    inside = np.flatnonzero(sums >= sums[best] - INTERVAL)
    low, high = (_crossing(sums - sums[best] + INTERVAL, int(inside[end]), step) for end, step in ((0, -1), (-1, 1)))
    if sums[best] < sums[0] + max(LEAST_GAIN * rows, INTERVAL):  # a Normal's are in the interval, or as good as that
        best = 0
    if best == 0 and (normal := _densities(groups, LIGHT))[0] > sums[0] + INTERVAL:
        return Heaviness(LIGHT, (LIGHT, 0.0), normal[1] / rows)
    return Heaviness(SPREADS[best], (min(low, SPREADS[best]), high), float(stated[best]) / rows)


def stretch_of(later: Residuals, spread: float) -> tuple[float, float]:
    """Factor by which predictions of later batches are too narrow (method (74)), and what is gained by it, in nats.

    Nothing is ever made narrower: pilot users are predicted by what was learnt from them.
    """
    if not len(later.z):
        return 1.0, 0.0
    values = _by_scale(later, spread)
    place, top = _top(np.log(SCALES), values)
    gain = top - float(values[SCALES.index(1.0)])
    return (float(np.exp(place)), gain) if place > 0.0 and gain > INTERVAL else (1.0, 0.0)


def _densities(groups: Sequence[Residuals], spread: float) -> tuple[float, float]:
    """Summed log density of residuals with tails so heavy: each group on the scale that is best, and as stated."""
    every = [_by_scale(group, spread) for group in groups]
    best = sum(_top(np.log(SCALES), values)[1] for values in every)
    return best, sum(float(values[SCALES.index(1.0)]) for values in every)


def _by_scale(group: Residuals, spread: float) -> Array:
    """Summed log density of residuals with tails so heavy, on each of the `SCALES`."""
    z, known, share = group
    spreads, which = np.unique(known + share**2 * spread, return_inverse=True)
    freedom = freedom_of(spreads)[which]
    # A Student-t with the variance 1: of its density, only the last term changes with the scale.
    fixed = float(np.sum(student_log_density(np.zeros_like(z), freedom) + 0.5 * np.log(freedom / (freedom - 2.0))))
    squares, power = z**2 / (freedom - 2.0), 0.5 * (freedom + 1.0)
    return np.array([fixed - len(z) * np.log(scale) - float(power @ np.log1p(squares / scale**2)) for scale in SCALES])


def _top(x: Array, values: Array) -> tuple[float, float]:
    """Where some values are highest, and how high, by a parabola through the highest and its neighbours."""
    best = int(np.argmax(values))
    if not 0 < best < len(x) - 1:
        return float(x[best]), float(values[best])
    a, b, c = np.polyfit(x[best - 1 : best + 2] - x[best], values[best - 1 : best + 2], 2)
    if a >= 0.0:
        return float(x[best]), float(values[best])
    return float(x[best] - 0.5 * b / a), float(c - 0.25 * b * b / a)


def _crossing(excess: Array, last: int, step: int) -> float:
    """Where a curve over the spreads falls below 0, from the last value above it on; the end of them if nowhere."""
    beyond = last + step
    if not 0 <= beyond < len(SPREADS):
        return SPREADS[last]
    part = excess[last] / (excess[last] - excess[beyond])
    return SPREADS[last] + float(part) * (SPREADS[beyond] - SPREADS[last])


def _residuals(model: TrajectoryModel, users: Sequence[User]) -> tuple[list[Residuals], float, float]:
    """Of first batches, and of later ones given those before; the mean square of all, and of their widths' logs."""
    groups: list[list[Residuals]] = [[], []]
    errors, widths = [np.zeros(0)], [np.zeros(0)]
    for user in users:
        for t, batch, ahead in predicted_batches(model, user):
            assert ahead.freedom is not None  # its tails are not Normal
            errors.append(batch.y - ahead.mean)
            widths.append(np.log(ahead.sd))
            known = np.asarray(scipy.special.polygamma(1, 0.5 * ahead.freedom))
            groups[t > 1].append(Residuals((batch.y - ahead.mean) / ahead.sd, known, ahead.noise / ahead.total))
    every = np.concatenate(errors)
    means = (float(np.mean(every**2)), float(np.mean(np.concatenate(widths)))) if len(every) else (0.0, 0.0)
    nobody = Residuals(np.zeros(0), np.zeros(0), np.zeros(0))
    return [Residuals(*map(np.concatenate, zip(nobody, *group, strict=True))) for group in groups], *means
