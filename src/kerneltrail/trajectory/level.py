"""A level of the user's own, with which effects are stated where a model has none.

A kernel that has to explain how high a user's rows lie does so with its slopes and curves: LIN by its location, which
is a point estimate, so that its slope follows the level and looks far too sure. What moves with a covariate is told
apart from the level by a constant with a wide prior (method §8.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.gp import Reward
from kerneltrail.kernels import Hyperparameters
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.kernel_posterior import KernelPosterior
from kerneltrail.trajectory.map_table import block_of

WIDE = 10.0
"""Prior variance of the level, in mean squares of the user's rows: next to no shrinkage."""


def with_level(model: LearntGraph, rows: User) -> LearntGraph:
    """The model with a constant of the user's own, if it has none; `rows` are scaled and less the population mean."""
    reward = model.reward
    if reward is not None and reward.constant_variance > 0:
        return model
    variance = WIDE * max(float(np.mean(rows.y**2)), 1e-12)
    if reward is None:
        return replace(model, reward=Reward.constant(variance))
    variances = None if reward.variances is None else (variance, *reward.variances)
    covariance = None
    if reward.covariance is not None:
        covariance = tuple(map(tuple, scipy.linalg.block_diag([[variance]], reward.weight_covariance)))
    level = replace(reward, constant_variance=variance, variances=variances, covariance=covariance)
    return replace(model, reward=level)


def posteriors(
    model: LearntGraph, rows: User, fitted: Sequence[Hyperparameters], weights: Sequence[float]
) -> list[KernelPosterior]:
    """The kernels that count, given a user's rows, under a model's linear block."""
    block = block_of(rows, model.reward)
    return [
        KernelPosterior(float(weight), gp.Posterior.fit(rows, hyperparameters, block=block))
        for hyperparameters, weight in zip(fitted, weights, strict=True)
    ]
