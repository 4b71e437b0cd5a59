"""Two processes on one ledger, and one that is killed in the middle: no gap, no loss, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.verify import verify

WORKER = Path(__file__).with_name("worker.py")
COUNT = 100  # of pairs: 200 entries each


def started(location, name, count):
    words = [sys.executable, str(WORKER), str(location), name, str(count)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def begin(*workers):
    """Let them go at the same time, once all have loaded what they need."""
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * len(workers)
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()


def test_two_processes_lose_nothing(location):
    workers = [started(location, name, COUNT) for name in ("a", "b")]
    begin(*workers)
    assert [worker.communicate()[0].split()[-1:] for worker in workers] == [[str(COUNT - 1)]] * 2
    with Ledger(location, "walking") as ledger:
        keys = [entry.key for entry in ledger.entries()]
        shared = [f"both/{index}" for index in range(0, COUNT, 10)]
        firsts = [f"{name}/{index}" for name in "ab" for index in range(COUNT) if index % 10]
        seconds = [f"{name}/{index}/second" for name in "ab" for index in range(COUNT)]
        assert Counter(keys) == Counter([*shared, *firsts, *seconds])
        verdict = verify(ledger)
        assert verdict.sound, verdict
        assert verdict.entries == len(keys)


@pytest.mark.parametrize("after", [1, 7])
def test_a_process_that_is_killed_leaves_whole_transactions(location, after):
    worker = started(location, "a", 100_000)
    begin(worker)
    for _ in range(after):
        answered = int(worker.stdout.readline())
    time.sleep(0.003)  # somewhere in an append
    os.kill(worker.pid, signal.SIGKILL)
    more = [int(line) for line in worker.stdout]
    worker.wait()
    worker.stdout.close()
    worker.stdin.close()
    last = max([answered, *more])
    with Ledger(location, "walking", patience=20) as ledger:
        entries = list(ledger.entries())
        assert len(entries) % 2 == 0
        assert len(entries) // 2 in (last + 1, last + 2)  # what was answered is there; one may have missed its answer
        assert all(not entry.removed for entry in entries)
        assert verify(ledger).sound
        assert ledger.append("incident", "after", {"kind": "alive"}).entry.sequence == len(entries) + 1
