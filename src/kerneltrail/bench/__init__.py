"""Benchmarks, measured side by side in one run."""

from kerneltrail.bench.rows import KEYS, Row, machine, save
from kerneltrail.bench.suite import BENCHES, run, steps
from kerneltrail.bench.table import tables

__all__ = ["BENCHES", "KEYS", "Row", "machine", "run", "save", "steps", "tables"]
