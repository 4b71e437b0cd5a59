"""Gaussian-process computations: evidence, gradients, MAP, posterior. The only linear algebra of the package."""

from kerneltrail.engines import one_blas_thread
from kerneltrail.gp.evidence import Evidence, Slope, evidence, evidence_of, log_evidence, slope_of
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.map import MapResult, find_map, find_map_path
from kerneltrail.gp.online import OnlineState
from kerneltrail.gp.posterior import Posterior, prior_only
from kerneltrail.gp.prediction import Component, Prediction
from kerneltrail.gp.reward import LinearBlock, Reward

__all__ = [
    "Component",
    "MapResult",
    "OnlineState",
    "Posterior",
    "Prediction",
    "Evidence",
    "Inputs",
    "LinearBlock",
    "Reward",
    "Rows",
    "Slope",
    "evidence",
    "evidence_of",
    "find_map",
    "find_map_path",
    "inputs_for",
    "log_evidence",
    "one_blas_thread",
    "prior_only",
    "slope_of",
]
