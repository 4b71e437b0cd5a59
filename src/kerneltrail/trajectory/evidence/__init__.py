"""How a composition is judged from the rows of one user: the evidences, by name."""

from kerneltrail.trajectory.evidence.base import EVIDENCES, Evidence, LaplaceEvidence, NodeEstimate, PathEvidence
from kerneltrail.trajectory.evidence.empirical import EmpiricalEvidence
from kerneltrail.trajectory.evidence.group import GroupEvidence

for _evidence in (LaplaceEvidence, GroupEvidence, EmpiricalEvidence):
    EVIDENCES.add(_evidence.name, _evidence)
EVIDENCES.complete()

__all__ = [
    "EVIDENCES",
    "EmpiricalEvidence",
    "Evidence",
    "GroupEvidence",
    "LaplaceEvidence",
    "NodeEstimate",
    "PathEvidence",
]
