"""Log evidence of one composition for all batches of one user, by the cheaper of two exact methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import dense, feature_rows, spectral
from kerneltrail.gp.features import Expansion, Plan, plan_for
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.reward import LinearBlock
from kerneltrail.kernels.composition import Composition

Array = NDArray[np.float64]
Method = Literal["auto", "dense", "spectral"]

TOLERANCE = 1e-10
"""Default error allowed in a log evidence by truncated series."""

FEW = 200
"""Rows below which features of a product of several series are too many to be worth counting."""


@dataclass(frozen=True)
class Evidence:
    """Log evidences and how they were computed.

    Attributes:
        log: log p(y[1..n_t] | X, composition, θ_s), shape (S, T).
        rank: number of features used for each θ, shape (S,); 0 where the dense method was used.
        jitter: added to the diagonal for each θ, shape (S,); it changes an evidence, so it is on record.
    """

    log: Array
    rank: NDArray[np.int64]
    jitter: Array

    @property
    def method(self) -> tuple[str, ...]:
        """The method used for each θ."""
        return tuple("spectral" if r else "dense" for r in self.rank)


@dataclass(frozen=True)
class Slope:
    """The log evidence of all rows and its gradient.

    Attributes:
        log: shape (S,).
        gradient: by the unconstrained hyperparameters, shape (S, k).
        rank, jitter: as in `Evidence`.
    """

    log: Array
    gradient: Array
    rank: NDArray[np.int64]
    jitter: Array


def evidence(
    user: Rows,
    composition: Composition,
    thetas: ArrayLike,
    *,
    method: Method = "auto",
    tol: float = TOLERANCE,
    block: LinearBlock | None = None,
) -> Evidence:
    """Log evidence of a composition for all batches of a user, at S hyperparameter vectors, in one pass (method (10)).

    Args:
        user: rows in time order with batch ends.
        composition: the kernel.
        thetas: unconstrained hyperparameters, (S, k) or (k,), in the layout's order.
        method: ``dense`` (one Cholesky), ``spectral`` (features, exact to `tol`) or ``auto`` (the cheaper, per θ).
        tol: error allowed in a log evidence by the spectral method.
        block: linear block of a reward model.
    """
    return evidence_of(inputs_for(user, composition, block=block), thetas, method=method, tol=tol)


def log_evidence(
    user: Rows,
    composition: Composition,
    thetas: ArrayLike,
    *,
    method: Method = "auto",
    tol: float = TOLERANCE,
    block: LinearBlock | None = None,
) -> Array:
    """`evidence(...)` as a plain array of shape (S, T)."""
    return evidence(user, composition, thetas, method=method, tol=tol, block=block).log


def evidence_of(inputs: Inputs, thetas: ArrayLike, *, method: Method = "auto", tol: float = TOLERANCE) -> Evidence:
    """Like `evidence`, from inputs prepared once."""
    values = inputs.natural(thetas)
    by_spectral, expansion, rank = _choose(inputs, values, method, tol, gradient=False)
    log = np.empty((len(values), len(inputs.ends)))
    jitter = np.zeros(len(values))
    if by_spectral.any():
        assert expansion is not None  # _choose offers spectral only with an expansion
        log[by_spectral] = spectral.evidence(inputs, _take(expansion, by_spectral))
        by_spectral &= np.isfinite(log).all(axis=1)
    rest = ~by_spectral
    if rest.any():
        log[rest], jitter[rest] = dense.evidence(inputs, values[rest])
    return Evidence(log, np.where(by_spectral, rank, 0), jitter)


def slope_of(inputs: Inputs, thetas: ArrayLike, *, method: Method = "auto", tol: float = TOLERANCE) -> Slope:
    """Log evidence of all rows together and its analytic gradient, at S hyperparameter vectors."""
    values = inputs.natural(thetas)
    by_spectral, expansion, rank = _choose(inputs, values, method, tol, gradient=True)
    log = np.empty(len(values))
    gradient = np.empty_like(values)
    jitter = np.zeros(len(values))
    if by_spectral.any():
        assert expansion is not None  # _choose offers spectral only with an expansion
        log[by_spectral], gradient[by_spectral] = spectral.evidence_and_gradient(inputs, _take(expansion, by_spectral))
        by_spectral &= np.isfinite(log) & np.isfinite(gradient).all(axis=1)
    rest = ~by_spectral
    if rest.any():
        log[rest], gradient[rest], jitter[rest] = dense.evidence_and_gradient(inputs, values[rest])
    return Slope(log, gradient, np.where(by_spectral, rank, 0), jitter)


def _choose(
    inputs: Inputs, values: Array, method: Method, tol: float, *, gradient: bool
) -> tuple[NDArray[np.bool_], Expansion | None, NDArray[np.int64]]:
    """For each θ whether to use the spectral method, with its expansion and ranks."""
    none = np.zeros(len(values), dtype=np.int64)
    if method not in ("auto", "dense", "spectral"):
        raise KernelError(f"unknown method {method!r}; known are auto, dense, spectral")
    if not 0.0 < tol < 1.0:
        raise KernelError(f"the tolerance must lie between 0 and 1, got {tol}")
    if not len(values):
        return none.astype(bool), None, none
    plan = None if method == "dense" else plan_for(inputs)
    if plan is None:
        if method == "spectral":
            raise KernelError(f"{inputs.composition} has an atom without a spectral form: use method 'dense' or 'auto'")
        return none.astype(bool), None, none
    if method == "auto" and plan.tensor and inputs.rows < FEW:
        return none.astype(bool), None, none
    expansion = spectral.expansion_of(inputs, plan, values, tol)
    extra = 0 if inputs.block is None else inputs.block.features.shape[1]
    rank = spectral.ranks_of(expansion, extra)
    if method == "spectral":
        if rank.max() >= feature_rows.MOST:
            raise NumericalError(
                f"{inputs.label} needs {rank.max()} features or more (vector {rank.argmax()}), too many to hold: a "
                "lengthscale is too short for the range of its covariate; use method 'dense' or 'auto'"
            )
        return np.ones(len(values), dtype=bool), expansion, rank
    cheaper = _spectral_cost(inputs, plan, rank, gradient=gradient) < _dense_cost(inputs, gradient=gradient)
    return cheaper & expansion.attained & (rank < feature_rows.MOST), expansion, rank


def _spectral_cost(inputs: Inputs, plan: Plan, rank: NDArray[np.int64], *, gradient: bool) -> Array:
    """Rough nanoseconds, fitted to `kerneltrail bench evidence`; only the ratio to `_dense_cost` matters."""
    r = rank.astype(np.float64)
    n = float(inputs.rows)
    # Batches that end before row r share one factorisation, no larger than one of the others.
    batches = 1.0 + (inputs.ends[None, :] > rank[:, None]).sum(axis=1)
    # Inner products that trigonometric moments do not save.
    pairs = 0.25 if plan.tensor else (0.08 if plan.mixed else 0.0)
    cost = n * (20.0 + 4.0 * r + pairs * r * r) + batches * (0.055 * r**3 + 3.0 * r * r + 500.0)
    return cost + (0.15 * n * r * r + 0.15 * r**3 if gradient else 0.0)


def _dense_cost(inputs: Inputs, *, gradient: bool) -> float:
    """Rough nanoseconds, as above."""
    n = float(inputs.rows)
    atoms = sum(map(len, inputs.atoms))
    cost = 10_000.0 * (1 + atoms) + n * n * (1.2 + 4.0 * atoms) + 0.0088 * n**3
    return cost + (n * n * (6.0 + 12.0 * atoms) + 0.025 * n**3 if gradient else 0.0)


def _take(expansion: Expansion, which: NDArray[np.bool_]) -> Expansion:
    """The expansion of some of the hyperparameter vectors."""
    if which.all():
        return expansion
    return Expansion(
        expansion.plan, expansion.amplitude[which], expansion.noise[which], expansion.location[which],
        expansion.omega[which], expansion.count[which], expansion.weights[which], expansion.dlog_weights[which],
        expansion.domega[which], expansion.cutoff[which], expansion.attained[which],
    )  # fmt: skip
