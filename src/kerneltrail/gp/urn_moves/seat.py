"""Seat: one customer after the other gets a composition from its conditional distribution (method (21))."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kerneltrail.gp.urn_moves.tally import LESS, NONE, ONE, Array, Codes, Tally, Target, log_top, pick_log, tally_of
from kerneltrail.kernels.compiled.cached import compiled


class Logs(NamedTuple):
    """log(N[K→k] + αH0), (S+1, S), the same without the root and turned, (S, S), and log(N[K] + α), (S,)."""

    tops: Array
    into: Array
    bottoms: Array


@compiled()
def logs_of(target: Target, tally: Tally) -> Logs:
    """The logarithms that seating adds up."""
    S = target.evidence.shape[1]
    logs = Logs(np.empty((S + 1, S)), np.empty((S, S)), np.empty(S))
    for p in range(S + 1):
        for s in range(S):
            _log_count(target, tally, logs, p, s, NONE)
    return logs


@compiled()
def _log_count(target: Target, tally: Tally, logs: Logs, p: int, s: int, by: int) -> None:
    """Count a transition, and keep the logarithms in step; they are functions of the counts alone."""
    tally.counts[p, s] += by
    tally.totals[p] += by
    logs.tops[p, s] = log_top(tally.counts[p, s], target.log_mass[p, s])
    if p:
        logs.into[s, p - 1] = logs.tops[p, s]
        logs.bottoms[p - 1] = math.log(tally.totals[p] + target.alpha)


@compiled(inline="always")
def reseat(target: Target, tally: Tally, logs: Logs, weights: Array, m: int, c: int, u: float) -> bool:
    """Seat customer c of user m by its conditional distribution (method (21)); whether that changed it."""
    codes, child = tally.codes, -1
    parent = codes[c - 1] + 1 if c > target.starts[m] else 0
    old = codes[c]
    _log_count(target, tally, logs, parent, old, LESS)
    top, here = logs.tops[parent], target.evidence[c]
    if c + 1 < target.starts[m + 1]:
        child = codes[c + 1]
        _log_count(target, tally, logs, old + 1, child, LESS)
        out = logs.into[child]
        for s in range(len(weights)):
            weights[s] = top[s] + here[s] + out[s] - logs.bottoms[s]
        if parent:  # the customer's own step K→K is in the restaurant that its next step is made from
            s = parent - 1
            n = tally.counts[parent, child] + (s == child)
            weights[s] = top[s] + here[s] + log_top(n, target.log_mass[parent, child])
            weights[s] -= math.log(tally.totals[parent] + 1 + target.alpha)
    else:
        for s in range(len(weights)):
            weights[s] = top[s] + here[s]
    new = pick_log(u, weights)
    codes[c] = new
    _log_count(target, tally, logs, parent, new, ONE)
    if child >= 0:
        _log_count(target, tally, logs, new + 1, child, ONE)
    return bool(new != old)


@compiled()
def seat_all(target: Target, codes: Codes, uniforms: Array) -> int:
    """Seat everybody once, user by user, in the order of the batches; how many changed. Uniforms are (C,)."""
    tally = tally_of(target, codes)
    logs = logs_of(target, tally)
    weights = np.empty(target.evidence.shape[1])
    changed = 0
    for m in range(len(target.starts) - 1):
        for c in range(target.starts[m], target.starts[m + 1]):
            changed += reseat(target, tally, logs, weights, m, c, uniforms[c])
    return changed
