"""The quick drives: a policy that is compared, or the trial's own without its ledger.

Without a ledger nothing is hashed, written or put into words, so a decision takes a fraction of a millisecond. The
trial's own policy still decides and learns by the trial's code: contexts, pasts, allocation and draws, and which
outcomes form which batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.allocation import TOUCH
from kerneltrail.trial.checks import CONTEXTS, believed
from kerneltrail.trial.context import read_context
from kerneltrail.trial.decision import Policy
from kerneltrail.trial.draw import drawn
from kerneltrail.trial.ledger.participant import Decision, Delivery, Outcome, Participant, StatusChange
from kerneltrail.trial.past import Past, slot_of
from kerneltrail.trial.points import reached
from kerneltrail.trial.rows import planned, rows_of, usable
from kerneltrail.trial.simulator.drives.drive import Decided, Drive, Due, Reported, context_fields
from kerneltrail.trial.simulator.policies import Asked, Book, TrialPolicy
from kerneltrail.trial.states import States
from kerneltrail.trial.versions import Batches


@dataclass
class PolicyDrive(Drive):
    """A policy that is compared, which decides and learns when the trial's would."""

    policy: TrialPolicy

    def begin(self, start: datetime) -> None:
        """Open a book for everybody."""
        calendar, covariates = self.setting.calendar, len(self.setting.model.covariates)
        points = calendar.days * calendar.a_day
        self._books = {name: Book.empty(points, covariates, calendar.a_day) for name in self.setting.people}
        self._due = Due(self.protocol, start)

    def decide(self, asked: Asked) -> Decided:
        """As the policy says."""
        self.refuse()
        chance = self.policy.probability(asked) if asked.available else 0.0
        return self._written(
            asked, drawn(self.number(asked), chance), chance, "policy" if asked.available else "unavailable"
        )

    def report(self, asked: Asked, action: int, probability: float) -> Decided:
        """As the app drew."""
        return self._written(asked, action, probability, "fixed" if asked.available else "unavailable")

    def _written(self, asked: Asked, action: int, probability: float, rung: str) -> Decided:
        self._books[asked.participant].decided(asked, action, probability)
        limits, bound = self.protocol.bounds, "none"
        if asked.available and limits.upper - limits.lower > 2.0 * TOUCH and rung == "policy":
            bound = "lower" if probability <= limits.lower + TOUCH else bound
            bound = "upper" if probability >= limits.upper - TOUCH else bound
        return Decided(action, probability, rung, bound, str(asked.point))

    def deliver(self, asked: Asked, decided: Decided, action: int, when: datetime) -> None:
        """What was delivered changes nothing: these policies count what was assigned."""

    def outcomes(self, items: Sequence[Reported]) -> None:
        """Into the books; a correction takes the place of what it corrects."""
        for item in items:
            self._books[item.asked.participant].outcome[item.asked.point] = item.value
            self._due.new += 1

    def tick(self, now: datetime) -> bool:
        """Let the policy learn."""
        if self.outage or not self._due.is_due(now):
            return False
        self.policy.update(now, self._books)
        self._due.done(now)
        return True


