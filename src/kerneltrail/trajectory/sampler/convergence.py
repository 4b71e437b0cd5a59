"""What is watched of the chains of a fit, and whether they agree on it: log joint, number of edges, path agreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kerneltrail.trajectory.sampler.diagnostics import bulk_ess, path_agreement, split_rhat
from kerneltrail.trajectory.sampler.state import State
from kerneltrail.trajectory.sampler.urn import Paths
from kerneltrail.trajectory.structure import choose

Array = NDArray[np.float64]
STILL = 1e-9
"""A trace that varies by less stands still."""


class Trail(Protocol):
    """What a chain has seen, sweep by sweep."""

    @property
    def log_joint(self) -> Sequence[float]:
        """After every sweep."""
        ...

    @property
    def visited(self) -> Sequence[Paths]:
        """The paths after every sweep."""
        ...


def late_states(chains: Sequence[Trail], rescore: Callable[[Paths], float] | None = None) -> list[State]:
    """The states of the later half of the sweeps; the first half is warm-up.

    `rescore`, if given, replaces the log joint that the chains noted: where that is not a function of the paths alone.
    """
    half = len(chains[0].log_joint) // 2
    seen = [
        (paths, log)
        for chain in chains
        for paths, log in zip(chain.visited[half:], chain.log_joint[half:], strict=True)
    ]
    scores = {} if rescore is None else {paths: rescore(paths) for paths in dict.fromkeys(paths for paths, _ in seen)}
    return [State(paths, scores.get(paths, log)) for paths, log in seen]


def traces_of(chains: Sequence[Trail], chosen: Paths, *, first: int = 0) -> dict[str, Array]:
    """Log joint, number of edges and agreement with the chosen paths from sweep `first` on, each (chains, sweeps)."""
    states = [[State(paths, 0.0) for paths in chain.visited[first:]] for chain in chains]
    return {
        "log_joint": np.array([chain.log_joint[first:] for chain in chains]),
        "edges": np.array([[float(state.edges) for state in own] for own in states]),
        "agreement": np.array([[path_agreement(state.paths, chosen) for state in own] for own in states]),
    }


def rhats(traces: Mapping[str, Array]) -> dict[str, float]:
    """R-hat of each trace; 1 where nothing moves and all agree."""
    return {name: float(split_rhat(v)) if np.ptp(v) > STILL else 1.0 for name, v in traces.items()}


def sizes(traces: Mapping[str, Array]) -> dict[str, float]:
    """Bulk effective sample size of each trace; the number of sweeps where nothing moves."""
    return {name: float(bulk_ess(v)) if np.ptp(v) > STILL else float(v.size) for name, v in traces.items()}


def worst_rhat(chains: Sequence[Trail], margin: float, prior: Callable[[Paths], float] | None = None) -> float:
    """The largest R-hat of the three over the later half of the sweeps: what decides whether chains go on.

    Agreement is with the structure that would be chosen now, by the log joint that the chains noted; where the margin
    is on the likelihood, less the log `prior` of its paths.
    """
    states = late_states(chains)
    noted: dict[Paths, float] = {}
    for state in states:
        noted[state.paths] = max(state.log_joint, noted.get(state.paths, -np.inf))
    worth = None if prior is None else (lambda paths: noted[paths] - prior(paths))
    chosen = choose(states, margin=margin, worth=worth)[0]
    return max(rhats(traces_of(chains, chosen.paths, first=len(chains[0].log_joint) // 2)).values())
