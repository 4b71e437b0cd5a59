"""Run: `Plate` with blocks made of runs, a customer with those that follow it at the same composition."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.trajectory.sampler.moves.plate import Plate


@dataclass(frozen=True)
class Run(Plate):
    """A fixed number of tables of runs, each drawn anew, each proposed one product more or less."""

    name = "run"
    runs = True
