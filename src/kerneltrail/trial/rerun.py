"""Replay of a whole ledger: every decision made anew from the entries and the models, beside the one recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerneltrail.errors import KerneltrailError
from kerneltrail.trial.answer import Decision as Made
from kerneltrail.trial.core import Core
from kerneltrail.trial.deciding import BESIDE, past_of, requested
from kerneltrail.trial.decision import State as Followed
from kerneltrail.trial.decision import begun, decide, decide_fixed
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Decision, Participant
from kerneltrail.trial.replay import compare
from kerneltrail.trial.results import Replayed, ReplayedDecision
from kerneltrail.trial.states import States
from kerneltrail.trial.versions import Versions


def anew(
    core: Core, state: State, person: Participant, record: Mapping[str, Any], versions: Versions, states: States
) -> Made:
    """A recorded decision, made anew on the rung that answered then; `states` has what was computed anew alone."""
    protocol = core.protocol(state, record["protocol_hash"])
    request, past = requested(record), past_of(core, protocol, person, record)
    rung, reason = record["rung"], record["rung_reason"]
    if rung == "unavailable":
        return begun(protocol, request, core.draws, past)[0]
    if rung == "fixed":
        return decide_fixed(protocol, request, draws=core.draws, past=past, rung_reason=reason)
    version = versions.get(record["policy_version"])
    followed: Followed = None if rung == "group_prior" else core.user(person, versions, version, states)
    policy = core.policy(protocol, version)
    return decide(protocol, policy, followed, request, draws=core.draws, past=past, rung=rung, rung_reason=reason)


def replay_one(
    core: Core,
    state: State,
    person: Participant,
    decision: Decision,
    versions: Versions,
    states: States | None = None,
) -> ReplayedDecision:
    """One recorded decision beside the one made anew."""
    record = decision.payload
    name = (decision.key, decision.sequence)
    if record is None:
        return ReplayedDecision(*name, "removed")
    if record.get("drawn_by") == "app":
        return ReplayedDecision(*name, "not here")
    try:
        new = anew(core, state, person, record, versions, states or States())
    except KerneltrailError as problem:
        return ReplayedDecision(*name, "different", difference=f"it cannot be made anew: {problem}")
    kept = {key: value for key, value in record.items() if key not in BESIDE}
    beside = compare(kept, new)
    return ReplayedDecision(
        *name, "equal" if beside.equal else "different", beside.exact, beside.difference, beside.close_call
    )


def replay(core: Core, participant: str | None = None) -> Replayed:
    """Every decision of the ledger, or of one participant."""
    with core.reading() as state:
        versions = Versions(state)
        people = [core.person(state, participant)] if participant is not None else list(state.participants.values())
        # One participant after the other: a state is computed from the one before it.
        work = [(person, each) for person in people for each in list(person.decisions.values())]
        until = state.sequence
    done, states = [], States()
    for person, each in work:
        with core.reading() as state:
            now = state.participants.get(person.id)
            current = each if now is None else now.decisions.get(each.key, each)  # it may be removed meanwhile
            done.append(replay_one(core, state, person, current, versions, states))
    done.sort(key=lambda each: each.sequence)
    count = {kind: sum(each.state == kind for each in done) for kind in ("equal", "different", "removed", "not here")}
    return Replayed(
        trial=core.ledger.trial,
        until=until,
        equal=count["equal"],
        exact=sum(each.exact for each in done),
        different=count["different"],
        removed=count["removed"],
        not_here=count["not here"],
        close_calls=tuple(each.key for each in done if each.close_call),
        first=next((each for each in done if each.state == "different"), None),
    )
