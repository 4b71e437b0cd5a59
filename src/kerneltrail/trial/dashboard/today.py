"""How the trial stands today, for the first page: a light with words, numbers, and who needs a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kerneltrail.kernels.phrases import counted
from kerneltrail.report.model_page.numbers import NONE
from kerneltrail.trial.alarms import DUE_WORDS
from kerneltrail.trial.dashboard.contact import Contact, contacts
from kerneltrail.trial.dashboard.kept import PointsOf
from kerneltrail.trial.dashboard.person import RUNG_WORDS
from kerneltrail.trial.dashboard.texts import age, dated, share
from kerneltrail.trial.decided import points_of, present
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Status
from kerneltrail.trial.rhythm import status_at
from kerneltrail.trial.standing import status as stands

LIGHTS = {
    "green": ("●", "Green", "No alert"),
    "yellow": ("▲", "Yellow", "The trial runs, but somebody should look at this today:"),
    "red": ("■", "Red", "Something is broken. Look at this now:"),
}
"""Of each light its shape, its name and its words; those of green go on with who needs a call."""


@dataclass(frozen=True)
class Today:
    """What the page shows.

    Attributes:
        status: of the trial.
        shape, light, words: of the light.
        numbers: what is called how: heading, number, what it means.
        rungs: decisions of the last 24 hours: what decided, how many, as a share.
        contacts: who needs a call, and
        nobody: what is said where that is nobody.
    """

    status: Status
    shape: str
    light: str
    words: str
    numbers: list[tuple[str, str, str]]
    rungs: list[tuple[str, str]]
    contacts: list[Contact]
    nobody: str = ""


def today(state: State, protocol: Protocol, now: datetime, ready: bool, points: PointsOf = points_of) -> Today:
    """The trial at a time."""
    status = stands(state, protocol, now)
    shape, light, words = LIGHTS[status.light]
    called = contacts(state, protocol, now, points)
    if status.light == "green":
        words += f" but notes; {_to_call(called)}:" if status.alerts else f"; {_to_call(called)}."
    made = sum(status.decisions.values())
    rungs = [(RUNG_WORDS.get(rung, rung), share(status.decisions[rung], made)) for rung in RUNG_WORDS
             if rung in status.decisions]  # fmt: skip
    numbers = list(_numbers(status, protocol, ready))
    return Today(status, shape, light, words, numbers, rungs, called, _nobody(state, now))


def _to_call(called: Sequence[Contact]) -> str:
    return f"{counted(len(called), 'person', 'people')} to call" if called else "nobody needs a call"


def _nobody(state: State, now: datetime) -> str:
    """Why nobody needs a call."""
    people = present(state)
    if not people:
        return "Nobody is enrolled yet."
    if not any(status_at(each, now) == "active" for each in people):
        return "Nobody: nobody takes part now."
    return "Nobody: everybody's app asks for decisions, messages arrive, and outcomes come back."


def _numbers(status: Status, protocol: Protocol, ready: bool) -> list[tuple[str, str, str]]:
    zone = protocol.updates.timezone
    able = {rung: number for rung, number in status.decisions.items() if rung != "unavailable"}
    fallbacks = sum(number for rung, number in able.items() if rung != "policy")
    people = [f"{number} {name}" for name, number in sorted(status.participants.items())]
    last_call = NONE if status.last_call is None else f"{age(status.at - status.last_call)} ago"
    updated = NONE if status.last_update is None else f"{age(status.at - status.last_update)} ago"
    due = f" An update is due: {status.update_due}." if status.update_due else ""
    times = status.latency_ms
    return [
        ("Participants", str(sum(status.participants.values())), ", ".join(people) or "nobody is enrolled yet"),
        (
            "Calls of apps, 24 hours",
            f"{status.received} of {status.expected}" if status.expected else NONE,
            "decisions that apps asked for, of those that the protocol's times say were due"
            if status.expected
            else _no_calls(protocol),
        ),
        ("Last call of an app", last_call, dated(status.last_call, zone) if status.last_call else "never"),
        ("Fallbacks, 24 hours", share(fallbacks, sum(able.values())), "decisions that the policy did not make itself"),
        (
            "Time to decide",
            NONE if times is None else f"{times[0]:.0f} ms / {times[1]:.0f} ms",
            "half of the decisions of 24 hours took at most the first, 95 of 100 at most the second; the protocol "
            f"allows {protocol.deadline_ms} ms",
        ),
        ("Last update of the policy", updated, f"policy {status.policy or NONE} serves.{due}"),
        ("Outcomes, 24 hours", f"{status.outcomes:,}", "that were recorded"),
        (
            "Missing outcomes",
            f"{status.missing[0]:,} of {status.missing[1]:,}" if status.missing[1] else NONE,
            f"in the whole trial: {DUE_WORDS}",
        ),
        (
            "Server",
            "ready" if ready else "not ready",
            f"{counted(status.entries, 'entry', 'entries')} in the ledger"
            if ready
            else "states are being computed, or it is stopping: decisions may come from a fallback",
        ),
    ]


def _no_calls(protocol: Protocol) -> str:
    """Why no call of an app was due."""
    if any(section.times for section in protocol.decisions.values()):
        return "none was due in these 24 hours"
    return "the protocol names no times at which decisions are due"
