"""`empirical`: as published, the mean over θ* of the customers now assigned to K (method (20); paper, Appendix A.2).

An unassigned composition is judged by draws from the prior. Known weakness: one with a single customer is judged at
that customer's own optimum (method §5.8).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.gp import LinearBlock
from kerneltrail.kernels import Array
from kerneltrail.store.digest import seed_of
from kerneltrail.trajectory.evidence.base import TOLERANCE, NodeEstimate, PathEvidence
from kerneltrail.trajectory.map_table import MapTable, block_of
from kerneltrail.trajectory.sampler.urn import Paths, customers_of

if TYPE_CHECKING:
    from kerneltrail.trajectory.graph import Node

PRIOR_DRAWS = 32
"""Hyperparameter vectors drawn from the prior for a composition that nobody is assigned to."""

MOST_THETAS = 64
"""Largest number of hyperparameter vectors an empirical distribution keeps; more are thinned evenly."""

FEW_THETAS = 16
"""Hyperparameter vectors by which the evidence is averaged for a followed user."""

_Likelihoods = dict[tuple[int, int, int | None], Array]
"""By (user, mask, member whose θ* they are at); by None at draws from the prior."""


class EmpiricalEvidence(PathEvidence):
    """Made anew for each state of a chain; what did not change is not computed again.

    θ* never changes, only who is assigned does. So likelihoods are computed once for each (user, K, member), at all of
    the member's θ* together: a value must not depend on what else was asked for, down to the last bit.
    """

    name = "empirical"

    def __init__(self, table: MapTable, largest: int, paths: Paths = (), cache: _Likelihoods | None = None) -> None:
        super().__init__(table, largest)
        self._assigned = customers_of(paths)
        self._cache: _Likelihoods = {} if cache is None else cache
        self._values: dict[tuple[int, int], Array] = {}

    def for_paths(self, paths: Paths) -> EmpiricalEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return EmpiricalEvidence(self.table, self.largest, paths, self._cache)

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        values = self._values.get((user, mask))
        if values is None:
            customers = self._customers(mask)
            if customers:
                log = np.array([self._log_likelihoods(user, mask, m)[t] for m, t in customers])
            else:
                log = self._log_likelihoods(user, mask, None)
            values = self._values[user, mask] = scipy.special.logsumexp(log, axis=0) - math.log(len(log))
        return values

    def thetas(self, mask: int) -> Array:
        """The hyperparameter vectors that stand for p(θ|K), (S, k)."""
        customers = self._customers(mask)
        if not customers:
            return self._prior_draws(mask)
        return np.array([self.table.get(m, mask).theta[t] for m, t in customers])

    def _customers(self, mask: int) -> list[tuple[int, int]]:
        """Those assigned to a composition, thinned to at most `MOST_THETAS`."""
        assigned = self._assigned.get(mask, [])
        return [assigned[i] for i in evenly(len(assigned))]

    def _prior_draws(self, mask: int) -> Array:
        composition = self.table.pool.composition(mask)
        mean, variance = self.table.prior.moments(composition)
        seed = seed_of(composition.text)
        draws = np.random.default_rng(seed).standard_normal((PRIOR_DRAWS, len(mean)))
        return mean + np.sqrt(variance) * draws

    def _log_likelihoods(self, user: int, mask: int, member: int | None) -> Array:
        """Of a user's batches at each of a member's θ*, or at the draws from the prior, (S, T)."""
        key = (user, mask, member)
        values = self._cache.get(key)
        if values is None:
            rows, composition = self.table.users[user], self.table.pool.composition(mask)
            thetas = self._prior_draws(mask) if member is None else self.table.get(member, mask).theta
            block = block_of(rows, self.table.reward)
            values = self._cache[key] = gp.log_evidence(rows, composition, thetas, tol=1e-4, block=block)
        return values

    @classmethod
    def estimate(cls, node: Node, rows: User, block: LinearBlock | None, start: Array) -> NodeEstimate:
        """The mean over the pilot users' hyperparameters at a node; the best of them becomes the user's."""
        thetas = node.thetas[evenly(len(node.thetas), FEW_THETAS)]
        log = gp.log_evidence(rows, node.composition, thetas, tol=TOLERANCE, block=block)[:, -1]
        value = float(scipy.special.logsumexp(log)) - math.log(len(thetas))
        return NodeEstimate(thetas[int(np.argmax(log))], value, None)


def evenly(count: int, most: int = MOST_THETAS) -> list[int]:
    """Positions of at most so many of `count` items, evenly spaced, the ends included.

    >>> evenly(3), evenly(9, 3)
    ([0, 1, 2], [0, 4, 8])
    """
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most).round()]
