"""The desk as part of a service's application."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from kerneltrail.trial.dashboard import actions, login, pages
from kerneltrail.trial.dashboard.access import HOME, Desk, DeskRoute, anybody
from kerneltrail.trial.dashboard.session import Sessions
from kerneltrail.trial.service.problems import Problem
from kerneltrail.trial.service.served import Served

PURPOSE = "desk sessions 1"
"""What the secret of sessions is derived for."""

router = APIRouter(route_class=DeskRoute)


@router.get("/", **anybody())
async def root(request: Request) -> Response:
    """Somebody who typed the server's address wants the desk."""
    return RedirectResponse(HOME, 303)


@router.api_route("/desk/{rest:path}", methods=["GET", "POST"], **anybody())
async def unknown(request: Request, rest: str) -> Response:
    """Any other address under the desk."""
    if not rest:
        return RedirectResponse(HOME, 303)
    raise Problem(404, "unknown-path", "There is no such page")


def mount(app: FastAPI) -> Desk:
    """Add the desk to an application whose trial is served; calls of the service are not touched."""
    served: Served = app.state.served
    desk = Desk(served, Sessions(served.trial.secret(PURPOSE)))
    app.state.desk = desk
    for part in (login, pages, actions):
        app.include_router(part.router)
    app.include_router(router)
    return desk
