"""Which of two compositions explains a user better, as rows accrue: the flip of the paper's table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Composition, Priors
from kerneltrail.trajectory.map_table import MapSettings, fit_path


@dataclass(frozen=True)
class LikelihoodRow:
    """How well one composition explains users after a number of rows, on average.

    Attributes:
        composition: its text.
        rows: rows seen.
        users: how many were averaged over.
        log_likelihood: at each user's MAP hyperparameters.
        log_laplace: Laplace's evidence.
    """

    composition: str
    rows: int
    users: int
    log_likelihood: float
    log_laplace: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def likelihood_table(
    users: Iterable[User], compositions: Sequence[Composition], priors: Priors, maps: MapSettings | None = None
) -> tuple[LikelihoodRow, ...]:
    """Each composition after each batch, averaged over users with the same batches."""
    everybody = tuple(users)
    rows = []
    with one_blas_thread():
        for composition in compositions:
            fits = [fit_path(user, composition, priors, maps or MapSettings(), None) for user in everybody]
            likelihood = np.mean([fit.log_likelihood for fit in fits], axis=0)
            laplace = np.mean([fit.log_laplace for fit in fits], axis=0)
            for end, log, log_laplace in zip(everybody[0].ends, likelihood, laplace, strict=True):
                rows.append(LikelihoodRow(composition.text, int(end), len(everybody), float(log), float(log_laplace)))
    return tuple(rows)
