"""People drawn from a fitted model: what the pilot users' graph says of somebody of whom nothing is known.

Each has a path of kernels, drawn from the graph's transitions; hyperparameters, from the groups of the nodes on it; a
function for each product of the kernels, kept as long as the path has the product; noise; and weights of the advantage
as people differ in them. A model is right about such people, so they say how well a design works if it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.data.assignment import Assignment
from kerneltrail.data.simulate.truth import covariance
from kerneltrail.errors import DataError
from kerneltrail.kernels import Array, Composition, Hyperparameters
from kerneltrail.kernels.hyperparameters import layout_of
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.simulator.people.contexts import drawn_contexts
from kerneltrail.trial.simulator.people.participant import (
    AVAILABLE,
    POPULATIONS,
    Population,
    ScriptedParticipant,
    assumed_availability,
    checked_share,
)

JITTER = 1e-8
"""Of a function's variance, added to its diagonal: kernels with few features are singular."""


class DrawnParticipant(ScriptedParticipant):
    """Somebody new, as the graph draws them."""

    def __init__(self, model: LearntGraph, effect: float | None, share: float, hours: Array) -> None:
        count = len(model.covariates)
        super().__init__(model.covariates, [-np.inf] * count, [np.inf] * count, hours)
        self.model, self.effect, self.share = model, effect, share

    def _begin(self, rng: np.random.Generator) -> None:
        model, reward, scaler = self.model, self.model.reward, self.model.scaler
        assert reward is not None
        self._rows = drawn_contexts(model, self.hours, rng)
        scaled = scaler.transform(self._rows)
        self._could = rng.random(self.points) < self.share
        target = self._function(scaled, rng)
        weights = rng.multivariate_normal(np.zeros(len(reward.names)), reward.weight_covariance, method="eigh")
        nobody = Assignment(*(np.zeros(self.points) for _ in range(3)))
        target += reward.design(scaled, model.covariates, nobody) @ weights
        if model.mean is not None:
            target += model.mean.at(scaled, nobody)
        gain = reward.contexts(scaled, model.covariates) @ weights[reward.advantage]
        if model.mean is not None:
            gain = gain + model.mean.advantage(scaled)
        self._without = scaler.inverse_target(target)
        self._effects = scaler.scale * gain if self.effect is None else np.full(self.points, self.effect)

    def _function(self, scaled: Array, rng: np.random.Generator) -> Array:
        """What the path's kernels come to at every point, and noise; scaled."""
        model = self.model
        batches = max(len(path) for path in model.paths)
        lengths = -(-self.points // batches)
        total, kept, node = np.empty(self.points), dict[str, Array](), -1
        known: dict[int, Hyperparameters] = {}
        white = rng.standard_normal(self.points)
        for begin in range(0, self.points, lengths):
            node = int(rng.choice(len(model.selectable), p=model.transitions[node + 1]))
            here = model.selectable[node]
            if node not in known:
                spread = np.sqrt(here.group.variance) * rng.standard_normal(len(here.group.mean))
                known[node] = Hyperparameters(here.composition, tuple(here.group.mean + spread))
            values = {slot.name: known[node][slot.name] for slot in known[node].layout.slots}
            batch = slice(begin, min(begin + lengths, self.points))
            total[batch] = np.sqrt(values["noise"]) * white[batch]
            for product in here.composition:
                alone = Composition((product,))
                if alone.text not in kept:
                    names = [slot.name for slot in layout_of(alone).slots]
                    part = Hyperparameters.from_values(alone, {name: values[name] for name in names})
                    kept[alone.text] = _drawn(covariance(part, scaled, model.covariates), rng)
                total[batch] += kept[alone.text][batch]
        return total


def _drawn(matrix: Array, rng: np.random.Generator) -> Array:
    matrix[np.diag_indices_from(matrix)] += JITTER * max(float(np.trace(matrix)) / len(matrix), 1e-12)
    return np.linalg.cholesky(matrix) @ rng.standard_normal(len(matrix))


@POPULATIONS.named("model")
@dataclass(frozen=True)
class Drawn(Population):
    """People drawn from the trial's own model.

    Attributes:
        available: share of decision points at which somebody can act. A model does not know the pilot users' own.
    """

    available: float = AVAILABLE

    name: ClassVar[str] = "model"

    def __post_init__(self) -> None:
        checked_share(self.name, self.available)

    @property
    def availability(self) -> str:
        """A share, which is assumed."""
        return assumed_availability(self.name, self.available)

    def participant(self, hours: Array, slots: int) -> DrawnParticipant:
        """Somebody new."""
        model = self.source.model
        if model is None or not model.takes_action:
            raise DataError("participants of the kind model need the protocol's model, with a reward model")
        return DrawnParticipant(model, self.effect, self.available, hours)
