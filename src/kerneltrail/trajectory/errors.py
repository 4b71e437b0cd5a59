"""The error of a trajectory that cannot be built as asked."""

from __future__ import annotations

from kerneltrail.errors import KerneltrailError


class TrajectoryError(KerneltrailError, ValueError):
    """Paths, evidences or a configuration of moves that do not fit together."""
