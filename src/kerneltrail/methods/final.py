"""Final: one kernel for all times, the one that training users end with."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kerneltrail.gp.map import Prior
from kerneltrail.methods.ard import SingleKernel
from kerneltrail.methods.candidate_fits import Judged
from kerneltrail.methods.preprocessing import Frame
from kerneltrail.trajectory.model import TrajectoryModel


def final_of_model(
    model: TrajectoryModel, frame: Frame, *, transfer: bool = True, starts: int = 1, screen: int = 8, seed: int = 0
) -> SingleKernel:
    """The most frequent last composition of a trajectory model's users; of equally frequent ones, the simplest.

    Args:
        model: whose graph is used.
        frame: how rows are seen; the model's own scaling, for its hyperparameters to make sense.
        transfer: take the users' hyperparameters as prior; else the model's priors.
        starts, screen, seed: of each user's MAP search.
    """
    ends = Counter(path[-1] for path in model.paths if path)
    most = max(ends.values())
    mask = min((mask for mask, count in ends.items() if count == most), key=lambda mask: (mask.bit_count(), mask))
    node = model.node(model.pool.composition(mask))
    prior: Prior = node.group if transfer else model.priors
    return SingleKernel(frame, node.composition, prior, starts, screen, seed)


def final_of_evidence(
    judged: Judged, frame: Frame, *, transfer: bool = True, starts: int = 1, screen: int = 8, seed: int = 0
) -> SingleKernel:
    """The composition with the largest log evidence summed over the training users' whole data, plus log H0 once."""
    best = judged.masks[int(np.argmax(judged.last().sum(axis=0) + judged.log_h0))]
    prior: Prior = judged.group(best) if transfer else judged.table.prior
    return SingleKernel(frame, judged.composition(best), prior, starts, screen, seed)
