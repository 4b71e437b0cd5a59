"""A server that is killed at random moments, again and again: what was acknowledged is there, and repeats are equal.

KERNELTRAIL_KILLS says how often it is killed; without it, as often as a test suite has time for. With
``--log-cli-level=INFO`` it says how much happened meanwhile.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

from kerneltrail.errors import CallRefused
from kerneltrail.trial.client import Client
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.copies import restore

from ..running import BEGIN, begun, enrol, incidents
from .test_processes import ready

KILLS = int(os.environ.get("KERNELTRAIL_KILLS", "15"))
LOGGER = logging.getLogger(__name__)
SEED = 20260301
PEOPLE = ("p01", "p02")
LEARN = 12
"""An update is asked for after so many decisions of a participant."""


class Nursery:
    """Servers of one ledger, one at a time, forked by `nursery.py`."""

    def __init__(self, process, location):
        self._process, self._location = process, location
        self.address = None
        self.number = 0

    def start(self, how="whole", commits=0):
        self._process.stdin.write(f"{self._location}\t{how}\t{commits}\n")
        self._process.stdin.flush()
        number, self.address = self._process.stdout.readline().split()
        self.number = int(number)

    def lives(self):
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self, sent=signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(self.number, sent)
        self.wait()

    def wait(self, seconds=60.0, meanwhile=lambda: None):
        end = monotonic() + seconds
        while self.lives():
            meanwhile()
            if monotonic() > end:
                os.kill(self.number, signal.SIGUSR1)  # it writes what its threads are at
                sleep(1.0)
                raise AssertionError("the server did not end")
            sleep(0.005)


@contextmanager
def nursery(location):
    program = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    servers = Nursery(process, location)
    try:
        assert process.stdout.readline() == "ready\n"
        yield servers
    finally:
        if servers.number:
            servers.kill()
        process.kill()
        process.communicate()


class App(threading.Thread):
    """The app of one participant: it sends each call until it is acknowledged, and now and then an old one again."""

    def __init__(self, servers, token, person, seed):
        super().__init__(name=person, daemon=True)
        self._servers, self._token, self.person = servers, token, person
        self._rng = Random(seed)
        self.ending = threading.Event()
        self.failure = None
        self.decisions, self.deliveries, self.outcomes = {}, {}, {}  # what was acknowledged
        self.lost = 0  # calls that were recorded before they were acknowledged
        self.heard = 0
        self.repeats = 0
        self.updates = 0

    def run(self):
        try:
            index = 0
            while not self.ending.is_set():
                self.live(index)
                index += 1
        except BaseException as failure:
            self.failure = failure

    def acknowledged(self, call):
        """What a call is answered with, in the end."""
        end = monotonic() + 120.0
        while True:
            address = self._servers.address
            try:
                answer = call(Client(address, "walks", self._token, timeout=20.0, tries=1))
                self.heard += 1
                return answer
            except CallRefused as refused:
                again = refused.status in (0, 503) or refused.kind == "in-flight"
                if not again or monotonic() > end:
                    raise
                sleep(0.01)

    def decide(self, index):
        context = {"hour": float(8 + index % 12), "steps": 10.0 * (index % 30)}
        at = BEGIN + timedelta(seconds=index)
        return lambda client: client.decide(self.person, "walk", index, decided_at=at, context=context)

    def deliver(self, decided):
        return lambda client: client.deliver(decided.decision_id, "delivered", at=BEGIN, delivered_action=1)

    def observed(self, decided):
        value = 1.0 + 0.5 * decided.action + 0.01 * (decided.index % 7)
        return {
            "client_id": f"o{decided.index}",
            "participant": self.person,
            "decision": decided.decision_id,
            "value": value,
            "observed_at": BEGIN,
        }

    def live(self, index):
        decided = self.acknowledged(self.decide(index))
        self.decisions[index] = decided
        self.lost += decided.replayed
        if decided.action:
            reply = self.acknowledged(self.deliver(decided))
            self.deliveries[index] = reply.body
            self.lost += reply.replayed
        item = self.observed(decided)
        (stored,) = self.acknowledged(lambda client: client.outcomes([item]))
        assert stored.status in ("stored", "duplicate"), stored
        self.outcomes[index] = (item["value"], stored.sequence)
        self.lost += stored.status == "duplicate"
        if index % LEARN == LEARN - 1:
            self.learn()
        if self._rng.random() < 0.3:
            self.repeat(self._rng.randrange(index + 1))

    def learn(self):
        try:
            self.acknowledged(lambda client: client.update("so many decisions"))
            self.updates += 1
        except CallRefused as refused:
            if refused.kind != "update-running":
                raise

    def repeat(self, index):
        before = self.decisions[index]
        again = self.acknowledged(self.decide(index))
        assert (again.body, again.replayed) == (before.body, True)
        if index in self.deliveries:
            assert self.acknowledged(self.deliver(before)).body == self.deliveries[index]
        item = self.observed(before)
        (stored,) = self.acknowledged(lambda client: client.outcomes([item]))
        assert (stored.status, stored.sequence) == ("duplicate", self.outcomes[index][1])
        self.repeats += 1


def kill_at_random(servers, apps, rng):
    """One life of a server: killed while it starts or while it serves, or by itself at a commit."""
    moment = rng.choice(("starting", "serving", "before", "after"))
    servers.start(moment, rng.randrange(1, 16))
    if moment == "starting":
        sleep(rng.uniform(0.0, 0.6))
    elif moment == "serving":
        heard = sum(app.heard for app in apps)
        end = monotonic() + 60.0
        while sum(app.heard for app in apps) == heard:
            checked(apps)
            assert monotonic() < end, "nothing was acknowledged"
            sleep(0.005)
        sleep(rng.uniform(0.0, 1.0))
    else:
        servers.wait(meanwhile=lambda: checked(apps))  # apps go on calling
    servers.kill()


def checked(apps):
    for app in apps:
        if app.failure is not None:
            raise app.failure


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_however_often_the_server_is_killed(tmp_path):
    location = tmp_path / "ledger.db"
    trial = begun(location, warm=False)
    enrol(trial, *PEOPLE)
    token = trial.create_key(["app", "operator"]).token
    trial.close()
    rng, heads = Random(SEED), []
    with nursery(location) as servers, Ledger(location, "walks") as ledger:
        servers.start()
        apps = [App(servers, token, person, seed) for seed, person in enumerate(PEOPLE)]
        for app in apps:
            app.start()
        ready(servers.address, token)
        servers.kill()
        for _ in range(KILLS - 1):
            kill_at_random(servers, apps, rng)
            heads.append(ledger.head())
            checked(apps)
        servers.start()
        for app in apps:
            app.ending.set()
        for app in apps:
            app.join(120.0)
            assert not app.is_alive()
        checked(apps)
        for app in apps:
            for index in app.decisions:
                app.repeat(index)
        operator = ready(servers.address, token)
        started = operator.update("at the end")
        while operator.updated(started.id).state == "running":
            sleep(0.02)
        assert operator.updated(started.id).state in ("done", "empty")
        servers.kill(signal.SIGTERM)
    LOGGER.info(assert_all_is_there(location, tmp_path, apps, heads))


def assert_all_is_there(location, tmp_path, apps, heads):
    """Compare the ledger with what apps were told; how much there was of everything, in words."""
    trial = begun(location)
    verdict = trial.verify(heads[-1])
    assert verdict.sound, str(verdict)
    hashes = {entry.sequence: entry.hash for entry in trial._core.ledger.entries()}
    assert all(hashes[head.sequence] == head.hash for head in heads)
    for app in apps:
        person = trial.participant(app.person)
        entries = {key: trial._core.ledger.get("decision", key).response for key in person.decisions}
        assert entries == {f"{app.person}/walk/{index}": each.body for index, each in app.decisions.items()}
        values = {each.key: each.value for each in person.outcomes.values()}
        assert values == {f"{app.person}/o{index}": value for index, (value, _) in app.outcomes.items()}
    with trial.reading() as state:
        ended = [each.result["state"] for each in state.updates.values()]  # every one has ended
    assert set(ended) <= {"done", "empty", "killed", "superseded"}
    assert len(incidents(trial, "update-killed")) == ended.count("killed")
    assert not incidents(trial, "conflict")
    replayed = trial.replay()
    total = sum(len(app.decisions) for app in apps)
    assert (replayed.exact, replayed.different) == (total, 0), str(replayed)
    assert {each.rung for app in apps for each in app.decisions.values()} == {"policy"}
    trial.close()
    copies = sorted((tmp_path / "backups").glob("*.db"))
    assert all(verdict.sound for verdict in restore(copies[-1], tmp_path / "restored.db"))
    return (
        f"{KILLS} kills: {total} decisions, {sum(app.repeats for app in apps)} repeats of calls, "
        f"{sum(app.lost for app in apps)} recorded but not acknowledged at first, "
        f"{len(ended)} updates of which {ended.count('killed')} were killed, {len(copies)} copies"
    )
