"""A quasi-Newton search from many starts at once: every step evaluates all of them in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[Array, Array]]
"""From points (S, k) to values (S,) and gradients (S, k); a value that is not finite counts as infinitely bad."""

ARMIJO = 1e-4  # share of the predicted decrease that a step must achieve
LONGEST_STEP = 2.0  # in the search's own units: a step past two prior standard deviations is a leap in the dark
STEEP = 0.1  # a slope from which a search does not end, however little its last steps have gained
LEVEL = 100.0  # times the gain that counts as little: the square of a slope below which little gain twice is the end
PATIENCE = 20  # steps in a row that hardly gain: on a steep slope there is then something wrong with it
FARTHEST = 8.0  # a hyperparameter eight prior standard deviations out costs 32 nats: nothing is searched beyond


@dataclass(frozen=True)
class Minimum:
    """Where each of S searches ended.

    Attributes:
        point: (S, k).
        value: (S,).
        gradient: (S, k).
        status: (S,): ``converged`` (gradient small), ``flat`` (no more decrease, on a slope below `STEEP`), ``edge``
            (either, but the value still decreases past the edge of what is searched), ``stuck`` (no step decreases)
            or ``iterations`` (the limit was reached).
        iterations: (S,).
        inverse: what was learnt of the inverse Hessian, (S, k, k).
        evaluations: points evaluated, all searches together.
    """

    point: Array
    value: Array
    gradient: Array
    status: NDArray[np.str_]
    iterations: NDArray[np.int64]
    inverse: Array
    evaluations: int


def minimise(
    objective: Objective,
    starts: Array,
    *,
    inverse: Array | None = None,
    iterations: int = 200,
    gradient_tolerance: float = 1e-4,
    value_tolerance: float = 1e-9,
) -> Minimum:
    """Minimise from each row of `starts` by BFGS with backtracking, all rows in step.

    Coordinates should be scaled so that 1 is a natural step. Rows that have ended drop out of the calls. `inverse` is
    what an earlier search has learnt of the inverse Hessian, (S, k, k).
    """
    x = np.clip(np.array(starts, dtype=np.float64, ndmin=2), -FARTHEST, FARTHEST)
    samples, k = x.shape
    value, gradient = _evaluate(objective, x)
    evaluations = samples
    inverse = np.array(np.broadcast_to(np.eye(k) if inverse is None else inverse, (samples, k, k)), order="C")
    fresh = np.asarray((inverse == np.eye(k)).all(axis=(1, 2)))  # the inverse Hessian is still the identity
    quiet = np.zeros(samples, dtype=np.int64)  # steps in a row that hardly decreased the value
    status = np.full(samples, "iterations", dtype="<U10")
    taken = np.zeros(samples, dtype=np.int64)
    status[~np.isfinite(value)] = "stuck"
    active = np.flatnonzero(np.isfinite(value))
    for _ in range(iterations):
        done = np.abs(_inward(x[active], gradient[active])).max(axis=1, initial=0.0) < gradient_tolerance
        status[active[done]] = "converged"
        active = active[~done]
        if not len(active):
            break
        direction = _direction(x[active], gradient[active], inverse[active], fresh[active])
        slope = np.einsum("si,si->s", direction, gradient[active])
        bad = slope >= -1e-14 * np.abs(value[active])
        if bad.any():  # rounding or an edge has spoilt the curvature: start it afresh
            rows = active[bad]
            inverse[rows] = np.eye(k)
            fresh[rows] = True
            direction[bad] = _direction(x[rows], gradient[rows], inverse[rows], fresh[rows])
            slope[bad] = np.einsum("si,si->s", direction[bad], gradient[rows])

        new_x, new_value, new_gradient, moved, used = _backtrack(objective, x, value, active, direction, slope)
        evaluations += used
        status[active[~moved]] = "stuck"
        moving = active[moved]
        step = new_x[moved] - x[moving]
        change = new_gradient[moved] - gradient[moving]
        _update(inverse, fresh, moving, step, change, np.abs(new_x[moved]).max(axis=1) >= FARTHEST)
        little = value_tolerance * (1.0 + np.abs(new_value[moved]))
        quiet[moving] = np.where(value[moving] - new_value[moved] < little, quiet[moving] + 1, 0)
        x[moving], value[moving], gradient[moving] = new_x[moved], new_value[moved], new_gradient[moved]
        taken[moving] += 1
        steepest = np.abs(_inward(x[moving], gradient[moving])).max(axis=1, initial=0.0)
        patient = quiet[moving] >= PATIENCE
        flat = (steepest < STEEP) & (patient | ((quiet[moving] >= 2) & (steepest**2 < LEVEL * little)))
        hopeless = patient & ~flat
        status[moving[flat]] = "flat"
        status[moving[hopeless]] = "stuck"
        active = moving[~flat & ~hopeless]
        if not len(active):
            break
    inward = _inward(x, gradient)
    status[(status == "iterations") & (np.abs(inward).max(axis=1, initial=0.0) < gradient_tolerance)] = "converged"
    ended = np.isin(status, ("converged", "flat")) | ((status == "stuck") & (quiet >= PATIENCE))
    status[ended & (inward != gradient).any(axis=1)] = "edge"
    return Minimum(x, value, gradient, status, taken, inverse, evaluations)


def _inward(x: Array, gradient: Array) -> Array:
    """The gradient without the coordinates that stand on an edge and would leave across it."""
    outward = ((x >= FARTHEST) & (gradient < 0.0)) | ((x <= -FARTHEST) & (gradient > 0.0))
    return np.where(outward, 0.0, gradient)


def _direction(x: Array, gradient: Array, inverse: Array, fresh: NDArray[np.bool_]) -> Array:
    """The quasi-Newton step, no longer than is sensible, up to the edge of what is searched.

    Coordinates held by an edge take no part: otherwise their large slope would ask for a decrease that no step along
    the others can give.
    """
    inward = _inward(x, gradient)
    at_edge = inward != gradient
    direction = np.where(at_edge, 0.0, -np.einsum("sij,sj->si", inverse, inward))
    for s in np.flatnonzero(at_edge.any(axis=1) & ~fresh):
        # With the held ones fixed, the inverse Hessian of the others is the Schur complement, not the plain block.
        h, b = inverse[s], at_edge[s]
        across = np.linalg.lstsq(h[np.ix_(b, b)], h[np.ix_(b, ~b)], rcond=None)[0]
        direction[s, ~b] += (h[np.ix_(~b, b)] @ across) @ inward[s, ~b]
    length = np.maximum(np.abs(direction).max(axis=1), 1e-300)
    direction *= np.minimum(1.0, np.where(fresh, 1.0, LONGEST_STEP) / length)[:, None]
    return np.clip(x + direction, -FARTHEST, FARTHEST) - x


def _evaluate(objective: Objective, points: Array) -> tuple[Array, Array]:
    value, gradient = objective(points)
    fine = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
    return np.where(fine, value, np.inf), np.where(fine[:, None], gradient, 0.0)


def _backtrack(
    objective: Objective, x: Array, value: Array, active: NDArray[np.int64], direction: Array, slope: Array
) -> tuple[Array, Array, Array, NDArray[np.bool_], int]:
    """For each active search the first step along its direction that decreases the value enough."""
    count = len(active)
    step = np.ones(count)
    new_x, new_value, new_gradient = x[active].copy(), np.full(count, np.inf), np.zeros_like(direction)
    moved = np.zeros(count, dtype=bool)
    waiting = np.arange(count)
    used = 0
    for _ in range(20):
        # Clipped for rounding's sake only: the whole step stays inside.
        trial = np.clip(x[active[waiting]] + step[waiting, None] * direction[waiting], -FARTHEST, FARTHEST)
        trial_value, trial_gradient = _evaluate(objective, trial)
        used += len(waiting)
        before = value[active[waiting]]
        enough = trial_value <= before + ARMIJO * step[waiting] * slope[waiting]
        won = waiting[enough]
        new_x[won], new_value[won], new_gradient[won] = trial[enough], trial_value[enough], trial_gradient[enough]
        moved[won] = True
        t, s = step[waiting], slope[waiting]
        excess = np.where(np.isfinite(trial_value), trial_value - before - t * s, np.inf)
        # Minimum of the parabola through value, slope and trial; a tenth to a half of the step.
        step[waiting] = 0.5 * t * np.maximum(0.2, -s * t / np.maximum(np.maximum(excess, -s * t), 1e-300))
        waiting = waiting[~enough]
        if not len(waiting):
            break
    return new_x, new_value, new_gradient, moved, used


def _update(
    inverse: Array,
    fresh: NDArray[np.bool_],
    which: NDArray[np.int64],
    step: Array,
    change: Array,
    edge: NDArray[np.bool_],
) -> None:
    """BFGS update of the inverse Hessians, where the curvature along the step is positive."""
    curvature = np.einsum("si,si->s", step, change)
    fine = curvature > 1e-10 * np.linalg.norm(step, axis=1) * np.linalg.norm(change, axis=1)
    # On an edge, what was learnt on the way there is too cautious where the slope does not ease: longer steps are due.
    inverse[which[~fine & edge]] *= 4.0
    rows, s, y, sy = which[fine], step[fine], change[fine], curvature[fine]
    if not len(rows):
        return
    # First update: scale the identity to the curvature met (Nocedal and Wright 2006, eq. 6.20).
    first = fresh[rows]
    factor = sy / np.maximum(np.einsum("si,si->s", y, y), 1e-300)
    inverse[rows[first]] = factor[first, None, None] * np.eye(s.shape[1])
    fresh[rows] = False
    h = inverse[rows]
    hy = np.einsum("sij,sj->si", h, y)
    yhy = np.einsum("si,si->s", y, hy)
    outer = np.einsum("si,sj->sij", hy, s)
    inverse[rows] = (
        h
        + ((sy + yhy) / sy**2)[:, None, None] * np.einsum("si,sj->sij", s, s)
        - (outer + outer.transpose(0, 2, 1)) / sy[:, None, None]
    )
