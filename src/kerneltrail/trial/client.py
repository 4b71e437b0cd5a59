"""A client of the service of a trial, for apps and scripts in Python.

It needs nothing but the standard library: an app's server should not have to agree with Kerneltrail on the version of
an HTTP library, and a call every few seconds gains nothing from one.

Calls that may be repeated are, where an answer is lost or the server says to come again. What was asked for twice is
answered with the same bytes. `update` is not repeated: a second one would be another update.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import CallRefused, DataError
from kerneltrail.trial.results import Check, Item, ReplayedDecision, Updated

AGAIN = (429, 502, 503, 504)
"""Statuses after which a call is repeated; 409 too, if the same decision is being made just now."""
LONGEST_WAIT = 10.0
"""Seconds between two tries at most."""


@dataclass(frozen=True)
class Reply:
    """An answer of the service.

    Attributes:
        status: of HTTP.
        value: what the body says, as plain values; None for a file.
        body: its bytes.
        tag: of what can be changed with If-Match, or None.
        replayed: whether it was recorded before.
        location: where to look next, or None.
    """

    status: int
    value: Any
    body: bytes = field(repr=False)
    tag: str | None = None
    replayed: bool = False
    location: str | None = None


@dataclass(frozen=True)
class Decided:
    """A decision as the service answered it; `body` has the bytes, which are the same for every repeat."""

    decision_id: str
    trial: str
    participant: str
    kind: str
    index: int
    action: int
    probability: float
    probability_of_action: float
    available: bool
    reasons: tuple[str, ...]
    rung: str
    rung_reason: str
    policy_version: str | None
    model_id: str | None
    composition: str | None
    advantage: Mapping[str, float] | None
    clipped: str | None
    imputed: tuple[str, ...]
    expires_at: str | None
    words: str
    replayed: bool = False
    body: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, value: Mapping[str, Any], *, replayed: bool = False, body: bytes = b"") -> Self:
        """Of the values of an answer; what a later version of the service adds is left aside."""
        known = {each.name: value[each.name] for each in fields(cls) if each.name in value}
        for name in ("reasons", "imputed"):
            known[name] = tuple(known[name])
        return cls(**known, replayed=replayed, body=body)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key elsewhere."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Calls the service of one trial; threads may share it.

    Args:
        address: such as ``https://trial.example.org``.
        trial: the trial's id.
        key: the token, ``kt_…``.
        timeout: seconds to wait for an answer.
        tries: how often a call that may be repeated is made at most.
        clear: allow an address without TLS that is not on this machine: the key can then be read on the way.
        pause: what waits between tries.

    Every method raises `CallRefused` with the problem's kind if the service refuses, or cannot be reached.
    """

    def __init__(
        self,
        address: str,
        trial: str,
        key: str,
        *,
        timeout: float = 10.0,
        tries: int = 4,
        clear: bool = False,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise DataError(f"the address {address!r} is none: expected one such as https://trial.example.org")
        local = _is_local(parts.hostname)
        if parts.scheme == "http" and not local and not clear:
            raise DataError(f"{address} has no TLS, so the key could be read on the way; use https")
        if not key.isascii() or not key.isprintable():
            raise DataError("the key is none: expected one such as kt_1a2b3c4d_…")
        self.address = address.rstrip("/")
        self.trial = trial
        self.timeout, self.tries, self.pause = timeout, max(1, tries), pause
        self._key = key
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if local:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"Client({self.address!r}, {self.trial!r})"

    # Participants ----------------------------------------------------------------------------------------------------

    def enrol(
        self,
        participant: str,
        *,
        timezone: str,
        starts_on: date,
        ends_on: date | None = None,
        attributes: Mapping[str, Any] | None = None,
        tag: str | None = None,
    ) -> Reply:
        """Enrol somebody, or change what is known of them; a change needs the `tag` of the reply before."""
        body = {
            "timezone": timezone,
            "starts_on": starts_on.isoformat(),
            "ends_on": None if ends_on is None else ends_on.isoformat(),
            "attributes": dict(attributes or {}),
        }
        return self.call("PUT", self._at("participants", participant), body, tag=tag)

    def participant(self, participant: str) -> Reply:
        """A participant as recorded."""
        return self.call("GET", self._at("participants", participant))

    def event(self, participant: str, kind: str, *, at: datetime, reason: str = "") -> Reply:
        """Pause, resume or withdraw a participant, or remove all their data (``remove_data``, scope operator)."""
        body = {"kind": kind, "at": _time(at), "reason": reason}
        return self.call("POST", self._at("participants", participant, "events"), body)

    # Decisions -------------------------------------------------------------------------------------------------------

    def decide(
        self,
        participant: str,
        kind: str,
        index: int,
        *,
        decided_at: datetime,
        context: Mapping[str, Any] | None = None,
        available: bool = True,
        reasons: Sequence[str] = (),
        expires_at: datetime | None = None,
        drawn: tuple[int, float, str] | None = None,
    ) -> Decided:
        """Ask for a decision.

        With `drawn`, an action, its probability of being 1 and a reason, what the app drew itself is recorded, because
        the service could not be reached at the time.
        """
        body = _request(decided_at, context, available, reasons, expires_at)
        if drawn is not None:
            body |= dict(zip(("action", "probability", "reason"), drawn, strict=True)) | {"drawn_by": "app"}
        path = self._at("participants", participant, "decisions", kind, str(index))
        reply = self.call("PUT", path, body)
        return Decided.of(reply.value, replayed=reply.replayed, body=reply.body)

    def schedule(self, participant: str, decisions: Sequence[Mapping[str, Any]]) -> list[Decided]:
        """Draw decisions ahead; each has `kind`, `index`, `decided_at` and what else `decide` takes."""
        planned = []
        for each in decisions:
            given = dict(each)
            named = {"kind": given.pop("kind"), "index": given.pop("index")}
            planned.append({**named, **_request(**given)})
        reply = self.call("POST", self._at("schedules"), {"participant": participant, "decisions": planned})
        return [Decided.of(each, replayed=reply.replayed) for each in reply.value["decisions"]]

    def schedule_days(
        self,
        participant: str,
        kind: str,
        *,
        begins_on: date,
        days: int,
        first_index: int,
        contexts: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[tuple[datetime, Decided]]:
        """Draw all decisions of some days ahead, at the protocol's times: when each is for, and what was drawn.

        `contexts` has what is expected at a time of the day, such as ``08:30``.
        """
        body = {"participant": participant, "kind": kind, "days": days, "first_index": first_index}
        body |= {"begins_on": begins_on.isoformat(), "contexts": dict(contexts or {})}
        reply = self.call("POST", self._at("schedules"), body)
        drawn = (Decided.of(each, replayed=reply.replayed) for each in reply.value["decisions"])
        return list(zip(map(datetime.fromisoformat, reply.value["times"]), drawn, strict=True))

    def deliver(
        self, decision: str, status: str, *, at: datetime | None = None, delivered_action: int | None = None
    ) -> Reply:
        """Report what became of a decision on the phone."""
        body = {"status": status, "at": None if at is None else _time(at), "delivered_action": delivered_action}
        return self.call("PUT", self._at("decisions", decision, "delivery"), body)

    def outcomes(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Report outcomes; each has `client_id`, `participant`, `decision`, `value`, `observed_at`, or `supersedes`."""
        return self._items("outcomes", items)

    def observe(self, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Report covariates; each has `client_id`, `participant`, `observed_at` and `values`."""
        return self._items("observations", items)

    def _items(self, what: str, items: Sequence[Mapping[str, Any]]) -> list[Item]:
        timed = [{**each, "observed_at": _time(each["observed_at"])} for each in items]
        reply = self.call("POST", self._at(what), {"items": timed})
        return [
            Item(each["client_id"], each["status"], each["reason"], each.get("sequence"))
            for each in reply.value["items"]
        ]

    # Looking after it ------------------------------------------------------------------------------------------------

    def update(self, reason: str, *, as_of: datetime | None = None, dry_run: bool = False) -> Updated:
        """Start an update; `updated` says how it stands."""
        body = {"reason": reason, "as_of": None if as_of is None else _time(as_of), "dry_run": dry_run}
        return _updated(self.call("POST", self._at("updates"), body, repeat=False).value)

    def updated(self, id: str) -> Updated:
        """An update, as far as it has come."""
        return _updated(self.call("GET", self._at("updates", id)).value)

    def policies(self) -> Reply:
        """All versions of the policy; the reply's `tag` is for `activate`."""
        return self.call("GET", self._at("policies"))

    def activate(self, version: str, reason: str, *, tag: str) -> Reply:
        """Let another version serve, if the one of the tag still does."""
        return self.call("PUT", self._at("active-policy"), {"version": version, "reason": reason}, tag=tag)

    def incidents(self, *, open_only: bool = False) -> list[Mapping[str, Any]]:
        """Incidents in the order they were recorded."""
        query = "?open_only=true" if open_only else ""
        incidents: list[Mapping[str, Any]] = self.call("GET", self._at("incidents") + query).value["incidents"]
        return incidents

    def acknowledge(self, incident: str, *, by: str, note: str = "") -> Reply:
        """Record that somebody has seen an incident."""
        return self.call("POST", self._at("incidents", incident, "acknowledgement"), {"by": by, "note": note})

    def export(self, table: str, format: str = "csv", *, reason: str = "") -> bytes:
        """A table as a file's content; `reason` is noted where it shows outcomes by action."""
        why = f"?reason={quote(reason, safe='')}" if reason else ""
        return self.call("GET", f"{self._at('export')}/{quote(table, safe='')}.{quote(format, safe='')}{why}").body

    def replay(self, decision: str) -> ReplayedDecision:
        """A recorded decision beside the one made anew."""
        value = self.call("GET", self._at("replay", decision)).value
        return ReplayedDecision(**{each.name: value[each.name] for each in fields(ReplayedDecision)})

    def ready(self) -> bool:
        """Whether the service is ready; False where it cannot be reached."""
        try:
            return self._once("GET", self._at("readyz"), None, {}).status == 200
        except CallRefused:
            return False

    # The call itself -------------------------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        tag: str | None = None,
        repeat: bool = True,
    ) -> Reply:
        """Any call of the service, with repeats where it may be repeated."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        headers = {} if tag is None else {"If-Match": tag}
        for attempt in range(1, self.tries + 1):
            try:
                return self._once(method, path, content, headers)
            except CallRefused as refused:
                again = refused.status in (0, *AGAIN) or refused.kind == "in-flight"
                if not (repeat and again) or attempt == self.tries:
                    raise
                wait = max(refused.after, 0.2 * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0))
                self.pause(min(wait, LONGEST_WAIT))
        raise AssertionError("the last try returns or raises")

    def _at(self, *parts: str) -> str:
        return "/".join(("/v1/trials", *(quote(part, safe="") for part in (self.trial, *parts))))

    def _once(self, method: str, path: str, content: bytes | None, more: Mapping[str, str]) -> Reply:
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json", **more}
        if content is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.address + path, content, headers, method=method)
        try:
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    return _reply(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as error:
                with error:  # its body may be cut off, too
                    raise _refused(error.code, error.headers, error.read()) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise CallRefused(0, "no-answer", f"{self.address} cannot be reached: {reason}") from None


def _reply(status: int, headers: Any, body: bytes) -> Reply:
    kind = (headers.get("Content-Type") or "").partition(";")[0]
    value = json.loads(body) if kind == "application/json" else None
    replayed = headers.get("Idempotency-Replayed") == "true"
    return Reply(status, value, body, headers.get("ETag"), replayed, headers.get("Location"))


def _refused(status: int, headers: Any, body: bytes) -> CallRefused:
    header = headers.get("Retry-After") or ""
    after = float(header) if header.isascii() and header.isdigit() else 0.0
    try:
        problem = json.loads(body)
        kind = str(problem["type"]).rpartition(":")[2]
        return CallRefused(status, kind, str(problem.get("detail") or problem["title"]), after)
    except (ValueError, KeyError, TypeError):  # whatever stands between here and the service
        return CallRefused(status, "http", f"the server answers with status {status}", after)


def _updated(value: Mapping[str, Any]) -> Updated:
    known = {each.name: value[each.name] for each in fields(Updated) if each.name in value}
    known |= {name: tuple(known.get(name, ())) for name in ("rebuilt", "held")}
    known["checks"] = tuple(Check(**each) for each in known.get("checks", ()))
    known["left_out"] = FrozenDict(known.get("left_out", {}))
    return Updated(**{"version": None, "base": None, **known})


def _request(
    decided_at: datetime,
    context: Mapping[str, Any] | None = None,
    available: bool = True,
    reasons: Sequence[str] = (),
    expires_at: datetime | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {"decided_at": _time(decided_at), "available": available, "reasons": list(reasons)}
    if expires_at is not None:
        body["expires_at"] = _time(expires_at)
    return {**body, "context": dict(context or {})}


def _time(at: datetime | str) -> str:
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise DataError(f"the time {at} has no zone, so nobody can say when it was")
        return at.isoformat()
    return at


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
