"""How simulated trials are driven."""

from kerneltrail.trial.simulator.drives.drive import OUTAGE, Decided, Drive, Reported
from kerneltrail.trial.simulator.drives.quick import PolicyDrive, QuickDrive
from kerneltrail.trial.simulator.drives.recorded import RecordedDrive
from kerneltrail.trial.simulator.drives.served import ServedDrive

DRIVES: dict[str, type[Drive]] = {"quick": QuickDrive, "conduct": RecordedDrive, "service": ServedDrive}
"""Ways to drive the trial's own policy, by name."""

__all__ = [
    "DRIVES",
    "Decided",
    "Drive",
    "OUTAGE",
    "PolicyDrive",
    "QuickDrive",
    "RecordedDrive",
    "Reported",
    "ServedDrive",
]
