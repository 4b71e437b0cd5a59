"""Factorisation with the package's one jitter policy (method §12). float64 only."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache

import numba
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from kerneltrail.errors import NumericalError

Array = NDArray[np.float64]

JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Tried in this order, each times the mean of the diagonal.

The first non-zero one is a few rounding errors: enough where duplicate rows make a matrix singular in floating point
only. The last is still far below any noise that data could tell from zero; past it the matrix is wrong, not merely
rounded.
"""

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Factor:
    """A lower Cholesky factor and the jitter that was added to the diagonal to get it (0 in all but odd cases)."""

    lower: Array
    jitter: float


def factorise(matrix: Array, *, what: str = "the covariance matrix", overwrite: bool = False) -> Factor:
    """The Cholesky factor of a symmetric matrix, adding as little jitter as it takes.

    Args:
        matrix: symmetric, (n, n).
        what: named in the error, e.g. the kernel, user and batch.
        overwrite: whether the matrix may be destroyed when no jitter is needed.

    Raises:
        NumericalError: where the matrix is not finite, or not positive definite even with the largest jitter.
    """
    size = matrix.shape[0]
    if size == 0:
        return Factor(np.empty((0, 0)), 0.0)
    diagonal = np.diagonal(matrix)
    with np.errstate(over="ignore", invalid="ignore"):  # told by the next line
        scale = float(np.mean(diagonal))
    if not np.isfinite(scale) or scale <= 0.0:
        raise NumericalError(
            f"{what} has a diagonal of mean {scale}: hyperparameters or covariates have over- or underflowed"
        )
    keep = None if overwrite and size > 1 else matrix
    for relative in JITTERS:
        jitter = relative * scale
        if relative == 0.0 and keep is not None:
            work = np.array(keep, order="F")
        elif relative == 0.0:
            # A failed factorisation leaves the strict upper triangle as it was, so the matrix can be restored from it.
            diagonal = diagonal.copy()
            work = matrix.T if matrix.flags.c_contiguous else matrix
        elif keep is not None:
            work = np.array(keep, order="F")
            work[np.diag_indices(size)] += jitter
        else:
            upper = np.triu(work, 1)
            work = np.asfortranarray(upper + upper.T)
            work[np.diag_indices(size)] = diagonal + jitter
        lower, info = lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            if not np.isfinite(np.diagonal(lower).sum()):  # not every LAPACK stops at a pivot that is no number
                raise NumericalError(f"{what} has entries that are not finite: hyperparameters have overflowed")
            return Factor(lower, jitter)
        work = lower
    raise NumericalError(
        f"{what} is not positive definite, even with {JITTERS[-1]:g} of its scale added to the diagonal: the noise is "
        "too small for rows that are almost equal, or the covariates span too many orders of magnitude"
    )


def solve_lower(lower: Array, right: Array) -> Array:
    """L⁻¹ right, with only the lower triangle of `lower` read."""
    if lower.shape[0] == 0:
        return np.zeros_like(right)
    solution, info = lapack.dtrtrs(lower, right, lower=1)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal")
    return solution


def solve_upper(lower: Array, right: Array) -> Array:
    """L⁻ᵀ right, with only the lower triangle of `lower` read."""
    if lower.shape[0] == 0:
        return np.zeros_like(right)
    solution, info = lapack.dtrtrs(lower, right, lower=1, trans=1)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal")
    return solution


def outer_minus_inverse(lower: Array, alpha: Array) -> Array:
    """αα' - (LLᵀ)⁻¹ as a full symmetric matrix: what a gradient of the log evidence is contracted with."""
    if lower.shape[0] == 0:
        return np.empty((0, 0))
    inverted, info = lapack.dpotri(lower, lower=1)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal")
    # dpotri fills one triangle of a column-major matrix: seen row-major, the upper one.
    return _finish(np.ascontiguousarray(inverted.T), alpha)


@numba.njit(cache=True)
def _finish(upper: Array, alpha: Array) -> Array:
    for i in range(upper.shape[0]):
        for j in range(i, upper.shape[0]):
            upper[i, j] = alpha[i] * alpha[j] - upper[i, j]
    for i in range(upper.shape[0]):
        for j in range(i):
            upper[i, j] = upper[j, i]
    return upper


def root(covariance: Array, *, what: str) -> Array:
    """A matrix R with R Rᵀ = covariance, for a covariance that may be singular."""
    values, vectors = scipy.linalg.eigh(covariance)
    if values.size and values[0] < -1e-10 * max(float(values[-1]), 1e-300):
        raise NumericalError(f"{what} has a negative eigenvalue ({values[0]:g}): it is not a covariance")
    return vectors * np.sqrt(np.clip(values, 0.0, None))


@cache
def keep_freed_memory() -> bool:
    """Tell the C library of this process to reuse freed memory instead of returning it; whether it listened.

    Matrices of some hundred rows are just past the size that glibc maps anew for every temporary, and page faults then
    take half the time of a gradient. For processes of our own (workers, command line), not for a host's.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of <malloc.h>
    return bool(mallopt(threshold, 1 << 27)) and bool(mallopt(trim, 1 << 28))
