"""Compiled: a search for MAP hyperparameters, for compositions whose features compiled code can make by itself.

The same objective and the same quasi-Newton method as `map` and `quasi_newton`, one start at a time, without a step of
Python in between: for small data the steps in between are what takes the time. Where it cannot finish (a matrix that
cannot be factorised, more features than it takes, an edge of what is searched), it says so, and the general search
takes over from where it stands.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.feature_rows import Batch, CompiledLayout, copy
from kerneltrail.gp.features import FLOOR, tails
from kerneltrail.gp.quasi_newton import ARMIJO, FARTHEST, LEVEL, LONGEST_STEP, PATIENCE, STEEP
from kerneltrail.gp.spectral import slope_one, terms_of
from kerneltrail.kernels.compiled import one_series
from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_RANK = 300
"""More features than this mean a lengthscale far too short for the data, or a job for the dense method."""

NO_RANK = -1
"""In place of a number of features; noise alone has none of them."""

REFUSALS = 3
"""So many steps in a row that first lead to where nothing can be computed mean that the optimum is beyond."""

PROMISE = 2.0
"""Times the slope along a step: what a search may hope to gain. It is four times what a parabola would."""

CONVERGED, FLAT, LOST, UNFINISHED, BEHIND = 0, 1, 2, 3, 4
STATUS = ("converged", "flat", "lost", "iterations", "behind")
"""Their names."""


class CompiledPosterior(NamedTuple):
    """What stays the same through a search, as compiled code reads it: the prior, the rows, the families of series."""

    mean: Array
    scale: Array
    positive: NDArray[np.bool_]
    X: Array
    reach: Array
    centre: Array
    extra: Array
    family: Ints
    tol: float


@compiled()
def expansion(w: Array, posterior: CompiledPosterior, layout: CompiledLayout) -> tuple[Batch, Ints]:
    """The features' numbers at whitened points (S, k), and how many features; `NO_RANK` where the features do not do.

    What `features.expand` does by NumPy, which for a few points takes longer than what comes after it.
    """
    samples, k = w.shape
    q, n = posterior.extra.shape
    values = np.empty((samples, k))
    products, factors = layout.amplitude_slot.shape[0], layout.series_column.shape[0]
    amplitude = np.empty((samples, products))
    location = np.empty((samples, layout.linear_slot.shape[0]))
    noise = np.empty(samples)
    for s in range(samples):
        for i in range(k):
            u = posterior.mean[i] + posterior.scale[i] * w[s, i]
            values[s, i] = math.exp(u) if posterior.positive[i] else u
        noise[s] = values[s, k - 1]
        for p in range(products):
            amplitude[s, p] = values[s, layout.amplitude_slot[p]]
        for j in range(layout.linear_slot.shape[0]):
            location[s, j] = values[s, layout.linear_slot[j]]
    tail, attained = tails(
        amplitude,
        location,
        noise,
        layout.linear_start,
        layout.linear_column,
        layout.series_start,
        posterior.reach,
        posterior.tol / max(n, 1),
        FLOOR,
    )
    rank = np.full(samples, NO_RANK)
    omega = np.ones((samples, factors))
    count = np.ones((samples, factors), dtype=np.int64)
    domega = np.zeros((samples, factors, 2))
    series = []
    longest = 1
    for s in range(samples):
        if not attained[s]:
            continue
        rank[s] = q - 1
        product = 0
        for f in range(factors):
            while layout.series_start[product + 1] <= f:
                product += 1
            span = posterior.reach[1, layout.series_column[f]] - posterior.reach[0, layout.series_column[f]]
            theta = values[s, layout.series_slot[f] : layout.series_slot[f] + layout.series_size[f]]
            omega[s, f], count[s, f], weight, dlog, slope = one_series(
                posterior.family[f], theta, span, tail[s, product]
            )
            copy(slope, domega[s, f])
            series.append((weight, dlog))
            longest = max(longest, count[s, f])
            rank[s] += 2 * count[s, f] - 1
        for p in range(products):
            if layout.series_start[p + 1] == layout.series_start[p]:
                rank[s] += 1
    weights = np.zeros((samples, factors, longest))
    dlogs = np.zeros((samples, factors, 2, longest))
    item = 0
    for s in range(samples):
        for f in range(factors if attained[s] else 0):
            weight, dlog = series[item]
            item += 1
            copy(weight, weights[s, f, : count[s, f]])
            for i in range(2):
                copy(dlog[i], dlogs[s, f, i, : count[s, f]])
        if rank[s] > LARGEST_RANK:
            rank[s] = NO_RANK
    cutoff = np.zeros((samples, products))
    return (amplitude, noise, location, omega, count, weights, dlogs, domega, cutoff), rank


@compiled(inline="always")
def negative_log_posterior(w: Array, posterior: CompiledPosterior, layout: CompiledLayout, gradient: Array) -> float:
    """Minus the log posterior at whitened w, up to the prior's constant; infinite where it cannot be computed."""
    k = w.shape[0]
    batch, rank = expansion(w.reshape(1, k), posterior, layout)
    if rank[0] == NO_RANK:
        return math.inf
    terms = terms_of(batch, np.int64(0))
    log = slope_one(posterior.X, posterior.centre, posterior.extra, layout, terms, rank[0], np.bool_(False), gradient)
    if not math.isfinite(log):
        return math.inf
    prior = 0.0
    for i in range(k):
        prior += 0.5 * w[i] * w[i]
        gradient[i] = w[i] - posterior.scale[i] * gradient[i]
        if not math.isfinite(gradient[i]):
            return math.inf
    return prior - log


