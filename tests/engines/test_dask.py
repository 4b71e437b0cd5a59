"""On a Dask cluster a fit finds what it finds here, whatever dies on the way; and what cannot be done is named."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import cloudpickle
import pytest
from typer.testing import CliRunner

import kerneltrail as kt
from kerneltrail.cli.app import app
from kerneltrail.engines import Dask, JobFailure, Serial, dask, engine_for, results
from kerneltrail.errors import DataError, KerneltrailError
from kerneltrail.methods import METHODS
from kerneltrail.plugins import registry_of
from kerneltrail.trajectory.fit import fit
from support.identical import difference
from support.optional import needed
from trajectory import tiny

distributed = needed("distributed")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have this file

# Of Dask and Tornado, about processes that are killed here on purpose.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def small(**others):
    """A fit of 3 users and 6 kernels; with sampled evidences, as the default has them."""
    settings = tiny.settings(evidence="sampled")
    return timeless(fit(tiny.cohort(3, (3, 7, 12)), pool=tiny.POOL, settings=settings, **others))


def timeless(model):
    return replace(model, diagnostics=replace(model.diagnostics, seconds={}))


@pytest.fixture(scope="module")
def alone():
    return small(engine="serial")


def plus(shared, number):
    if number == 3:
        raise DataError("three is not a number here")
    return shared + number


def jobs(*numbers):
    return [(number, (number,)) for number in numbers]


class Counting:
    """An engine that notes the keys of its jobs, and calls `at` after each result."""

    def __init__(self, engine, at=lambda number: None):
        self.engine, self.at, self.keys = engine, at, []

    @property
    def workers(self):
        return self.engine.workers

    def run(self, function, jobs, shared=None):
        jobs = list(jobs)
        self.keys += [key for key, _ in jobs if function.__name__ == "_fits"]
        for number, result in enumerate(self.engine.run(function, jobs, shared), 1):
            yield result
            self.at(number)


def test_every_result_comes_with_its_key_and_a_failure_stops_no_other(client):
    found = dict(engine_for(client).run(plus, jobs(1, 2, 3, 4), 10))
    failure = found.pop(3)
    assert found == {1: 11, 2: 12, 4: 14}
    assert isinstance(failure, JobFailure)
    with pytest.raises(DataError, match="three is not a number here"):
        list(results(Dask(client), plus, jobs(1, 3), 10))
    assert list(Dask(client).run(plus, [], 10)) == []


def test_a_fit_on_a_cluster_is_the_fit_here_to_the_bit(client, alone):
    assert difference(small(engine=client), alone) is None


def test_what_was_registered_from_outside_goes_along(client):
    with METHODS.temporarily("times", lambda number: 3 * number):
        found = dict(results(Dask(client), lambda shared, n: registry_of("method")["times"](n), jobs(1, 2)))
    assert found == {1: 3, 2: 6}
    assert dict(results(Dask(client), lambda shared, n: list(registry_of("method").outside), jobs(1))) == {1: []}


def pids(client):
    return client.run(os.getpid)


def test_a_worker_that_is_killed_in_mid_fit_changes_nothing(client, alone):
    engine = Dask(client)
    before = set(pids(client).values())

    def kill(number):
        if number == 3 and before <= set(pids(client).values()):
            os.kill(min(before), signal.SIGKILL)

    counting = Counting(engine, kill)
    assert difference(small(engine=counting), alone) is None
    client.wait_for_workers(2, timeout=30)
    assert min(before) not in set(pids(client).values())


def deadly(shared, number):
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return shared + number


def test_a_job_that_kills_its_worker_is_named_and_the_others_are_done(client):
    began = time.monotonic()
    found = dict(engine_for(client).run(deadly, jobs(*range(20)), 100))
    assert time.monotonic() - began < 60.0
    failure = found.pop(7)
    assert found == {number: 100 + number for number in range(20) if number != 7}
    assert isinstance(failure, JobFailure)
    assert "the job 7 ended every worker process that tried it" in str(failure.error)
    client.wait_for_workers(2, timeout=30)


DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from kerneltrail.trajectory.fit import fit
from trajectory import tiny
fit(tiny.cohort(3, (3, 7, 12)), pool=tiny.POOL, settings=tiny.settings(evidence="sampled"), engine=sys.argv[2],
    checkpoint=sys.argv[3])
"""


def kept(folder):
    """The (user, mask) of every fit that was kept."""
    lines = (folder / "fits.log").read_text().split("\n")[:-1] if (folder / "fits.log").exists() else []
    return [(stored["user"], stored["mask"]) for stored in (json.loads(line.partition(" ")[2]) for line in lines)]


