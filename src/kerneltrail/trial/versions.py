"""Versions of the policy, as the ledger has them: each says which outcomes form which batches of which participant.

A version goes on from another one, its base. For each participant it lists one batch more, or all batches anew where a
row was corrected; who is not listed stays as in the base. So a participant's state at any version is a function of the
ledger: a new user of the version's model, updated batch by batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kerneltrail.errors import UnknownName
from kerneltrail.names import nearest
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.results import Check, PolicyVersion

Batches = tuple[tuple[int, ...], ...]
"""A participant's batches: of each outcome the sequence of its entry."""

FIRST = "1"
"""The version of somebody of whom nothing is known, with which a trial begins."""


@dataclass(frozen=True)
class Version:
    """A version as it was recorded, with the entry that has it."""

    stored: Mapping[str, Any]
    sequence: int
    made_at: str
    checks: tuple[Mapping[str, Any], ...] = ()

    @property
    def version(self) -> str:
        """Its name."""
        return str(self.stored["version"])

    @property
    def base(self) -> str | None:
        """The version it goes on from."""
        return None if self.stored["base"] is None else str(self.stored["base"])

    @property
    def model_id(self) -> str:
        """The fingerprint of its model."""
        return str(self.stored["model_id"])

    @property
    def until(self) -> int:
        """The last entry of which it knows."""
        return int(self.stored["until"])


def stored_version(
    version: str, model_id: str, base: str | None, until: int, participants: Mapping[str, Any]
) -> dict[str, Any]:
    """A version as the ledger keeps it."""
    return {
        "version": version,
        "model_id": model_id,
        "base": base,
        "until": until,
        "participants": dict(participants),
    }


class Versions:
    """All versions of a ledger's state by now."""

    def __init__(self, state: State) -> None:
        self.by_name: dict[str, Version] = {}
        for activation in state.activations:
            if "policy" in activation.payload:
                self._add(Version(activation.payload["policy"], activation.sequence, activation.received_at))
        for update in state.updates.values():
            result = update.result
            if result is not None and result.get("policy") is not None and update.finished is not None:
                checks = tuple(result.get("checks", ()))
                self._add(Version(result["policy"], update.finished, str(update.finished_at), checks))
        self._activations = state.activations
        self._batches: dict[tuple[str, str], Batches] = {}

    def _add(self, version: Version) -> None:
        self.by_name[version.version] = version

    @property
    def active(self) -> Version | None:
        """The one that serves."""
        return self.by_name.get(str(self._activations[-1].version)) if self._activations else None

    @property
    def before(self) -> Version | None:
        """The one that served before the one that serves: the last that is known to have worked."""
        serving = self._activations[-1].version if self._activations else None
        for activation in reversed(self._activations):
            if activation.version != serving:
                return self.by_name.get(str(activation.version))
        return None

    def get(self, version: str) -> Version:
        """By its name; raises `UnknownName`."""
        if version not in self.by_name:
            hint = nearest(version, tuple(self.by_name), "there are")
            raise UnknownName(f"there is no version {version!r} of the policy; {hint}")
        return self.by_name[version]

    def chain(self, version: str) -> list[Version]:
        """A version and those it goes on from, oldest first."""
        found = [self.get(version)]
        while (base := found[-1].base) is not None:
            found.append(self.get(base))
        return found[::-1]

    def next_name(self) -> str:
        """For the next one."""
        return str(1 + max((int(name) for name in self.by_name), default=0))

    def batches(self, version: str, participant: str) -> Batches:
        """A participant's batches at a version."""
        known = self._batches.get((version, participant))
        if known is None:
            known = self._batches[version, participant] = self._gathered(version, participant)
        return known

    def _gathered(self, version: str, participant: str) -> Batches:
        added: list[tuple[int, ...]] = []
        name: str | None = version
        while name is not None:
            here = self.get(name)
            change = here.stored["participants"].get(participant)
            if change is not None and "rebuilt" in change:
                return (*(tuple(batch) for batch in change["rebuilt"]), *reversed(added))
            if change is not None:
                added.append(tuple(change["batch"]))
            name = here.base
        return tuple(reversed(added))

    def listed(self) -> list[PolicyVersion]:
        """All of them, as people see them."""
        active = self.active
        every = sorted(self.by_name.values(), key=lambda each: each.sequence)
        return [replace(self._shown(each), active=each is active) for each in every]

    def _shown(self, each: Version) -> PolicyVersion:
        return PolicyVersion(
            version=each.version,
            model_id=each.model_id,
            base=each.base,
            made_at=each.made_at,
            sequence=each.sequence,
            until=each.until,
            activated=tuple(
                (one.received_at, one.reason) for one in self._activations if str(one.version) == each.version
            ),
            checks=tuple(Check(**check) for check in each.checks),
        )
