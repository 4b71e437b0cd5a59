"""The joint in loops so plain that they are obviously right."""

from __future__ import annotations

import math

import numpy as np

from kerneltrail.trajectory import ROOT


def h0(pool, mask, parent, keep):
    """H0(mask | parent), product by product, renormalised by listing all compositions."""

    def raw(k):
        total = 1.0
        for i, p in enumerate(pool.probabilities):
            if keep is not None and parent > 0 and parent >> i & 1:
                p = keep
            total *= p if k >> i & 1 else 1.0 - p
        return total

    legal = [k for k in range(1 << len(pool)) if k or pool.allow_empty]
    return raw(mask) / sum(raw(k) for k in legal) if mask in legal else 0.0


def log_joint(urn, evidence, paths, order):
    """The product of method (8) over customers who arrive in a given order of users, times the evidences.

    Users must arrive as wholes or in any interleaving that keeps each user's batches in order.
    """
    counts = {}
    at = [ROOT] * len(paths)
    done = [0] * len(paths)
    total = 0.0
    for m in order:
        t, parent = done[m], at[m]
        child = paths[m][t]
        row = counts.setdefault(parent, {})
        mass = urn.alpha * h0(urn.pool, child, parent, urn.keep)
        total += math.log((row.get(child, 0) + mass) / (sum(row.values()) + urn.alpha))
        total += float(np.asarray(evidence.log_evidence(m, child))[t])
        row[child] = row.get(child, 0) + 1
        at[m], done[m] = child, t + 1
    assert done == [len(path) for path in paths]
    return total


def path_agreement(paths, reference):
    """Share of customers with the same composition in both."""
    pairs = [a == b for mine, theirs in zip(paths, reference, strict=True) for a, b in zip(mine, theirs, strict=True)]
    return sum(pairs) / len(pairs)
