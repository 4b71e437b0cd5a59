"""HeartSteps' policy: a Bayesian linear regression for each participant, and Thompson sampling within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kerneltrail.kernels import Array
from kerneltrail.trial.allocation import ClippedThompson
from kerneltrail.trial.simulator.policies.policy import POLICIES, Asked, Book, TrialPolicy
from kerneltrail.trial.simulator.policies.regression import Regression


@POLICIES.named("heartsteps")
@dataclass
class LinearThompson(TrialPolicy):
    """Linear Thompson sampling, action-centred and clipped, by each participant's own rows."""

    name: ClassVar[str] = "heartsteps"
    about: ClassVar[str] = "linear Thompson sampling, action-centred, for each participant alone (HeartSteps)"

    def __post_init__(self) -> None:
        protocol = self.setting.protocol
        self._regression = Regression(self.setting.model, protocol.allocation.noise_sd)
        self._rule = ClippedThompson(protocol.bounds)
        self._known: dict[str, tuple[Array, Array]] = {}

    def probability(self, asked: Asked) -> float:
        """The probability that acting helps, within the limits."""
        mean, covariance = self._known.get(asked.participant, self._regression.effect_prior)
        return self.allocated(self._rule, self._regression.advantage(asked.context, mean, covariance))

    def learn(self, books: Mapping[str, Book]) -> None:
        """Everybody's regression anew."""
        for name, book in books.items():
            design, outcome = self._regression.data(book)
            if len(outcome):
                self._known[name] = self._regression.posterior(design.T @ design, design.T @ outcome)
