"""The trajectory model: the joint over paths of compositions, and samplers for it."""

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.evidence import EVIDENCES, Evidence, NodeEstimate, PathEvidence
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves import EXACT, MOVES, PUBLISHED, Move, MoveInfo, Sweep
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths, Urn

__all__ = [
    "Counts",
    "EVIDENCES",
    "EXACT",
    "Evidence",
    "Joint",
    "MOVES",
    "Move",
    "MoveInfo",
    "NodeEstimate",
    "PUBLISHED",
    "PathEvidence",
    "Paths",
    "ROOT",
    "State",
    "Sweep",
    "TrajectoryError",
    "Urn",
]
