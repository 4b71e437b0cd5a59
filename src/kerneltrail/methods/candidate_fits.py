"""Compositions of a pool fitted to users one by one: what final, stratified and memoryless choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.errors import DataError
from kerneltrail.kernels import Composition, Pool, Priors
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.protocol import Array
from kerneltrail.trajectory.candidates import support
from kerneltrail.trajectory.map_table import Group, MapSettings, MapTable

STARTS, SCREEN = 1, 8
"""Of each followed user's MAP search: little, since training users say where to look."""


@dataclass(frozen=True)
class CandidateSearch:
    """How compositions are searched for, as the trajectory model does it.

    Attributes:
        largest: most products in a composition.
        width: compositions that the search expands at every size.
        maps: settings of the MAP searches.
        workers: processes.
    """

    largest: int = 3
    width: int = 1
    maps: MapSettings = field(default_factory=MapSettings)
    workers: int = 1


class CandidateEvidences:
    """The training users' evidences under every candidate mask, at every batch, with the table of fits behind them."""

    def __init__(
        self, cohort: Cohort, preprocessor: Preprocessor, pool: Pool, priors: Priors, search: CandidateSearch
    ) -> None:
        # Batches are needed in the group's units, and rows of a user without any say nothing.
        users = [preprocessor.prepare(user).rows for user in cohort.raw if user.rows]
        if not users:
            raise DataError("training needs at least one row")
        self.table = MapTable(users, pool, priors, search.maps, preprocessor.reward)
        self.masks = support(self.table, search.largest, search.width, workers=search.workers)

    def at(self, t: int) -> Array:
        """Log Laplace evidences at batch t (from 1), of the users who have got there, (users, candidates)."""
        return self._evidences([m for m, user in enumerate(self.table.users) if user.batches >= t], t - 1)

    def last(self) -> Array:
        """The same at every user's last batch."""
        return self._evidences(range(len(self.table.users)), -1)

    def _evidences(self, who: Iterable[int], at: int) -> Array:
        return np.array([[float(self.table.get(m, mask).log_laplace[at]) for mask in self.masks] for m in who])

    @property
    def log_h0(self) -> Array:
        """log H0 of every candidate."""
        return np.array([self.table.pool.log_h0(mask) for mask in self.masks])

    @property
    def batches(self) -> int:
        """Most batches of any user."""
        return max(user.batches for user in self.table.users)

    def group(self, mask: int, users: Sequence[int] | None = None) -> Group:
        """What users' last fits say of a composition's hyperparameters; of all users if None."""
        who = range(len(self.table.users)) if users is None else users
        return self.table.group(mask, [(m, -1) for m in who])

    def composition(self, mask: int) -> Composition:
        """The composition of a mask."""
        return self.table.pool.composition(mask)
