from . import compilation, dense, map, mixed, numerics, partial, regression, urn_moves, whitened
from .evidence import Evidence, Slope, evidence, evidence_of, log_evidence, slope_of
from .inputs import Inputs, Rows, inputs_for
from .map import MapResult, find_map, find_map_path
from .numerics import one_blas_thread
from .online import OnlineState
from .posterior import Posterior, prior_only
from .prediction import Component, Prediction
from .reward import LinearBlock, Reward

__all__ = [
    "Component",
    "Evidence",
    "Inputs",
    "LinearBlock",
    "MapResult",
    "OnlineState",
    "Posterior",
    "Prediction",
    "Reward",
    "Rows",
    "Slope",
    "compilation",
    "dense",
    "evidence",
    "evidence_of",
    "find_map",
    "find_map_path",
    "inputs_for",
    "log_evidence",
    "map",
    "mixed",
    "numerics",
    "one_blas_thread",
    "partial",
    "prior_only",
    "regression",
    "slope_of",
    "urn_moves",
    "whitened",
]
