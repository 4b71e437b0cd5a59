"""The exact moves on paths (method §6.2), compiled: seat, path, plate, run and rename over a short list of candidates.

A customer's composition is a code, its place in the list; all customers are in one row, user after user, and counts are
dense. All chance comes in as uniform numbers, which the caller draws from its generator: a move is a pure function of
codes and numbers. They are used by `index`, `pick`, `pick_log`, `accept` and `take` alone; tests put an enumerator in
the place of these five, and so have the exact transition matrix of each step.
"""

import numpy as np

from kerneltrail.gp.urn_moves.path import path_all
from kerneltrail.gp.urn_moves.plate import plate_all
from kerneltrail.gp.urn_moves.rename import rename_all
from kerneltrail.gp.urn_moves.seat import seat_all
from kerneltrail.gp.urn_moves.tally import Target

__all__ = ["Target", "path_all", "plate_all", "rename_all", "seat_all", "use_everything"]


def use_everything() -> None:
    """Call every compiled function with the types it is called with in earnest."""
    starts, codes = np.array([0, 2, 3]), np.array([0, 1, 1])
    toggle = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    target = Target(starts, np.zeros((3, 2)), np.full((3, 2), -1.0), toggle, 1.0)
    seat_all(target, codes, np.full(3, 0.5))
    path_all(target, codes, np.full((2, 3), 0.5))
    for runs in (False, True):
        plate_all(target, codes, np.full((1, 7), 0.5), runs)
    rename_all(target, codes, np.full((1, 4), 0.5))
