"""Final: one kernel for all times, the one that training users end with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from kerneltrail import gp
from kerneltrail.data import Cohort, default_priors
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.ard import SingleKernel
from kerneltrail.methods.candidate_fits import SCREEN, STARTS, CandidateEvidences, CandidateSearch
from kerneltrail.methods.preprocessing import group_preprocessor
from kerneltrail.methods.registry import register_learner
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.model import TrajectoryModel


def commonest_end(model: TrajectoryModel) -> Node:
    """Where most users of a trajectory model end; of equally frequent ends, the simplest."""
    ends = Counter(path[-1] for path in model.paths if path)
    return model.node(model.pool.composition(min(ends, key=lambda mask: (-ends[mask], mask.bit_count(), mask))))


def best_together(evidences: CandidateEvidences) -> int:
    """The mask with the largest log evidence summed over the training users' whole data, plus log H0 once."""
    return evidences.masks[int(np.argmax(evidences.last().sum(axis=0) + evidences.log_h0))]


def final(
    cohort: Cohort,
    *,
    seed: int,
    model: TrajectoryModel | None = None,
    pool: Pool | None = None,
    priors: Priors | None = None,
    reward: Reward | None = None,
    constant: float = 0.0,
    transfer: bool = True,
    search: CandidateSearch | None = None,
) -> SingleKernel:
    """One kernel: of a given trajectory model, in whose scaling rows are then seen, or of all users' summed evidence.

    With `transfer` the training users' hyperparameters are the prior, else the model's or the given priors.
    """
    prior: gp.map.Prior
    if model is not None:
        preprocessor = group_preprocessor(cohort, reward=model.reward)
        preprocessor = replace(preprocessor, schema=model.schema, mean=model.mean)
        node = commonest_end(model)
        composition, prior = node.composition, node.group if transfer else model.priors
    else:
        preprocessor = group_preprocessor(cohort, reward=reward, constant=constant)
        offered, known = pool or Pool.atoms(cohort.covariates), priors or default_priors(cohort.schema)
        evidences = CandidateEvidences(cohort, preprocessor, offered, known, search or CandidateSearch())
        best = best_together(evidences)
        composition, prior = offered.composition(best), evidences.group(best) if transfer else known
    return SingleKernel(preprocessor, composition, prior, STARTS, SCREEN, seed)


register_learner("final", final)
