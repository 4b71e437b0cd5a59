"""Simulated users with the truth beside them: ``simulate.paper()``, ``simulate.mhealth()``, ``simulate.user()`` …"""

from kerneltrail.data.simulate.mixed import MixedSimulation, MixedTruth, mixed
from kerneltrail.data.simulate.mobile_health import mhealth
from kerneltrail.data.simulate.studies import STUDIES, Study
from kerneltrail.data.simulate.synthetic import complex, distinct, paper, similar
from kerneltrail.data.simulate.truth import Simulation, TrueKernel, user

__all__ = [
    "STUDIES",
    "MixedSimulation",
    "MixedTruth",
    "Simulation",
    "Study",
    "TrueKernel",
    "complex",
    "distinct",
    "mhealth",
    "mixed",
    "paper",
    "similar",
    "user",
]
