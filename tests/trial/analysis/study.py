"""Small trials that have ended, in folders: with late, missing and corrected outcomes, and people who left."""

from datetime import timedelta

import numpy as np

from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.folder import KEY, LEDGER, MODELS, PROTOCOL, Folder
from kerneltrail.trial.ledger import Ledger, fold
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.protocol_text import commented_text

from ..running import BEGIN, Time, agreed, asked, outcome
from ..study import DRAWS, centred_model

PEOPLE = ("p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09")
DAYS = 6
LAST = BEGIN.date() + timedelta(days=DAYS - 1)


def agreement(**changes):
    return agreed(updates={"daily": "03:00"}, **changes)


def begun_in(folder, protocol, time):
    """A folder as `trial init` makes it, and its trial with the protocol frozen."""
    (folder / MODELS).mkdir(parents=True)
    centred_model().save(folder / MODELS / "pilot.trail")
    (folder / KEY).write_text(DRAWS.key.hex() + "\n")
    (folder / PROTOCOL).write_text(commented_text(protocol))
    ledger = Ledger(folder / LEDGER, "walks", clock=time)
    return Trial.open(
        ledger, key=DRAWS.key, models=folder / MODELS, protocol=protocol, clock=time, backups=folder / "backups"
    )


def finished(folder, *, people=PEOPLE, days=DAYS, effect=lambda person, hour: 0.8, seed=0, leave=True, **changes):
    """A trial of two decisions a day, run to its end; returns its folder.

    p02 withdraws, p03 pauses for a day, p04 has never a decision, p05's data are removed, where `leave` says so.
    """
    time = Time(BEGIN)
    trial = begun_in(folder, agreement(**changes), time)
    rng = np.random.default_rng(seed)
    waiting = []
    for name in people:
        trial.enrol(name, timezone="Europe/Zurich", starts_on=BEGIN.date(), ends_on=BEGIN.date() + timedelta(days - 1))
    for day in range(days):
        for slot in range(2):
            time.now = BEGIN + timedelta(days=day, hours=8 * slot)
            for name in people:
                if leave and _absent(trial, name, day, time.now):
                    continue
                _one(trial, name, 2 * day + slot, time.now, effect, rng, waiting)
        time.now = BEGIN + timedelta(days=day, hours=19)  # three in the morning, on the clock of the protocol
        trial.outcomes([item for at, item in waiting if at <= time.now])
        waiting = [(at, item) for at, item in waiting if at > time.now]
        trial.update(reason="daily")
    if leave:
        time.go(hours=1)
        trial.remove("p05", reason="asked for by letter")
    trial.close()
    return Folder(folder)


def _absent(trial, name, day, now):
    if name == "p04":
        return True
    if name == "p02" and day == 3:
        if trial.participant(name).status() != "withdrawn":
            trial.event(name, "withdraw", at=now, reason="too many prompts")
        return True
    if name == "p03" and day in (2, 3):
        status = trial.participant(name).status()
        if day == 2 and status == "active":
            trial.event(name, "pause", at=now, reason="holiday")
        if day == 3 and status == "paused":
            trial.event(name, "resume", at=now)
        return trial.participant(name).status() == "paused"
    return name == "p02" and day > 3


def _one(trial, name, index, now, effect, rng, waiting):
    hour, available = float(rng.integers(8, 20)), bool(rng.random() > 0.15)
    reasons = () if available else ("driving",)
    request = asked(name, index, hour=hour, steps=float(rng.uniform(0, 200)), at=now, available=available,
                    reasons=reasons)  # fmt: skip
    answer = trial.decide(request)
    value = float(rng.normal(1.0, 0.5)) + answer.value["action"] * effect(name, hour)
    chance = rng.random()
    if answer.value["action"]:
        lost = chance > 0.95
        trial.deliver(
            answer.value["decision_id"], status="not_delivered" if lost else "delivered", at=now,
            delivered_action=0 if lost else 1,
        )  # fmt: skip
    if chance < 0.06:
        return
    observed = None if chance < 0.1 else round(value, 3)
    item = outcome(answer, observed, name=f"o{index}", observed_at=now.isoformat())
    late = timedelta(days=1) if 0.1 < chance < 0.2 else timedelta(minutes=30)
    waiting.append((now + late, item))
    if 0.2 < chance < 0.25:
        better = outcome(answer, round(value + 0.1, 3), name=f"o{index}b", supersedes=f"o{index}",
                         observed_at=now.isoformat())  # fmt: skip
        waiting.append((now + late, better))


def read(folder):
    """The state of a folder's ledger, and the protocol in force."""
    with folder.ledger() as ledger:
        state = fold(ledger.trial, ledger.entries())
    return state, Protocol.from_json(state.protocol.payload["protocol"])
