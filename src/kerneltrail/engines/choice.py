"""Which engine is meant: by a number of processes, a text, a Dask client, or an engine itself."""

from __future__ import annotations

import os
import re
from typing import Any

from kerneltrail.engines.dask import Dask, connect
from kerneltrail.engines.engine import Engine, Local, Serial
from kerneltrail.errors import KerneltrailError

KNOWN = "'serial', 'local', 'local:4', 'dask://host:8786', or 'tcp://host:8786' and 'tls://host:8786'"


def engine_for(asked: Any = None, *, workers: int | None = None, most: int | None = None) -> Engine:
    """The engine that is asked for; all cores of this machine if None.

    >>> engine_for(1), engine_for("local:3"), engine_for("local:3", most=2)
    (Serial(workers=1), Local(workers=3), Local(workers=2))

    Args:
        asked: a number of processes; a text, as `KNOWN` has them; a `distributed.Client`; or an engine.
        workers: a number of processes, of who takes both; one of the two must be None.
        most: of so many processes of this machine at most, since there are no more jobs.

    Raises:
        KerneltrailError: for anything else, and where no scheduler answers.
    """
    if workers is not None:
        if asked is not None:
            raise KerneltrailError(f"give an engine or a number of workers, not both: {asked!r} and {workers}")
        asked = workers
    if isinstance(asked, str):
        asked = _named(asked)
    if asked is None:
        asked = os.cpu_count() or 1
    if isinstance(asked, Local):
        asked = asked.workers
    if isinstance(asked, int) and asked > 0:
        count = asked if most is None else min(asked, most)
        return Local(count) if count > 1 else Serial()
    if isinstance(asked, Engine):
        return asked
    if type(asked).__module__.startswith("distributed."):
        return Dask(asked)
    raise KerneltrailError(f"an engine is a number of processes from 1, {KNOWN}; got {asked!r}")


def _named(text: str) -> Engine | int | None:
    if text == "serial":
        return 1
    if text == "local":
        return None
    if match := re.fullmatch(r"local:([1-9]\d{0,3})", text):
        return int(match[1])
    if match := re.fullmatch(r"(dask|tcp|tls|ws|wss)(://[^/]+)", text):
        return connect(("tcp" if match[1] == "dask" else match[1]) + match[2])
    raise KerneltrailError(f"no engine is called {text!r}; there are {KNOWN}")
