"""Simulated users with the truth beside them: ``simulate.paper()``, ``simulate.mhealth()``, ``simulate.user()`` …"""

from kerneltrail.data.simulate.mobile_health import mhealth
from kerneltrail.data.simulate.synthetic import complex, distinct, paper, similar
from kerneltrail.data.simulate.truth import Simulation, TrueKernel, user

__all__ = ["Simulation", "TrueKernel", "complex", "distinct", "mhealth", "paper", "similar", "user"]
