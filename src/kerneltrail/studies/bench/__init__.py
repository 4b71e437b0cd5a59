"""Benchmarks, measured side by side in one run."""

from kerneltrail.studies.bench.rows import KEYS, Row, machine, save
from kerneltrail.studies.bench.suite import BENCHES, run, steps
from kerneltrail.studies.bench.table import tables

__all__ = ["BENCHES", "KEYS", "Row", "machine", "run", "save", "steps", "tables"]
