"""Shrinkage: a horseshoe over the kernels of a pool, by variational inference (SPEC §10)."""

from kerneltrail.baselines.shrinkage.learner import Judge, Shrinkage, ShrinkageFit, Weight
from kerneltrail.baselines.shrinkage.objective import Factors, Problem

__all__ = ["Factors", "Judge", "Problem", "Shrinkage", "ShrinkageFit", "Weight"]
