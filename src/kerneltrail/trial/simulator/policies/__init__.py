"""Policies that are compared with the trial's own."""

from kerneltrail.trial.simulator.policies.linear import LinearThompson
from kerneltrail.trial.simulator.policies.policy import POLICIES, Asked, Book, Setting, TrialPolicy
from kerneltrail.trial.simulator.policies.pooling import IntelligentPooling
from kerneltrail.trial.simulator.policies.simple import Always, Fixed, Never, Oracle
from kerneltrail.trial.simulator.policies.smooth import MiWaves, Oralytics

POLICIES.complete()

OURS = "ours"
"""The trial's own policy, in a comparison."""

__all__ = [
    "Always",
    "Asked",
    "Book",
    "Fixed",
    "IntelligentPooling",
    "LinearThompson",
    "MiWaves",
    "Never",
    "OURS",
    "Oracle",
    "Oralytics",
    "POLICIES",
    "Setting",
    "TrialPolicy",
]
