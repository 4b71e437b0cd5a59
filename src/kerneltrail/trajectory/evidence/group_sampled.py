"""`group-sampled`: the draws of `sampled`, weighed by the group of the *other* users, not the prior (method (46)).

The draws are made once for each (user, composition), also around what all other users say of it; a chain only weighs
them again. Where too few of them matter under a group, the closed form of `group` stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from kerneltrail.engines import Engine, Serial, engine_for, keep_freed_memory, results
from kerneltrail.gp.importance import effective_size, log_normal_density
from kerneltrail.kernels import Array
from kerneltrail.trajectory.evidence.base import PathEvidence
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.evidence.sampled import FEW, Draws, log_mean, proposal_for
from kerneltrail.trajectory.map_table import Fits, Group, MapTable
from kerneltrail.trajectory.sampler.urn import Paths, last_use

LEAST_SIZE = 5.0
"""Effective number of draws below which the closed form is nearer."""


class _Cache(NamedTuple):
    """What a chain's states share: draws by (user, mask), values by those and the others."""

    draws: dict[tuple[int, int], Draws]
    values: dict[tuple[int, int, tuple[tuple[int, int], ...]], Array]


def _draws(table: MapTable, user: int, mask: int, fits: Fits, group: Group) -> Draws:
    """One job; at module level, so that another process can do it."""
    keep_freed_memory()
    return proposal_for(table, user, mask, fits, group).run()


def reweighted(draws: Draws, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Log evidences under N(mean, variance) in whitened coordinates, and what the draws are worth, (T,) each."""
    log_weights = draws.log_weights(log_normal_density(draws.points, mean, variance))  # method (46)
    return log_mean(log_weights), effective_size(log_weights)


class GroupSampledEvidence(PathEvidence):
    """Made anew for each state of a chain; what did not change is not computed again."""

    name = "group-sampled"

    def __init__(self, table: MapTable, largest: int, paths: Paths = (), cache: _Cache | None = None) -> None:
        super().__init__(table, largest)
        self._last = last_use(paths)
        self._cache = _Cache({}, {}) if cache is None else cache

    def for_paths(self, paths: Paths) -> GroupSampledEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return GroupSampledEvidence(self.table, self.largest, paths, self._cache)

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        others = tuple((m, t) for m, t in self._last.get(mask, {}).items() if m != user)
        key = (user, mask, others)
        values = self._cache.values.get(key)
        if values is None:
            values = self._cache.values[key] = self._evaluate(user, mask, self.table.group(mask, others))
        return values

    def _evaluate(self, user: int, mask: int, group: Group) -> Array:
        mean, variance = self.table.prior.moments(group.composition)
        draws = self.draws(user, mask)
        values, size = reweighted(draws, (group.mean - mean) / np.sqrt(variance), group.variance / variance)
        few = size < LEAST_SIZE
        if few.any():
            closed = Quadratic.of(self.table.get(user, mask), mean, variance)
            values = np.where(few, closed.log_evidence(group.mean, group.variance), values)
        return values

    def draws(self, user: int, mask: int) -> Draws:
        """The draws of one user's hyperparameters under one composition."""
        draws = self._cache.draws.get((user, mask))
        if draws is None:
            draws = self._cache.draws[user, mask] = _draws(self.table, *self._job(user, mask))
        return draws

    def _job(self, user: int, mask: int) -> tuple[int, int, Fits, Group]:
        """What one job needs: the fits, and what all other users say of the composition at their last batch."""
        others = [(m, rows.batches - 1) for m, rows in enumerate(self.table.users) if m != user]
        return user, mask, self.table.get(user, mask), self.table.group(mask, others)

    def prepare(
        self,
        pairs: Iterable[tuple[int, int]],
        *,
        workers: Engine | int = 1,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Draw for all (user, mask) pairs, in parallel."""
        missing = [pair for pair in pairs if pair not in self._cache.draws]
        engine = engine_for(workers) if len(missing) > FEW else Serial()
        jobs = ((pair, self._job(*pair)) for pair in missing)
        progress(0, len(missing))
        for done, (pair, draws) in enumerate(results(engine, _draws, jobs, self.table.without_fits()), start=1):
            self._cache.draws[pair] = draws
            progress(done, len(missing))
