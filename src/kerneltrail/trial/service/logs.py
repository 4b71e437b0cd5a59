"""The service's log: one line for each call, with study ids and nothing that was observed of anybody.

No body, context, query or secret is in it, and of an error only its kind and where it arose: a message may repeat what
was sent. Names from a path are written as Python writes texts, so that nobody can forge a line.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGGER = logging.getLogger("kerneltrail.trial.service")
Counted = Callable[[str, str, int, float], None]
"""What is told of each call: its method, its route, its status, its seconds."""
UNROUTED = "(no route)"


def write_log() -> None:
    """Write the log to standard error, a line for each call."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def note_failure(scope: MutableMapping[str, Any], error: BaseException) -> None:
    """Write down that something failed: the kind of error and where, never its words."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in reversed(frames))
    LOGGER.error("%s in %s (%s)", type(error).__name__, route_of(scope), where)


def route_of(scope: MutableMapping[str, Any]) -> str:
    """The route of a call with its parameters unfilled."""
    route = scope.get("route")
    return str(getattr(route, "path", UNROUTED))


class RawPaths:
    """Routes by the path as it was sent, so that `%2F` within a participant's name does not end a segment.

    Whoever takes a parameter from the path decodes it (`models.Segment`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on."""
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw:
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await self.app(scope, receive, send)


class Log:
    """Writes a line for each call, and counts it.

    An error that nobody expected ends here, with `mistake` as the answer: further out its words would be logged.
    """

    def __init__(self, app: ASGIApp, counted: Counted, mistake: ASGIApp) -> None:
        self.app = app
        self.counted = counted
        self.mistake = mistake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and write what became of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, answered = time.monotonic(), 500, False
        scope.setdefault("state", {})["began"] = began  # a decision's deadline counts from here

        async def seen(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                headers = message.setdefault("headers", [])
                headers += [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
            await send(message)

        try:
            await self.app(scope, receive, seen)
        except Exception as error:
            note_failure(scope, error)
            if not answered:
                await self.mistake(scope, receive, seen)
        finally:
            seconds = time.monotonic() - began
            route = route_of(scope)
            self.counted(scope["method"], route, status, seconds)
            named = scope.get("path_params", {}).get("participant")
            person = "" if named is None else f" participant={unquote(str(named))[:80]!a}"
            key = scope.get("kerneltrail.key", "-")
            LOGGER.info("%s %s %d %.1f ms key=%s%s", scope["method"][:10], route, status, 1000 * seconds, key, person)
