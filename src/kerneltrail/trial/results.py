"""What the methods of a trial answer: frozen values, with the bytes for an app where it gets some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kerneltrail.data.frozen_dict import FrozenDict

Stored = Literal["stored", "duplicate", "refused"]
UpdateState = Literal["running", "done", "empty", "refused", "failed", "killed", "superseded"]
"""Of an update: it runs; it made a new policy; there was nothing new; its checks failed; it broke off; its process
ended; somebody activated another policy meanwhile, so that the new one was not activated."""
Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Answer:
    """What is answered to a call that records one entry.

    Attributes:
        body: canonical JSON in UTF-8: the bytes for the app, the same for every repeat of the call.
        new: False if it was recorded before; then the body is what was answered then.
        sequence: of the ledger's entry.
        value: what the body says, as plain values.
    """

    body: bytes
    new: bool
    sequence: int
    value: Mapping[str, Any]

    @property
    def repeated(self) -> bool:
        """Whether this was a repeat."""
        return not self.new


@dataclass(frozen=True)
class Item:
    """What became of one item of a list: `duplicate` if it was stored before, `refused` with the reason."""

    client_id: str
    status: Stored
    reason: str = ""
    sequence: int | None = None


@dataclass(frozen=True)
class Removed:
    """What became of the removal of a participant's data.

    Attributes:
        participant: whose data.
        sequence: of the entry that says so.
        new: False if they had been removed before.
        payloads: how many payloads were deleted.
        overwritten: whether the database has also overwritten what it kept of them.
        backups: copies of the ledger that were made before, and still have the data.
    """

    participant: str
    sequence: int
    new: bool
    payloads: int
    overwritten: bool
    backups: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Check:
    """One check of a new policy before it serves: what was looked at, and what was found."""

    name: str
    passed: bool
    words: str
    participant: str | None = None


@dataclass(frozen=True)
class Updated:
    """An update of the policy, as far as it has come.

    Attributes:
        id: of the update; empty for a dry run.
        state: how it stands or ended.
        version: of the policy that it made, or None.
        base: the version that it went on from.
        checks: of the new policy.
        rows: how many rows it used that the version before had not, corrected ones included.
        left_out: how many rows were left out, by the reason.
        rebuilt: participants whose batches were computed anew, because a row in them was corrected.
        held: participants who stay as in the version before, because theirs failed a check.
        words: all of it in a few sentences.
    """

    id: str
    state: UpdateState
    version: str | None
    base: str | None
    checks: tuple[Check, ...] = ()
    rows: int = 0
    left_out: Mapping[str, int] = field(default_factory=FrozenDict)
    rebuilt: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class PolicyVersion:
    """A version of the policy.

    Attributes:
        version: its name.
        model_id: the model that its users are followed on.
        base: the version it went on from; None for the first.
        made_at: when it was recorded.
        sequence: of the entry that has it.
        until: the last entry of which it knows.
        active: whether it serves now.
        activated: when and why it began to serve, each time.
        checks: that it passed.
    """

    version: str
    model_id: str
    base: str | None
    made_at: str
    sequence: int
    until: int
    active: bool = False
    activated: tuple[tuple[str, str], ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class NewKey:
    """A key to the service; the token is shown once, and only its SHA-256 is kept."""

    id: str
    token: str = field(repr=False)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alert:
    """Something that somebody should look at.

    Attributes:
        kind: of alert, such as `missed-calls`.
        severity: how much.
        subject: what it is about: a participant, a policy, or the trial.
        words: in one sentence.
        participant: if it is about one.
        at: when it began, of what lasts; None of what is looked at day by day.
        recorded: whether it stands for incidents that are recorded already.
    """

    kind: str
    severity: Severity
    subject: str
    words: str
    participant: str | None = None
    at: datetime | None = None
    recorded: bool = False


@dataclass(frozen=True)
class Status:
    """How a trial stands at a time.

    Attributes:
        at: the time.
        trial, title: of the trial.
        light: `red` if an alert is an error, `yellow` if one is a warning, else `green`.
        participants: how many there are of each status.
        expected: decisions that the protocol's times say should have been asked for in the last 24 hours, and
        received: how many of those were; decisions of kinds without times are in neither.
        decisions: recorded in the last 24 hours, by rung.
        latency_ms: median and 95th percentile of the time that these took to be made; None where there are none.
        outcomes: recorded in the last 24 hours.
        missing: of all outcomes that should be there by now, how many are not, and how many should.
        policy: the version that serves, or None.
        last_update: when the newest policy was made, or None.
        update_due: why an update is due; empty if none is.
        last_call: when the newest decision was recorded, or None.
        open_incidents: how many nobody has acknowledged.
        entries: of the ledger.
        outcome: mean of participants' mean outcomes, and their 25th percentile, or the 75th where a lower outcome is
            better: how they fare as a rule, and how those fare who fare worst; None where there are none.
        alerts: what somebody should look at.
        better: whether a higher or a lower outcome is better.
    """

    at: datetime
    trial: str
    title: str
    light: Literal["green", "yellow", "red"]
    participants: Mapping[str, int]
    expected: int
    received: int
    decisions: Mapping[str, int]
    latency_ms: tuple[float, float] | None
    outcomes: int
    policy: str | None
    last_update: datetime | None
    update_due: str
    last_call: datetime | None
    open_incidents: int
    entries: int
    outcome: tuple[float, float] | None = None
    alerts: tuple[Alert, ...] = ()
    missing: tuple[int, int] = (0, 0)
    better: Literal["higher", "lower"] = "higher"


@dataclass(frozen=True)
class ReplayedDecision:
    """A recorded decision beside the one made anew.

    Attributes:
        key: of the decision in the ledger.
        sequence: of its entry.
        state: `equal` (within the tolerance, `exact` says whether to the last bit), `different`, `removed`, or
            `not here` (the app drew it, so there is nothing to compute).
        difference: the first thing that differs.
        close_call: whether the draw lies so close to the probability that the action could have been the other.
    """

    key: str
    sequence: int
    state: Literal["equal", "different", "removed", "not here"]
    exact: bool = False
    difference: str = ""
    close_call: bool = False


@dataclass(frozen=True)
class Replayed:
    """A whole ledger replayed: how many decisions there are of each state, and the first that differs."""

    trial: str
    until: int
    equal: int = 0
    exact: int = 0
    different: int = 0
    removed: int = 0
    not_here: int = 0
    close_calls: tuple[str, ...] = ()
    first: ReplayedDecision | None = None

    @property
    def same(self) -> bool:
        """Whether no decision differs."""
        return not self.different

    def __str__(self) -> str:
        total = self.equal + self.different
        if self.different and self.first is not None:
            return (
                f"different: {self.different} of {total} decisions of {self.trial} come out otherwise; the first is "
                f"entry {self.first.sequence} ({self.first.key}): {self.first.difference}"
            )
        parts = [f"equal: all {total} decisions of {self.trial} come out as recorded, {self.exact} to the last bit"]
        if self.removed:
            parts.append(f"{self.removed} were removed")
        if self.not_here:
            parts.append(f"{self.not_here} were drawn by the app")
        if self.close_calls:
            parts.append(f"in {len(self.close_calls)} the draw was as good as the probability")
        return "; ".join(parts)