def test_a_driver_that_is_killed_is_resumed_without_a_fit_done_twice(client, alone, tmp_path):
    words = [sys.executable, "-c", DRIVER, str(Path(__file__).parents[1]), client.scheduler.address, str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as driver:
        until = time.monotonic() + 60.0
        while not (done := kept(tmp_path)) and time.monotonic() < until:
            time.sleep(0.005)
        driver.kill()
    done = kept(tmp_path)
    counting = Counting(Dask(client))
    assert difference(small(engine=counting, checkpoint=tmp_path), alone) is None
    every = kept(tmp_path)
    assert 0 < len(done) < len(every) == len(set(every))
    assert len(set(counting.keys)) == len(counting.keys) == len(every) - len(done)


def test_workers_of_another_version_are_refused_by_name(client):
    address = min(pids(client))

    def pretend(version):
        import kerneltrail.engines.versions as module

        module.version = (lambda name: "0.1" if name == "numba" else "9.9") if version else importlib_version()

    def importlib_version():
        import importlib.metadata

        return importlib.metadata.version

    client.run(pretend, True, workers=[address])
    try:
        with pytest.raises(KerneltrailError) as refused:
            list(Dask(client).run(plus, jobs(1), 1))
    finally:
        client.run(pretend, False, workers=[address])
    text = str(refused.value)
    assert f"at {address}: " in text
    assert "numba 0.1 instead of " in text
    assert text.count("worker ") == 1  # the other one is as it should be
    assert dict(Dask(client).run(plus, jobs(1), 1)) == {1: 2}


def test_a_worker_that_comes_later_with_other_versions_refuses_its_jobs(client, monkeypatch):
    monkeypatch.setattr(Dask, "_refuse_others", lambda *_: None)
    monkeypatch.setattr(dask, "versions", lambda: {"python": "2.7"})
    with pytest.raises(KerneltrailError, match=r"worker \d at tcp://.* python 3\.\d+\.\d+ instead of 2\.7"):
        list(results(Dask(client), plus, jobs(1), 1))


def test_a_cluster_without_workers_is_waited_for_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(dask, "LOOK", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        assert engine_for(client).workers == 1
        with pytest.raises(KerneltrailError, match=r"no worker for 0\.2 seconds"):
            list(Dask(client, patience=0.2).run(plus, jobs(1), 1))


INSIDE = []
"""Jobs that run now, in this process; and the most at a time."""


def crowded(shared, number):
    INSIDE.append(number)
    time.sleep(0.05)
    count = len(INSIDE)
    INSIDE.remove(number)
    return count, threading.get_ident()


def test_a_worker_with_several_threads_does_one_job_at_a_time():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, processes=False, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        found = dict(results(Dask(client), crowded, jobs(*range(8))))
    assert {count for count, _ in found.values()} == {1}


def test_a_job_that_begins_jobs_does_them_itself(client):
    engine = Dask(client)
    assert cloudpickle.loads(cloudpickle.dumps(engine)) == Serial()


@pytest.fixture
def processes(tmp_path):
    """A scheduler and two workers as commands start them; its address."""
    begun = []

    def begin(*words):
        begun.append(subprocess.Popen([sys.executable, "-m", "dask", *words], stderr=subprocess.DEVNULL))

    try:
        file = tmp_path / "scheduler.json"
        begin("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        for _ in range(2):
            begin("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard")
        until = time.monotonic() + 30.0
        while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < until:
            time.sleep(0.05)  # it is there before all of it is written
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(begun):
            process.kill()
            process.wait()


def test_the_command_line_with_a_scheduler_and_workers_of_their_own(processes, tmp_path):
    rows = [f"{user.name},{t},{user.X[t, 0]},{user.y[t]}" for user in tiny.pilots(3) for t in range(user.rows)]
    (tmp_path / "pilot.csv").write_text("\n".join(["user,time,x,y", *rows]), encoding="utf-8")
    light = "settings: {largest: 1, chains: 1, sweeps: 16, check: 8, maps: {starts: 1, screen: 4}, sharing: separate}"
    (tmp_path / "light.yaml").write_text(light, encoding="utf-8")
    columns = ["--user", "user", "--order", "time", "--target", "y", "--batch-size", "4"]
    for name, engine in (("far", processes.replace("tcp://", "dask://")), ("near", "serial")):
        words = ["--config", tmp_path / "light.yaml", "--engine", engine, "--out", tmp_path / name]
        result = CliRunner().invoke(app, ["fit", str(tmp_path / "pilot.csv"), *columns, *map(str, words)])
        assert result.exit_code == 0, result.output
    far, near = (timeless(kt.load(tmp_path / name)) for name in ("far", "near"))
    assert difference(far, near) is None


def test_a_scheduler_that_does_not_answer_is_a_sentence(monkeypatch):
    monkeypatch.setattr(dask, "CONNECTING", 1)
    with pytest.raises(KerneltrailError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        engine_for("dask://127.0.0.1:9")


def test_simulated_trials_are_the_same_on_a_cluster(client):
    """What differs are times alone; each trial is a job of its own, with the study sent along."""
    needed("gymnasium")
    from kerneltrail.trial.simulator.study import simulate
    from trial.simulator.made import design, study

    known, times = study(), ("median_ms", "p95_ms")
    far, near = (
        simulate(known, [design(2, 2)], range(2), ("ours", "fixed"), engine=engine)
        for engine in (Dask(client), Serial())
    )
    assert [(run.policy, run.seed) for run in far] == [(run.policy, run.seed) for run in near]
    for one, other in zip(far, near, strict=True):
        assert {**one.values, **dict.fromkeys(times)} == {**other.values, **dict.fromkeys(times)}
