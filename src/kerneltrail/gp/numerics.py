"""Factorisation with the package's one rule for what double precision can tell from zero (method §12). float64 only."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.engines import one_blas_thread as one_blas_thread  # linear algebra of these sizes wants it
from kerneltrail.errors import NumericalError

Array = NDArray[np.float64]

RESOLUTION = 1e-11
"""Smallest share of its diagonal that a pivot of a covariance with noise may be.

A pivot is a difference that rounding makes uncertain by some 1e-16 of its diagonal, so at this share a log evidence is
still right to some 1e-4. Below it the noise cannot be told from the rounding of the signal. Nothing is ever added
to the diagonal instead: what makes such a matrix definite is more noise than the model has.
"""

LEAST_CURVATURE = 0.05
"""Least curvature of a log posterior that Laplace's approximation believes, relative to the prior's own (which is 1).

Data can make a direction flatter than the prior near the optimum, but an integral as wide as sqrt(1/0.05) = 4.5 prior
standard deviations would already count values that the prior excludes.
"""

LOG_2PI = float(np.log(2.0 * np.pi))


def factorise(
    matrix: Array, *, what: str = "the covariance matrix", overwrite: bool = False, resolution: float = RESOLUTION
) -> Array:
    """The lower Cholesky factor of a symmetric matrix; what stands above the diagonal is arbitrary.

    Args:
        matrix: symmetric, (n, n).
        what: named in the error, e.g. the kernel, user and batch.
        overwrite: whether the matrix may be destroyed.
        resolution: smallest share of its diagonal that a pivot may be; 0 for a matrix that is singular by nature.

    Raises:
        NumericalError: where the matrix is not finite, or not positive definite as far as double precision can tell.
    """
    size = matrix.shape[0]
    if size == 0:
        return np.empty((0, 0))
    diagonal = np.diagonal(matrix).copy()
    with np.errstate(over="ignore", invalid="ignore"):  # told by the next line
        scale = float(diagonal.sum()) / size
    if not np.isfinite(scale) or scale <= 0.0:
        raise NumericalError(
            f"{what} has a diagonal of mean {scale}: hyperparameters or covariates have over- or underflowed"
        )
    if not overwrite:
        matrix = np.array(matrix, order="F")
    lower, info = scipy.linalg.lapack.dpotrf(
        matrix.T if matrix.flags.c_contiguous else matrix, lower=1, clean=0, overwrite_a=1
    )
    pivots = np.diagonal(lower)
    if info == 0 and not np.isfinite(pivots.sum()):  # not every LAPACK stops at a pivot that is no number
        raise NumericalError(f"{what} has entries that are not finite: hyperparameters have overflowed")
    if info != 0 or (resolution and (pivots * pivots < resolution * diagonal).any()):
        raise NumericalError(
            too_small(f"{what} is not positive definite", None, f"variances of up to {diagonal.max():g}")
        )
    return lower


def too_small(problem: str, noise: float | None, signals: str = "signals of this size") -> str:
    """The message where rounding hides the noise: what happened, and what to do."""
    variance = "the noise variance" if noise is None else f"the noise variance {noise:g}"
    return (
        f"{problem} in double precision: {variance} is too small beside {signals} to be told from "
        "rounding; use a larger noise, drop rows that are almost equal, or scale the covariates and the target"
    )


def solve_lower(lower: Array, right: Array) -> Array:
    """L⁻¹ right, with only the lower triangle of `lower` read."""
    return _solve(lower, right, 0)


def solve_upper(lower: Array, right: Array) -> Array:
    """L⁻ᵀ right, with only the lower triangle of `lower` read."""
    return _solve(lower, right, 1)


def _solve(lower: Array, right: Array, trans: int) -> Array:
    if lower.shape[0] == 0:
        return np.zeros_like(right)
    solution, info = scipy.linalg.lapack.dtrtrs(lower, right, lower=1, trans=trans)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal")
    return solution


def half(covariance: Array, *, what: str) -> Array:
    """Any matrix whose product with its transpose is a covariance: the quicker of Cholesky's factor and `root`."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:  # singular, or no covariance, which `root` says
        return root(covariance, what=what)


def root(covariance: Array, *, what: str, scale: float = 0.0) -> Array:
    """A matrix R with R Rᵀ = covariance, for a covariance that may be singular.

    Rounding is relative to its largest eigenvalue, or to `scale` where it is a difference of matrices of that size.
    """
    # SciPy's driver, not NumPy's: the signs differ, and users' files of before hold sums seen through SciPy's.
    values, vectors = scipy.linalg.eigh(covariance)
    if values.size and values[0] < -1e-10 * max(float(values[-1]), scale, 1e-300):
        raise NumericalError(f"{what} has a negative eigenvalue ({values[0]:g}): it is not a covariance")
    return vectors * np.sqrt(np.clip(values, 0.0, None))
