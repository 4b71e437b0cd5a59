"""The conduct of a trial: who takes part, what is decided, what came of it, what is learnt, all by way of the ledger.

Nothing is kept but the ledger and the models' files. What a `Trial` holds in memory is a cache of them: it may be
dropped at any time, and several processes may work on one ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.errors import UnknownName
from kerneltrail.trial import agreement, alarms, beside, deciding, enrolment, keys, reports, rerun, standing, updating
from kerneltrail.trial.core import Clock, Core, folder_of_copies
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.inspection import Inspection
from kerneltrail.trial.keeping import Keeping
from kerneltrail.trial.ledger import Head, Incident, Key, Ledger, Participant, State, Verdict, backup, verify
from kerneltrail.trial.models import Models, ModelsAt
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from kerneltrail.trial.results import (
    Alert,
    Answer,
    Item,
    NewKey,
    PolicyVersion,
    Removed,
    Replayed,
    ReplayedDecision,
    Status,
    Updated,
)
from kerneltrail.trial.states import kept_in
from kerneltrail.trial.versions import Versions


class Trial(Inspection):
    """A running trial. Make one with `Trial.open`; threads may share it.

    Every method first reads what other processes have recorded meanwhile. A method that records has recorded when it
    returns. All of them raise `LedgerError` if the ledger cannot be read, and those that record raise `NotRecorded` if
    it cannot be written; nothing is recorded then, and the same call may be repeated.
    """

    def __init__(self, core: Core, again: beside.Again | None = None) -> None:
        self._core, self._again = core, again

    @classmethod
    def open(
        cls,
        ledger: Ledger,
        *,
        key: bytes,
        models: ModelsAt,
        protocol: Protocol | None = None,
        pilot: Cohort | None = None,
        backups: str | os.PathLike[str] | None = None,
        states: str | os.PathLike[str] | None = None,
        clock: Clock = lambda: datetime.now(UTC),
        warm: bool = True,
        again: beside.Again | None = None,
        keep: Keeping | None = None,
        demonstration: bool = False,
    ) -> Trial:
        """Open a trial.

        Args:
            ledger: of the trial.
            key: the secret of the draws; its SHA-256 must be the protocol's commitment.
            models: a folder of model files, or models by their fingerprint. A model that is missing is no error: the
                ladder answers, flagged, until it is there.
            protocol: frozen if none is yet; otherwise it must be the one in force.
            pilot: the pilot users' rows, for a protocol with ``pooling: pooled``.
            backups: a folder for a copy of the ledger before each update; None for ``backups`` beside a SQLite file.
            states: a folder that keeps followed participants, so that a restart is quick; it may be deleted any time.
            clock: what says what time it is.
            warm: compute every active participant's state now, so that the first decisions are in time.
            again: opens this trial in another process, where `start_update` then computes; None for a thread.
            keep: which of the copies made before updates are kept; None for the usual rule.
            demonstration: nobody takes part, so a key of the draws that is public may go on drawing.

        Raises:
            TrialError: if the ledger has another protocol in force, or the key is not the one that it commits to.
            ConfigError: if the protocol is to be frozen and does not fit the model.
        """
        copies = folder_of_copies(ledger, backups)
        rule, kept = keep or Keeping(), kept_in(states)
        core = Core(ledger, Draws(key), Models(models), clock, copies, pilot, kept, rule, demonstration)
        trial = cls(core, again)
        with core.closed_on_failure():
            with core.reading() as state:
                frozen = None if state.protocol is None else core.protocol(state)
            if frozen is not None:
                agreement.check_in_force(core, frozen, protocol)
            elif protocol is not None:
                trial.freeze(protocol)
            if warm:
                trial.warm()
        return trial

    # What was agreed -------------------------------------------------------------------------------------------------

    def freeze(self, protocol: Protocol, *, reason: str = "", by: str = "") -> Answer:
        """Freeze a protocol; the first also activates policy 1, of somebody of whom nothing is known.

        A later one is a new version, and needs a reason and the name of who changes it. The same again is a repeat.

        Raises:
            TrialError: for a change without reason or name, another trial's id, or a commitment to another key.
            ConfigError: if the model is at hand and does not fit; `UnknownName` if it is not.
        """
        answer = agreement.freeze(self._core, protocol, reason, by)
        self.warm()  # another model may follow everybody anew
        return answer

    @property
    def protocol(self) -> Protocol:
        """The protocol in force; raises `TrialError` before one is frozen."""
        with self._core.reading() as state:
            return self._core.protocol(state)

    def snapshot(self) -> State:
        """All that the ledger comes to by now, as a copy: for pages and exports, which decisions do not wait for."""
        return self._core.snapshot()

    @contextmanager
    def reading(self) -> Iterator[State]:
        """All that the ledger comes to by now, for a short look: decisions wait meanwhile, and nothing changes."""
        with self._core.reading() as state:
            yield state

    # Who takes part --------------------------------------------------------------------------------------------------

    def enrol(self, participant: str, *, timezone: str, starts_on: date, ends_on: date | None = None,
              attributes: Mapping[str, Any] | None = None, revision: int | None = None) -> Answer:  # fmt: skip
        """Enrol somebody, or change what is known of them.

        The answer's `sequence` is the revision, also `Participant.revision`; the same again is a repeat.

        Args:
            participant: the study's id.
            timezone: such as ``Europe/Zurich``; slots and days are on this clock.
            starts_on: the first day on which decisions are made, and
            ends_on: the last one; None for no end.
            attributes: anything else, as JSON has it.
            revision: of what is changed; needed for a change.

        Raises:
            DataError: for a name, zone, date or attribute that cannot be.
            RevisionNeeded: for a change without revision; `StaleRevision` if it is not the newest.
            ParticipantRemoved: if their data were removed.
        """
        facts = {"timezone": timezone, "starts_on": starts_on, "ends_on": ends_on, "attributes": attributes}
        return enrolment.enrol(self._core, participant, facts, revision)

    def participant(self, participant: str) -> Participant:
        """A participant by all that is recorded; raises `UnknownName`."""
        with self._core.reading() as state:
            return self._core.person(state, participant)

    def event(self, participant: str, kind: str, *, at: datetime, reason: str = "") -> Answer:
        """Pause, resume or withdraw a participant, from a time on.

        Raises:
            UnknownName: if nobody is called so; `DataError` for another kind, or a time without zone.
            NotActive: if it cannot be as they are (resume somebody who is not paused; anything after withdrawal).
        """
        return enrolment.event(self._core, participant, kind, at, reason)

    def remove(self, participant: str, *, reason: str, by: str = "") -> Removed:
        """Delete all that was recorded of a participant; entries and their hashes stay, so that the chain verifies.

        Raises:
            UnknownName: if nobody is called so.
        """
        return enrolment.remove(self._core, participant, reason, by)

    # Decisions -------------------------------------------------------------------------------------------------------

    def decide(self, request: Request, *, began: float | None = None) -> Answer:
        """Decide, record, answer.

        The deadline counts from `began`, a time of `time.monotonic` such as that of a call's arrival; else from now.

        The answer's value is `Decision.answer()`. A repeat gives the same bytes, and so does whatever is asked for a
        decision that was drawn ahead (`schedule`): what was drawn stands. If a state is not computed in time, a model
        is missing, or anything fails, the next rung of the protocol's ladder answers.

        Raises:
            DecisionError: for a request that must be refused, naming the field.
            UnknownName: if nobody is called so.
            NotActive: before they begin, while they pause, after they end or withdraw.
            KeyConflict: if the same decision was asked for with another payload; an incident is recorded.
            InFlight: if another thread is still at it when the deadline has passed.
            ParticipantRemoved: if their data were removed.
        """
        return deciding.decide(self._core, request, began)

    def schedule(self, requests: Sequence[Request]) -> list[Answer]:
        """Decide ahead for a phone that goes offline: all that is asked for, in one commit, or nothing.

        All of one participant. Every request needs a context as `decide` does; the doses are those of now.

        Raises:
            As `decide`. KeyConflict also if some of them, but not all, were decided before.
        """
        return deciding.schedule(self._core, requests)

    def report(self, request: Request, *, action: int, probability: float, reason: str) -> Answer:
        """Record a decision that the app drew by itself, because nothing could be recorded at the time.

        It is a decision of the rung `fixed`, with ``drawn_by: app``; it enters updates with its own probability.

        Raises:
            As `decide`; `DecisionError` also for a probability outside the protocol's limits.
        """
        return deciding.report(self._core, request, action, probability, reason)

    def decision(self, name: str) -> tuple[str, Mapping[str, Any] | None]:
        """A decision by its `decision_id` or its key: its key and its record, None where it was removed.

        Raises:
            UnknownName: if there is none.
        """
        with self._core.reading() as state:
            whom, key = self._core.find(state, name)
            return key, state.participants[whom].decisions[key].payload

    # What came of them -----------------------------------------------------------------------------------------------

    def deliver(self, decision: str, *, status: str, at: datetime | None, delivered_action: int | None) -> Answer:
        """Record what became of a decision on the phone. Assigned and delivered stay two columns.

        Each status (sent, delivered, seen, dismissed, failed, not_delivered, unknown) is recorded once.

        Args:
            decision: its `decision_id` or its key.
            status: one of the above.
            at: when, or None if nobody knows.
            delivered_action: what reached the participant; None if nobody knows, which is not 0.

        Raises:
            UnknownName: if there is no such decision; `DataError` for another status or action.
            KeyConflict: if this status was reported before otherwise; an incident is recorded.
        """
        return reports.deliver(self._core, decision, status, at, delivered_action)

    def observe(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Record covariates that arrive on their own.

        Each item has `client_id`, `participant`, `observed_at` (ISO 8601 with a zone) and `values` by field. One that
        is refused says why, and keeps none of the others.
        """
        return reports.observations(self._core, items)

    def outcomes(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Record outcomes.

        Each item has `client_id`, `participant`, `decision` (its `decision_id` or key), `value` (a number, or None: it
        was looked for and is missing, which is not 0), `observed_at` (ISO 8601 with a zone), and perhaps `supersedes`,
        the `client_id` of an item of the same participant that it corrects. One that is refused says why, and keeps
        none of the others; the same `client_id` with other content is refused, with an incident.
        """
        return reports.outcomes(self._core, items)

    # What is learnt --------------------------------------------------------------------------------------------------

    def due(self, now: datetime | None = None) -> str:
        """Why an update is due by the protocol's schedule, in words; empty if none is."""
        with self._core.reading() as state:
            return updating.due(self._core, state, now or self._core.clock())

    def update(self, *, reason: str, as_of: datetime | None = None, dry_run: bool = False, by: str = "") -> Updated:
        """Learn from the outcomes so far: a new policy, checked, then activated; decisions go on with the old one.

        Args:
            reason: why now.
            as_of: only entries received by then; now unless given.
            dry_run: compute and check, but record nothing.
            by: who asked for it.

        Raises:
            UpdateRunning: if another one is. One whose process has ended is recorded as killed, and does not count.
            TrialError: before a protocol is frozen. Whatever else fails is the update's state: `failed`, in words.
        """
        return updating.update(self._core, reason, as_of, by, dry_run=dry_run)

    def start_update(self, *, reason: str, as_of: datetime | None = None, by: str = "") -> str:
        """Start an update beside decisions, and return its id for `updated`; raises as `update`."""
        return beside.start(self._core, updating.begin(self._core, reason, as_of, by), self._again)

    def complete(self, id: str, aside: updating.Aside | None = None) -> Updated:
        """Do an update that was started, perhaps by another process, to its end; `aside` calls what takes long."""
        return updating.run(self._core, id, aside)

    def updated(self, id: str) -> Updated:
        """An update by its id, running or finished; raises `UnknownName`."""
        with self._core.reading() as state:
            if id not in state.updates:
                raise UnknownName(f"there is no update {id!r}")
            return updating.recorded(state.updates[id])

    def policies(self) -> list[PolicyVersion]:
        """All versions of the policy, oldest first."""
        with self._core.reading() as state:
            return Versions(state).listed()

    def activate(self, version: str, *, reason: str, expected: str | None = None, by: str = "") -> Answer:
        """Let another version serve, such as the one before (rollback); that which serves already is a repeat.

        Args:
            version: which.
            reason: why.
            expected: the version that should be serving until now, if the caller wants to be sure.
            by: who wants it.

        Raises:
            UnknownName: if there is no such version.
            StaleRevision: if another version than the expected one serves.
        """
        return agreement.activate(self._core, version, reason, expected, by)

    def warm(self) -> int:
        """Compute the states of all active participants that are not in memory; their number."""
        return beside.warm(self._core, self._again)

    # Looking after it ------------------------------------------------------------------------------------------------

    def incidents(self, *, open_only: bool = False) -> list[Incident]:
        """Incidents in the order they were recorded."""
        with self._core.reading() as state:
            return [each for each in state.incidents.values() if each.is_open or not open_only]

    def incident(self, kind: str, words: str, *, severity: str = "warning", participant: str | None = None,
                 key: str | None = None, details: Mapping[str, Any] | None = None) -> Answer:  # fmt: skip
        """Record an incident; with a key, once."""
        return self._core.incident(kind, words, severity=severity, participant=participant, key=key, details=details)

    def acknowledge(self, incident: str, *, by: str, note: str = "") -> Answer:
        """Record that somebody has seen an incident; raises `UnknownName`."""
        return alarms.acknowledge(self._core, incident, by, note)

    def alerts(self, now: datetime | None = None) -> list[Alert]:
        """What somebody should look at, computed from the ledger; nothing is recorded."""
        state = self._core.snapshot()
        return alarms.alerts(state, self._core.protocol(state), now or self._core.clock())

    def status(self, now: datetime | None = None) -> Status:
        """How the trial stands: a light, numbers, and words; its alerts are in it."""
        state = self._core.snapshot()
        return standing.status(state, self._core.protocol(state), now or self._core.clock())

    def watch(self, now: datetime | None = None) -> list[Incident]:
        """Record the alerts that are not yet recorded for their day as incidents, and return those."""
        return alarms.watch(self._core, self.alerts(now))

    def create_key(self, scopes: Sequence[str], *, expires_at: datetime | None = None, note: str = "",
                   by: str = "") -> NewKey:  # fmt: skip
        """Make a key to the service; its token is in the answer alone. Raises `DataError` for an unknown scope."""
        return keys.create(self._core, scopes, expires_at, note, by)

    def revoke_key(self, id: str, *, reason: str = "", by: str = "") -> Answer:
        """Make a key useless from now on; raises `UnknownName`."""
        return keys.revoke(self._core, id, reason, by)

    def key_of(self, token: str, *, since: float | None = None) -> Key | None:
        """The key that a token opens with, or None if it opens nothing; `payload["scopes"]` says what it is for."""
        return keys.opened(self._core, token, since)

    def verify(self, expected: Head | None = None) -> Verdict:
        """Walk the ledger's chain."""
        return verify(self._core.ledger, expected)

    def replay(self, participant: str | None = None) -> Replayed:
        """Recompute every decision from the ledger and the models alone."""
        return rerun.replay(self._core, participant)

    def replay_one(self, name: str) -> ReplayedDecision:
        """Recompute one decision, by its `decision_id` or key; raises `UnknownName`."""
        return rerun.replay_one(self._core, name)

    def backup(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Copy the ledger while it is in use, and verify the copy; into the folder of backups by default."""
        folder = self._core.backups or Path("backups")
        goal = folder / enrolment.copy_name(self._core, "by-hand") if path is None else Path(path)
        backup(self._core.ledger, goal)
        return goal

    def close(self) -> None:
        """Wait for a running update, and give back connections."""
        self._core.close()
