"""The dense method: build the covariance, factorise once, read off every batch. Works for every kernel."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.errors import NumericalError
from kerneltrail.gp.inputs import Inputs
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper
from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]


def product_covariance(inputs: Inputs, p: int, values: Array, X: Array, Z: Array | None = None) -> Array:
    """σ_f² Π k_atom of product `p` between rows of X and of Z (X itself if None); `values` are natural."""
    layout = inputs.layout
    other = X if Z is None else Z
    result: Array | None = None
    for atom, column, slots in inputs.atoms[p]:
        factor = atom.covariance(X[:, column], other[:, column], values[slots])
        result = factor if result is None else np.multiply(result, factor, out=result)
    assert result is not None  # a product has at least one atom
    result *= values[layout.amplitude_index[p]]
    return result


def product_diagonal(inputs: Inputs, p: int, values: Array, X: Array) -> Array:
    """The prior variance of product `p` at each row of X."""
    result = np.full(len(X), values[inputs.layout.amplitude_index[p]])
    for atom, column, slots in inputs.atoms[p]:
        result *= atom.diagonal(X[:, column], values[slots])
    return result


def covariance(inputs: Inputs, values: Array, parts: list[list[Array]] | None = None) -> Array:
    """K_θ(X,X) + B Σ Bᵀ + σ²I of all rows; `parts`, if given, are the atoms' own and stay as they are."""
    total: Array | None = None
    for p in range(len(inputs.atoms)):
        if parts is None:
            term = product_covariance(inputs, p, values, inputs.X)
        else:
            term = parts[p][0] * values[inputs.layout.amplitude_index[p]]
            for part in parts[p][1:]:
                term *= part
        total = term if total is None else np.add(total, term, out=total)
    if total is None:
        total = np.zeros((inputs.rows, inputs.rows))
    if inputs.weighted is not None:
        total += inputs.weighted @ inputs.weighted.T
    total.reshape(-1)[:: inputs.rows + 1] += values[-1]
    return total


def factor_of(inputs: Inputs, values: Array, parts: list[list[Array]] | None = None) -> Array:
    """The lower Cholesky factor of the covariance of all rows."""
    with np.errstate(all="ignore"):  # an overflow ends in an error by name there
        total = covariance(inputs, values, parts)
    return factorise(total, what=f"the covariance of {inputs.label}", overwrite=True)


def _check(inputs: Inputs, *results: Array | float) -> None:
    if not all(np.all(np.isfinite(result)) for result in results):
        raise NumericalError(
            f"the evidence of {inputs.label} is not finite: targets of size {np.abs(inputs.y).max():g} are too large "
            "for these hyperparameters"
        )


def prefix_evidence(lower: Array, y: Array, ends: NDArray[np.int64]) -> Array:
    """Log evidences of y[:n] for every n in `ends`, from one factor (method (11), prefix property).

    The leading block of L is the factor of the leading block of K, so with z = L⁻¹y
    log p(y[1..n]) = Σ_{i≤n} (-z_i²/2 - log L_ii - log(2π)/2).
    """
    z = solve_lower(lower, y)
    terms = -0.5 * z * z - np.log(np.diagonal(lower)) - 0.5 * LOG_2PI
    return np.cumsum(terms)[ends - 1]


def evidence(inputs: Inputs, values: Array) -> Array:
    """Log evidence (S, T) for natural hyperparameters `values` (S, k); NaN where rounding hides the noise."""
    log = np.full((len(values), len(inputs.ends)), np.nan)
    for s, row in enumerate(values):
        try:
            lower = factor_of(inputs, row)
        except NumericalError:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            log[s] = prefix_evidence(lower, inputs.y, inputs.ends)
        _check(inputs, log[s, -1])  # a sum over all rows, so what is not finite shows there
    return log


def _parts(inputs: Inputs, values: Array) -> list[list[Array]]:
    """The covariance of every atom of every product between all rows."""
    return [
        [kind.covariance(inputs.X[:, c], inputs.X[:, c], values[slots]) for kind, c, slots in atoms]
        for atoms in inputs.atoms
    ]


@compiled(fastmath={"reassoc", "contract"})
def _inner(a: Array, b: Array, c: Array) -> float:
    """Σ_ij a_ij b_ij c_ij, without a matrix in between."""
    total = 0.0
    for i in range(a.shape[0]):
        row = 0.0
        for j in range(a.shape[1]):
            row += a[i, j] * b[i, j] * c[i, j]
        total += row
    return total


def _contract(inputs: Inputs, values: Array, matrix: Array, parts: list[list[Array]]) -> Array:
    """½ Σ_ij M_ij dK_ij/du for every unconstrained hyperparameter u, M = αα' - K⁻¹."""
    layout = inputs.layout
    out = np.zeros(layout.size)
    for p, atoms in enumerate(inputs.atoms):
        amplitude = layout.amplitude_index[p]
        for a, (kind, column, slots) in enumerate(atoms):
            rest = [part for b, part in enumerate(parts[p]) if b != a]
            others = matrix
            for part in rest[1:]:
                others = others * part
            slopes = kind.gradient(inputs.columns[column], values[slots], parts[p][a])
            if a == 0:  # dK/d log σ_f² is the product itself
                slopes = [parts[p][0], *slopes]
            sums = [_inner(others, slope, rest[0]) if rest else np.vdot(others, slope) for slope in slopes]
            out[amplitude if a == 0 else slots.start : slots.stop] = values[amplitude] * np.array(sums)
    out[-1] = values[-1] * np.trace(matrix)  # dK/d log σ² = σ²I
    return 0.5 * out


def outer_minus_inverse(lower: Array, alpha: Array) -> Array:
    """αα' - (LLᵀ)⁻¹ as a full symmetric matrix: what a gradient of the log evidence is contracted with."""
    if lower.shape[0] == 0:
        return np.empty((0, 0))
    inverted, info = scipy.linalg.lapack.dpotri(lower, lower=1)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal")
    # dpotri fills one triangle of a column-major matrix: seen row-major, the upper one.
    return _finish(np.ascontiguousarray(inverted.T), alpha)


@compiled()
def _finish(upper: Array, alpha: Array) -> Array:
    for i in range(upper.shape[0]):
        for j in range(i, upper.shape[0]):
            upper[i, j] = alpha[i] * alpha[j] - upper[i, j]
    for i in range(upper.shape[0]):
        for j in range(i):
            upper[i, j] = upper[j, i]
    return upper


def evidence_and_gradient(inputs: Inputs, values: Array) -> tuple[Array, Array]:
    """Log evidence (S,) of all rows together and its gradient (S, k) in the unconstrained space; NaN as above.

    d log p/du = ½ tr((αα' - K⁻¹) dK/du), α = K⁻¹y (Rasmussen and Williams 2006, eq. 5.9).
    """
    log = np.full(len(values), np.nan)
    gradient = np.full_like(values, np.nan)
    for s, row in enumerate(values):
        with np.errstate(all="ignore"):  # an overflow ends in an error by name
            parts = _parts(inputs, row)
        try:
            lower = factor_of(inputs, row, parts)
        except NumericalError:
            continue
        with np.errstate(all="ignore"):
            z = solve_lower(lower, inputs.y)
            log[s] = -0.5 * z @ z - np.log(np.diagonal(lower)).sum() - 0.5 * inputs.rows * LOG_2PI
            alpha = solve_upper(lower, z)
            gradient[s] = _contract(inputs, row, outer_minus_inverse(lower, alpha), parts)
        _check(inputs, log[s], gradient[s])
    return log, gradient
