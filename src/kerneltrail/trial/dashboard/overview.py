"""What the pages on policies, incidents and data show, as plain values."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial.alarms import DUE_WORDS
from kerneltrail.trial.dashboard.texts import dated
from kerneltrail.trial.export import COLUMNS, FORMATS
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Check
from kerneltrail.trial.rows import ALL_WORDS
from kerneltrail.trial.updating import recorded
from kerneltrail.trial.versions import Versions

CHECKS = {
    "finite": "all numbers are finite",
    "positive": "no variance is negative",
    "bounded": "no advantage is larger than is believed",
    "shift": "probabilities move no further than is usual",
}
"""Checks of a new policy, in words."""
TABLES = {
    "decisions": ("Decisions", "one row for each decision, with what was assigned, delivered and observed"),
    "outcomes": ("Outcomes", "every outcome that was sent, and whether it counts"),
    "deliveries": ("Deliveries", "what became of messages"),
    "participants": ("Participants", "who takes part"),
    "policies": ("Policies", "versions of the policy"),
    "incidents": ("Incidents", "what somebody had to look at"),
    "mrt": ("Micro-randomised trial", "for the analysis of a micro-randomised trial"),
    "lifejacket": ("Lifejacket", "for the package lifejacket"),
    "obp": ("Open Bandit Pipeline", "for the Open Bandit Pipeline"),
    "dictionary": ("Dictionary", "what every column means"),
}
"""Exports, as people call them and in words."""
HEADINGS = {
    "decision_id": "decision",
    "client_id": "outcome",
    "model_id": "model",
    "id": "participant",
    "user_id": "participant",
    "index": "number",
    "rung": "decided by",
    "rung_reason": "why not by the policy",
    "composition": "kernel",
    "advantage_mean": "expected change",
    "advantage_sd": "its standard deviation",
    "clipped": "at a limit",
    "counts": "whether it counts",
    "base": "made from",
    "until": "knows up to",
    "rand_prob": "probability of the treatment",
    "calendar_t": "order in time",
    "policy_num": "policy version",
    "action1prob": "probability of acting",
    "pscore": "probability of the action",
    "why_not": "why it does not count",
}
"""What people call a column, where that is not its name with spaces."""


def heading(column: str) -> str:
    """What people call a column of an export.

    >>> heading("rand_prob"), heading("decided_at")
    ('Probability of the treatment', 'Decided at')
    """
    words = HEADINGS.get(column, column.replace("_", " "))
    return words[0].upper() + words[1:]


def policy_values(state: State, zone: str) -> dict[str, Any]:
    """Versions, newest first, with the checks of each, and updates that made none."""
    versions = Versions(state).listed()
    removed = {name for name, each in state.participants.items() if each.removed is not None}
    updates = {each.version: each for each in map(recorded, state.updates.values()) if each.version}
    listed: list[dict[str, Any]] = [
        {
            "version": each.version,
            "base": each.base,
            "made": dated(each.made_at, zone),
            "active": each.active,
            "activated": [
                (dated(one.received_at, zone), one.reason, one.payload.get("by", ""))
                for one in state.activations
                if str(one.version) == each.version
            ],
            "words": updates[each.version].words if each.version in updates else "With which the trial began.",
            "checks": checks_words(each.checks, removed),
            "model": each.model_id,
        }
        for each in reversed(versions)
    ]
    without: list[dict[str, Any]] = [
        {
            "id": each.id,
            "when": dated(each.finished_at or each.started_at, zone),
            "state": done.state,
            "words": done.words,
        }
        for each in reversed(state.updates.values())
        if (done := recorded(each)).version is None
    ]
    active = next((each.version for each in versions if each.active), "")
    counts_all = any(ALL_WORDS in each["words"] for each in (*listed, *without))
    return {
        "policies": listed,
        "active": active,
        "without": without,
        "zone": zone,
        "counts_all": counts_all,
        "due_words": DUE_WORDS,
    }


def checks_words(checks: tuple[Check, ...], removed: set[str]) -> list[str]:
    """Checks of a version, one line for each kind: how many participants passed, and who did not."""
    lines = []
    for name, counts in _by_name(checks).items():
        failed = [each for each in checks if each.name == name and not each.passed and each.participant not in removed]
        line = f"{CHECKS.get(name, name)}: {counts[True]} of {counts.total()} participants passed"
        if failed:
            line += f"; not {listing([str(each.participant) for each in failed])} ({failed[0].words})"
        lines.append(line)
    return lines


def _by_name(checks: tuple[Check, ...]) -> dict[str, Counter[bool]]:
    found: dict[str, Counter[bool]] = {}
    for each in checks:
        found.setdefault(each.name, Counter())[each.passed] += 1
    return found


def incident_values(state: State, zone: str, *, open_only: bool = False) -> list[dict[str, Any]]:
    """Incidents, open ones first, then the newest."""
    every = [each for each in state.incidents.values() if each.is_open or not open_only]
    every.sort(key=lambda each: (each.is_open, each.sequence), reverse=True)
    return [
        {
            "id": each.id,
            "number": each.sequence,
            "at": dated(each.received_at, zone),
            "open": each.is_open,
            "participant": each.participant,
            "kind": (each.payload or {}).get("kind", "removed"),
            "severity": (each.payload or {}).get("severity", "warning"),
            "words": (each.payload or {}).get("words", "The data of this participant were removed."),
            "acknowledged": [
                (dated(at, zone), note.get("by") or "somebody", note.get("note") or "")
                for at, note in each.acknowledged
            ],
        }
        for each in every
    ]


def _named(state: State, by: str) -> str:
    """A key as the ledger notes it, with what it is for."""
    key = state.keys.get(by.removeprefix("key "))
    note = "" if key is None else key.payload.get("note", "")
    return f"{by} ({note})" if note else by


def data_values(state: State, protocol: Protocol, zone: str) -> dict[str, Any]:
    """Exports with the meaning of their columns, the ledger's end, and who has looked at outcomes by action."""
    tables = [
        (name, *TABLES.get(name, (heading(name), "")), [(each, heading(each), why) for each, why in columns.items()])
        for name, columns in COLUMNS.items()
    ]
    looks = [
        (
            dated(each.received_at, zone),
            _named(state, each.by),
            each.payload.get("participant") or str(each.payload["what"]),
            each.payload.get("reason") or "",
        )
        for each in reversed(state.looks)
    ]
    return {
        "tables": tables,
        "formats": FORMATS,
        "looks": looks,
        "zone": zone,
        "entries": counted(state.sequence, "entry", "entries"),
        "head": f"{state.sequence}:{state.hash}",
        "protocol_hash": protocol.hash,
        "commitment": protocol.draw.commitment,
    }
