"""Engines give every result with its key, whatever runs where; and their processes do not outlive their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kerneltrail.engines import JobFailure, Local, Serial, engine_for, results
from kerneltrail.errors import DataError, KernelSyntaxError, KerneltrailError

ENGINES = [Serial(), Local(2)]


def plus(shared, number):
    if number == 3:
        raise DataError("three is not a number here")
    return shared + number


def blas_threads(shared):
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def syntax(shared):
    raise KernelSyntaxError("no such kernel", "ABC[x]", 0)


class Stubborn(Exception):
    """It cannot be sent to another process."""

    def __init__(self, one, two):
        super().__init__(one)


def stubborn(shared):
    raise Stubborn("a", "b")


def ended(shared):
    os.kill(os.getpid(), signal.SIGKILL)


def as_they_arrive(shared, number):
    """Sums of two arrays, and which of them can be written to."""
    fixed, free = shared
    return fixed.sum(), free.sum(), fixed.flags.writeable, free.flags.writeable, fixed.flags.aligned


def is_of_a_file(shared, number):
    """Whether the memory of an array is that of a file, which several processes can have in common."""
    assert shared.sum() == len(shared)
    start = shared.__array_interface__["data"][0]
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            begin, end = (int(each, 16) for each in head.split("-"))
            inside = begin <= start < end
        elif inside and head == "Anonymous:" and int(line.split()[1]):
            return False
    return True


def jobs(*numbers):
    return ((number, (number,)) for number in numbers)


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "local"])
class TestEngines:
    def test_every_result_comes_with_its_key(self, engine):
        assert dict(engine.run(plus, jobs(*range(10, 40)), 1)) == {number: number + 1 for number in range(10, 40)}

    @pytest.mark.parametrize("rows", [3, 40_000])
    def test_arrays_arrive_as_they_are(self, engine, rows):
        fixed, free = np.full((rows, 2), 0.5), np.full(rows, 0.25)
        fixed.setflags(write=False)
        assert dict(engine.run(as_they_arrive, jobs(1, 2), (fixed, free))) == dict.fromkeys(
            (1, 2), (rows, 0.25 * rows, False, True, True)
        )

    def test_a_job_that_fails_stops_no_other(self, engine):
        found = dict(engine.run(plus, jobs(2, 3, 4), 1))
        assert (found[2], found[4]) == (3, 5)
        assert isinstance(found[3], JobFailure)
        assert str(found[3].error) == "three is not a number here"

    # Loky's thread may stumble over jobs that were still waiting when the others were abandoned; nobody waits for them.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_results_raise_what_a_job_raised(self, engine):
        with pytest.raises(DataError, match="three is not a number here"):
            list(results(engine, plus, jobs(2, 3, 4, 5, 6, 7, 8), 1))
        with pytest.raises(KernelSyntaxError, match="no such kernel"):
            list(results(engine, syntax, [("a", ())]))

    def test_each_job_has_one_blas_thread(self, engine):
        ((_, threads),) = engine.run(blas_threads, [("a", ())])
        assert threads == {1}

    def test_what_is_shared_may_be_large(self, engine):
        """It is sent once for all jobs, not with each."""
        numbers = list(range(200_000))
        assert dict(engine.run(lambda shared, i: shared[i], jobs(5, 199_999), numbers)) == {5: 5, 199_999: 199_999}

    def test_nothing_to_do(self, engine):
        assert list(engine.run(plus, [], 1)) == []


def test_an_error_that_cannot_travel_arrives_as_text():
    ((_, failure),) = Local(2).run(stubborn, [("a", ())])
    assert "Stubborn" in str(failure.error)


def test_a_worker_that_is_killed_is_a_sentence():
    with pytest.raises(KerneltrailError, match="a worker process was ended from outside"):
        list(Local(2).run(ended, [("a", ())]))
    assert dict(Local(2).run(plus, jobs(1), 1)) == {1: 2}


def test_the_engine_for_a_number_of_processes():
    assert engine_for(1) == Serial()
    assert engine_for(3) == Local(3)
    assert engine_for().workers == (os.cpu_count() or 1)


FITTING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from kerneltrail.engines import engine_for
from trajectory import tiny
from kerneltrail.trajectory.fit import fit
[(_, worker)] = engine_for(2).run(lambda shared: os.getpid(), [("a", ())])
print(worker, flush=True)
long = tiny.settings(sweeps=100_000, check=50_000, rhat=1.0001, maps=tiny.MapSettings(starts=60, screen=200))
fit(tiny.cohort(3, (3, 6, 10, 20)), pool=tiny.POOL, workers=2, settings=long)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_workers_do_not_outlive_a_parent_that_is_killed_in_mid_fit(how):
    words = [sys.executable, "-c", FITTING, str(Path(__file__).parents[1])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        worker = int(process.stdout.readline())
        time.sleep(1.0)
        children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        assert worker in children
        assert process.poll() is None
        process.send_signal(how)
        process.wait()
        until = time.monotonic() + 20.0
        while (left := [pid for pid in children if lives(pid)]) and time.monotonic() < until:
            time.sleep(0.1)
        assert left == []


def lives(pid):
    """Whether a process is there, and more than a name that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux whose memory it is")
def test_processes_read_what_nobody_may_change_in_one_place():
    rows = np.ones(200_000)
    rows.setflags(write=False)
    assert dict(Local(2).run(is_of_a_file, jobs(1, 2), rows)) == {1: True, 2: True}
    assert dict(Local(2).run(is_of_a_file, jobs(1, 2), rows.copy())) == {1: False, 2: False}
