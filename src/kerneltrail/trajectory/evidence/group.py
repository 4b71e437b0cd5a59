"""`group`: Laplace's approximation under a Normal fitted to the *other* users' MAPs at K (method (19)).

In closed form from the fits under the prior (`quadratic`): no fit is ever repeated. It is off where the group favours a
mode of the likelihood other than the one that was fitted, as it may with periods and few rows.
"""

from __future__ import annotations

from typing import NamedTuple

from kerneltrail.kernels import Array
from kerneltrail.trajectory.evidence.base import PathEvidence
from kerneltrail.trajectory.evidence.quadratic import Quadratic
from kerneltrail.trajectory.group import group_of, last_use
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler.urn import Paths


class _Cache(NamedTuple):
    """What a chain's states share: values by (user, mask, others), and what they are computed from."""

    values: dict[tuple[int, int, tuple[tuple[int, int], ...]], Array]
    quadratics: dict[tuple[int, int], Quadratic]


class GroupEvidence(PathEvidence):
    """Made anew for each state of a chain; what did not change is not computed again."""

    name = "group"
    learns = True

    def __init__(self, table: MapTable, largest: int, paths: Paths = (), cache: _Cache | None = None) -> None:
        super().__init__(table, largest)
        self._last = last_use(paths)
        self._cache = _Cache({}, {}) if cache is None else cache

    def for_paths(self, paths: Paths) -> GroupEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return GroupEvidence(self.table, self.largest, paths, self._cache)

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        others = tuple((m, t) for m, t in sorted(self._last.get(mask, {}).items()) if m != user)
        if not others:
            return self.table.get(user, mask).log_laplace
        key = (user, mask, others)
        values = self._cache.values.get(key)
        if values is None:
            table = self.table
            thetas = [table.get(m, mask).theta[t] for m, t in others]
            group = group_of(table.pool.composition(mask), thetas, table.prior)
            values = self._cache.values[key] = self._quadratic(user, mask).log_evidence(group.mean, group.variance)
        return values

    def _quadratic(self, user: int, mask: int) -> Quadratic:
        quadratic = self._cache.quadratics.get((user, mask))
        if quadratic is None:
            moments = self.table.prior.moments(self.table.pool.composition(mask))
            quadratic = self._cache.quadratics[user, mask] = Quadratic.of(self.table.get(user, mask), *moments)
        return quadratic
