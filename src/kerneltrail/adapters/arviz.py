"""Traces of a fit for ArviZ, where it is installed (`pip install 'kerneltrail[arviz]'`)."""

from __future__ import annotations

import inspect
from typing import Any

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.model import TrajectoryModel


def to_arviz(model: TrajectoryModel, *, warmup: bool = False) -> Any:
    """The log joint, number of edges and path agreement as ArviZ inference data, with dimensions chain and draw.

    Args:
        model: a fitted model.
        warmup: whether to include the first half of the sweeps, which diagnostics leave out.
    """
    try:
        import arviz
    except ImportError:
        raise TrajectoryError("ArviZ is not installed; install it with: pip install 'kerneltrail[arviz]'") from None
    first = 0 if warmup else model.diagnostics.sweeps // 2
    traces = {name: trace[:, first:] for name, trace in model.diagnostics.traces.items()}
    # ArviZ 1 takes one mapping of groups, earlier versions a keyword for each.
    if "posterior" in inspect.signature(arviz.from_dict).parameters:
        return arviz.from_dict(posterior=traces)
    return arviz.from_dict({"posterior": traces})
