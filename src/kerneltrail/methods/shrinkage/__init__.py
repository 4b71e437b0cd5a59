"""Shrinkage: a horseshoe over the kernels of a pool, by variational inference (SPEC §10)."""

from kerneltrail.methods.shrinkage.learner import Judge, Shrinkage, ShrinkageFit
from kerneltrail.methods.shrinkage.objective import Factors, Problem
from kerneltrail.methods.shrinkage.weights import Weight

__all__ = ["Factors", "Judge", "Problem", "Shrinkage", "ShrinkageFit", "Weight"]
