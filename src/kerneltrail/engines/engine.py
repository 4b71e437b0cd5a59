"""Engines run keyed jobs: one after the other here, in processes of this machine, or on a Dask cluster (`dask`).

A job is a key and arguments; a run is one function of something that all its jobs share, and of each job's arguments.
Results come with their keys, in the order in which they are ready, so that the number of processes changes nothing but
the order: a job must depend on nothing else. What was registered from outside (`kerneltrail.register`) goes along.
"""

from __future__ import annotations

import os
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import cloudpickle
import lazy_loader
import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kerneltrail.engines.carried import adopt, carried
from kerneltrail.engines.process import begin_worker
from kerneltrail.errors import KerneltrailError
from kerneltrail.store.digest import blake

joblib = lazy_loader.load("joblib")
"""Loaded when processes are first wanted: an app that follows a user wants none."""

SHARED = 100_000
"""Bytes from which an array is written once for all processes, instead of being sent with every job."""

ALIGNED = 64
"""Bytes to which the values of an array are aligned."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Function = Callable[..., R]
"""Called with what is shared, then a job's arguments."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a block with one BLAS thread: at these sizes more make it slower, and the last bits depend on them."""
    with _thread_pools().limit(limits=1, user_api="blas"):
        yield


@cache
def _thread_pools() -> ThreadpoolController:
    """The libraries' thread pools, looked for once: that takes a millisecond, as long as many a job."""
    _ = scipy.linalg  # SciPy brings a BLAS of its own: loaded afterwards, it would take all cores
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of other libraries' thread pools, which do not matter here
        return ThreadpoolController()


@dataclass(frozen=True)
class JobFailure:
    """What a job raised.

    Attributes:
        error: the exception.
        trace: where, as text: a traceback does not survive the way from another process.
    """

    error: Exception
    trace: str = ""


@runtime_checkable
class Engine(Protocol):
    """Runs jobs."""

    @property
    def workers(self) -> int:
        """How many run at the same time."""
        ...

    def run(
        self, function: Function[R], jobs: Iterable[tuple[K, tuple[Any, ...]]], shared: Any = None
    ) -> Iterator[tuple[K, R | JobFailure]]:
        """The result of each job, or what it raised, with its key, as they become ready."""
        ...


def results(
    engine: Engine, function: Function[R], jobs: Iterable[tuple[K, tuple[Any, ...]]], shared: Any = None
) -> Iterator[tuple[K, R]]:
    """The results of jobs of which none may fail: the first error is raised."""
    for key, result in engine.run(function, jobs, shared):
        if isinstance(result, JobFailure):
            if result.trace:
                result.error.add_note(f"in a worker process:\n{result.trace}")
            raise result.error
        yield key, result


@dataclass(frozen=True)
class Serial:
    """One job after the other, in this process."""

    workers: int = 1

    def run(
        self, function: Function[R], jobs: Iterable[tuple[K, tuple[Any, ...]]], shared: Any = None
    ) -> Iterator[tuple[K, R | JobFailure]]:
        """See `Engine`."""
        for key, arguments in jobs:
            try:
                with one_blas_thread():
                    result: R | JobFailure = function(shared, *arguments)
            except Exception as problem:
                result = JobFailure(problem)
            yield key, result


@dataclass(frozen=True)
class Local:
    """Processes of this machine, kept between runs; they end when they are idle for long, or when this one is gone."""

    workers: int

    def run(
        self, function: Function[R], jobs: Iterable[tuple[K, tuple[Any, ...]]], shared: Any = None
    ) -> Iterator[tuple[K, R | JobFailure]]:
        """See `Engine`."""
        run = PackedRun.of(function, shared)
        # A worker that has read thousands of users' rows is taken for one that leaks, and replaced. Nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        parallel = joblib.Parallel(
            n_jobs=self.workers,
            return_as="generator_unordered",
            max_nbytes=SHARED,
            initializer=begin_worker,
            initargs=(os.getpid(),),
        )
        ready = parallel(joblib.delayed(run)(key, arguments) for key, arguments in jobs)
        try:
            for result in ready:  # noqa: UP028  `yield from` would close it before the last lines
                yield result
        except joblib.externals.loky.process_executor.TerminatedWorkerError:
            raise KerneltrailError(
                "a worker process was ended from outside, perhaps because memory ran out; try fewer workers"
            ) from None
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of jobs that nobody wants any more
                ready.close()


