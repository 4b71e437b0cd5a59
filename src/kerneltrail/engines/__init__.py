"""How jobs run: here, or in processes of this machine; each with one BLAS thread."""

from kerneltrail.engines.engine import Engine, Failure, Local, Serial, engine_for, results
from kerneltrail.engines.process import keep_freed_memory

__all__ = ["Engine", "Failure", "Local", "Serial", "engine_for", "keep_freed_memory", "results"]
