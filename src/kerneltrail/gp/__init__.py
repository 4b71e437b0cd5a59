"""Gaussian-process computations: evidence, gradients, MAP, posterior. The only linear algebra of the package."""

from kerneltrail.gp.evidence import Evidence, Slope, evidence, evidence_of, log_evidence, slope_of
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.linear import LinearBlock, Reward
from kerneltrail.gp.numerics import one_blas_thread

__all__ = [
    "Evidence",
    "Inputs",
    "LinearBlock",
    "Reward",
    "Rows",
    "Slope",
    "evidence",
    "evidence_of",
    "inputs_for",
    "log_evidence",
    "one_blas_thread",
    "slope_of",
]
