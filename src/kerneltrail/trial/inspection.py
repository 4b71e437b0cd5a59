"""What a running trial gives to pages that people read: participants as they are followed, models, and noted looks."""

from __future__ import annotations

import hashlib
import hmac
import uuid

from kerneltrail.errors import KeyPublished, UnknownName
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.beside import Again
from kerneltrail.trial.core import Core
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.proofs import Proof, prove
from kerneltrail.trial.results import Answer
from kerneltrail.trial.versions import Versions


class Inspection:
    """The part of a `Trial` that only servers and their pages need."""

    _core: Core
    _again: Again | None

    def model(self, model_id: str) -> LearntGraph:
        """A model by its fingerprint; raises `UnknownName` if it is not at hand."""
        return self._core.models.get(model_id)

    def followed(self, participant: str) -> NewUser | None:
        """A participant as the policy that serves knows them; None for one of whom it knows no outcome.

        Raises:
            UnknownName: if nobody is called so, or the model is missing; `ParticipantRemoved` if their data were.
        """
        with self._core.reading() as state:
            versions = Versions(state)
            person = self._core.person(state, participant)
        return None if versions.active is None else self._core.user(person, versions, versions.active)

    def everybody(self, state: State) -> dict[str, NewUser | None]:
        """Participants of whom the policy that serves knows outcomes, as it knows them; nothing is computed for it.

        One who would have to be computed first is None; all are where the model is missing.
        """
        versions = Versions(state)
        active = versions.active
        if active is None:
            return {}
        people = [
            person
            for person in state.participants.values()
            if person.removed is None and versions.batches(active.version, person.id)
        ]
        try:
            return {person.id: self._core.user(person, versions, active, compute=False) for person in people}
        except UnknownName:
            return {person.id: None for person in people}

    def prove(self, kind: str) -> Proof:
        """Replay all decisions (`replay`) or verify the ledger's chain (`verify`): whether all is well, and words.

        It runs in a process of its own if the trial can be opened in one; raises `TrialError` if that fails.
        """
        return prove(self._core, kind, self._again)

    def look(self, what: str, *, by: str, participant: str | None = None, reason: str = "") -> Answer:
        """Record that somebody is about to see outcomes by action; who fails to record it must not show them."""
        payload = {"by": by, "what": what, "participant": participant, "reason": reason}
        return self._core.append(Kind.LOOK, uuid.uuid4().hex, payload, payload)

    def check_secret(self) -> None:
        """Refuse a trial that should be served while everybody may have its key of the draws.

        Raises:
            KeyPublished: with what to do.
        """
        with self._core.reading() as state:
            self._core.check_secret(state)
        if self._core.draws.is_example and not self._core.demonstration:
            raise KeyPublished(
                "the key of the draws is one of the examples, which everybody has, so it is no secret: begin a trial "
                "with a key of its own in another folder (`kerneltrail trial init` makes one)"
            )

    def secret(self, purpose: str) -> bytes:
        """A secret for another purpose than draws, the same on every server of the trial, and kept nowhere.

        It is derived from the key of the draws, of which it tells nothing.
        """
        # A decision's name has printable parts only, so no draw is made from this message.
        return hmac.new(self._core.draws.key, b"\x1e" + purpose.encode("utf-8"), hashlib.sha256).digest()
