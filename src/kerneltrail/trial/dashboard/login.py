"""Log in with a key, log out, and what needs no key: style and script."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from kerneltrail.trial.dashboard.access import (
    HOME,
    LOGIN,
    PEOPLE,
    DeskRoute,
    anybody,
    check_token,
    desk_of,
    needs,
    page,
)
from kerneltrail.trial.dashboard.session import LIFETIME, SESSION, VISIT, person_clock, visit
from kerneltrail.trial.dashboard.templating import asset
from kerneltrail.trial.ledger.folds import Key
from kerneltrail.trial.service.guard import LONGEST, expired, scopes_of
from kerneltrail.trial.service.limits import too_many
from kerneltrail.trial.service.problems import Problem

router = APIRouter(route_class=DeskRoute)
MEDIA = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


def _cookie(request: Request) -> dict[str, Any]:
    """How cookies are set: for this path, out of reach of scripts and other sites, and by https where it is https.

    Whoever claims https falsely in a header only keeps the cookie from themselves.
    """
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    secure = "https" in (request.url.scheme, forwarded)
    return {"path": HOME, "httponly": True, "samesite": "strict", "secure": secure}


def _form(request: Request, *, status: int = 200, words: str = "", goal: str = "") -> HTMLResponse:
    name = request.cookies.get(VISIT) or visit()
    values = {"words": words, "form_token": desk_of(request).sessions.token(name), "goal": _safe(goal)}
    response = page(request, "login.html.jinja", "Log in", status=status, **values)
    response.set_cookie(VISIT, name, **_cookie(request))
    return response


UNKNOWN_KEY = (
    "This key opens nothing here. It may be of another trial, since each has keys of its own; it may be cut short, or "
    "was revoked."
)


def _safe(goal: str) -> str:
    """An address of the desk; anything else is the desk's first page."""
    return goal if goal.startswith(f"{HOME}/") and goal.isascii() and goal.isprintable() and "\\" not in goal else HOME


@router.get(LOGIN, **anybody())
async def form(request: Request) -> Response:
    """The form into which a key is pasted."""
    return _form(request, goal=request.query_params.get("next", HOME))


@router.post(LOGIN, **anybody())
async def log_in(request: Request) -> Response:
    """Begin a session, if the key opens the desk."""
    desk = desk_of(request)
    check_token(request, request.cookies.get(VISIT, ""))
    address = request.client.host if request.client else ""
    if wait := desk.tries.wait(address, take=False):
        raise too_many(wait)
    fields: dict[str, str] = request.state.fields
    goal, token = _safe(fields.get("next", "")), fields.get("key", "")
    known = len(token) <= LONGEST and token.isascii()
    key = await desk.served.decide(desk.served.trial.key_of, token) if known else None
    if key is None or expired(key, desk.now()):
        desk.tries.wait(address)
        words = f"{UNKNOWN_KEY} " if key is None else "This key has expired. "
        return _form(request, status=401, words=f"{words}Ask whoever runs the trial for another.", goal=goal)
    request.scope["kerneltrail.key"] = key.id
    if not set(scopes_of(key)) & set(PEOPLE):
        desk.tries.wait(address)
        return _form(request, status=403, words=_not_for_people(key), goal=goal)
    response = RedirectResponse(goal, 303)
    cookie = desk.sessions.begin(key.id, person_clock())
    response.set_cookie(SESSION, cookie, max_age=int(LIFETIME.total_seconds()), **_cookie(request))
    return response


def _not_for_people(key: Key) -> str:
    return (
        f"This key is for {', '.join(scopes_of(key))} alone. The desk needs one with the scope {' or '.join(PEOPLE)}, "
        "which may have others beside it."
    )


@router.post("/desk/logout", **needs(*PEOPLE))
async def log_out(request: Request) -> Response:
    """End the session."""
    desk_of(request).sessions.end(request.state.session)
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(SESSION, **_cookie(request))
    return response


@router.get("/desk/assets/{name}", **anybody())
async def file(request: Request, name: str) -> Response:
    """The style sheet or the script."""
    try:
        content = asset(name)
    except KeyError:
        raise Problem(404, "unknown-path", "There is no such page") from None
    return Response(content, media_type=MEDIA[name.rpartition(".")[2]])
