"""How a composition is judged from the rows of one user: the evidences, by name."""

from kerneltrail.trajectory.evidence.base import EVIDENCES, Evidence, LaplaceEvidence, NodeEstimate, PathEvidence
from kerneltrail.trajectory.evidence.empirical import EmpiricalEvidence
from kerneltrail.trajectory.evidence.group import GroupEvidence
from kerneltrail.trajectory.evidence.group_sampled import GroupSampledEvidence
from kerneltrail.trajectory.evidence.sampled import SampledEvidence

for _evidence in (LaplaceEvidence, GroupEvidence, EmpiricalEvidence, SampledEvidence, GroupSampledEvidence):
    EVIDENCES.add(_evidence.name, _evidence)
EVIDENCES.complete()

__all__ = [
    "EVIDENCES",
    "EmpiricalEvidence",
    "Evidence",
    "GroupEvidence",
    "GroupSampledEvidence",
    "LaplaceEvidence",
    "NodeEstimate",
    "PathEvidence",
    "SampledEvidence",
]
