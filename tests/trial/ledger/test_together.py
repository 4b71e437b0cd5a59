"""Entries of threads in one commit: each has its own outcome, and none is lost with a thread that gave up or failed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import sleep

import pytest

from kerneltrail.errors import KeyConflict, NotRecorded, ParticipantRemoved
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.chain import verify
from kerneltrail.trial.ledger.database import Database
from kerneltrail.trial.ledger.writer import Writer
from trial.ledger.examples import decision, delivery, outcome, put


@pytest.fixture
def commits(monkeypatch):
    """Counts transactions that were committed."""
    writing, count = Database.writing, []

    @contextmanager
    def counted(*given):
        with writing(*given) as connection:
            yield connection
        count.append(threading.current_thread().name)

    monkeypatch.setattr(Database, "writing", counted)
    return count


def wanted(ledger, number):
    """Wait until so many entries of threads are to be recorded."""
    while len(ledger._together._wishes) < number:
        sleep(0.001)


@contextmanager
def waiting(ledger, calls, **more):
    """Threads that append while somebody else writes: in their order, all of them waiting when the block begins."""
    with ThreadPoolExecutor(len(calls)) as pool, ledger.transaction():
        futures = []
        for call in calls:
            futures.append(pool.submit(put, ledger, call, **more))
            wanted(ledger, len(futures))
        yield futures


def test_what_waits_is_one_commit_and_each_has_its_own_outcome(ledger, commits):
    put(ledger, decision(index=1))
    put(ledger, decision("gone", index=1))
    ledger.remove("gone")
    del commits[:]
    calls = [
        decision(index=2),
        outcome(index=1),
        decision(index=1),  # a repeat
        decision(index=1, action=0),  # the same key with something else
        decision(index=2),  # a repeat of what is only being recorded
        delivery(index=1),
        decision("gone", index=2),
        decision("p2", index=1),
    ]
    with waiting(ledger, calls) as futures:
        assert not any(future.done() for future in futures)
    assert len(commits) == 2  # of the one that was waited for, and theirs
    for number in (0, 1, 4, 5, 7):
        (_, key, _), _ = calls[number]
        assert futures[number].result().entry.key == key
    assert [futures[number].result().new for number in (0, 1, 2, 4, 5, 7)] == [True, True, False, False, True, True]
    assert futures[4].result().entry == futures[0].result().entry
    assert futures[2].result().entry.sequence == 1
    with pytest.raises(KeyConflict, match="they differ in action"):
        futures[3].result()
    with pytest.raises(ParticipantRemoved):
        futures[6].result()
    assert ledger.head().sequence == 7
    assert verify(ledger).sound


def test_the_entries_are_those_that_one_after_the_other_would_leave(location, schemas, tmp_path):
    calls = [decision(f"p{number}", index=1) for number in range(6)]
    other = tmp_path / "other.db" if not isinstance(location, str) else schemas()
    with Ledger(location, "walking") as together, Ledger(other, "walking") as alone:
        for call in calls:
            put(alone, call)
        with waiting(together, calls):
            pass
        kept = [[(each.sequence, each.key, each.payload) for each in ledger.entries()] for ledger in (together, alone)]
        assert kept[0] == kept[1]


def test_if_the_commit_fails_nothing_is_recorded_and_everybody_is_told(ledger, monkeypatch):
    put(ledger, decision(index=0))
    extend, failures = Writer.extend, []

    def torn(writer, drafts):
        extend(writer, drafts)
        failures.append(len(drafts))
        raise OSError("torn")

    monkeypatch.setattr(Writer, "extend", torn)
    with waiting(ledger, [decision(index=index) for index in range(1, 5)]) as futures:
        pass
    with pytest.raises(OSError, match="torn"):  # of whom it was
        futures[0].result()
    for future in futures[1:]:
        with pytest.raises(NotRecorded, match="torn"):
            future.result()
    assert failures == [4]
    assert ledger.head().sequence == 1
    monkeypatch.undo()
    assert put(ledger, decision(index=1)).entry.sequence == 2
    assert verify(ledger).sound


def test_whoever_gives_up_leaves_the_others_to_the_next(location):
    with Ledger(location, "walking", patience=30) as ledger, ThreadPoolExecutor(3) as pool:
        put(ledger, decision(index=0))
        with ledger.transaction():
            first = pool.submit(put, ledger, decision(index=1), patience=0.0)  # it would write, for itself and others
            wanted(ledger, 1)
            second = pool.submit(put, ledger, decision(index=2), patience=0.0)
            wanted(ledger, 2)
            third = pool.submit(put, ledger, decision(index=3))
            with pytest.raises(NotRecorded, match="for too long"):
                first.result(60)
            with pytest.raises(NotRecorded, match="for too long"):
                second.result(60)
            assert not third.done()
        assert third.result(60).entry.sequence == 2
        assert [entry.payload["index"] for entry in ledger.entries()] == [0, 3]
        assert put(ledger, decision(index=1)).entry.sequence == 3


def test_many_threads_lose_nothing(ledger, commits):
    calls = [decision(f"p{number % 7}", index=number) for number in range(60)]
    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(lambda call: put(ledger, call), calls))
    assert sorted(each.entry.sequence for each in results) == list(range(1, 61))
    assert len(commits) <= 60
    assert not ledger._together._wishes
    assert not ledger._together._led
    assert verify(ledger).sound
