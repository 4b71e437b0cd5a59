"""CallLimits: how much a body may hold, how often a key may call, and JSON that means one thing only."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from kerneltrail.trial.service.problems import Problem

SEVERAL = 10_000
"""Of so many callers the rate is remembered; of more the oldest are forgotten."""


@dataclass(frozen=True)
class CallLimits:
    """What a server takes.

    Attributes:
        body: bytes of a body at most.
        body_seconds: within which it must have arrived.
        rate: calls of one key in a second, in the long run.
        burst: calls of one key at once.
        refusals: calls without a valid key from one address in a second, and as many times ten at once.
    """

    body: int = 1_000_000
    body_seconds: float = 20.0
    rate: float = 50.0
    burst: int = 200
    refusals: float = 5.0


class Buckets:
    """A token bucket for each caller.

    >>> now = iter([0.0, 0.0, 0.0, 2.0])
    >>> buckets = Buckets(0.5, 2, clock=lambda: next(now))
    >>> [buckets.wait("ann") for _ in range(4)]
    [0.0, 0.0, 2.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, float(burst), clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str, *, take: bool = True) -> float:
        """Take a token: 0 if there was one, else the seconds until there is."""
        with self._lock:
            now = self.clock()
            tokens, since = self._buckets.pop(name, (self.burst, now))
            tokens = min(self.burst, tokens + (now - since) * self.rate)
            there = tokens >= 1.0
            self._buckets[name] = (tokens - 1.0 if there and take else tokens, now)
            if len(self._buckets) > SEVERAL:
                self._buckets.popitem(last=False)
            return 0.0 if there else (1.0 - tokens) / self.rate


def too_many(seconds: float) -> Problem:
    """The problem of a caller who calls too often."""
    after = {"Retry-After": str(max(1, math.ceil(seconds)))}
    return Problem(429, "too-many", "Too many calls", f"call again in {math.ceil(seconds)} s", headers=after)


async def body_of(request: Request, limits: CallLimits) -> bytes:
    """The body, if it is not too long and comes in time."""
    too_long = Problem(413, "too-long", "The body is too long", f"a body has at most {limits.body} bytes")
    declared = request.headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit():
        raise Problem(400, "bad-request", "Content-Length is no number")
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise Problem(400, "bad-request", "The body has two lengths")  # a proxy might take the other one
    if len(declared) > 12 or int(declared) > limits.body:
        raise too_long
    content = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                content += chunk
                if len(content) > limits.body:
                    raise too_long
    except ClientDisconnect:
        raise Problem(400, "bad-request", "The body broke off") from None
    except TimeoutError:
        raise Problem(408, "too-slow", "The body did not arrive in time") from None
    return bytes(content)


def strict_json(content: bytes, *, numbers: bool = False) -> Any:
    """What a JSON text says; what the standard does not have, or has twice, is refused.

    With `numbers`, NaN, infinity and numbers that are too large are read as such, for somebody who refuses them later.

    >>> strict_json(b'{"a": 1}')
    {'a': 1}
    >>> strict_json(b'{"a": NaN}')
    Traceback (most recent call last):
        ...
    kerneltrail.trial.service.problems.Problem: (400, 'not-json', 'The body is not JSON', 'NaN is no number of JSON')
    >>> strict_json(b'{"a": NaN}', numbers=True)
    {'a': nan}
    """

    def constant(text: str) -> Any:
        if numbers:
            return float(text)
        raise ValueError(f"{text} is no number of JSON")

    def real(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) and not numbers:
            raise ValueError("a number is too large")
        return value

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("a name stands twice in one object")
        return content

    try:
        text = content.decode("utf-8")
        return json.loads(text, parse_constant=constant, parse_float=real, object_pairs_hook=members)
    except RecursionError:
        detail = "it is too deep"
    except json.JSONDecodeError as problem:
        detail = f"{problem.msg} (line {problem.lineno}, column {problem.colno})"
    except UnicodeDecodeError:
        detail = "it is not UTF-8"
    except ValueError as problem:
        detail = str(problem) if len(str(problem)) < 100 else "a number is too long"
    raise Problem(400, "not-json", "The body is not JSON", detail)
