"""Three evidences of a composition (SPEC §5), behind one interface: `laplace`, `group`, `empirical`.

`laplace` depends on user, composition and batch only. The other two learn hyperparameters from the paths, so they are
made anew for each state of the chain (`for_paths`), and what did not change is not computed again.
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kerneltrail.gp import log_evidence
from kerneltrail.trajectory.errors import TrajectoryError
from kerneltrail.trajectory.evidence_table import Evidence
from kerneltrail.trajectory.group import Group, group_of
from kerneltrail.trajectory.maps import MapTable, block_of, fit_path
from kerneltrail.trajectory.urn import Paths

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
    """Laplace's approximation under a Normal fitted to the *other* users' MAPs, where they are assigned to K."""

    def __init__(
        self,
        table: MapTable,
        largest: int,
        paths: Paths | None = None,
        known: dict[tuple[int, int, tuple[tuple[int, int], ...]], Array] | None = None,
    ) -> None:
        super().__init__(table, largest)
        self._last = {} if paths is None else last_use(paths)
        self._known = {} if known is None else known

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
        if key not in self._known:
            table = self.table
            composition = table.pool.composition(mask)
            group = group_of(composition, [table.get(m, mask).theta[t] for m, t in others], table.prior)
            fits = fit_path(table.users[user], composition, group, table.settings, table.reward)
            self._known[key] = fits.log_laplace
        return self._known[key]


class EmpiricalEvidence(_Sized):
    """As published: the mean over hyperparameters θ* of the customers now assigned to K (paper, Appendix A.2).

    An unassigned composition is judged by draws from the prior. Known weakness: one with a single customer is judged at
    that customer's own optimum (SPEC §5).
    """

    def __init__(
        self,
        table: MapTable,
        largest: int,
        paths: Paths | None = None,
        known: dict[tuple[int, int, bytes], Array] | None = None,
    ) -> None:
        super().__init__(table, largest)
        self._assigned: dict[int, list[tuple[int, int]]] = {}
        for m, path in enumerate(paths or ()):
            for t, mask in enumerate(path):
                self._assigned.setdefault(mask, []).append((m, t))
        self._known = {} if known is None else known

    def for_paths(self, paths: Paths) -> EmpiricalEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return EmpiricalEvidence(self.table, self.largest, paths, self._known)

    def thetas(self, mask: int) -> Array:
        """The hyperparameter vectors that stand for p(θ|K), (S, k)."""
        assigned = self._assigned.get(mask)
        composition = self.table.pool.composition(mask)
        if not assigned:
            mean, variance = self.table.prior.moments(composition)
            seed = int.from_bytes(hashlib.blake2b(composition.text.encode(), digest_size=8).digest(), "big")
            draws = np.random.default_rng(seed).standard_normal((PRIOR_DRAWS, len(mean)))
            return mean + np.sqrt(variance) * draws
        return thinned(np.array([self.table.get(m, mask).theta[t] for m, t in assigned]))

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        excluded = self._excluded(user, mask)
        if excluded is not None:
            return excluded
        thetas = self.thetas(mask)
        key = (user, mask, hashlib.blake2b(thetas.tobytes(), digest_size=16).digest())
        if key not in self._known:
            rows = self.table.users[user]
            log = log_evidence(
                rows, self.table.pool.composition(mask), thetas, tol=1e-4, block=block_of(rows, self.table.reward)
            )
            self._known[key] = logsumexp(log, axis=0) - math.log(len(thetas))
        return self._known[key]


def thinned(thetas: Array, most: int = MOST_THETAS) -> Array:
    """At most so many vectors, evenly spaced in the order given."""
    if len(thetas) <= most:
        return thetas
    return thetas[np.linspace(0, len(thetas) - 1, most).round().astype(int)]


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
