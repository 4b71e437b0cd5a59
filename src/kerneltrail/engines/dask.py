"""The engine of a Dask cluster: jobs go to its workers, under names that are digests of all they depend on.

What jobs share is sent to the scheduler once, as a task of its own, and from there once to each worker. It is not
scattered: scattered data are gone with the workers that hold them, and then the jobs are, too; a task is done again.
Functions, what is shared and results are pickled, so the machines of a cluster must trust each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import cloudpickle

from kerneltrail.engines.engine import Function, JobFailure, K, PackedRun, R, Serial
from kerneltrail.engines.versions import difference, versions
from kerneltrail.errors import KerneltrailError
from kerneltrail.store.digest import blake

WARM = "kerneltrail.gp.compilation"
"""Has `ensure_compiled`, which each worker calls before its first job. Named, since this room comes before that one."""

LOOK = 5.0
"""Seconds between two looks at whether the cluster is still there, while nothing becomes ready."""


def distributed() -> Any:
    """Dask's package of that name; refused with what to do where it is not installed."""
    try:
        return import_module("distributed")
    except ImportError:
        raise KerneltrailError(
            "a Dask cluster needs the extra 'dask': python -m pip install 'kerneltrail[dask]'"
        ) from None


@cache
def connect(address: str) -> Dask:
    """The engine of the scheduler at an address such as ``tcp://host:8786``; once in a process for each."""
    try:
        return Dask(distributed().Client(address, set_as_default=False, timeout=CONNECTING))
    except (OSError, ValueError) as problem:
        raise KerneltrailError(f"no Dask scheduler answers at {address}: {problem}") from None


CONNECTING = 10
"""Seconds within which a scheduler must answer."""


@dataclass(frozen=True)
class Dask:
    """The workers of a Dask cluster. Each does one job at a time, however many threads it has.

    Attributes:
        client: a `distributed.Client`.
        patience: seconds to wait while the cluster has no worker at all, as one may that is still queueing for them.
    """

    client: Any
    patience: float = 600.0

    def __reduce__(self) -> tuple[type[Serial], tuple[()]]:
        return Serial, ()  # a job that begins jobs does them itself

    @property
    def workers(self) -> int:
        """How many there are now; 1 while there is none yet."""
        return max(1, len(self._workers()))

    def _workers(self) -> Mapping[str, Any]:
        workers: Mapping[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        return workers

    def run(
        self, function: Function[R], jobs: Iterable[tuple[K, tuple[Any, ...]]], shared: Any = None
    ) -> Iterator[tuple[K, R | JobFailure]]:
        """See `Engine`. A job whose worker dies again and again is tried once more alone, and is then a failure."""
        here = versions()
        self._refuse_others(here)
        run = PackedRun.of(function, shared)
        code = blake(run.name, *here.values()).hex()
        arrived = self.client.submit(_arrived, run, here, key=f"kerneltrail-run-{code}")
        submitted: dict[str, tuple[K, Any]] = {}
        try:
            for key, arguments in jobs:
                packed = cloudpickle.dumps(arguments)
                name = f"{getattr(function, '__name__', 'job').strip('_')}-{blake(code, repr(key), packed).hex()}"
                submitted[name] = (key, self.client.submit(_job, arrived, packed, key=name))
            suspects = []
            for name, result in self._ended({name: future for name, (_, future) in submitted.items()}):
                if result is _KILLED:
                    suspects.append(name)
                else:
                    yield submitted.pop(name)[0], result
            for name in suspects:
                key, future = submitted[name]
                future.retry()
                ((_, result),) = self._ended({name: future})
                del submitted[name]
                yield key, JobFailure(_deadly(key)) if result is _KILLED else result
        finally:
            self.client.cancel([future for _, future in submitted.values()])

    def _refuse_others(self, here: Mapping[str, str]) -> None:
        """Refuse workers, and a scheduler, of other versions."""
        known = self._workers()
        answers = self.client.run(versions, on_error="return")
        lines = []
        for address, there in answers.items():
            problem = str(there) if isinstance(there, BaseException) else difference(here, there)
            if problem:
                lines.append(f"worker {known.get(address, {}).get('name', '')} at {address}: {problem}")
        if lines:
            raise KerneltrailError("the cluster does not have the versions of this process:\n" + "\n".join(lines))

    def _ended(self, waiting: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Jobs as they end, by name: the result, a failure or `_KILLED`; an error where the cluster is gone."""
        as_completed, alone_since = distributed().as_completed, None
        while waiting:
            try:
                for future in as_completed(list(waiting.values()), loop=self.client.loop, timeout=LOOK):
                    if future.cancelled():
                        raise KerneltrailError(f"the scheduler at {self.client.scheduler.address} is gone; {GOES_ON}")
                    result = self._result(future)  # in time: what is not collected is gone when its worker dies
                    del waiting[future.key]
                    yield future.key, result
            except TimeoutError:
                alone_since = None if self._workers() else alone_since or time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since > self.patience:
                    raise KerneltrailError(
                        f"the cluster has had no worker for {self.patience:g} seconds; {GOES_ON}"
                    ) from None

    def _result(self, future: Any) -> Any:
        """What a job returned; or why it could not be done at all, such as a module that its worker does not have."""
        try:
            return future.result(timeout=self.patience)
        except TimeoutError:
            raise  # its worker died, and there is no other
        except distributed().KilledWorker:
            return _KILLED
        except Exception as problem:
            return JobFailure(KerneltrailError(f"{type(problem).__name__}: {problem}"))


GOES_ON = "a fit with a checkpoint goes on from there"

_KILLED = object()
"""Of a job whose workers have died too often."""


def _deadly(key: object) -> KerneltrailError:
    return KerneltrailError(
        f"the job {key} ended every worker process that tried it, at last alone; it may need more memory than they have"
    )


def _arrived(run: PackedRun, asked: Mapping[str, str]) -> tuple[PackedRun, Mapping[str, str]]:
    """What jobs share, on the first worker that needs it."""
    return run, asked


def _job(arrived: tuple[PackedRun, Mapping[str, str]], packed: bytes) -> Any:
    """One job, in a worker."""
    run, asked = arrived
    problem = _unfit(tuple(asked.items()))
    return JobFailure(KerneltrailError(problem)) if problem else run(None, packed)[1]


@cache
def _unfit(asked: tuple[tuple[str, str], ...]) -> str:
    """Why this worker cannot do the jobs of a driver with these versions; once in a process, which is warm then."""
    problem = difference(dict(asked), versions())
    if problem:
        worker = distributed().get_worker()
        return f"worker {worker.name} at {worker.address} does not have the versions of who asks: {problem}"
    ensure_compiled: Callable[[], bool] = import_module(WARM).ensure_compiled
    ensure_compiled()
    return ""
