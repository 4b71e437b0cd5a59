"""Oralytics' and MiWaves' policies: one Bayesian linear regression for everybody, and a smooth logistic allocation.

Slopes were published per unit of those trials' rewards. Where the outcome is in seconds, as in Oralytics, that slope is
taken as it is; elsewhere it would mean nothing, and a slope of 10 per standard deviation of the noise stands for it.
What distinguishes the two otherwise is the odds against acting where nothing is gained: 3 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.kernels import Array
from kerneltrail.trial.allocation import PRESETS, Limits, SmoothLogistic
from kerneltrail.trial.simulator.policies.policy import POLICIES, Asked, Book, TrialPolicy
from kerneltrail.trial.simulator.policies.regression import Regression

SLOPE = 10.0
"""Per standard deviation of the noise, where a published slope does not fit the outcome."""


def logistic(preset: str, unit: str, noise_sd: float, limits: Limits) -> SmoothLogistic:
    """A published allocation, with its slope where the outcome has its unit."""
    published = PRESETS[preset]
    assert isinstance(published, SmoothLogistic)
    slope = published.slope if unit == "seconds" and preset == "oralytics" else SLOPE / noise_sd
    return SmoothLogistic(limits, slope=slope, odds_against=published.odds_against, per="target unit")


@dataclass
class Pooled(TrialPolicy):
    """A regression on everybody's rows together."""

    def __post_init__(self) -> None:
        protocol = self.setting.protocol
        sd = protocol.allocation.noise_sd
        self._regression = Regression(self.setting.model, sd)
        self._rule = logistic(self.name, protocol.reward.unit, sd, protocol.bounds)
        self._known: tuple[Array, Array] = self._regression.effect_prior

    def probability(self, asked: Asked) -> float:
        """By the logistic function of what acting adds, averaged over what is not known."""
        return self.allocated(self._rule, self._regression.advantage(asked.context, *self._known))

    def learn(self, books: Mapping[str, Book]) -> None:
        """The regression anew, from everybody's rows."""
        size = self._regression.size
        gram, moment = np.zeros((size, size)), np.zeros(size)
        for book in books.values():
            design, outcome = self._regression.data(book)
            gram += design.T @ design
            moment += design.T @ outcome
        self._known = self._regression.posterior(gram, moment)


@POLICIES.named("oralytics")
@dataclass
class Oralytics(Pooled):
    """Everybody together, learnt once a week."""

    name: ClassVar[str] = "oralytics"
    about: ClassVar[str] = "linear regression of everybody together, smooth allocation, learnt weekly (Oralytics)"
    seldom: ClassVar[int] = 7


@POLICIES.named("miwaves")
@dataclass
class MiWaves(Pooled):
    """Everybody together, with larger odds against acting."""

    name: ClassVar[str] = "miwaves"
    about: ClassVar[str] = "linear regression of everybody together, smooth allocation with odds of 5 (MiWaves)"
