"""Replay of a whole ledger: every decision made anew from the entries and the models, beside the one recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerneltrail.errors import KerneltrailError
from kerneltrail.trial.answer import Decision as Made
from kerneltrail.trial.core import Core
from kerneltrail.trial.deciding import BESIDE, requested
from kerneltrail.trial.decision import State as Followed
from kerneltrail.trial.decision import begun, decide, decide_fixed
from kerneltrail.trial.forward import Forward
from kerneltrail.trial.ledger.participant import Decision, Participant
from kerneltrail.trial.replay import compare
from kerneltrail.trial.results import Replayed, ReplayedDecision
from kerneltrail.trial.states import States
from kerneltrail.trial.versions import Versions


class Rerun:
    """A ledger at one moment, whose decisions are made anew; what it keeps was computed by itself alone."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.state = core.snapshot()
        self.versions = Versions(self.state)
        self.states, self.past = States(), Forward(Participant(""))

    def anew(self, person: Participant, record: Mapping[str, Any]) -> Made:
        """A recorded decision, made anew on the rung that answered then."""
        core = self.core
        protocol = core.protocol(self.state, record["protocol_hash"])
        request = requested(record)
        if person is not self.past.person:  # one participant after the other
            self.past = Forward(person)
        past = self.past.at(protocol, record["until"], request.decided_at)
        rung, reason = record["rung"], record["rung_reason"]
        if rung == "unavailable":
            return begun(protocol, request, core.draws, past)[0]
        if rung == "fixed":
            return decide_fixed(protocol, request, draws=core.draws, past=past, rung_reason=reason)
        version = self.versions.get(record["policy_version"])
        policy = core.policy(protocol, version)
        followed: Followed = None
        if rung != "group_prior":
            followed = core.user(person, self.versions, version, self.states)
        return decide(protocol, policy, followed, request, draws=core.draws, past=past, rung=rung, rung_reason=reason)

    def compared(self, person: Participant, decision: Decision) -> ReplayedDecision:
        """One recorded decision beside the one made anew."""
        record = decision.payload
        name = (decision.key, decision.sequence)
        if record is None:
            return ReplayedDecision(*name, "removed")
        if record.get("drawn_by") == "app":
            return ReplayedDecision(*name, "not here")
        try:
            new = self.anew(person, record)
        except KerneltrailError as problem:
            return ReplayedDecision(*name, "different", difference=f"it cannot be made anew: {problem}")
        kept = {key: value for key, value in record.items() if key not in BESIDE}
        beside = compare(kept, new)
        return ReplayedDecision(
            *name, "equal" if beside.equal else "different", beside.exact, beside.difference, beside.close_call
        )


def replay_one(core: Core, name: str) -> ReplayedDecision:
    """One decision, by its id or key."""
    with core.reading() as state:
        whom, key = core.find(state, name)
    rerun = Rerun(core)
    person = rerun.state.participants[whom]
    return rerun.compared(person, person.decisions[key])


def replay(core: Core, participant: str | None = None) -> Replayed:
    """Every decision of the ledger, or of one participant."""
    rerun = Rerun(core)
    state = rerun.state
    people = list(state.participants.values()) if participant is None else [core.person(state, participant)]
    # One participant after the other: a state is computed from the one before it.
    done = [rerun.compared(person, each) for person in people for each in person.decisions.values()]
    done.sort(key=lambda each: each.sequence)
    count = {kind: sum(each.state == kind for each in done) for kind in ("equal", "different", "removed", "not here")}
    return Replayed(
        trial=core.ledger.trial,
        until=state.sequence,
        equal=count["equal"],
        exact=sum(each.exact for each in done),
        different=count["different"],
        removed=count["removed"],
        not_here=count["not here"],
        close_calls=tuple(each.key for each in done if each.close_call),
        first=next((each for each in done if each.state == "different"), None),
    )
