"""`laplace`: Laplace's approximation around each customer's own MAP (method (17)). It learns nothing from paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kerneltrail.trajectory.evidence.base import PathEvidence


class LaplaceEvidence(PathEvidence):
    """A function of user, composition and batch alone: what the table of fits holds."""

    name = "laplace"

    def evaluate(self, user: int, mask: int) -> NDArray[np.float64]:
        """Log evidences for all batches of one user, (T,)."""
        return self.table.get(user, mask).log_laplace
