"""Three evidences of a composition (SPEC §5), behind one interface: `laplace`, `group`, `empirical`.

`laplace` depends on user, composition and batch only. The other two learn hyperparameters from the paths, so they are
made anew for each state of the chain (`for_paths`), and what did not change is not computed again.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kerneltrail.errors import TrajectoryError
from kerneltrail.gp import log_evidence
from kerneltrail.store.digest import seed_of
from kerneltrail.trajectory.evidence.quadratic import Quadratic
from kerneltrail.trajectory.evidence.table import Evidence
from kerneltrail.trajectory.group import Group, group_of
from kerneltrail.trajectory.map_table import MapTable, block_of
from kerneltrail.trajectory.sampler.urn import Paths

Array = NDArray[np.float64]
Kind = Literal["laplace", "group", "empirical"]

PRIOR_DRAWS = 32
"""Hyperparameter vectors drawn from the prior for a composition that nobody is assigned to (`empirical`)."""

MOST_THETAS = 64
"""Largest number of hyperparameter vectors an empirical distribution keeps; more are thinned evenly."""


class LearningEvidence(Evidence, Protocol):
    """An evidence that may learn from the paths."""

    def for_paths(self, paths: Paths) -> LearningEvidence:
        """The evidence when customers are assigned as in `paths`."""
        ...


class _Sized:
    """What all three share: the users' batches, and no evidence for a composition that is too large."""

    def __init__(self, table: MapTable, largest: int) -> None:
        self.table = table
        self.largest = largest
        self.customers = tuple(user.batches for user in table.users)

    def _excluded(self, user: int, mask: int) -> Array | None:
        if mask.bit_count() <= self.largest:
            return None
        return np.full(self.customers[user], -math.inf)


class LaplaceEvidence(_Sized):
    """Laplace's approximation around each customer's own MAP, under the prior."""

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        excluded = self._excluded(user, mask)
        return self.table.get(user, mask).log_laplace if excluded is None else excluded

    def for_paths(self, paths: Paths) -> LaplaceEvidence:
        """Itself: it learns nothing from paths."""
        return self


class GroupEvidence(_Sized):
    """Laplace's approximation under a Normal fitted to the *other* users' MAPs, where they are assigned to K.

    In closed form from the fits under the prior (`quadratic`): no fit is ever repeated. It is off where the group
    favours a mode of the likelihood other than the one that was fitted, as it may with periods and few rows.
    """

    def __init__(self, table: MapTable, largest: int, paths: Paths | None = None, known: _GroupMemory | None = None):
        super().__init__(table, largest)
        self._last = {} if paths is None else last_use(paths)
        self._known = _GroupMemory({}, {}) if known is None else known

    def for_paths(self, paths: Paths) -> GroupEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return GroupEvidence(self.table, self.largest, paths, self._known)

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        excluded = self._excluded(user, mask)
        if excluded is not None:
            return excluded
        others = tuple((m, t) for m, t in sorted(self._last.get(mask, {}).items()) if m != user)
        if not others:
            return self.table.get(user, mask).log_laplace
        key = (user, mask, others)
        found = self._known.values.get(key)
        if found is None:
            table = self.table
            group = group_of(
                table.pool.composition(mask), [table.get(m, mask).theta[t] for m, t in others], table.prior
            )
            found = self._known.values[key] = self._quadratic(user, mask).log_evidence(group.mean, group.variance)
        return found

    def _quadratic(self, user: int, mask: int) -> Quadratic:
        found = self._known.quadratics.get((user, mask))
        if found is None:
            moments = self.table.prior.moments(self.table.pool.composition(mask))
            found = self._known.quadratics[user, mask] = Quadratic.of(self.table.get(user, mask), *moments)
        return found


class _GroupMemory(NamedTuple):
    """What a chain's states share: values by (user, mask, others), and what they are computed from."""

    values: dict[tuple[int, int, tuple[tuple[int, int], ...]], Array]
    quadratics: dict[tuple[int, int], Quadratic]


