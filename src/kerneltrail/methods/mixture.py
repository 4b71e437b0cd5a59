"""A fit by Gaussian processes: one composition, or several averaged by their probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.gp import Prediction
from kerneltrail.kernels import Composition, Hyperparameters, parse
from kerneltrail.methods.preprocessing import PreparedRows, PreprocessedLearner
from kerneltrail.methods.protocol import Array

SMALL = 1e-3
"""A member less probable than this cannot be seen in the average, and is left out."""


@dataclass(frozen=True)
class Mixture:
    """Gaussian processes with known hyperparameters on the same rows, with weights that add up to 1; a `Fit`.

    `composition` is what is said to be selected.
    """

    prepared: PreparedRows
    members: tuple[Hyperparameters, ...]
    weights: tuple[float, ...]
    composition: Composition

    @classmethod
    def single(cls, prepared: PreparedRows, hyperparameters: Hyperparameters) -> Mixture:
        """One Gaussian process."""
        return cls(prepared, (hyperparameters,), (1.0,), hyperparameters.composition)

    @classmethod
    def weighed(
        cls, prepared: PreparedRows, members: Sequence[Hyperparameters], log_weights: Sequence[float]
    ) -> Mixture:
        """Several, by unnormalised log weights; the most probable is the one selected."""
        log = np.array(log_weights, dtype=np.float64)
        weights = np.exp(log - log.max())
        weights /= weights.sum()
        best = int(np.argmax(weights))
        likely = [i for i in range(len(members)) if weights[i] >= SMALL or i == best]
        total = float(weights[likely].sum())
        return cls(
            prepared,
            tuple(members[i] for i in likely),
            tuple(float(weights[i]) / total for i in likely),
            members[best].composition,
        )

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """How probable each composition is, most probable first."""
        pairs = sorted(zip(self.weights, self.members, strict=True), key=lambda pair: -pair[0])
        return {member.composition: weight for weight, member in pairs}

    @cached_property
    def posteriors(self) -> tuple[gp.Posterior, ...]:
        """Each member given the rows."""
        return tuple(self.prepared.posterior(member) for member in self.members)

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units; several members are joined by mean and variance."""
        scaled, linear = self.prepared.inputs_at(X, action)
        parts = [posterior.predict(scaled, linear=linear) for posterior in self.posteriors]
        return self.prepared.in_data_units(joined(parts, self.weights), scaled, action)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "members": [[member.composition.text, list(member.unconstrained)] for member in self.members],
            "weights": list(self.weights),
            "composition": self.composition.text,
        }

    @classmethod
    def from_json(cls, prepared: PreparedRows, stored: Mapping[str, Any]) -> Mixture:
        """The mixture that `to_json` described, on the same rows."""
        members = tuple(Hyperparameters(parse(text), tuple(theta)) for text, theta in stored["members"])
        return cls(prepared, members, tuple(stored["weights"]), parse(stored["composition"]))


class MixtureLearner(PreprocessedLearner):
    """What learners whose fits are mixtures have in common."""

    def restore(self, rows: User, stored: Mapping[str, Any]) -> Mixture:
        """The fit that was kept."""
        return Mixture.from_json(self.preprocessor.prepare(rows), stored)


def joined(parts: Sequence[Prediction], weights: Sequence[float]) -> Prediction:
    """The Normal with the mean and variance of a mixture of Normals; the spread of the means is the function's."""
    if len(parts) == 1:
        return parts[0]
    mean = sum(w * part.mean for w, part in zip(weights, parts, strict=True))
    # Around the joint mean, not as a difference of squares: targets may be large.
    variance = sum(w * (part.variance + (part.mean - mean) ** 2) for w, part in zip(weights, parts, strict=True))
    noise = sum(w * part.noise for w, part in zip(weights, parts, strict=True))
    return Prediction(np.asarray(mean), np.asarray(variance), float(noise))
