"""What reached a participant, from the reports on a decision: one rule for doses, pages, exports and analyses."""

from __future__ import annotations

from kerneltrail.trial.ledger.participant import Participant

LOST = ("failed", "not_delivered")
"""Reports that say that nothing arrived."""


def delivered_action(person: Participant, decision: str, until: int | None = None) -> int | None:
    """The action that reached a participant: 1, 0, or None if nobody has said.

    The newest report that says anything counts. One with an action says it; one that a message failed, or was not
    delivered, says 0 also where its action is empty. The others, such as that it was seen, add nothing without one.

    Args:
        person: the participant.
        decision: its key.
        until: the last entry that counts; None for all.
    """
    for report in reversed(person.deliveries.get(decision, [])):
        if until is not None and report.sequence > until:
            continue
        if report.action is not None:
            return report.action
        if report.status in LOST:
            return 0
    return None
