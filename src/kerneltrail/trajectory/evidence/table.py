"""Evidences as the samplers see them: a look-up by user and composition, all batches at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import TrajectoryError


class Evidence(Protocol):
    """log p(y[m,t] | X[m,t], K) for given data. Whoever implements it computes lazily and remembers."""

    @property
    def customers(self) -> Sequence[int]:
        """T_m, the number of batches of each user."""
        ...

    def log_evidence(self, user: int, mask: int) -> NDArray[np.float64]:
        """The log evidences of one composition for all batches of one user, shape (T_m,)."""
        ...


class FixedEvidence:
    """Evidences that are simply given: as a mapping or a function of (user, mask).

    >>> table = FixedEvidence([2, 1], lambda user, mask: [0.0, -1.0][: 2 - user])
    >>> table.log_evidence(0, 0b1)
    array([ 0., -1.])
    """

    def __init__(
        self,
        customers: Sequence[int],
        values: Mapping[tuple[int, int], ArrayLike] | Callable[[int, int], ArrayLike],
    ) -> None:
        self.customers = tuple(int(t) for t in customers)
        self._values = values
        self._known: dict[tuple[int, int], NDArray[np.float64]] = {}

    def log_evidence(self, user: int, mask: int) -> NDArray[np.float64]:
        """The log evidences of one composition for all batches of one user, shape (T_m,)."""
        key = (user, mask)
        if key not in self._known:
            if callable(self._values):
                value = self._values(user, mask)
            elif key in self._values:
                value = self._values[key]
            else:
                raise TrajectoryError(f"no evidence is given for user {user} and composition {mask:#b}")
            self._known[key] = np.asarray(value, dtype=np.float64)
        return self._known[key]

    @classmethod
    def flat(cls, customers: Sequence[int]) -> FixedEvidence:
        """Evidences that say nothing: the posterior is the prior."""
        lengths = tuple(customers)
        return cls(lengths, lambda user, mask: np.zeros(lengths[user]))
