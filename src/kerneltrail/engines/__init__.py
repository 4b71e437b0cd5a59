"""How jobs run: here, or in processes of this machine; each with one BLAS thread."""

from kerneltrail.engines.engine import Engine, JobFailure, Local, Serial, engine_for, one_blas_thread, results
from kerneltrail.engines.process import keep_freed_memory
from kerneltrail.engines.turns import short_turns

__all__ = [
    "Engine",
    "JobFailure",
    "Local",
    "Serial",
    "engine_for",
    "keep_freed_memory",
    "one_blas_thread",
    "results",
    "short_turns",
]
