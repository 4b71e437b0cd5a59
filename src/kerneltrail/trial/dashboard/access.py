"""Who may see which page: a session, the scopes of its key, and a token in every form.

A page never answers with a problem in JSON: who has no session is sent to the log-in, and a refusal is a page.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from kerneltrail.engines import short_turns
from kerneltrail.errors import KerneltrailError
from kerneltrail.trial.dashboard.drawing import GALLERY
from kerneltrail.trial.dashboard.foresight import Foresight
from kerneltrail.trial.dashboard.forms import fields_of
from kerneltrail.trial.dashboard.jobs import Jobs
from kerneltrail.trial.dashboard.kept import KeptPage, KeptPoints
from kerneltrail.trial.dashboard.session import SESSION, Session, Sessions, person_clock
from kerneltrail.trial.dashboard.templating import render
from kerneltrail.trial.dashboard.texts import dated
from kerneltrail.trial.ledger.folds import Key
from kerneltrail.trial.service.guard import ANALYST, MONITOR, OPERATOR, UNBLINDED, expired, scopes_of
from kerneltrail.trial.service.limits import Buckets, too_many
from kerneltrail.trial.service.logs import note_failure
from kerneltrail.trial.service.problems import Problem, problem_of, refused
from kerneltrail.trial.service.served import Served

HOME, LOGIN = "/desk", "/desk/login"
PEOPLE = (OPERATOR, ANALYST, MONITOR)
"""Scopes of people, each of which opens the desk; that of an app does not."""
POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a browser lets a page do: show what this server sends, and send forms back to it."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # addresses have study ids
    "X-Frame-Options": "DENY",
}
NAVIGATION = (
    ("Today", ""),
    ("Participants", "/participants"),
    ("Cohort", "/cohort"),
    ("Policies", "/policies"),
    ("Incidents", "/incidents"),
    ("Data", "/data"),
)
TRIES, PER_SECOND = 10, 0.1
"""Log-ins that may fail from one address, at once, and then in the long run."""


@dataclass
class Desk:
    """The desk of one server: the trial that is served, its sessions, and what takes long."""

    served: Served
    sessions: Sessions
    jobs: Jobs = field(default_factory=Jobs)
    tries: Buckets = field(default_factory=lambda: Buckets(PER_SECOND, TRIES))
    foresight: Foresight = field(default_factory=Foresight)
    points: KeptPoints = field(default_factory=KeptPoints)
    today: KeptPage = field(default_factory=KeptPage)
    removed: frozenset[str] = frozenset()

    def key(self, session: Session | None) -> Key | None:
        """The key of a session, if it still opens anything."""
        if session is None:
            return None
        with self.served.trial.reading() as state:
            key = state.keys.get(session.key)
        return None if key is None or key.revoked_at is not None or expired(key, self.served.now()) else key

    def now(self) -> datetime:
        """What time it is."""
        return self.served.now()

    def made(self, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What a page shows; it is made anew if somebody's data were removed meanwhile.

        So nothing that was made of them is shown once they are removed, or stays in memory. What is in memory is
        dropped between two makings, never within one: a page that is being made may hold a lock.
        """
        before = self._removed()
        self._forget(before - self.removed)
        while True:
            try:
                values = make()
            finally:
                meanwhile = self._removed() - before
                self._forget(meanwhile)  # also if another page did: this one may have kept something since
            if not meanwhile:
                return values
            before |= meanwhile

    def _removed(self) -> frozenset[str]:
        """Those whose data were removed by now."""
        with self.served.trial.reading() as state:
            return frozenset(name for name, each in state.participants.items() if each.removed is not None)

    def _forget(self, removed: frozenset[str]) -> None:
        """Drop what is in memory of participants whose data were removed."""
        if removed:
            self.foresight.forget(removed)
            self.points.forget(removed)
            self.today.forget()
            GALLERY.forget()
            self.removed |= removed


def needs(*scopes: str) -> dict[str, Any]:
    """What a page's decorator says of the keys that may open it: any one of the scopes."""
    return {"openapi_extra": {"x-scopes": list(scopes)}, "include_in_schema": False, "response_model": None}


def anybody() -> dict[str, Any]:
    """The same of a page that needs no key."""
    return needs()


def desk_of(request: Request) -> Desk:
    """The desk that a request is for."""
    desk: Desk = request.app.state.desk
    return desk


def may(request: Request, scope: str) -> bool:
    """Whether the key of a request has a scope."""
    return scope in scopes_of(request.state.key)


def unblinded(request: Request) -> bool:
    """Whether the key of a request may see outcomes by action."""
    return may(request, UNBLINDED)


