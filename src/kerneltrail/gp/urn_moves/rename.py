"""Rename: two compositions change places in all paths at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kerneltrail.gp.urn_moves.tally import Array, Codes, Tally, Target, accept, index, log_rising, pick, tally_of
from kerneltrail.kernels.compiled.cached import compiled


@compiled(inline="always")
def transpose(target: Target, tally: Tally, u: Any) -> bool:
    """Two compositions change places in all paths; whether they did.

    One in use is drawn uniformly (their number does not change). The other is, by a fair coin, any candidate or one
    product more or less. The move undoes itself, whether the other is in use or not.
    """
    codes, S = tally.codes, target.evidence.shape[1]
    used, size = np.empty(S, np.int64), 0
    for s in range(S):
        customers = 0
        for p in range(S + 1):
            customers += tally.counts[p, s]
        if customers:
            used[size] = s
            size += 1
    old = used[index(u[0], size)]
    log_q = 0.0
    if index(u[1], 2):
        new = index(u[2], S)
    else:
        new = pick(u[2], target.toggle[old])
        if new < S:
            log_q = math.log(target.toggle[new, old]) - math.log(target.toggle[old, new])
    if new in (old, S):
        return False
    delta = 0.0
    for c in range(len(codes)):
        if codes[c] == old:
            delta += target.evidence[c, new] - target.evidence[c, old]
        elif codes[c] == new:
            delta += target.evidence[c, old] - target.evidence[c, new]
    # Rows and columns change places; the totals stay the same numbers.
    swap = np.arange(S + 1)  # of parents; a child is one less
    swap[old + 1], swap[new + 1] = new + 1, old + 1
    after = np.empty_like(tally.counts)
    for p in range(S + 1):
        for s in range(S):
            after[p, s] = tally.counts[swap[p], swap[s + 1] - 1]
    for p in range(S + 1):
        for s in range(S):
            if after[p, s] != tally.counts[p, s]:
                delta += log_rising(after[p, s], target.log_mass[p, s])
                delta -= log_rising(tally.counts[p, s], target.log_mass[p, s])
    if not accept(u[3], delta + log_q):
        return False
    for c in range(len(codes)):
        if codes[c] == old:
            codes[c] = new
        elif codes[c] == new:
            codes[c] = old
    for p in range(S + 1):
        for s in range(S):
            tally.counts[p, s] = after[p, s]
    total = tally.totals[old + 1]
    tally.totals[old + 1] = tally.totals[new + 1]
    tally.totals[new + 1] = total
    return True


@compiled()
def rename_all(target: Target, codes: Codes, uniforms: Array) -> int:
    """As many transpositions as there are rows of uniforms, (steps, 4); how many were accepted."""
    tally = tally_of(target, codes)
    accepted = 0
    for u in uniforms:
        accepted += transpose(target, tally, u)
    return accepted
