"""The guard: a route says which keys may call it, and nothing of a call is read before its key was looked at.

Keys are `kt_<id>_<secret>`; the ledger has the SHA-256 of the secret, its scopes, and whether it was revoked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from kerneltrail.trial.ledger.folds import Key
from kerneltrail.trial.service.limits import body_of, strict_json, too_many
from kerneltrail.trial.service.problems import Problem
from kerneltrail.trial.service.served import Served

APP, OPERATOR, ANALYST, MONITOR, UNBLINDED = "app", "operator", "analyst", "monitor", "unblinded"
SCOPES = {
    APP: "the app: participants, decisions, deliveries, observations, outcomes, schedules",
    OPERATOR: "whoever runs the trial: participants, updates, policies, incidents, removal of data",
    ANALYST: "whoever analyses it: exports, policies, incidents, replay",
    MONITOR: "whoever watches it: metrics, policies, incidents, replay",
    UNBLINDED: "outcomes by action, on top of another scope",
}
_SCOPED, _ITEMS = "x-scopes", "x-answered-by-item"
UNKNOWN = (
    "this trial does not know this key, or it was revoked: it may be of another trial (each has keys of its own), or "
    "mistyped. `kerneltrail trial key list` shows this trial's keys, and `kerneltrail trial key create` makes one"
)
"""Why a key opens nothing."""
LONGEST = 300
"""Characters of an Authorization header at most."""


def needs(*scopes: str, by_item: bool = False) -> dict[str, Any]:
    """What a route's decorator says of the keys that may call it: any one of the scopes.

    Of a call that is answered `by_item`, a number that JSON does not have (NaN) is refused with its item alone.
    """
    items = {_ITEMS: True} if by_item else {}
    return {"openapi_extra": {_SCOPED: list(scopes), **items, "security": [{"key": []}]}}


class GuardedRoute(APIRoute):
    """A route that looks at the key, the rate and the length before anything else is done."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, guarded."""
        inner = super().get_route_handler()
        scopes: Sequence[str] = (self.openapi_extra or {}).get(_SCOPED, ())
        takes_body, by_item = self.body_field is not None, _ITEMS in (self.openapi_extra or {})

        async def guarded(request: Request) -> Response:
            served: Served = request.app.state.served
            if scopes:
                await admit(served, request, scopes)
            trial = request.path_params.get("trial")
            if trial is not None and trial != served.path:
                words = "the address names another trial than the one served here: look at its spelling"
                raise Problem(404, "unknown-trial", "This server has no such trial", words)
            if takes_body:
                await _read(request, served, by_item=by_item)
            elif request.headers.get("content-length", "0") not in ("", "0"):
                await body_of(request, served.limits)  # of no use, but it must not be endless
            return await inner(request)

        return guarded


async def admit(served: Served, request: Request, scopes: Sequence[str]) -> Key:
    """Let a call in, if its key is valid, has one of the scopes, and did not call too often."""
    address = request.client.host if request.client else ""
    wait = served.refusals.wait(address, take=False)
    if wait:
        raise too_many(wait)
    wanted = " ".join(scopes)
    named = " or ".join(scopes)
    token = _token(request)
    key = None if token is None else await served.decide(served.trial.key_of, token, since=request.state.began)
    if key is None or expired(key, served.now()):
        served.refusals.wait(address)
        reason = "send Authorization: Bearer kt_…" if token is None else UNKNOWN
        if key is not None:
            reason = "this key has expired"
        challenge = {"WWW-Authenticate": f'Bearer realm="kerneltrail", scope="{wanted}"'}
        words = f"{reason}; the call needs a key of this trial with the scope {named}"
        raise Problem(401, "no-key", "A valid key is needed", words, headers=challenge)
    request.scope["kerneltrail.key"] = key.id
    request.state.key = key
    if wait := served.rates.wait(key.id):
        raise too_many(wait)
    if not set(scopes) & set(scopes_of(key)):
        challenge = {"WWW-Authenticate": f'Bearer realm="kerneltrail", error="insufficient_scope", scope="{wanted}"'}
        words = f"the call needs a key with the scope {named}; this one has {', '.join(scopes_of(key))}"
        raise Problem(403, "wrong-scope", "This key is not for that", words, headers=challenge)
    return key


def scopes_of(key: Key) -> tuple[str, ...]:
    """What a key is for."""
    return tuple(map(str, key.payload.get("scopes", ())))


def caller(request: Request) -> str:
    """Who calls, as the ledger notes it: the key's id."""
    return f"key {request.state.key.id}"


def _token(request: Request) -> str | None:
    given = request.headers.getlist("authorization")
    if len(given) != 1 or len(given[0]) > LONGEST:
        return None
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else None


def expired(key: Key, now: datetime) -> bool:
    """Whether a key's time is over."""
    end = key.payload.get("expires_at")
    if end is None:
        return False
    try:
        time = datetime.fromisoformat(str(end))
    except ValueError:
        return True  # an end that nobody can read is over
    return now >= (time if time.tzinfo else time.replace(tzinfo=UTC))


async def _read(request: Request, served: Served, *, by_item: bool) -> None:
    """Read the body before FastAPI does: within the limit, as JSON that means one thing only."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content = await body_of(request, served.limits)
    if content and kind != "application/json":
        raise Problem(415, "not-json", "The body must be application/json", f"it is {kind or 'of no type'}"[:200])
    value = strict_json(content, numbers=by_item) if content else None
    # Starlette keeps what it has read under these names, and asks for it no second time.
    request._body = content
    request._json = value
    if content and not isinstance(value, dict):
        raise Problem(422, "refused", "The request cannot be answered as it stands", "the body must be a JSON object")


def shown(value: Any) -> bytes:
    """A value as JSON for people and programs; not for what is hashed."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