@dataclass(frozen=True)
class PackedRun:
    """A run as bytes, which each process reads once.

    Attributes:
        name: a digest of the rest.
        registered: what was registered from outside; apart, since it must be known before the content is read.
        content: the function and what its jobs share, `joined` with the values of arrays that nobody may change. All
            processes of a machine read those in one place, where each would have a copy of everybody's rows.
    """

    name: str
    registered: NDArray[np.uint8]
    content: NDArray[np.uint8]

    @classmethod
    def of(cls, function: Function[Any], shared: Any) -> PackedRun:
        """Pack a function and what its jobs share."""
        fixed: list[memoryview] = []

        def is_inside(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.readonly:
                fixed.append(raw)
            return not raw.readonly

        registered = np.frombuffer(cloudpickle.dumps(carried()), dtype=np.uint8)
        content = joined([cloudpickle.dumps((function, shared), protocol=5, buffer_callback=is_inside), *fixed])
        return cls(blake(registered, content).hex(), registered, content)

    def read(self) -> tuple[Callable[..., Any], Any]:
        """The function, and what its jobs share."""
        packed, *fixed = parts_of(self.content)
        function, shared = pickle.loads(packed, buffers=fixed)
        return function, shared

    def __call__(self, key: K, arguments: tuple[Any, ...] | bytes) -> tuple[K, Any]:
        """Do one job; its arguments may be packed, since they may need what was registered."""
        try:
            with _ONE:
                if self.name not in _READ:
                    _READ.clear()
                    adopt(cloudpickle.loads(self.registered))
                    _READ[self.name] = self.read()
                function, shared = _READ[self.name]
                given = cloudpickle.loads(arguments) if isinstance(arguments, bytes) else arguments
                with one_blas_thread():
                    return key, function(shared, *given)
        except Exception as problem:
            return key, JobFailure(_portable(problem), traceback.format_exc())


_READ: dict[str, tuple[Callable[..., Any], Any]] = {}
"""In a worker: function and shared things of the newest run, by its name."""

_ONE = threading.Lock()
"""Held by the one job that a worker does: neither registries nor the number of BLAS threads are a thread's own."""


def joined(parts: Sequence[bytes | memoryview]) -> NDArray[np.uint8]:
    """Parts as one array of bytes, which begins with how many they are and where each begins and ends.

    >>> [bytes(part) for part in parts_of(joined([b"one", b"", b"three"]))]
    [b'one', b'', b'three']
    """
    places, start = [], ALIGNED * -(-8 * (1 + 2 * len(parts)) // ALIGNED)
    for part in parts:
        places += [start, start + len(part)]
        start += ALIGNED * -(-len(part) // ALIGNED)
    whole = np.zeros(start, dtype=np.uint8)
    whole[: 8 * (1 + len(places))].view(np.int64)[:] = [len(parts), *places]
    for part, begin, end in zip(parts, places[::2], places[1::2], strict=True):
        whole[begin:end] = np.frombuffer(part, dtype=np.uint8)
    return whole


def parts_of(whole: NDArray[np.uint8]) -> list[memoryview]:
    """The parts of what was `joined`, where they are; none can be written to."""
    view = whole.data.toreadonly()
    count = int(whole[:8].view(np.int64)[0])
    places = whole[8 : 8 + 16 * count].view(np.int64).reshape(count, 2).tolist()
    return [view[begin:end] for begin, end in places]


def _portable(problem: Exception) -> Exception:
    """An exception that can go to another process."""
    try:
        cloudpickle.loads(cloudpickle.dumps(problem))
    except Exception:  # whatever its class does
        return KerneltrailError(f"{type(problem).__name__}: {problem}")
    return problem
