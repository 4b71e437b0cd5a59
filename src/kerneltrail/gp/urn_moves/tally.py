"""What the compiled moves share: the target, counts of transitions, and the five uses of chance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

NONE, ONE, LESS = np.int64(0), np.int64(1), np.int64(-1)
"""0, 1 and -1. For numbers written out, numba compiles what they are given to once for each of them."""


class Target(NamedTuple):
    """The joint (method (9)) of M users with C customers over S candidates.

    Attributes:
        starts: the first customer of each user, and C at the end, (M+1,).
        evidence: log evidences, (C, S).
        log_mass: log αH0(s | p), (S+1, S); row 0 is the root's, row 1+p that of candidate p.
        toggle: method (24), (S, S+1): that candidate s is proposed, and in the last column that none is.
        alpha: the concentration α.
    """

    starts: Codes
    evidence: Array
    log_mass: Array
    toggle: Array
    alpha: float


class Tally(NamedTuple):
    """Where everybody is, and the counts of that: N[K→k], (S+1, S), and N[K], (S+1,), with the root in row 0."""

    codes: Codes
    counts: Codes
    totals: Codes


@compiled()
def index(u: float, n: int) -> int:
    """0, …, n-1 with equal probability."""
    return min(int(u * n), n - 1)


@compiled()
def pick(u: float, weights: Array) -> int:
    """An index with probability proportional to its weight."""
    total = 0.0
    for weight in weights:
        total += weight
    left = u * total
    last = 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            left -= weights[i]
            last = i
            if left < 0.0:
                break
    return last


@compiled()
def pick_log(u: float, weights: Array) -> int:
    """An index with probability proportional to exp of its log weight; the weights are overwritten."""
    top = -np.inf
    for weight in weights:
        top = max(top, weight)
    for i in range(len(weights)):
        weights[i] = math.exp(weights[i] - top)
    return pick(u, weights)


@compiled()
def accept(u: float, log_ratio: float) -> bool:
    """True with probability min(1, exp(log_ratio))."""
    return log_ratio >= 0.0 or math.log1p(-u) < log_ratio


@compiled()
def take(u: float, need: int, left: int) -> bool:
    """Whether the next of `left` is among the `need` that are taken of them, every subset equally likely."""
    return u * left < need


@compiled()
def log_top(n: int, log_mass: float) -> float:
    """log(n + αH0); a mass may be too small for a float, so without a count it stays a logarithm."""
    return math.log(n + math.exp(log_mass)) if n else log_mass


@compiled()
def log_rising(n: int, log_mass: float) -> float:
    """log Γ(a+n)/Γ(a), a the mass: Γ(a) = Γ(1+a)/a keeps it finite for a tiny one."""
    if n < 2:
        return log_mass if n else 0.0
    mass = math.exp(log_mass)
    return log_mass + math.lgamma(mass + n) - math.lgamma(mass + 1.0)


@compiled()
def tally_of(target: Target, codes: Codes) -> Tally:
    """The counts of complete paths."""
    S = target.evidence.shape[1]
    counts, totals = np.zeros((S + 1, S), np.int64), np.zeros(S + 1, np.int64)
    for m in range(len(target.starts) - 1):
        parent = 0
        for c in range(target.starts[m], target.starts[m + 1]):
            counts[parent, codes[c]] += 1
            totals[parent] += 1
            parent = codes[c] + 1
    return Tally(codes, counts, totals)
