"""What forms do: acknowledge an incident, let another policy serve, prove the record, look by action; and exports."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from kerneltrail.trial.dashboard.access import PEOPLE, Desk, DeskRoute, desk_of, needs, shown
from kerneltrail.trial.dashboard.by_action import by_action_section
from kerneltrail.trial.dashboard.forms import again, field_refused
from kerneltrail.trial.dashboard.pages import (
    cohort_values,
    person_page,
    seen,
    show_cohort,
    show_data,
    show_incidents,
    show_person,
    show_policies,
)
from kerneltrail.trial.decided import present
from kerneltrail.trial.export import BY_ACTION, FORMATS, export
from kerneltrail.trial.service.guard import ANALYST, OPERATOR, caller, scopes_of
from kerneltrail.trial.service.looking import MEDIA, Format, Table, check_unblinded
from kerneltrail.trial.service.problems import refused

router = APIRouter(route_class=DeskRoute)
PATIENCE = 2.0
"""Seconds that a page waits for what a button began, before it says that it is running."""


def _field(request: Request, name: str, words: str, *, longest: int = 500, empty: bool = False) -> str:
    """A line that somebody typed into the form; it may be left out if it may be `empty`."""
    return _checked(request, name, f"{words} (one line, {longest} characters at most)", longest, empty=empty)


def _choice(request: Request, name: str, words: str) -> str:
    """A field of the form that nobody types: it is chosen, or the page filled it in."""
    return _checked(request, name, words, 1000)


def _checked(request: Request, name: str, words: str, longest: int, *, empty: bool = False) -> str:
    value = str(request.state.fields.get(name, ""))
    if not (value or empty) or (value and not value.isprintable()) or len(value) > longest:
        raise field_refused(name, words)
    return value


def signed(request: Request, name: str) -> str:
    """Who did something, as the ledger notes it: a name, and the key that was used."""
    return f"{name} ({caller(request)})"


@router.post("/desk/incidents", **needs(OPERATOR))
@again(show_incidents)
async def acknowledge(request: Request) -> Response:
    """Record that somebody has seen an incident."""
    served = desk_of(request).served
    incident = _choice(request, "incident", "the form does not say which incident")
    by = signed(request, _field(request, "by", "write your name", longest=100))
    note = _field(request, "note", "write in short what was found or done, or nothing", empty=True)
    await served.read(served.trial.acknowledge, incident, by=by, note=note)
    return RedirectResponse("/desk/incidents?done=acknowledged", 303)


@router.post("/desk/policies", **needs(OPERATOR))
@again(show_policies)
async def activate(request: Request) -> Response:
    """Let another version serve, if the one that the page showed still does."""
    served = desk_of(request).served
    version = _choice(request, "version", "choose a version")
    expected = _choice(request, "serving", "the form does not say which version serves")
    reason = _field(request, "reason", "write why another policy should serve")
    by = signed(request, _field(request, "by", "write your name", longest=100))
    answer = await served.read(served.trial.activate, version, reason=reason, expected=expected, by=by)
    return RedirectResponse(f"/desk/policies?done={'activated' if answer.new else 'same'}", 303)


@router.post("/desk/data/replay", **needs(*PEOPLE))
async def replay(request: Request) -> Response:
    """Compute every decision anew and compare."""
    return await _begin(desk_of(request), "replay")


@router.post("/desk/data/verify", **needs(*PEOPLE))
async def verify(request: Request) -> Response:
    """Walk the ledger's chain."""
    return await _begin(desk_of(request), "verify")


async def _begin(desk: Desk, kind: str) -> Response:
    desk.jobs.start(kind, partial(desk.served.trial.prove, kind), desk.now)
    await desk.served.read(desk.jobs.wait, kind, PATIENCE)
    return RedirectResponse("/desk/data#proofs", 303)


@router.get("/desk/data/{table}.{format}", **needs(ANALYST))
async def table(request: Request, table: Table, format: Format) -> Response:
    """A table without outcomes by action as a file, as the service's own call gives it."""
    if table.value in BY_ACTION:
        check_unblinded(scopes_of(request.state.key), f"the table {table.value}")
        raise refused("this table shows outcomes by action: the form on the page Data asks why")
    return await _file(request, table.value, format.value)


@router.post("/desk/data/table", **needs(ANALYST))
@again(show_data)
async def table_by_action(request: Request) -> Response:
    """A table that shows outcomes by action: recorded first, then sent."""
    name = _choice(request, "table", "choose a table")
    if name not in BY_ACTION or request.state.fields.get("format") not in FORMATS:
        raise field_refused("table", "choose one of the tables and formats of this form")
    reason = _check_unblinded(request, f"the table {name}")
    served = desk_of(request).served
    await served.read(served.trial.look, f"the table {name}", by=caller(request), reason=reason)
    return await _file(request, name, request.state.fields["format"])


async def _file(request: Request, name: str, format: str) -> Response:
    served = desk_of(request).served

    def made() -> bytes:
        return export(served.trial.snapshot(), name, format)

    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    return Response(await served.work(made), media_type=MEDIA[format], headers=headers)


def _check_unblinded(request: Request, what: str) -> str:
    """The reason for a look at outcomes by action, if the key allows one."""
    check_unblinded(scopes_of(request.state.key), what)
    return _field(request, "reason", "write why you have to see outcomes by action")


@router.post("/desk/participants/{participant}", **needs(*PEOPLE))
@again(show_person)
async def person_by_action(request: Request, participant: str) -> Response:
    """A participant with outcomes by action: recorded first, then shown."""
    reason, whom = _check_unblinded(request, "this page"), unquote(participant)
    served = desk_of(request).served
    await served.read(served.trial.participant, whom)  # refuses a name that is none before anything is recorded
    await served.read(served.trial.look, "a participant", by=caller(request), participant=whom, reason=reason)
    return await person_page(request, whom, by_action=True)


@router.post("/desk/cohort", **needs(*PEOPLE))
@again(show_cohort)
async def cohort_by_action(request: Request) -> Response:
    """The cohort with outcomes by action: recorded first, then shown."""
    reason = _check_unblinded(request, "this page")
    desk = desk_of(request)
    await desk.served.read(desk.served.trial.look, "the cohort", by=caller(request), reason=reason)

    def made() -> dict[str, Any]:
        values, look = cohort_values(desk), seen(desk)
        reward = look.protocol.reward
        unit = "" if reward.unit == reward.outcome else reward.unit
        found = by_action_section(
            [desk.points.of(each, look.now) for each in present(look.state)], reward.outcome, unit
        )
        return {**values, "sections": [found, *values["sections"]]}

    return await shown(request, "cohort.html.jinja", "Cohort", made, long=True, may_look=True, looked=True)
