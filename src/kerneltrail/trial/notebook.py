"""A decision without a trial: what the rule would do for a followed user, for notebooks and teaching."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.allocation import Allocation
from kerneltrail.trial.answer import Decision
from kerneltrail.trial.decision import Policy, decide
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.past import Past
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request

KEY = b"kerneltrail notebook: a key that everybody knows"
"""For trying out. A trial has a secret one."""


def decide_for(
    user: NewUser,
    context: Mapping[str, Any],
    *,
    allocation: str | Allocation = "default",
    better: str = "higher",
    delta: float = 0.0,
    key: bytes = KEY,
    index: int | None = None,
    at: datetime | None = None,
) -> Decision:
    """What would be decided for a followed user in a context.

    Args:
        user: followed on a model with a reward model.
        context: by covariate a number, or a level.
        allocation: a rule or a preset by name, or a rule with its parameters.
        better: whether a ``higher`` or a ``lower`` outcome is better.
        delta: what the benefit must exceed, in the target's units.
        key: of the draw, at least 16 bytes.
        index: of the decision, which names the draw; the number of the user's rows unless given.
        at: when; now unless given, with a time zone.
    """
    draws, model = Draws(key), user.model
    protocol = Protocol.from_model(
        model, trial="notebook", commitment=draws.commitment, allocation=allocation, better=better,
        burden={"delta": float(delta)},
    )  # fmt: skip
    policy = Policy("notebook", model, protocol.model.fingerprint, protocol.rule)
    request = Request(user.name, "decision", user.rows if index is None else index, at or datetime.now(UTC),
                      context=context)  # fmt: skip
    return decide(protocol, policy, user, request, draws=draws, past=Past())
