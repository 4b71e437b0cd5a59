"""Policies that learn nothing: a fixed probability, never, always, and an oracle that knows the effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kerneltrail.trial.simulator.policies.policy import POLICIES, Asked, TrialPolicy


@POLICIES.named("fixed")
@dataclass
class Fixed(TrialPolicy):
    """The protocol's fixed probability: a micro-randomised trial."""

    name: ClassVar[str] = "fixed"
    about: ClassVar[str] = "the protocol's fixed probability, always"

    def probability(self, asked: Asked) -> float:
        """The same everywhere."""
        return self.setting.protocol.fallback.fixed


@POLICIES.named("never")
@dataclass
class Never(TrialPolicy):
    """Nobody acts; outside of the limits, so nothing can be learnt from it."""

    name: ClassVar[str] = "never"
    about: ClassVar[str] = "nobody ever acts"
    randomised: ClassVar[bool] = False

    def probability(self, asked: Asked) -> float:
        """None."""
        return 0.0


@POLICIES.named("always")
@dataclass
class Always(TrialPolicy):
    """Somebody acts whenever they can; outside of the limits, so nothing can be learnt from it."""

    name: ClassVar[str] = "always"
    about: ClassVar[str] = "somebody acts whenever they can"
    randomised: ClassVar[bool] = False

    def probability(self, asked: Asked) -> float:
        """Certainty."""
        return 1.0


@POLICIES.named("oracle")
@dataclass
class Oracle(TrialPolicy):
    """The best at the next outcome within the limits, by somebody who knows what acting adds."""

    name: ClassVar[str] = "oracle"
    about: ClassVar[str] = "knows what acting adds to the next outcome, and stands at the upper or the lower limit"

    def probability(self, asked: Asked) -> float:
        """One of the limits."""
        protocol = self.setting.protocol
        return protocol.bounds.upper if protocol.reward.sign * asked.effect > 0.0 else protocol.bounds.lower
