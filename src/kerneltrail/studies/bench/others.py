"""The same log evidence by other libraries, on the same matrices: scikit-learn, and GPyTorch where installed.

Both get every advantage that costs them no accuracy: kernels are built and data handed over outside the clock, no
gradient is asked for, and nothing is cloned. They return the evidence of all rows; kerneltrail that of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from kerneltrail.data import User
from kerneltrail.kernels import Hyperparameters

Contender = list[Callable[[], float]]
"""For each hyperparameter vector the call that returns the log evidence of all rows."""


def contenders(user: User, hyperparameters: Sequence[Hyperparameters]) -> dict[str, Contender]:
    """The libraries that are installed, by name."""
    found = {}
    if find_spec("sklearn") is not None:
        found["sklearn"] = _sklearn(user, hyperparameters)
    if find_spec("gpytorch") is not None:
        found["gpytorch"] = _gpytorch(user, hyperparameters)
    return found


def _sklearn(user: User, hyperparameters: Sequence[Hyperparameters]) -> Contender:
    from sklearn.gaussian_process import GaussianProcessRegressor

    from kerneltrail.adapters.sklearn import to_sklearn

    # alpha is a second noise beside the kernel's own, and it would change the matrix. One regressor serves all vectors,
    # as in an optimiser's loop.
    kernels = [to_sklearn(values, user.covariates) for values in hyperparameters]
    regressor = GaussianProcessRegressor(kernels[0], alpha=0.0, optimizer=None).fit(user.X, user.y)
    return [partial(regressor.log_marginal_likelihood, kernel.theta, clone_kernel=False) for kernel in kernels]


def _gpytorch(user: User, hyperparameters: Sequence[Hyperparameters]) -> Contender:
    import gpytorch
    import torch

    from kerneltrail.adapters.gpytorch import to_gpytorch

    torch.set_num_threads(1)
    X, y = torch.tensor(np.array(user.X)), torch.tensor(np.array(user.y))

    def evidence(kernel: Any, noise: float) -> float:
        settings = gpytorch.settings
        # Exact, by Cholesky: from 800 rows on conjugate gradients would take over, which are not.
        with torch.no_grad(), settings.fast_computations(False, False, False), settings.max_cholesky_size(10**6):
            covariance = kernel(X).add_diagonal(torch.full_like(y, noise))
            return float(gpytorch.distributions.MultivariateNormal(torch.zeros_like(y), covariance).log_prob(y))

    return [partial(evidence, *to_gpytorch(values, user.covariates)) for values in hyperparameters]
