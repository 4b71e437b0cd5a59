"""Runs a move through every outcome of its chance: its exact transition matrix, from the code itself, without noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse.csgraph import connected_components

from kerneltrail.trajectory import Joint, State
from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.moves import Workspace


class Script:
    """Stands in for the generator: at every choice it takes the one that is due, and notes all there were."""

    def __init__(self, due: list[int]) -> None:
        self.due = due
        self.taken: list[int] = []
        self.chances: list[list[float]] = []

    def decide(self, chances: list[float]) -> int:
        total = math.fsum(chances)
        assert abs(total - 1.0) < 1e-9, f"chances add up to {total}"
        place = len(self.taken)
        choice = self.due[place] if place < len(self.due) else next(i for i, p in enumerate(chances) if p > 0.0)
        self.taken.append(choice)
        self.chances.append(chances)
        return choice

    def probability(self) -> float:
        return math.prod(p[i] for p, i in zip(self.chances, self.taken, strict=True))

    def next_due(self) -> list[int] | None:
        for place in range(len(self.taken) - 1, -1, -1):
            for other in range(self.taken[place] + 1, len(self.chances[place])):
                if self.chances[place][other] > 0.0:
                    return [*self.taken[:place], other]
        return None


def install(monkeypatch, size: int) -> None:
    """Put the enumerator in the place of chance; `size` is that of the pool."""

    def pick(rng, weights):
        total = math.fsum(weights)
        return rng.decide([w / total for w in weights])

    def accept(rng, log_ratio):
        p = math.exp(min(0.0, log_ratio))
        return rng.decide([p, 1.0 - p]) == 0

    def subset(rng, n, count):
        every = list(itertools.combinations(range(n), count))
        return every[rng.decide([1.0 / len(every)] * len(every))]

    def mask(rng, source):
        return rng.decide([math.exp(source.log_prob(k)) for k in range(1 << size)])

    monkeypatch.setattr(proposals, "index", lambda rng, n: rng.decide([1.0 / n] * n))
    monkeypatch.setattr(proposals, "pick", pick)
    monkeypatch.setattr(proposals, "accept", accept)
    monkeypatch.setattr(proposals, "subset", subset)
    monkeypatch.setattr(proposals, "mask", mask)


def outcomes(call: Callable[[Script], object]) -> Iterator[tuple[float, object]]:
    """Every result of a call with its probability."""
    due: list[int] | None = []
    while due is not None:
        script = Script(due)
        result = call(script)
        yield script.probability(), result
        due = script.next_due()


def transition_matrix(joint: Joint, states: list, step: Callable[[Script, Workspace], object]) -> np.ndarray:
    """P[i, j] of a step on a workspace, over all states."""
    place = {paths: i for i, paths in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for i, paths in enumerate(states):
        state = State(paths, joint.log_joint(paths))

        def call(script, state=state):
            work = Workspace(joint, state)
            step(script, work)
            return tuple(map(tuple, work.paths))

        for probability, result in outcomes(call):
            matrix[i, place[result]] += probability
    return matrix


def reachable(matrix: np.ndarray) -> bool:
    """Whether every state leads to every other."""
    return bool(connected_components(matrix > 0.0, directed=True, connection="strong")[0] == 1)
