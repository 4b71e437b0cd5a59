"""Real servers: killed between commit and answer, asked by many at once, stopped by a signal."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest

from kerneltrail.errors import CallRefused
from kerneltrail.trial.client import Client

from ..running import BEGIN, begun, enrol

WORKER = Path(__file__).with_name("worker.py")
CONTEXT = {"hour": 9.0, "steps": 120.0}


@contextmanager
def server(location, *words):
    process = subprocess.Popen([sys.executable, str(WORKER), str(location), *words], stdout=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def token(location):
    trial = begun(location, warm=False)
    enrol(trial, "p01", "p02")
    made = trial.create_key(["app", "monitor"]).token
    trial.close()
    return made


def ready(address, token, **options):
    client = Client(address, "walks", token, timeout=60.0, **options)
    end = monotonic() + 120.0
    while not client.ready():
        assert monotonic() < end
        sleep(0.05)
    return client


def decisions(location):
    trial = begun(location, warm=False)
    try:
        assert trial.verify().sound
        return {key: each for person in ("p01", "p02") for key, each in trial.participant(person).decisions.items()}, [
            entry for entry in trial._core.ledger.entries() if entry.kind == "decision"
        ]
    finally:
        trial.close()


def test_a_server_killed_between_commit_and_answer_leaves_the_answer_in_the_ledger(location, token):
    with server(location, "dies") as (process, address):
        client = ready(address, token, tries=1)
        with pytest.raises(CallRefused) as refused:
            client.decide("p01", "walk", 0, decided_at=BEGIN, context=CONTEXT)
        assert (refused.value.status, refused.value.kind) == (0, "no-answer")
        assert process.wait(60) == -signal.SIGKILL
    _, (entry,) = decisions(location)
    with server(location) as (_, address):
        again = ready(address, token).decide("p01", "walk", 0, decided_at=BEGIN, context=CONTEXT)
    assert again.replayed
    assert again.body == entry.response


def test_two_servers_and_many_repeats_make_one_entry(location, token):
    with server(location) as (_, first), server(location) as (_, second):
        clients = [ready(first, token), ready(second, token)]

        def ask(number):
            return clients[number % 2].decide("p01", "walk", 0, decided_at=BEGIN, context=CONTEXT)

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(ask, range(100)))
    assert len({answer.body for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    _, (entry,) = decisions(location)
    assert entry.response == answers[0].body


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_when_all_is_answered(tmp_path, sent):
    trial = begun(tmp_path / "ledger.db", warm=False)
    enrol(trial, "p01")
    token = trial.create_key(["app"]).token
    trial.close()
    with server(tmp_path / "ledger.db") as (process, address):
        client = ready(address, token)
        client.decide("p01", "walk", 0, decided_at=BEGIN, context=CONTEXT)
        process.send_signal(sent)
        assert process.wait(60) == 0
        assert process.stdout.read() == "stopped\n"
