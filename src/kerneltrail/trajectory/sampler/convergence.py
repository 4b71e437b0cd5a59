"""Have the chains of a fit converged? What is watched of them: log joint, number of edges, agreement of paths.

R-hat and effective sample size are those of A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner (2021),
"Rank-normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16(2). Sizes are arviz-stats'
(`effective_size`). R-hat is our own, because it decides when chains stop: arviz-stats' is the same number for two
chains or more, and none for one chain, whose halves are compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike

from kerneltrail.errors import TrajectoryError
from kerneltrail.kernels import Array
from kerneltrail.trajectory.sampler.joint import Choice, State, choose
from kerneltrail.trajectory.sampler.urn import Paths

if TYPE_CHECKING:
    from kerneltrail.trajectory.sampler.chains import Chain

STILL = 1e-9
"""A trace that varies by less stands still."""


def late_states(chains: Sequence[Chain], rescore: Callable[[Paths], float] | None = None) -> list[State]:
    """The states of the later half of the sweeps; the first half is warm-up.

    `rescore`, if given, replaces the log joint that the chains noted: where that is not a function of the paths alone.
    """
    half = len(chains[0].log_joint) // 2
    book, scores = chains[0].visited.book, dict[bytes, float]()
    states = []
    for chain in chains:
        for codes, log in zip(chain.visited.codes[half:], chain.log_joint[half:], strict=True):
            if rescore is not None:
                key = codes.tobytes()
                if key not in scores:
                    scores[key] = rescore(book.decode(codes))
                log = scores[key]
            states.append(State.coded(book, codes, log))
    return states


def traces_of(chains: Sequence[Chain], chosen: Paths, *, first: int = 0) -> dict[str, Array]:
    """Log joint, number of edges and agreement with the chosen paths from sweep `first` on, each (chains, sweeps)."""
    visited = [chain.visited.since(first) for chain in chains]
    return {
        "log_joint": np.array([chain.log_joint[first:] for chain in chains]),
        "edges": np.array([each.edges() for each in visited], dtype=np.float64),
        "agreement": np.array([each.agreement(chosen) for each in visited]),
    }


def rhats(traces: Mapping[str, Array]) -> dict[str, float]:
    """R-hat of each trace; 1 where nothing moves and all agree."""
    return {name: float(split_rhat(v)) if np.ptp(v) > STILL else 1.0 for name, v in traces.items()}


def worst_rhat(
    chains: Sequence[Chain],
    margin: float,
    prior: Callable[[Paths], float] | None = None,
    choice: Choice = "simplest",
) -> float:
    """The largest R-hat of the three over the later half of the sweeps: what decides whether chains go on.

    Agreement is with the structure that would be chosen now, by the log joint that the chains noted; where the margin
    is on the likelihood, less the log `prior` of its paths.
    """
    states = late_states(chains)
    worth = None
    if prior is not None:
        noted: dict[Paths, float] = {}
        for state in states:
            noted[state.paths] = max(state.log_joint, noted.get(state.paths, -np.inf))

        def worth(paths: Paths) -> float:
            return noted[paths] - prior(paths)

    chosen = choose(states, margin=margin, worth=worth, choice=choice)[0]
    return max(rhats(traces_of(chains, chosen.paths, first=len(chains[0].log_joint) // 2)).values())


def split_rhat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat: the larger of that of the draws and of their distance to the median.

    The first says whether the chains agree on where the distribution is, the second on how wide it is. NaN where
    nothing varies at all; infinite where every chain stands still, at different values. Draws are [chains, sweeps].
    """
    values = checked(draws)
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])  # of an odd number, the middle draw is left out
    if np.ptp(halves) == 0.0:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_rhat(_rank_normalised(halves)), _rhat(_rank_normalised(folded)))


def checked(draws: ArrayLike) -> Array:
    """Draws as numbers, [chains, sweeps]; refused where they are too few or not finite."""
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 4:
        raise TrajectoryError(f"draws must be [chains, sweeps] with at least 4 sweeps, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise TrajectoryError("draws must be finite")
    return values


def _rank_normalised(values: Array) -> Array:
    """Eq. (14): normal scores of the pooled ranks, ties sharing their mean rank."""
    ranks = scipy.stats.rankdata(values, method="average").reshape(values.shape)
    return np.asarray(scipy.special.ndtri((ranks - 0.375) / (values.size + 0.25)), dtype=np.float64)


def _rhat(values: Array) -> float:
    """Eqs. (1)–(4)."""
    n = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = n * values.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return float("inf") if between > 0.0 else float("nan")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))
