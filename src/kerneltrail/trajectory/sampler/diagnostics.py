"""Have the chains converged? R-hat and effective sample size (Vehtari et al. 2021), and agreement of paths.

References are to A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner (2021), "Rank-normalization, folding,
and localization: an improved R-hat", Bayesian Analysis 16(2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from kerneltrail.errors import TrajectoryError
from kerneltrail.trajectory.sampler.urn import Paths

Floats = NDArray[np.float64]


def split_rhat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat: the larger of that of the draws and of their distance to the median.

    The first says whether the chains agree on where the distribution is, the second on how wide it is. NaN where
    nothing varies at all; infinite where every chain stands still, at different values.

    Args:
        draws: shape [chains, sweeps], at least 4 sweeps.
    """
    halves = _split(draws)
    if np.ptp(halves) == 0.0:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_rhat(_rank_normalised(halves)), _rhat(_rank_normalised(folded)))


def bulk_ess(draws: ArrayLike) -> float:
    """Effective sample size of the rank-normalised split chains: how many independent draws they are worth.

    Args:
        draws: shape [chains, sweeps], at least 4 sweeps.
    """
    halves = _split(draws)
    if np.ptp(halves) == 0.0:
        return float("nan")
    return _ess(_rank_normalised(halves))


def path_agreement(paths: Paths, reference: Paths) -> float:
    """Share of customers with the same composition in both.

    >>> path_agreement(((1, 3), (2,)), ((1, 1), (2,)))
    0.6666666666666666
    """
    if tuple(map(len, paths)) != tuple(map(len, reference)):
        raise TrajectoryError("paths of different lengths cannot be compared")
    pairs = [a == b for mine, theirs in zip(paths, reference, strict=True) for a, b in zip(mine, theirs, strict=True)]
    return sum(pairs) / len(pairs)


def modal_paths(samples: Iterable[Paths]) -> Paths:
    """Each customer's most frequent composition; of equally frequent ones, the smaller mask.

    >>> modal_paths([((1, 3),), ((1, 1),), ((1, 3),)])
    ((1, 3),)
    """
    seen = list(samples)
    if not seen:
        raise TrajectoryError("no samples to take the most frequent compositions of")
    return tuple(
        tuple(
            min(Counter(mine).items(), key=lambda item: (-item[1], item[0]))[0]
            for mine in zip(*(paths[m] for paths in seen), strict=True)
        )
        for m in range(len(seen[0]))
    )


def _split(draws: ArrayLike) -> Floats:
    """Every chain cut into two halves; of an odd number of draws, the middle one is left out."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 4:
        raise TrajectoryError(f"draws must be [chains, sweeps] with at least 4 sweeps, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise TrajectoryError("draws must be finite")
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _rank_normalised(values: Floats) -> Floats:
    """Eq. (14): normal scores of the pooled ranks, ties sharing their mean rank."""
    ranks = rankdata(values, method="average").reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)), dtype=np.float64)


def _rhat(values: Floats) -> float:
    """Eqs. (1)–(4)."""
    n = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = n * values.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return float("inf") if between > 0.0 else float("nan")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def _ess(values: Floats) -> float:
    """Eqs. (10)–(13), with Geyer's initial monotone sequence as in Stan."""
    chains, n = values.shape
    covariance = _autocovariance(values)  # [chains, n]
    within = covariance[:, 0].mean() * n / (n - 1)
    plus = within * (n - 1) / n
    if chains > 1:
        plus += values.mean(axis=1).var(ddof=1)
    rho = 1.0 - (within - covariance.mean(axis=0)) / plus
    rho[0] = 1.0
    # Sums of neighbours ρ_2t + ρ_2t+1 are positive and decreasing for a reversible chain (Geyer 1992).
    pairs = rho[0 : n - n % 2 : 2] + rho[1:n:2]
    negative = np.flatnonzero(pairs <= 0.0)
    length = min(int(negative[0]) if negative.size else len(pairs), max((n - 3) // 2, 0))  # the last lags are noise
    monotone = np.minimum.accumulate(pairs[:length])
    # The first pair that was left out may begin with a positive ρ; counting it lowers the bias for antithetic chains.
    rest = max(float(rho[2 * length]), 0.0) if 2 * length < n else 0.0
    time = -1.0 + 2.0 * float(monotone.sum()) + rest
    size = chains * n
    return float(size / max(time, 1.0 / np.log10(size)))


def _autocovariance(values: Floats) -> Floats:
    """Biased autocovariances of every chain, by FFT."""
    n = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centred, 2 * n, axis=1)
    return np.fft.irfft(transform * transform.conj(), 2 * n, axis=1)[:, :n] / n
