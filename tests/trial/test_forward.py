"""Pasts folded forward, beside those that are folded from the whole record each time."""

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from kerneltrail.trial import forward
from kerneltrail.trial.forward import Forward
from kerneltrail.trial.ledger.participant import Decision, Delivery, Participant
from kerneltrail.trial.past import Past
from kerneltrail.trial.points import Pasts

from .running import BEGIN
from .study import protocol

ZONE = ZoneInfo("Europe/Zurich")


def recorded(rng, count, *, order=True):
    """A participant with many decisions; unless in order, some are late, drawn ahead, or reported on late."""
    person, sequence = Participant("p01"), 0
    waiting = []
    for place in range(count):
        sequence += 1
        away = timedelta() if order or rng.random() < 0.7 else timedelta(hours=float(rng.uniform(-40, 40)))
        at = (BEGIN + timedelta(hours=6 * place) + away).astimezone(ZONE)
        key = f"p01/walk/{place}"
        arrived = {name: float(rng.normal()) for name in ("hour", "steps") if rng.random() < 0.8}
        payload = {
            "kind": str(rng.choice(["walk", "rest"])),
            "decided_at": at.isoformat(),
            "arrived": arrived,
            "action": int(rng.random() < 0.5),
            "until": sequence - 1 - (0 if order else int(rng.integers(0, 3))),
        }
        person.decisions[key] = Decision(sequence, key, at.isoformat(), None if rng.random() < 0.05 else payload)
        waiting += [(key, each) for each in rng.choice([0, 1, None], int(rng.integers(0, 3)))]
        while waiting and (order or rng.random() < 0.6):
            whose, action = waiting.pop(0 if order else int(rng.integers(len(waiting))))
            sequence += 1
            report = Delivery(sequence, f"d{sequence}", whose, "delivered", None, action)
            person.deliveries.setdefault(whose, []).append(report)
    return person


def asked(person):
    """The protocol, entries and time of each decision; the protocol changes twice."""
    three = [protocol(), protocol(burden={"decay": 0.5}), protocol()]
    decisions = list(person.decisions.values())
    for place, each in enumerate(decisions):
        if each.payload is not None:
            at = forward.instant(each.payload["decided_at"])
            yield three[3 * place // len(decisions)], each.payload["until"], at


@pytest.mark.parametrize("order", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_it_is_what_the_whole_record_says_to_the_last_bit(seed, order):
    person = recorded(np.random.default_rng(seed), 60, order=order)
    past = Forward(person)
    for agreed, until, at in asked(person):
        assert past.at(agreed, until, at) == Pasts().at(agreed, person, until, at)


def test_a_decision_that_is_made_anew_counts_as_it_was_made():
    """As in a simulated trial: an action, and what is known of its delivery, changes before the next one."""
    rng = np.random.default_rng(1)
    person, agreed = recorded(rng, 60), protocol()
    past = Forward(person)
    for key, decision in list(person.decisions.items()):
        if decision.payload is None:
            continue
        at = forward.instant(decision.payload["decided_at"])
        until = decision.payload["until"]
        assert past.at(agreed, until, at) == Pasts().at(agreed, person, until, at)
        action = int(rng.random() < 0.5)
        person.decisions[key] = replace(decision, payload={**decision.payload, "action": action})
        person.deliveries[key] = [each for each in person.deliveries.get(key, []) if each.action == 0]


def test_each_decision_is_folded_once(monkeypatch):
    """Where all came in order: what is done grows with the decisions, and not with their square."""
    folds, looks = [], []
    after, reached = Past.after, forward.reached
    monkeypatch.setattr(Past, "after", lambda *args: folds.append(1) or after(*args))
    monkeypatch.setattr(forward, "reached", lambda *args: looks.append(1) or reached(*args))
    person, agreed = recorded(np.random.default_rng(2), 300), protocol()
    past = Forward(person)
    for _, until, at in asked(person):
        past.at(agreed, until, at)
    there = sum(each.payload is not None for each in person.decisions.values())
    assert 0.9 * there < len(folds) <= there
    assert len(looks) <= there + sum(map(len, person.deliveries.values()))
