"""Log evidence of one composition for all batches of one user, by the cheaper of two methods.

`dense` factorises the covariance; `spectral` uses features and is exact to a tolerance. The compiled MAP search
(`compiled_map`) always uses features, whatever is cheaper here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import dense, feature_rows, gram, spectral
from kerneltrail.gp.features import (
    FINEST,
    FeatureLayout,
    SpectralExpansion,
    expansion_of,
    expansions,
    feature_layout_for,
)
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.numerics import too_small
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
    """

    log: Array
    rank: NDArray[np.int64]

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
        rank: as in `Evidence`.
    """

    log: Array
    gradient: Array
    rank: NDArray[np.int64]


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
            Where the noise is below the rounding error of a covariance, features are used, or the vector is refused.
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
    log, rank = _compute(inputs, thetas, method, tol, gradient=False)
    return Evidence(log, rank)


def slope_of(inputs: Inputs, thetas: ArrayLike, *, method: Method = "auto", tol: float = TOLERANCE) -> Slope:
    """Log evidence of all rows together and its analytic gradient, at S hyperparameter vectors."""
    results, rank = _compute(inputs, thetas, method, tol, gradient=True)
    return Slope(np.ascontiguousarray(results[:, 0]), np.ascontiguousarray(results[:, 1:]), rank)


def _compute(
    inputs: Inputs, thetas: ArrayLike, method: Method, tol: float, *, gradient: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Log evidences (S, T), or with `gradient` log evidence and gradient side by side (S, 1 + k); and ranks (S,)."""
    values = inputs.natural(thetas)
    if method not in ("auto", "dense", "spectral"):
        raise KernelError(f"unknown method {method!r}; known are auto, dense, spectral")
    if not 0.0 < tol < 1.0:
        raise KernelError(f"the tolerance must lie between 0 and 1, got {tol}")
    layout = feature_layout_for(inputs)
    if layout is None and method == "spectral":
        raise KernelError(f"{inputs.composition} has an atom without a spectral form: use method 'dense' or 'auto'")
    results = np.full((len(values), 1 + inputs.layout.size if gradient else len(inputs.ends)), np.nan)
    rank = np.zeros(len(values), dtype=np.int64)
    rest = np.arange(len(values))
    by_matrix = method == "dense" or (method == "auto" and layout is not None and layout.tensor and inputs.rows < FEW)
    if layout is not None and len(values) and not by_matrix:
        for part, expansion in expansions(inputs, layout, values, tol):
            results[part], rank[part] = _by_series(inputs, expansion, method, part.start, gradient=gradient)
        rest = np.flatnonzero(~_finite(results))
    if len(rest):
        rank[rest] = 0
        results[rest] = found = _by_matrix(inputs, values[rest], gradient=gradient)
        if not np.isfinite(found).all():
            for s in rest[~_finite(found)]:
                results[s], rank[s] = _by_reflections(inputs, values[s], layout, tol, gradient=gradient)
    return results, rank


def _finite(results: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(results).all(axis=1))


def _by_series(
    inputs: Inputs, expansion: SpectralExpansion, method: Method, first: int, *, gradient: bool
) -> tuple[Array, NDArray[np.int64]]:
    """Results of the vectors for which features are the cheaper way, NaN for the others; and the number of features."""
    rank = expansion.ranks(len(inputs.fixed_features) - 1)
    chosen = np.ones(len(rank), dtype=bool)
    if method == "auto":
        cheaper = _spectral_cost(inputs, expansion.layout, rank, gradient=gradient) < _dense_cost(
            inputs, gradient=gradient
        )
        chosen = cheaper & expansion.attained & (rank < feature_rows.MOST)
    elif rank.max() >= feature_rows.MOST:
        raise NumericalError(
            f"{inputs.label} needs {rank.max()} features or more (vector {first + rank.argmax()}), too many to hold: a "
            "lengthscale is too short for the range of its covariate; use method 'dense' or 'auto'"
        )
    results = np.full((len(rank), 1 + inputs.layout.size if gradient else len(inputs.ends)), np.nan)
    for reflected in (False, True):  # by sums; by reflections where rounding of the sums hides the noise
        if not chosen.any():
            break
        part = expansion if chosen.all() else expansion.take(chosen)
        results[chosen] = _by_features(inputs, part, rank[chosen], gradient=gradient, reflected=reflected)
        chosen &= ~_finite(results) & (rank <= gram.MOST_REFLECTED)
    return results, rank


def _by_features(
    inputs: Inputs, expansion: SpectralExpansion, rank: NDArray[np.int64], *, gradient: bool, reflected: bool
) -> Array:
    extra, centre = inputs.fixed_features, inputs.reach.mean(axis=0)
    shared = (extra, expansion.layout.compiled, expansion.batch, rank)
    if gradient:
        size = inputs.layout.size
        return np.column_stack(spectral.evidence_and_gradient(inputs.columns, centre, *shared, size, reflected))
    return spectral.evidence(inputs.columns, centre, inputs.ends, *shared, reflected)


def _by_matrix(inputs: Inputs, values: Array, *, gradient: bool) -> Array:
    return np.column_stack(dense.evidence_and_gradient(inputs, values)) if gradient else dense.evidence(inputs, values)


def _by_reflections(
    inputs: Inputs, values: Array, layout: FeatureLayout | None, tol: float, *, gradient: bool
) -> tuple[Array, int]:
    """The result of a vector whose noise is lost in the rounding of a covariance, from features to the finest."""
    if layout is not None:
        expansion = expansion_of(inputs, layout, values[None], tol, FINEST)
        rank = expansion.ranks(len(inputs.fixed_features) - 1)
        if expansion.attained[0] and rank[0] <= gram.MOST_REFLECTED:
            results = _by_features(inputs, expansion, rank, gradient=gradient, reflected=True)
            if _finite(results)[0]:
                return results[0], int(rank[0])
    dense.factor_of(inputs, values)  # says what is wrong
    raise NumericalError(too_small(f"the evidence of {inputs.label} cannot be computed", values[-1]))


def _spectral_cost(inputs: Inputs, layout: FeatureLayout, rank: NDArray[np.int64], *, gradient: bool) -> Array:
    """Rough nanoseconds, fitted to `kerneltrail bench evidence`; only the ratio to `_dense_cost` matters."""
    r = rank.astype(np.float64)
    n = float(inputs.rows)
    # Batches that end before row r share one factorisation, no larger than one of the others.
    batches = 1.0 + (inputs.ends[None, :] > rank[:, None]).sum(axis=1)
    # Inner products that trigonometric moments do not save.
    pairs = 0.03 if layout.tensor else (0.018 if layout.mixed else 0.0)
    cost = n * (30.0 + 1.5 * r + pairs * r * r) + batches * (0.025 * r**3 + 1.2 * r * r + 500.0)
    return cost + (0.09 * n * r * r + 0.08 * r**3 if gradient else 0.0)


def _dense_cost(inputs: Inputs, *, gradient: bool) -> float:
    """Rough nanoseconds, as above."""
    n = float(inputs.rows)
    atoms = sum(map(len, inputs.atoms))
    cost = 10_000.0 * (1 + atoms) + n * n * (1.2 + 4.0 * atoms) + 0.0088 * n**3
    return cost + (n * n * (6.0 + 12.0 * atoms) + 0.025 * n**3 if gradient else 0.0)