class EmpiricalEvidence(_Sized):
    """As published: the mean over hyperparameters θ* of the customers now assigned to K (paper, Appendix A.2).

    An unassigned composition is judged by draws from the prior. Known weakness: one with a single customer is judged at
    that customer's own optimum (SPEC §5).

    θ* never changes, only who is assigned does. So likelihoods are computed once for each (user, K, member), at all of
    the member's θ* together: a value must not depend on what else was asked for, down to the last bit.
    """

    def __init__(self, table: MapTable, largest: int, paths: Paths | None = None, known: _Likelihoods | None = None):
        super().__init__(table, largest)
        self._assigned: dict[int, list[tuple[int, int]]] = {}
        for m, path in enumerate(paths or ()):
            for t, mask in enumerate(path):
                self._assigned.setdefault(mask, []).append((m, t))
        self._known: _Likelihoods = {} if known is None else known
        self._values: dict[tuple[int, int], Array] = {}

    def for_paths(self, paths: Paths) -> EmpiricalEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return EmpiricalEvidence(self.table, self.largest, paths, self._known)

    def thetas(self, mask: int) -> Array:
        """The hyperparameter vectors that stand for p(θ|K), (S, k)."""
        assigned = self._assigned.get(mask)
        if not assigned:
            return self._drawn(mask)
        kept = [assigned[i] for i in evenly(len(assigned))]
        return np.array([self.table.get(m, mask).theta[t] for m, t in kept])

    def _drawn(self, mask: int) -> Array:
        composition = self.table.pool.composition(mask)
        mean, variance = self.table.prior.moments(composition)
        seed = seed_of(composition.text)
        draws = np.random.default_rng(seed).standard_normal((PRIOR_DRAWS, len(mean)))
        return mean + np.sqrt(variance) * draws

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        excluded = self._excluded(user, mask)
        if excluded is not None:
            return excluded
        found = self._values.get((user, mask))
        if found is None:
            assigned = self._assigned.get(mask)
            if not assigned:
                log = self._log_likelihoods(user, mask, None)
            else:
                kept = [assigned[i] for i in evenly(len(assigned))]
                log = np.array([self._log_likelihoods(user, mask, m)[t] for m, t in kept])
            found = self._values[user, mask] = logsumexp(log, axis=0) - math.log(len(log))
        return found

    def _log_likelihoods(self, user: int, mask: int, member: int | None) -> Array:
        """Of a user's batches at each of a member's θ*, or at the draws from the prior, (S, T)."""
        key = (user, mask, member)
        found = self._known.get(key)
        if found is None:
            rows, composition = self.table.users[user], self.table.pool.composition(mask)
            thetas = self._drawn(mask) if member is None else self.table.get(member, mask).theta
            block = block_of(rows, self.table.reward)
            found = self._known[key] = log_evidence(rows, composition, thetas, tol=1e-4, block=block)
        return found


_Likelihoods = dict[tuple[int, int, int | None], Array]


def evenly(count: int, most: int = MOST_THETAS) -> list[int]:
    """Places of at most so many of `count` items, evenly spaced, the ends included.

    >>> evenly(3), evenly(9, 3)
    ([0, 1, 2], [0, 4, 8])
    """
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most).round()]


def last_use(paths: Paths) -> dict[int, dict[int, int]]:
    """For each composition, the last batch at which each of its users is assigned to it."""
    found: dict[int, dict[int, int]] = {}
    for m, path in enumerate(paths):
        for t, mask in enumerate(path):
            found.setdefault(mask, {})[m] = t
    return found


def node_group(table: MapTable, mask: int, paths: Paths) -> Group:
    """What the users assigned to a composition say of its hyperparameters, each at its last batch there."""
    members = sorted(last_use(paths).get(mask, {}).items())
    return group_of(table.pool.composition(mask), [table.get(m, mask).theta[t] for m, t in members], table.prior)


def make_evidence(kind: Kind, table: MapTable, largest: int) -> LearningEvidence:
    """The evidence of a name."""
    makers = {"laplace": LaplaceEvidence, "group": GroupEvidence, "empirical": EmpiricalEvidence}
    if kind not in makers:
        raise TrajectoryError(f"no evidence is called {kind!r}; there are {', '.join(makers)}")
    return makers[kind](table, largest)