@compiled()
def _largest(values: Array) -> float:
    """The largest absolute value; a loop compiles far faster than NumPy's functions do."""
    largest = 0.0
    for i in range(values.shape[0]):
        largest = max(largest, abs(values[i]))
    return largest


@compiled()
def _identity(out: Array, scale: float) -> None:
    """Write the identity times a number."""
    out[:, :] = 0.0
    for i in range(out.shape[0]):
        out[i, i] = scale


@compiled()
def descend(
    w: Array,
    gradient: Array,
    inverse: Array,
    posterior: CompiledPosterior,
    layout: CompiledLayout,
    gradient_tolerance: float,
    value_tolerance: float,
    iterations: int,
    ceiling: float,
) -> tuple[float, int, int, int]:
    """BFGS from w, which is moved to the optimum; (value, status, iterations, evaluations).

    `gradient` becomes that at the end. `inverse` is the inverse Hessian to begin with, the identity where nothing is
    known of it, and then what was learnt. A search that is lost has still moved w as far as it came. One that begins
    with such knowledge and cannot hope to come below the ceiling is left behind.
    """
    k = w.shape[0]
    new_gradient, trial, direction = np.empty(k), np.empty(k), np.empty(k)
    s, y = np.empty(k), np.empty(k)
    fresh = True
    for i in range(k):
        for j in range(k):
            fresh = fresh and inverse[i, j] == (1.0 if i == j else 0.0)
    value = negative_log_posterior(w, posterior, layout, gradient)
    evaluations = 1
    if not math.isfinite(value):
        return value, LOST, 0, evaluations
    if fresh:  # what is first learnt is the stiffest direction, and tells little of what can be gained in others
        ceiling = math.inf
    quiet = 0
    refusals = 0
    for iteration in range(iterations):
        if _largest(gradient) < gradient_tolerance:
            return value, CONVERGED, iteration, evaluations
        ascent = inverse @ gradient
        for i in range(k):
            direction[i] = -ascent[i]
        slope = direction @ gradient
        if not slope < 0.0:
            _identity(inverse, 1.0)
            fresh = True
            for i in range(k):
                direction[i] = -gradient[i]
            slope = direction @ gradient
        if value + PROMISE * slope > ceiling:
            return value, BEHIND, iteration, evaluations
        length = _largest(direction)
        limit = LONGEST_STEP if not fresh else min(1.0, LONGEST_STEP)
        if length > limit:
            for i in range(k):
                direction[i] *= limit / length
            slope *= limit / length
        step = 1.0
        moved = False
        new_value = math.inf
        for _ in range(20):
            for i in range(k):
                trial[i] = w[i] + step * direction[i]
                if abs(trial[i]) >= FARTHEST:
                    return value, LOST, iteration, evaluations
            new_value = negative_log_posterior(trial, posterior, layout, new_gradient)
            evaluations += 1
            if step == 1.0:
                refusals = 0 if math.isfinite(new_value) else refusals + 1
            if new_value <= value + ARMIJO * step * slope:
                moved = True
                break
            excess = new_value - value - step * slope
            better = -slope * step * step / (2.0 * excess) if math.isfinite(excess) and excess > 0.0 else 0.0
            step = min(max(better, 0.1 * step), 0.5 * step)
        if not moved:
            return value, FLAT if _largest(gradient) < 1e-2 else LOST, iteration, evaluations
        for i in range(k):
            s[i] = trial[i] - w[i]
            y[i] = new_gradient[i] - gradient[i]
        sy = s @ y
        if sy > 1e-10 * math.sqrt((s @ s) * (y @ y)):
            if fresh:  # scale the identity to the curvature met (Nocedal and Wright 2006, eq. 6.20)
                _identity(inverse, sy / (y @ y))
                fresh = False
            hy = inverse @ y
            factor = (sy + y @ hy) / (sy * sy)
            for i in range(k):
                for j in range(k):
                    inverse[i, j] += factor * s[i] * s[j] - (hy[i] * s[j] + s[i] * hy[j]) / sy
        little = value_tolerance * (1.0 + abs(new_value))
        quiet = quiet + 1 if value - new_value < little else 0
        copy(trial, w)
        copy(new_gradient, gradient)
        value = new_value
        steepest = _largest(gradient)
        # Small steps are no end by themselves: against a wall of what can be computed they are small on any slope.
        if steepest < STEEP and (quiet >= PATIENCE or (quiet >= 2 and steepest * steepest < LEVEL * little)):
            return value, FLAT, iteration + 1, evaluations
        if refusals >= REFUSALS or quiet >= PATIENCE:
            return value, LOST, iteration + 1, evaluations
    return value, UNFINISHED, iterations, evaluations
