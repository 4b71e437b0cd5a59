"""Final: one kernel for all times, the one that training users end with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.gp import Reward
from kerneltrail.gp.map import Prior
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.ard import SingleKernel
from kerneltrail.methods.candidate_fits import CandidateEvidences, CandidateSearch
from kerneltrail.methods.preprocessing import Preprocessor, group_preprocessor, priors_for
from kerneltrail.methods.registry import register_learner
from kerneltrail.trajectory.model import TrajectoryModel

STARTS, SCREEN = 1, 8
"""Of each user's MAP search: little, since training users say where to look."""


def final_of_model(
    model: TrajectoryModel,
    preprocessor: Preprocessor,
    *,
    transfer: bool = True,
    seed: int = 0,
) -> SingleKernel:
    """The most frequent last composition of a trajectory model's users; of equally frequent ones, the simplest.

    Rows are to be seen in the model's own scaling, for its hyperparameters to make sense. With `transfer` the users'
    hyperparameters are the prior, else the model's priors.
    """
    ends = Counter(path[-1] for path in model.paths if path)
    most = max(ends.values())
    mask = min((mask for mask, count in ends.items() if count == most), key=lambda mask: (mask.bit_count(), mask))
    node = model.node(model.pool.composition(mask))
    prior: Prior = node.group if transfer else model.priors
    return SingleKernel(preprocessor, node.composition, prior, STARTS, SCREEN, seed)


def final_of_evidence(
    evidences: CandidateEvidences,
    preprocessor: Preprocessor,
    *,
    transfer: bool = True,
    seed: int = 0,
) -> SingleKernel:
    """The composition with the largest log evidence summed over the training users' whole data, plus log H0 once."""
    best = evidences.masks[int(np.argmax(evidences.last().sum(axis=0) + evidences.log_h0))]
    prior: Prior = evidences.group(best) if transfer else evidences.table.prior
    return SingleKernel(preprocessor, evidences.composition(best), prior, STARTS, SCREEN, seed)


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
    """One kernel: of a given trajectory model, or of the training users' summed evidence."""
    if model is not None:
        preprocessor = group_preprocessor(cohort, reward=model.reward)
        preprocessor = replace(preprocessor, schema=model.schema, mean=model.mean)
        return final_of_model(model, preprocessor, transfer=transfer, seed=seed)
    preprocessor = group_preprocessor(cohort, reward=reward, constant=constant)
    offered = pool or Pool.atoms(cohort.covariates)
    evidences = CandidateEvidences(
        cohort, preprocessor, offered, priors or priors_for(cohort.schema), search or CandidateSearch()
    )
    return final_of_evidence(evidences, preprocessor, transfer=transfer, seed=seed)


register_learner("final", final)
