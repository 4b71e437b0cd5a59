"""Plate and run: all customers of one table, or of one table's runs, change together (method (23))."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kerneltrail.gp.urn_moves.tally import (
    LESS,
    Array,
    Codes,
    Tally,
    Target,
    accept,
    index,
    log_rising,
    pick,
    pick_log,
    take,
    tally_of,
)
from kerneltrail.kernels.compiled.cached import compiled


@compiled()
def _log_table(log_mass: float, b: int, n: int) -> float:
    """log 1/n · a Γ(a+n-b)/Γ(a+n): that the table of one customer of n is a given one of b, without bΓ(b)."""
    return log_mass + log_rising(n - b, log_mass) - log_rising(n, log_mass) - math.log(n)


@compiled()
def _group(tally: Tally, runs: bool, number: int) -> tuple[int, int, int]:
    """Of the groups K→k in use, the one of a number, and how many there are. For runs, K→K makes none."""
    groups, parent, old = 0, 0, 0
    for p in range(len(tally.totals)):
        if tally.totals[p]:
            for s in range(tally.counts.shape[1]):
                if tally.counts[p, s] and not (runs and p == s + 1):
                    if groups == number:
                        parent, old = p, s
                    groups += 1
    return parent, old, groups


@compiled(inline="always")
def _draw_block(
    target: Target, tally: Tally, runs: bool, parent: int, old: int, new: int, b: int, block: Codes, u: Any
) -> int:
    """b heads of a group with those that follow in their runs, into `block`; how many, -1 if there is no way back.

    That is where one customer of the block follows another, both having gone K→K: its restaurant becomes k'. And, for
    runs, where a run would grow together with the one before or after it.
    """
    if runs and parent == new + 1:
        return -1
    codes, size, seen = tally.codes, 0, 0
    need, left = b, tally.counts[parent, old]
    for m in range(len(target.starts) - 1):
        before, end = 0, target.starts[m + 1]
        for c in range(target.starts[m], end):
            if need and before == parent and codes[c] == old:
                taken = need == left or take(u[4 + seen], need, left)
                left -= 1
                seen += 1
                if taken:
                    if size and parent == old + 1 and block[size - 1] == c - 1:
                        return -1
                    need -= 1
                    last = c + 1
                    while runs and last < end and codes[last] == old:
                        last += 1
                    if runs and last < end and codes[last] == new:
                        return -1
                    for each in range(c, last):
                        block[size] = each
                        size += 1
            before = codes[c] + 1
    return size


@compiled(inline="always")
def replate(target: Target, tally: Tally, runs: bool, shift: Codes, block: Codes, u: Any) -> bool:
    """All customers of one table get another composition together (method (23)); whether they did.

    `shift`, (S+1, S), is 0 before and after.
    """
    codes, counts, S = tally.codes, tally.counts, target.evidence.shape[1]
    _, _, groups = _group(tally, runs, LESS)
    parent, old, _ = _group(tally, runs, index(u[0], groups))
    n, log_mass = counts[parent, old], target.log_mass[parent]
    # P(b) ∝ C(n-1, b-1) Γ(b) Γ(a+n-b) ∝ Γ(a+n-b) / (n-b)!
    sizes = np.empty(n)
    for b in range(1, n + 1):
        sizes[b - 1] = log_rising(n - b, log_mass[old]) - math.lgamma(n - b + 1.0)
    b = 1 + pick_log(u[1], sizes)
    new = pick(u[2], target.toggle[old])
    if new == S:
        return False
    size = _draw_block(target, tally, runs, parent, old, new, b, block, u)
    if size < 0:
        return False
    delta, m = 0.0, 0
    for i in range(size):
        c = block[i]
        while target.starts[m + 1] <= c:
            m += 1
        delta += target.evidence[c, new] - target.evidence[c, old]
        before = codes[c - 1] + 1 if c > target.starts[m] else 0
        shift[before, old] -= 1
        with_it = i > 0 and block[i - 1] == c - 1 and before > 0
        shift[new + 1 if with_it else before, new] += 1
        if c + 1 < target.starts[m + 1] and not (i + 1 < size and block[i + 1] == c + 1):  # else it is counted there
            shift[old + 1, codes[c + 1]] -= 1
            shift[new + 1, codes[c + 1]] += 1
    groups_after = groups
    for p in range(S + 1):
        change = 0
        for s in range(S):
            by = shift[p, s]
            if by:
                change += by
                delta += log_rising(counts[p, s] + by, target.log_mass[p, s])
                delta -= log_rising(counts[p, s], target.log_mass[p, s])
                if not (runs and p == s + 1):
                    groups_after += int(counts[p, s] + by > 0) - int(counts[p, s] > 0)
        if change:
            total = tally.totals[p]
            delta += math.lgamma(target.alpha + total) - math.lgamma(target.alpha + total + change)
    log_forth = _log_table(log_mass[old], b, n) - math.log(groups)
    log_back = _log_table(log_mass[new], b, counts[parent, new] + shift[parent, new]) - math.log(groups_after)
    log_q = math.log(target.toggle[new, old]) - math.log(target.toggle[old, new])
    accepted = accept(u[3], delta + log_back - log_forth + log_q)
    if accepted:
        for i in range(size):
            codes[block[i]] = new
        for p in range(S + 1):
            for s in range(S):
                counts[p, s] += shift[p, s]
                tally.totals[p] += shift[p, s]
    shift[:] = 0
    return accepted


@compiled()
def plate_all(target: Target, codes: Codes, uniforms: Array, runs: bool) -> int:
    """As many tables as there are rows of uniforms, (steps, 4 + C); how many changed."""
    tally = tally_of(target, codes)
    shift, block = np.zeros_like(tally.counts), np.empty_like(codes)
    accepted = 0
    for u in uniforms:
        accepted += replate(target, tally, runs, shift, block, u)
    return accepted