@dataclass
class QuickDrive(Drive):
    """The trial's own policy without its ledger."""

    def begin(self, start: datetime) -> None:
        """Enrol everybody, in memory."""
        self._policy = Policy.of(self.protocol, self.setting.model)
        self._cost = self.protocol.cost
        self._states, self._sequence = States(), 0
        facts = {"timezone": self.setting.calendar.zone, "starts_on": self.setting.calendar.begin.isoformat()}
        enrolled = start.astimezone(UTC).isoformat()
        self._people = {name: Participant(name, facts, enrolled, 0) for name in self.setting.people}
        self._pasts = dict.fromkeys(self.setting.people, (Past(), 0))
        self._batches: dict[str, Batches] = dict.fromkeys(self.setting.people, ())
        self._due = Due(self.protocol, start)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def decide(self, asked: Asked) -> Decided:
        """As `trial.decision.decide`, without words."""
        self.refuse()
        protocol, slot = self.protocol, asked.slot
        past = self._past(asked.participant)
        given = context_fields(protocol, asked, self.setting.model.covariates)
        context = read_context(protocol, given, past, needed=asked.available)
        if not asked.available:
            return self._written(asked, context.arrived, 0, 0.0, "unavailable", "none")
        values, imputed = context.filled(protocol, past, slot_of(protocol, slot.kind, slot.at))
        row = np.array([[values[name] for name in self.setting.model.covariates]])
        user = self._policy.user(self._user(asked.participant))
        allocated = protocol.allocate(self._policy.allocation, user.advantage(row), self._cost.threshold(past.dose))
        action = drawn(self.number(asked), allocated.probability)
        filled = [{"covariate": each.covariate, "value": each.value} for each in imputed]
        return self._written(asked, context.arrived, action, allocated.probability, "policy", allocated.bound, filled)

    def report(self, asked: Asked, action: int, probability: float) -> Decided:
        """As the app drew."""
        past = self._past(asked.participant, keep=False)  # what became of earlier ones is reported after them
        given = context_fields(self.protocol, asked, self.setting.model.covariates)
        arrived = read_context(self.protocol, given, past, needed=asked.available).arrived
        return self._written(asked, arrived, action, probability, "fixed" if asked.available else "unavailable", "none")

    def _written(
        self,
        asked: Asked,
        arrived: Mapping[str, float],
        action: int,
        probability: float,
        rung: str,
        bound: str,
        filled: Sequence[Mapping[str, Any]] = (),
    ) -> Decided:
        person, slot = self._people[asked.participant], asked.slot
        key = f"{slot.kind}/{slot.index}"
        payload = {
            "kind": slot.kind,
            "decided_at": slot.at.isoformat(),
            "arrived": arrived,
            "imputed_values": filled,
            "probability": probability,
            "action": action,
            "available": asked.available,
        }
        person.decisions[key] = Decision(self._next(), key, "", payload)
        return Decided(action, probability, rung, bound, key)

    def _past(self, participant: str, *, keep: bool = True) -> Past:
        """The participant's past, folded on from where it stood at the last decision."""
        person, (past, folded) = self._people[participant], self._pasts[participant]
        for decision in list(person.decisions.values())[folded:]:
            record = decision.payload or {}
            slot = slot_of(self.protocol, record["kind"], datetime.fromisoformat(record["decided_at"]))
            past = past.after(self.protocol, slot, record["arrived"], reached(person, decision, self._sequence))
        if keep:
            self._pasts[participant] = (past, len(person.decisions))
        return past

    def deliver(self, asked: Asked, decided: Decided, action: int, when: datetime) -> None:
        """Note what reached the participant: the dose counts it."""
        delivery = Delivery(self._next(), decided.name, decided.name, "delivered", None, action)
        self._people[asked.participant].deliveries.setdefault(decided.name, []).append(delivery)

    def outcomes(self, items: Sequence[Reported]) -> None:
        """Note outcomes."""
        for item in items:
            person = self._people[item.asked.participant]
            person.outcomes[item.name] = Outcome(
                self._next(), item.name, "", "", item.decision, item.value, item.supersedes
            )
            self._due.new += 1

    def withdraw(self, participant: str, when: datetime) -> None:
        """Note that somebody has left."""
        change = StatusChange(self._next(), when.isoformat(), when.isoformat(), "withdrawn", "left")
        self._people[participant].changes.append(change)

    def tick(self, now: datetime) -> bool:
        """Learn by the trial's rules: new rows are a batch, a correction makes a participant's batches anew."""
        if self.outage or not self._due.is_due(now):
            return False
        model = self.setting.model
        for name, person in self._people.items():
            rows = usable(person, model).rows
            plan = planned(self._batches[name], rows, person)
            if plan.change is None:
                continue
            before, self._batches[name] = self._batches[name], plan.batches
            new = self._user(name)
            contexts = np.array([[row.values[each] for each in model.covariates] for row in rows[-CONTEXTS:]])
            if new is not None and not all(each.passed for each in believed(self.protocol, name, new, contexts)):
                self._batches[name] = before
        self._due.done(now)
        return True

    def _user(self, name: str) -> NewUser | None:
        batches = self._batches[name]
        if not batches:
            return None
        return self._states.compute(
            self.setting.model, self._policy.model_id, name, batches,
            lambda begin: rows_of(self._people[name], batches[begin:]),
        )  # fmt: skip
