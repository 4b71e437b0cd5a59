"""A small trial that runs: the hand-made model, its protocol, a clock that tests set, and participants who answer."""

from datetime import UTC, date, datetime, timedelta

from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.export import table
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.request import Request

from .study import DRAWS, centred_model, protocol

BEGIN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


class Time:
    """A clock that stands until it is set."""

    def __init__(self, now=BEGIN):
        self.now = now

    def __call__(self):
        return self.now

    def go(self, **span):
        self.now += timedelta(**span)
        return self.now


def agreed(**changes):
    # A state may take a while to compute on a machine that is busy: the deadline is not what most tests are about.
    stated = {"updates": {"by_hand": True}, "deadline_ms": 60000, **changes}
    return protocol(centred_model(), **stated)


def models():
    return {fingerprint(centred_model()): centred_model()}


def begun(location, time=None, **options):
    """A trial that is open on a location, with its protocol frozen."""
    time = time or Time()
    ledger = Ledger(location, "walks", clock=time, patience=30)
    stated = {"key": DRAWS.key, "models": models(), "protocol": agreed(), "clock": time, **options}
    return Trial.open(ledger, **stated)


def enrol(trial, *names, **changes):
    for name in names:
        facts = {"timezone": "Europe/Zurich", "starts_on": date(2026, 3, 1), "ends_on": date(2026, 6, 1), **changes}
        trial.enrol(name, **facts)


def asked(person="p01", index=0, kind="walk", hour=None, steps=120.0, at=None, **changes):
    """A request at the time of its index: two a day."""
    at = at or BEGIN + timedelta(hours=12 * index)
    context = {"hour": float(at.hour) if hour is None else hour, "steps": steps}
    return Request(person, kind, index, at, context=context, **changes)


def outcome(answer, value, *, name=None, supersedes=None, **changes):
    """An item for the outcome of a decision."""
    item = {
        "client_id": name or f"o{answer.value['index']}",
        "participant": answer.value["participant"],
        "decision": answer.value["decision_id"],
        "value": value,
        "observed_at": "2026-03-01T12:00:00+00:00",
        **changes,
    }
    return item if supersedes is None else {**item, "supersedes": supersedes}


def walked(trial, person="p01", indices=range(4), time=None):
    """Decisions with an outcome each."""
    answers = []
    for index in indices:
        if time is not None:
            time.now = BEGIN + timedelta(hours=12 * index)
        answer = trial.decide(asked(person, index, hour=float(8 + (5 * index) % 12), steps=40.0 * index))
        effect = 0.8 * answer.value["action"]
        trial.outcomes([outcome(answer, 1.0 + 0.1 * index + effect)])
        answers.append(answer)
    return answers


def incidents(trial, kind):
    """Incidents of a kind."""
    return [each for each in trial.incidents() if each.payload and each.payload["kind"] == kind]


def rows(trial, name):
    """Rows of an exported table."""
    with trial.reading() as state:
        return table(state, name)[1]


def broken(*_):
    """In the place of whatever should fail."""
    raise ArithmeticError("broken")


def drawn(answer):
    """What the draw says, from the names of the decision and the published rule alone."""
    value = answer.value
    return int(DRAWS.number("walks", value["participant"], value["kind"], value["index"]) < value["probability"])
