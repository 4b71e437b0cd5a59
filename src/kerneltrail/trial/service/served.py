"""A trial as it is served: its threads, its limits, its clock, whether it is ready, and what is done on the clock."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar
from urllib.parse import quote

from kerneltrail.engines import leave_settled
from kerneltrail.errors import UpdateRunning
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.service.limits import Buckets, CallLimits
from kerneltrail.trial.service.logs import LOGGER, note_failure
from kerneltrail.trial.service.metrics import Metrics
from kerneltrail.trial.service.problems import RETRY, Problem

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE, LONG_PATIENCE = 30.0, 600.0
"""Seconds after which a caller is told to come again, whatever keeps the answer; for tables and dry runs more."""
LONG = 2
"""Tables and dry runs that are made at the same time."""


@dataclass
class Served:
    """A trial behind a server.

    Attributes:
        trial: what is served.
        name: of the trial.
        limits: of bodies and rates.
        clock: what says what time it is.
        interval: seconds between looks at the clock (updates that are due, alerts); 0 for none.
        threads: that decide, and as many for everything else.
        alone: whether this process only serves; what is there when it is ready then stays out of garbage collection.
    """

    trial: Trial
    name: str
    limits: CallLimits = field(default_factory=CallLimits)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    interval: float = 30.0
    threads: int = 8
    alone: bool = False

    def __post_init__(self) -> None:
        self.path = quote(self.name, safe="")
        self.metrics = Metrics()
        self.rates = Buckets(self.limits.rate, self.limits.burst)
        self.refusals = Buckets(self.limits.refusals, 10.0 * self.limits.refusals)
        # Decisions and keys have threads of their own: whatever takes long must not keep them waiting.
        self._deciding = ThreadPoolExecutor(self.threads, thread_name_prefix="decide")
        self._reading = ThreadPoolExecutor(self.threads, thread_name_prefix="read")
        self._working = ThreadPoolExecutor(LONG, thread_name_prefix="work")
        self._stopping = threading.Event()
        self._warm = threading.Event()
        self._background: threading.Thread | None = None

    def now(self) -> datetime:
        """What time it is."""
        return self.clock()

    async def decide(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what a decision needs, in a thread; the protocol's deadline is kept by the trial itself."""
        return await self._run(self._deciding, PATIENCE, lambda: call(*args, **kwargs))

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run anything else that is short, in a thread."""
        return await self._run(self._reading, PATIENCE, lambda: call(*args, **kwargs))

    async def work(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may take long, in a thread."""
        return await self._run(self._working, LONG_PATIENCE, lambda: call(*args, **kwargs))

    async def _run(self, pool: ThreadPoolExecutor, patience: float, call: Callable[[], T]) -> T:
        if self._stopping.is_set():
            raise Problem(503, "stopping", "The server is stopping; nothing was recorded", headers=RETRY)
        future = asyncio.get_running_loop().run_in_executor(pool, call)
        try:
            return await asyncio.wait_for(asyncio.shield(future), patience)
        except TimeoutError:
            # It goes on in its thread. Whether it is recorded in the end, the same call again will tell.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            words = "it is not known whether it was recorded: send the same again"
            raise Problem(503, "not-recorded", "No answer in time", words, headers=RETRY) from None

    @property
    def ready(self) -> bool:
        """Whether states are computed, so that decisions are in time, and nobody asked to stop."""
        return self._warm.is_set() and not self._stopping.is_set()

    def start(self) -> None:
        """Compute states, then look at the clock now and then, in a thread."""
        self._background = threading.Thread(target=self._live, name="clock", daemon=True)
        self._background.start()

    def _live(self) -> None:
        began = time.perf_counter()
        while not self._stopping.is_set():
            try:
                count = self.trial.warm()
            except Exception as error:
                note_failure({}, error)
                self._stopping.wait(1.0)
            else:
                LOGGER.info("ready: %d states computed in %.1f s", count, time.perf_counter() - began)
                break
        if self.alone:
            leave_settled()
        self._warm.set()
        while self.interval > 0 and not self._stopping.wait(self.interval):
            self.tick()

    def tick(self) -> None:
        """Start an update that is due, and record alerts; what fails is noted, and tried again at the next tick."""
        try:
            if reason := self.trial.due():
                self.trial.start_update(reason=reason, by="schedule")
        except UpdateRunning:
            pass
        except Exception as error:
            self._failed("update", error)
        try:
            self.trial.watch()
        except Exception as error:
            self._failed("watch", error)

    def _failed(self, what: str, error: Exception) -> None:
        self.metrics.count("kerneltrail_background_failures_total", what=what)
        note_failure({}, error)

    def stop(self) -> None:
        """Finish what is being answered, and take nothing new."""
        self._stopping.set()
        if self._background is not None:
            self._background.join(timeout=10.0)
        self._deciding.shutdown(wait=True)
        self._reading.shutdown(wait=True)
        self._working.shutdown(wait=True, cancel_futures=True)
