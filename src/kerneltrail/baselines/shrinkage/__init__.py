"""Shrinkage: a horseshoe over the kernels of a pool, by variational inference (SPEC §10)."""

from kerneltrail.baselines.shrinkage.learner import Judge, Shrinkage, ShrinkageFit
from kerneltrail.baselines.shrinkage.objective import Factors, Problem
from kerneltrail.baselines.shrinkage.weights import Weight

__all__ = ["Factors", "Judge", "Problem", "Shrinkage", "ShrinkageFit", "Weight"]
