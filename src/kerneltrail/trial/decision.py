"""One decision: from a followed user and a context to a randomised action, by a function without side effects.

The same protocol, policy, state, past and request give the same decision, bit for bit; that is how a record is
replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import DataError, DecisionError
from kerneltrail.kernels import NOTHING
from kerneltrail.store.validate import plain
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.user_state import UserState
from kerneltrail.trial.allocation import Allocated, Allocation
from kerneltrail.trial.answer import AdvantageParts, Decision, Rung
from kerneltrail.trial.context import Context, read_context
from kerneltrail.trial.draw import Draws, drawn
from kerneltrail.trial.past import Past, slot_of
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from kerneltrail.trial.words import words_of

State = NewUser | UserState | None
"""A followed user, or the state alone; None for somebody of whom nothing is known: a fresh user of the model."""


@dataclass(frozen=True)
class Policy:
    """What decides: a version of the model with its allocation rule. Make one with `Policy.of`.

    Attributes:
        version: its name in the record.
        model: that users are followed on.
        model_id: the model's fingerprint.
        allocation: the rule, with its slope in the target's units.
    """

    version: str
    model: LearntGraph
    model_id: str
    allocation: Allocation

    @classmethod
    def of(cls, protocol: Protocol, model: LearntGraph, version: str = "1") -> Policy:
        """The policy of a protocol, with the model that it names; another model is refused."""
        protocol.check_model(model)
        return cls(version, model, protocol.model.fingerprint, protocol.rule)

    @cached_property
    def newcomer(self) -> NewUser:
        """Somebody of whom nothing is known yet."""
        return NewUser.start(self.model, "new")

    def user(self, state: State) -> NewUser:
        """The user of a state; one who was followed on another model is refused."""
        if state is None:
            return self.newcomer
        if isinstance(state, UserState):
            return NewUser.resume(self.model, state)
        if state.model is not self.model and fingerprint(state.model) != self.model_id:
            raise DataError(f"{state.name} was followed on another model than that of policy {self.version}")
        return state


def decide(
    protocol: Protocol,
    policy: Policy,
    state: State,
    request: Request,
    *,
    draws: Draws,
    past: Past | None = None,
    rung: Rung = "policy",
    rung_reason: str = "",
) -> Decision:
    """A decision by a policy.

    Args:
        protocol: what was agreed.
        policy: what decides.
        state: the participant as followed so far; None for one of whom nothing is known.
        request: for whom, when, in which context.
        draws: of the trial; their commitment must be the protocol's.
        past: of the participant, for the dose and for values that stand in for missing ones.
        rung, rung_reason: what is recorded of how it came that this policy decides (`decide_by_ladder`).

    Raises:
        DecisionError: for a request that must be refused, naming the field.
        DataError: where the advantage cannot be computed, or nothing can stand in for a missing value.
    """
    past = past or Past()
    start, context = begun(protocol, request, draws, past)
    if not request.available:
        return start
    slot = slot_of(protocol, request.kind, request.decided_at)
    values, imputed = context.filled(protocol, past, slot)
    user, model = policy.user(state), policy.model
    row = np.array([[values[name] for name in model.covariates]])
    known = user.state
    advantage = user.advantage(row)
    if user.state is not known:  # another thread has updated the user: all of a decision rests on one state
        user = NewUser.resume(model, known)
        advantage = user.advantage(row)
    threshold = protocol.cost.threshold(past.dose)
    allocated = protocol.allocate(policy.allocation, advantage, threshold)
    return settled(
        replace(
            start,
            rung=rung,
            rung_reason=rung_reason,
            policy_version=policy.version,
            model_id=policy.model_id,
            rows=known.rows,
            composition=user.composition.text or NOTHING if known.batches else None,
            advantage=AdvantageParts.of(advantage),
            threshold=threshold,
            imputed=imputed,
            beyond=model.schema.outside(row)[0],
        ),
        allocated,
        protocol,
        draws,
    )


def decide_fixed(
    protocol: Protocol, request: Request, *, draws: Draws, past: Past | None = None, rung_reason: str
) -> Decision:
    """A decision with the protocol's fixed probability, which needs no model and no state."""
    start, _ = begun(protocol, request, draws, past or Past())
    if not request.available:
        return start
    fixed = protocol.fallback.fixed
    return settled(
        replace(start, rung="fixed", rung_reason=rung_reason), Allocated(fixed, fixed, "none"), protocol, draws
    )


def begun(protocol: Protocol, request: Request, draws: Draws, past: Past) -> tuple[Decision, Context]:
    """A checked request as a decision in which nobody acts, and its context.

    Raises:
        DecisionError: for a request that must be refused.
    """
    if draws.commitment != protocol.draw.commitment:
        raise DecisionError("the key of the draws is not the one that the protocol is committed to")
    request.check(protocol)
    context = read_context(protocol, request.context, past, needed=request.available)
    names = (protocol.trial, request.participant, request.kind, request.index)
    decision = Decision(
        decision_id=str(draws.decision_id(*names, request.decided_at)),
        protocol_hash=protocol.hash,
        trial=protocol.trial,
        participant=request.participant,
        kind=request.kind,
        index=request.index,
        decided_at=request.decided_at,
        expires_at=request.expires_at,
        available=request.available,
        reasons=request.reasons,
        context=FrozenDict(plain(dict(request.context))),
        arrived=context.arrived,
        dose=past.dose,
    )
    if not request.available:
        decision = replace(decision, words=words_of(protocol, decision))
    return decision, context


def settled(decision: Decision, allocated: Allocated, protocol: Protocol, draws: Draws) -> Decision:
    """A decision with its probability, its draw and its words."""
    number = draws.number(decision.trial, decision.participant, decision.kind, decision.index)
    complete = replace(
        decision,
        raw=allocated.raw,
        probability=allocated.probability,
        bound=allocated.bound,
        number=number,
        action=drawn(number, allocated.probability),
    )
    return replace(complete, words=words_of(protocol, complete))
