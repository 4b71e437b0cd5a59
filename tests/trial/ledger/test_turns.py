"""Turns of threads: one at a time, in the order in which they came, and none is lost with somebody who gave up."""

import threading
from time import sleep

from kerneltrail.trial.ledger.turns import Turns


def waiting(turns, count):
    while len(turns._waiting) < count:
        sleep(0.001)


def test_turns_come_in_the_order_in_which_they_were_asked_for():
    turns, order, threads = Turns(), [], []
    assert turns.acquire(0.0)

    def wait(number):
        assert turns.acquire(60.0)
        order.append(number)
        turns.release()

    for number in range(12):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        waiting(turns, number + 1)
    assert not order
    turns.release()
    for thread in threads:
        thread.join()
    assert order == list(range(12))
    assert turns.acquire(0.0)


def test_whoever_gives_up_leaves_the_turn_to_the_next():
    turns, came = Turns(), threading.Event()
    assert turns.acquire(0.0)
    assert not turns.acquire(0.01)
    thread = threading.Thread(target=lambda: turns.acquire(60.0) and came.set())
    thread.start()
    waiting(turns, 1)
    assert not turns.acquire(0.01)
    turns.release()
    thread.join()
    assert came.is_set()
    assert not turns.acquire(0.0)
    turns.release()
    assert turns.acquire(0.0)
