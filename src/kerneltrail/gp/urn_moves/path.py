"""Path: a user's whole path is drawn at once, by forward filtering and backward sampling (method (22))."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kerneltrail.gp.urn_moves.tally import LESS, NONE, ONE, Array, Codes, Tally, Target, accept, log_top, pick, tally_of
from kerneltrail.kernels.compiled.cached import compiled


class Steps(NamedTuple):
    """N[K→k] + αH0 of the root, (S,), of leaving, (S, S), and of staying, (S,); N[K] + α, (S,); and αH0, (S+1, S)."""

    first: Array
    leave: Array
    stay: Array
    bottoms: Array
    mass: Array


@compiled()
def steps_of(target: Target, tally: Tally) -> Steps:
    """The weights of steps that paths are drawn by."""
    S = target.evidence.shape[1]
    steps = Steps(np.empty(S), np.zeros((S, S)), np.empty(S), np.empty(S), np.exp(target.log_mass))
    for p in range(S + 1):
        for s in range(S):
            _step_count(target, tally, steps, p, s, NONE)
    return steps


@compiled()
def _step_count(target: Target, tally: Tally, steps: Steps, p: int, s: int, by: int) -> None:
    tally.counts[p, s] += by
    tally.totals[p] += by
    top = tally.counts[p, s] + steps.mass[p, s]
    if p == 0:
        steps.first[s] = top
    else:
        steps.bottoms[p - 1] = tally.totals[p] + target.alpha
        if p == s + 1:
            steps.stay[s] = top
        else:
            steps.leave[p - 1, s] = top


@compiled()
def _count_path(target: Target, tally: Tally, steps: Steps, path: Codes, by: int) -> None:
    parent = NONE
    for code in path:
        _step_count(target, tally, steps, parent, code, by)
        parent = code + 1


@compiled(inline="always")
def _filter(target: Target, steps: Steps, begin: int, end: int, shares: Array) -> Array:
    """Forward messages over (r, k) divided by N[k] + r + α, into `shares`, (T, T, S); the last one whole, (T, S).

    Scaling comes after the evidence is multiplied in by its logarithm, so a message underflows only where the
    composition is hopeless *after* the step to it: H0 bounds from below what a later step can lose by that.
    """
    S, T = target.evidence.shape[1], end - begin
    message, sums, logs = np.zeros((T, S)), np.empty(S), np.empty(S)
    for i in range(S):
        message[0, i] = steps.first[i]
    for t in range(T):
        if t:
            sums[:] = 0.0
            for r in range(t):
                for i in range(S):
                    share = shares[t - 1, r, i]
                    sums[i] += share
                    message[r + 1, i] = share * (steps.stay[i] + r)
            message[0] = 0.0
            for i in range(S):
                for j in range(S):
                    message[0, j] += sums[i] * steps.leave[i, j]
        best = -np.inf
        for i in range(S):
            top = 0.0
            for r in range(t + 1):
                top = max(top, message[r, i])
            sums[i] = top
            logs[i] = np.log(top) + target.evidence[begin + t, i] if top > 0.0 else -np.inf
            best = max(best, logs[i])
        for i in range(S):
            scale = math.exp(logs[i] - best)
            for r in range(t + 1):
                message[r, i] = message[r, i] / sums[i] * scale if scale > 0.0 else 0.0
                shares[t, r, i] = message[r, i] / (steps.bottoms[i] + r)
    return message


@compiled()
def _log_path(target: Target, tally: Tally, path: Codes) -> float:
    """log p(path | everybody else), its own transitions counted one after the other; counts are restored."""
    total, parent = 0.0, 0
    for code in path:
        total += log_top(tally.counts[parent, code], target.log_mass[parent, code])
        total -= math.log(tally.totals[parent] + target.alpha)
        tally.counts[parent, code] += 1
        tally.totals[parent] += 1
        parent = code + 1
    parent = 0
    for code in path:
        tally.counts[parent, code] -= 1
        tally.totals[parent] -= 1
        parent = code + 1
    return total


@compiled()
def _log_steps(steps: Steps, path: Codes) -> float:
    """log of the proposal's density (method (22)) without evidences, up to the constant of the first step."""
    total, before, run = np.log(steps.first[path[0]]), path[0], 0
    for code in path[1:]:
        total -= math.log(steps.bottoms[before] + run)
        if code == before:
            total += np.log(steps.stay[code] + run)
            run += 1
        else:
            total += np.log(steps.leave[before, code])
            before, run = code, 0
    return total


@compiled(inline="always")
def redraw(target: Target, tally: Tally, steps: Steps, shares: Array, m: int, u: Any) -> bool:
    """A user's path by forward filtering and backward sampling (method (22)); whether it was accepted.

    That is the joint itself for every path that never comes back to a composition it has left. Where it does, the
    user's transitions interact in a way no chain has, and a Metropolis correction makes the move exact.
    """
    begin, end = target.starts[m], target.starts[m + 1]
    S, T = target.evidence.shape[1], end - begin
    old, new = tally.codes[begin:end].copy(), np.empty(T, np.int64)
    _count_path(target, tally, steps, old, LESS)
    message = _filter(target, steps, begin, end, shares)
    # A state is (composition i, self transitions r so far in its run), flat in [r, i].
    r, i = divmod(pick(u[1], message.ravel()), S)
    new[T - 1] = i
    weights = np.empty(T * S)
    for t in range(T - 2, -1, -1):
        if r:
            r -= 1
        else:
            for run in range(t + 1):
                for k in range(S):
                    weights[run * S + k] = shares[t, run, k] * steps.leave[k, i]
            r, i = divmod(pick(u[T - t], weights[: (t + 1) * S]), S)
        new[t] = i
    # The evidences are the same in the joint and in the proposal, and cancel.
    log_ratio = _log_path(target, tally, new) - _log_path(target, tally, old)
    log_ratio += _log_steps(steps, old) - _log_steps(steps, new)
    accepted = accept(u[0], log_ratio)
    if accepted:
        for t in range(T):
            tally.codes[begin + t] = new[t]
    _count_path(target, tally, steps, tally.codes[begin:end], ONE)
    return accepted


@compiled()
def path_all(target: Target, codes: Codes, uniforms: Array) -> int:
    """Draw every user's path once; how many were accepted. Uniforms are (M, 1 + the longest path)."""
    tally = tally_of(target, codes)
    steps = steps_of(target, tally)
    longest = uniforms.shape[1] - 1
    shares = np.empty((longest, longest, target.evidence.shape[1]))
    accepted = 0
    for m in range(len(target.starts) - 1):
        accepted += redraw(target, tally, steps, shares, m, uniforms[m])
    return accepted
