"""Shrinkage: a horseshoe over the kernels of a pool, by variational inference (method §10.2)."""

from kerneltrail.methods.shrinkage.elbo import ComponentWeight, EvidenceLowerBound, Factors
from kerneltrail.methods.shrinkage.learner import SelectionRule, Shrinkage, ShrinkageFit

__all__ = ["ComponentWeight", "EvidenceLowerBound", "Factors", "SelectionRule", "Shrinkage", "ShrinkageFit"]
