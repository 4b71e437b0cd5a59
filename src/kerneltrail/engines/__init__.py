"""How jobs run: here, in processes of this machine, or on a cluster; each with one BLAS thread."""

from kerneltrail.engines.choice import engine_for
from kerneltrail.engines.dask import Dask
from kerneltrail.engines.engine import Engine, JobFailure, Local, Serial, one_blas_thread, results
from kerneltrail.engines.process import keep_freed_memory, leave_settled
from kerneltrail.engines.turns import short_turns

__all__ = [
    "Dask",
    "Engine",
    "JobFailure",
    "Local",
    "Serial",
    "engine_for",
    "keep_freed_memory",
    "leave_settled",
    "one_blas_thread",
    "results",
    "short_turns",
]