class DeskRoute(APIRoute):
    """A page that looks at the session, the scopes, the rate and the form's token before anything else is done."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, guarded."""
        inner = super().get_route_handler()
        scopes: Sequence[str] = (self.openapi_extra or {}).get("x-scopes", ())

        async def guarded(request: Request) -> Response:
            try:
                response = await _answered(request, scopes, inner)
            except RequestValidationError:
                response = refusal(request, refused("an address or a field of this page cannot be read"))
            except KerneltrailError as error:
                problem = problem_of(error)
                if problem.status >= 500:
                    note_failure(request.scope, error)
                response = refusal(request, problem)
            except Problem as problem:
                response = refusal(request, problem)
            except Exception as error:
                note_failure(request.scope, error)
                words = "nothing was changed by it; the server's log says where"
                response = refusal(request, Problem(500, "mistake", "Kerneltrail made a mistake", words))
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return guarded


async def _answered(
    request: Request, scopes: Sequence[str], inner: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    desk = desk_of(request)
    if scopes and not await _enters(desk, request, scopes):
        goal = request.url.path if request.method == "GET" else HOME
        return RedirectResponse(LOGIN if goal == HOME else f"{LOGIN}?next={quote(goal, safe='/')}", 303)
    if request.method == "POST":
        request.state.fields = await fields_of(request, desk.served.limits)
        if scopes:
            check_token(request, request.state.session.nonce)
    return await inner(request)


async def _enters(desk: Desk, request: Request, scopes: Sequence[str]) -> bool:
    """Whether a session is good; one whose key has another scope is refused."""
    session = desk.sessions.of(request.cookies.get(SESSION), person_clock())
    key = await desk.served.decide(desk.key, session)
    if key is None:
        return False
    request.state.key, request.state.session = key, session
    request.scope["kerneltrail.key"] = key.id
    if wait := desk.served.rates.wait(key.id):
        raise too_many(wait)
    if not set(scopes) & set(scopes_of(key)):
        words = f"it needs a key with the scope {' or '.join(scopes)}; yours has {', '.join(scopes_of(key))}"
        raise Problem(403, "wrong-scope", "Your key is not for that", words)
    return True


def check_token(request: Request, nonce: str) -> None:
    """Refuse a form that was not made for this session, or that another site sends."""
    fields: dict[str, str] = request.state.fields
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" or not desk_of(request).sessions.is_token(fields.pop("token", ""), nonce):
        words = "the form is too old, or it does not come from this page: open the page again and repeat it"
        raise Problem(403, "no-token", "This form was not accepted", words)


def page(request: Request, template: str, title: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of the desk: with its navigation for somebody who has logged in."""
    desk = desk_of(request)
    key: Key | None = getattr(request.state, "key", None)
    session: Session | None = getattr(request.state, "session", None)
    html = render(
        template,
        title=title,
        trial=desk.served.name,
        key=None if key is None else {"id": key.id, "note": key.payload.get("note", ""), "scopes": scopes_of(key)},
        token="" if session is None else desk.sessions.token(session.nonce),
        navigation=[(name, HOME + path, _is_here(request, path)) for name, path in NAVIGATION],
        at=dated(desk.now()),
        home=HOME,
        **values,
    )
    return HTMLResponse(html, status)


async def shown(
    request: Request,
    template: str,
    title: str,
    make: Callable[[], dict[str, Any]],
    *,
    long: bool = False,
    **values: Any,
) -> Response:
    """A page whose values take a while: they are computed, and the page is made, beside decisions.

    Decisions wait for the server's own thread, so nothing is done there; and a page's thread takes short turns.
    """
    desk = desk_of(request)
    served = desk.served
    refused: Problem | None = getattr(request.state, "refused", None)  # a form of this page, which is shown again
    again: dict[str, Any] = {"refused": refused, "typed": {}}
    if refused is not None:
        again |= {"typed": request.state.fields, "status": refused.status}

    def made() -> Response:
        with short_turns():
            return page(request, template, title, **again, **values, **desk.made(make))

    return await (served.work(made) if long else served.read(made))


def _is_here(request: Request, path: str) -> bool:
    here = request.url.path.rstrip("/")
    return here == HOME + path or (bool(path) and here.startswith(f"{HOME}{path}/"))


def refusal(request: Request, problem: Problem) -> HTMLResponse:
    """A refusal as a page."""
    inside = [(name, HOME + path) for name, path in NAVIGATION if path and _is_here(request, path)]
    values = {"detail": problem.detail, "heading": problem.title, "back": inside or [("the first page", HOME)]}
    response = page(request, "refusal.html.jinja", problem.title, status=problem.status, **values)
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response
