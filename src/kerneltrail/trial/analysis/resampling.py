"""One trial anew under the null: the same people, contexts and calendar, other draws, and an effect that never varies.

The policy is run by the code that ran the trial: the same decisions, states and batches (method §16.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kerneltrail.errors import KerneltrailError, TrialError
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.analysis.draws import NewDraws
from kerneltrail.trial.answer import Decision as Made
from kerneltrail.trial.deciding import requested
from kerneltrail.trial.decision import Policy, decide, decide_fixed
from kerneltrail.trial.draw import Draws, drawn
from kerneltrail.trial.forward import Forward
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Decision, Outcome, Participant
from kerneltrail.trial.models import Models
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rows import rows_of
from kerneltrail.trial.states import States
from kerneltrail.trial.versions import Version, Versions

POLICY = ("policy", "last_good")
"""Rungs on which a participant's own state decides."""


@dataclass(frozen=True)
class Followed:
    """What a policy made of one decision: π and the mean advantage at a context.

    Attributes:
        participant: whose.
        probability: π.
        advantage: its mean.
        context: covariates.
    """

    participant: str
    probability: float
    advantage: float
    context: Mapping[str, float]


@dataclass(frozen=True)
class Ground:
    """What every simulated trial shares; it goes to other processes as it is.

    Attributes:
        state: the ledger's.
        protocols: by their hash.
        models: by their fingerprint.
        effect: of acting, the same for everybody at all times: the null.
        seed: of all draws.
    """

    state: State
    protocols: Mapping[str, Protocol]
    models: Mapping[str, LearntGraph]
    effect: float
    seed: int


def ground_of(state: State, models: Models, effect: float, seed: int) -> Ground:
    """What simulated trials need of a ledger.

    Args:
        state: of the ledger.
        models: of the trial.
        effect: of the null.
        seed: of the draws.

    Raises:
        TrialError: for a protocol that pools: the model would have to be fitted anew in every update of every trial.
    """
    protocols = {each.hash: Protocol.from_json(each.payload["protocol"]) for each in state.protocols}
    if any(protocol.pooling == "pooled" for protocol in protocols.values()):
        raise TrialError(
            "with pooling: pooled each update fits one model to all participants' outcomes. A participant's "
            "probabilities then depend on the draws of all others, so simulated trials under the null cannot follow "
            "each participant alone, as is done here: the model would have to be fitted anew in every update of every "
            "simulated trial. Without that reference distribution there is no valid p value, so none is given; the "
            "effects of acting do not need it"
        )
    versions = Versions(state)
    needed = {each.model_id for each in versions.by_name.values()}
    return Ground(state, protocols, {name: models.get(name) for name in sorted(needed)}, effect, seed)


def resampled(ground: Ground, number: int, draws: Draws | None = None) -> list[Followed]:
    """All decisions of the policy in the simulated trial of that number.

    With the trial's own draws nothing changes, and every decision comes out as it was recorded.
    """
    versions = Versions(ground.state)
    followed: list[Followed] = []
    for person in ground.state.participants.values():
        if person.removed is None:
            followed += _Anew(ground, versions, person, number, draws).run()
    return followed


class _Anew:
    """One participant, lived through again."""

    def __init__(
        self, ground: Ground, versions: Versions, person: Participant, number: int, draws: Draws | None
    ) -> None:
        self.ground, self.versions, self.number, self.draws = ground, versions, number, draws
        self.before = person
        self.person = replace(
            person,
            decisions=dict(person.decisions),
            deliveries=dict(person.deliveries),
            outcomes=dict(person.outcomes),
        )
        self.states, self.past = States(), Forward(self.person)
        self.outcomes: dict[str | None, list[Outcome]] = {}
        for outcome in person.outcomes.values():
            self.outcomes.setdefault(outcome.decision, []).append(outcome)

    def run(self) -> list[Followed]:
        """Make every decision anew, in the order in which they were recorded; told in the order of their times."""
        followed: list[tuple[datetime, int, Followed]] = []
        for key, decision in self.before.decisions.items():
            record = decision.payload
            if record is None or not record["available"]:
                continue  # nobody could act then, and nobody can now
            action, made = self._made(record)
            self._replace(key, decision, action, None if made is None else made.probability)
            if made is not None and made.rung in POLICY and made.advantage is not None:
                context = {**made.arrived, **{each.covariate: each.value for each in made.imputed}}
                each = Followed(self.person.id, made.probability, made.advantage.mean, context)
                followed.append((made.decided_at, decision.sequence, each))
        return [each for _, _, each in sorted(followed, key=lambda told: told[:2])]

    def _made(self, record: Mapping[str, Any]) -> tuple[int, Made | None]:
        """The action of a decision, and the decision; of one that the app drew the action alone is drawn anew."""
        protocol = self.ground.protocols[record["protocol_hash"]]
        draws = self.draws or NewDraws.of(self.ground.seed, self.number, protocol.draw.commitment)
        if record.get("drawn_by") == "app":
            return drawn(_number(draws, record), float.fromhex(record["probability"])), None
        request = requested(record)
        past = self.past.at(protocol, record["until"], request.decided_at)
        rung, reason = record["rung"], record["rung_reason"]
        if rung == "fixed":
            made = decide_fixed(protocol, request, draws=draws, past=past, rung_reason=reason)
            return made.action, made
        version = self.versions.get(record["policy_version"])
        model = self.ground.models[version.model_id]
        policy = Policy(version.version, model, version.model_id, protocol.rule)
        state = None
        if rung != "group_prior":
            try:
                state = self._state(version, model)
            except (KerneltrailError, ArithmeticError) as problem:  # as the ladder does it in a trial
                rung, reason = "group_prior", str(problem)
        made = decide(protocol, policy, state, request, draws=draws, past=past, rung=rung, rung_reason=reason)
        return made.action, made

    def _state(self, version: Version, model: LearntGraph) -> Any:
        """The participant as followed at a version: the recorded batches, with the new actions and outcomes."""
        batches = self.versions.batches(version.version, self.person.id)
        if not batches:
            return None
        return self.states.compute(
            model, version.model_id, self.person.id, batches, lambda begin: rows_of(self.person, batches[begin:])
        )

    def _replace(self, key: str, decision: Decision, action: int, probability: float | None) -> None:
        """Put the new action in the place of the old one, with what follows from it."""
        record: Mapping[str, Any] = decision.payload or {}
        changed = {**record, "action": action}
        if probability is not None:
            changed["probability"] = probability.hex()
        self.person.decisions[key] = replace(decision, payload=changed)
        # What did not arrive when it was sent would not have arrived now; another action arrives as it is assigned.
        reports = self.before.deliveries.get(key, [])
        self.person.deliveries[key] = reports if action == record["action"] else []
        shift = self.ground.effect * (action - record["action"])
        for outcome in self.outcomes.get(key, ()):
            if outcome.value is not None:
                self.person.outcomes[outcome.key] = replace(outcome, value=outcome.value + shift)  # method (67)


def _number(draws: Draws, record: Mapping[str, Any]) -> float:
    return draws.number(record["trial"], record["participant"], record["kind"], record["index"])
