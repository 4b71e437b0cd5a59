"""What was registered from outside, on its way to worker processes.

A worker loads the package, and with it the package's own atoms, evidences, moves and methods; of what a script or a
plug-in has added it knows nothing. So each run carries that along. A thing that cannot travel stops nobody who does not
ask for it: who does is told its name and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import cloudpickle

from kerneltrail.plugins import loaded, outside, registry_of


class Carried(NamedTuple):
    """One registered thing, as bytes; or why it cannot become bytes."""

    kind: str
    name: str
    content: bytes = b""
    problem: str = ""


def carried() -> tuple[Carried, ...]:
    """All that was registered from outside in this process, ready to be sent."""
    return tuple(_packed(*each) for each in outside())


def _packed(kind: str, name: str, thing: Any) -> Carried:
    try:
        return Carried(kind, name, cloudpickle.dumps(thing))  # by value, where a class was defined in a script
    except Exception as problem:  # whatever its classes raise
        return Carried(kind, name, problem=f"{type(problem).__name__}: {problem}")


def adopt(things: Iterable[Carried]) -> None:
    """Have in this worker's registries, from outside, exactly what was sent."""
    arrived: dict[str, dict[str, Any]] = {}
    lost: dict[str, dict[str, str]] = {}
    for kind, name, content, problem in things:
        try:
            if not problem:
                arrived.setdefault(kind, {})[name] = cloudpickle.loads(content)
        except Exception as failure:  # whatever its module or its classes raise here
            problem = f"{type(failure).__name__}: {failure}"
        if problem:
            lost.setdefault(kind, {})[name] = problem
    for kind in dict.fromkeys((*(kind for kind, _ in loaded()), *arrived, *lost)):
        registry_of(kind).receive(arrived.get(kind, {}), lost.get(kind, {}))
