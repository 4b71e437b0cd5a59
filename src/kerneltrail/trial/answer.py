"""A decision as a value: what the app is answered, and all that the record keeps of how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np

from kerneltrail.data.assignment import Assignment
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.trial.allocation import Bound
from kerneltrail.trial.context import Imputed

Rung = Literal["policy", "last_good", "group_prior", "fixed", "unavailable"]
"""What decided."""


@dataclass(frozen=True)
class AdvantageParts:
    """The advantage at a decision's context, in the target's units: one Normal for each kernel that counts."""

    weights: tuple[float, ...]
    means: tuple[float, ...]
    variances: tuple[float, ...]

    @classmethod
    def of(cls, mixture: NormalMixture) -> AdvantageParts:
        """Of a mixture at one place."""
        columns = (mixture.weights, mixture.means[:, 0], mixture.variances[:, 0])
        return cls(*(tuple(column.tolist()) for column in columns))

    @property
    def mixture(self) -> NormalMixture:
        """The mixture again."""
        return NormalMixture(np.array(self.weights), np.array(self.means)[:, None], np.array(self.variances)[:, None])

    def hexed(self) -> dict[str, list[str]]:
        """All numbers as hexadecimal floats, which read back bit for bit."""
        names = ("weights", "means", "variances")
        return {name: [float(value).hex() for value in getattr(self, name)] for name in names}

    @property
    def mean(self) -> float:
        """Expected advantage."""
        return float(self.mixture.mean[0])

    @property
    def sd(self) -> float:
        """Standard deviation of the mixture."""
        return float(self.mixture.sd[0])


@dataclass(frozen=True)
class Decision:
    """A decision, with all that it rests on.

    Attributes:
        decision_id: its name in the record, a UUID of version 7.
        protocol_hash: of the protocol that was in force.
        trial, participant, kind, index, decided_at, expires_at, available, reasons, context: of the request.
        arrived: the context's values in the model's terms, by covariate; a level as its code.
        dose: of the participant at the time.
        action: 1 or 0.
        probability: of the action being 1; 0 where nobody could act.
        rung: what decided; `rung_reason` says why it was not the policy.
        policy_version, model_id: of the policy; None where none was asked.
        rows: of the participant that were known; None where none was asked for.
        composition: the participant's kernel as text; None before the first outcome.
        advantage: at this context; None where none was computed.
        threshold: what its benefit had to exceed (δ): minus it, where a lower outcome is better.
        raw: the rule's answer before limits.
        bound: the limit at which the probability stands.
        number: u of the draw; None where none was made.
        imputed: covariates that were missing, with what stood in for them.
        beyond: covariates with a value that no pilot user had.
        words: why, in one or two sentences.
    """

    decision_id: str
    protocol_hash: str
    trial: str
    participant: str
    kind: str
    index: int
    decided_at: datetime
    available: bool
    reasons: tuple[str, ...] = ()
    expires_at: datetime | None = None
    context: Mapping[str, Any] = field(default_factory=FrozenDict)
    arrived: Mapping[str, float] = field(default_factory=FrozenDict)
    dose: float = 0.0
    action: int = 0
    probability: float = 0.0
    rung: Rung = "unavailable"
    rung_reason: str = ""
    policy_version: str | None = None
    model_id: str | None = None
    rows: int | None = None
    composition: str | None = None
    advantage: AdvantageParts | None = None
    threshold: float | None = None
    raw: float | None = None
    bound: Bound = "none"
    number: float | None = None
    imputed: tuple[Imputed, ...] = ()
    beyond: tuple[str, ...] = ()
    words: str = ""

    @property
    def probability_of_action(self) -> float:
        """Of the action that was taken: what inverse-probability weights need."""
        return self.probability if self.action else 1.0 - self.probability

    def answer(self) -> dict[str, Any]:
        """What the app gets, as plain values."""
        advantage = self.advantage
        return {
            "decision_id": self.decision_id,
            "trial": self.trial,
            "participant": self.participant,
            "kind": self.kind,
            "index": self.index,
            "action": self.action,
            "probability": self.probability,
            "probability_of_action": self.probability_of_action,
            "available": self.available,
            "reasons": list(self.reasons),
            "rung": self.rung,
            "rung_reason": self.rung_reason,
            "policy_version": self.policy_version,
            "model_id": self.model_id,
            "composition": self.composition,
            "advantage": None if advantage is None else {"mean": advantage.mean, "sd": advantage.sd},
            "clipped": None if self.bound == "none" else self.bound,
            "imputed": [each.covariate for each in self.imputed],
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
            "words": self.words,
        }

    def record(self) -> dict[str, Any]:
        """All of it as plain values; numbers that must come back bit for bit as hexadecimal floats."""
        parts = self.advantage
        return {
            **self.answer(),
            "protocol_hash": self.protocol_hash,
            "rows": self.rows,
            "decided_at": self.decided_at.isoformat(),
            "context": dict(self.context),
            "arrived": dict(self.arrived),
            "dose": self.dose.hex(),
            "threshold": None if self.threshold is None else self.threshold.hex(),
            "raw": None if self.raw is None else self.raw.hex(),
            "probability": self.probability.hex(),
            "probability_of_action": self.probability_of_action.hex(),
            "draw": None if self.number is None else self.number.hex(),
            "advantage_parts": None if parts is None else parts.hexed(),
            "imputed_values": [
                {"covariate": each.covariate, "rule": each.rule, "value": each.value.hex()} for each in self.imputed
            ],
            "beyond": list(self.beyond),
        }


def assigned(decisions: Sequence[Decision]) -> Assignment:
    """What was assigned at the rows of decisions, for `NewUser.update`: each with the probability of its own rung.

    Where nobody could act, a row speaks of the baseline alone (method (41)).
    """
    columns = ([getattr(each, name) for each in decisions] for name in ("action", "probability", "available"))
    return Assignment(*(np.array(column, dtype=np.float64) for column in columns))
