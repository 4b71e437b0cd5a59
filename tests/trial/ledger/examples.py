"""Payloads as a service writes them."""

from kerneltrail.trial.ledger import exact, key_of


def decision(person="p1", index=1, **more):
    """Arguments of `append` for a decision."""
    payload = {
        "kind": "walk",
        "index": index,
        "decided_at": f"2026-03-{1 + index // 24:02d}T{index % 24:02d}:00:00+01:00",
        "available": True,
        "action": index % 2,
        "probability": exact(0.3),
        "context": {"temperature": 10.5 + index, "place": "home"},
    } | more
    return ("decision", key_of(person, "walk", index), payload), {"participant": person}


def outcome(person="p1", index=1, key=None, value=3.5, **more):
    """Arguments of `append` for an outcome of a decision."""
    payload = {"decision": key_of(person, "walk", index), "value": value, "observed_at": "2026-03-02T10:00:00Z"} | more
    return ("outcome", key or key_of(person, "steps", index), payload), {"participant": person}


def delivery(person="p1", index=1, action=1, **more):
    """Arguments of `append` for a delivery."""
    at = None if action is None else "2026-03-01T10:00:05Z"
    status = "unknown" if action is None else "delivered"
    payload = {"decision": key_of(person, "walk", index), "status": status, "at": at, "delivered_action": action} | more
    return ("delivery", key_of(person, "walk", index), payload), {"participant": person}


def enrolled(person="p1", **more):
    """Arguments of `append` for a participant."""
    payload = {"timezone": "Europe/Zurich", "starts_on": "2026-03-01", "ends_on": "2026-05-01"} | more
    return ("participant", key_of(person, 1), payload), {"participant": person}


def put(ledger, call, **more):
    """Append what one of the functions above describes."""
    words, named = call
    return ledger.append(*words, **named, **more)
