"""What forms do: acknowledge an incident, let another policy serve, prove the record, look by action; and exports."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from kerneltrail.trial.dashboard.access import PEOPLE, Desk, DeskRoute, desk_of, needs, shown, unblinded
from kerneltrail.trial.dashboard.by_action import by_action_section
from kerneltrail.trial.dashboard.pages import cohort_values, person_page, seen
from kerneltrail.trial.decided import points_of, present
from kerneltrail.trial.export import export
from kerneltrail.trial.service.guard import ANALYST, OPERATOR, UNBLINDED, caller
from kerneltrail.trial.service.looking import MEDIA, Format, Table
from kerneltrail.trial.service.problems import Problem, refused

router = APIRouter(route_class=DeskRoute)
PATIENCE = 2.0
"""Seconds that a page waits for what a button began, before it says that it is running."""


def _field(request: Request, name: str, words: str, *, longest: int = 500) -> str:
    """A field of the form that must be filled in."""
    value = str(request.state.fields.get(name, ""))
    if not value or not value.isprintable() or len(value) > longest:
        raise refused(f"{words} (one line, {longest} characters at most)")
    return value


def signed(request: Request, name: str) -> str:
    """Who did something, as the ledger notes it: a name, and the key that was used."""
    return f"{name} ({caller(request)})"


@router.post("/desk/incidents", **needs(OPERATOR))
async def acknowledge(request: Request) -> Response:
    """Record that somebody has seen an incident."""
    served = desk_of(request).served
    incident = _field(request, "incident", "the form does not say which incident", longest=1000)
    by = signed(request, _field(request, "by", "write your name", longest=100))
    note = str(request.state.fields.get("note", ""))
    await served.read(served.trial.acknowledge, incident, by=by, note=note)
    return RedirectResponse("/desk/incidents?done=acknowledged", 303)


@router.post("/desk/policies", **needs(OPERATOR))
async def activate(request: Request) -> Response:
    """Let another version serve, if the one that the page showed still does."""
    served = desk_of(request).served
    version = _field(request, "version", "choose a version")
    expected = _field(request, "serving", "the form does not say which version serves")
    reason = _field(request, "reason", "write why another policy should serve")
    by = signed(request, _field(request, "by", "write your name", longest=100))
    answer = await served.read(served.trial.activate, version, reason=reason, expected=expected, by=by)
    return RedirectResponse(f"/desk/policies?done={'activated' if answer.new else 'same'}", 303)


@router.post("/desk/data/replay", **needs(*PEOPLE))
async def replay(request: Request) -> Response:
    """Compute every decision anew and compare."""
    trial = desk_of(request).served.trial

    def work() -> tuple[bool, str]:
        replayed = trial.replay()
        return replayed.same, str(replayed)

    return await _begin(desk_of(request), "replay", work)


@router.post("/desk/data/verify", **needs(*PEOPLE))
async def verify(request: Request) -> Response:
    """Walk the ledger's chain."""
    trial = desk_of(request).served.trial

    def work() -> tuple[bool, str]:
        verdict = trial.verify()
        return verdict.sound, str(verdict)

    return await _begin(desk_of(request), "verify", work)


async def _begin(desk: Desk, kind: str, work: Any) -> Response:
    desk.jobs.start(kind, work, desk.now)
    await desk.served.read(desk.jobs.wait, kind, PATIENCE)
    return RedirectResponse("/desk/data#proofs", 303)


@router.get("/desk/data/{table}.{format}", **needs(ANALYST))
async def table(request: Request, table: Table, format: Format) -> Response:
    """A table as a file, as the service's own call gives it."""
    served = desk_of(request).served

    def made() -> bytes:
        return export(served.trial.snapshot(), table.value, format.value)

    headers = {"Content-Disposition": f'attachment; filename="{table.value}.{format.value}"'}
    return Response(await served.work(made), media_type=MEDIA[format.value], headers=headers)


def _check_unblinded(request: Request) -> str:
    """The reason for a look at outcomes by action, if the key allows one."""
    if not unblinded(request):
        words = f"outcomes by action need a key with the scope {UNBLINDED} beside another one"
        raise Problem(403, "wrong-scope", "Your key is not for that", words)
    return _field(request, "reason", "write why you have to see outcomes by action")


@router.post("/desk/participants/{participant}", **needs(*PEOPLE))
async def person_by_action(request: Request, participant: str) -> Response:
    """A participant with outcomes by action: recorded first, then shown."""
    reason, whom = _check_unblinded(request), unquote(participant)
    served = desk_of(request).served
    await served.read(served.trial.participant, whom)  # refuses a name that is none before anything is recorded
    await served.read(served.trial.look, "a participant", by=caller(request), participant=whom, reason=reason)
    return await person_page(request, whom, by_action=True)


@router.post("/desk/cohort", **needs(*PEOPLE))
async def cohort_by_action(request: Request) -> Response:
    """The cohort with outcomes by action: recorded first, then shown."""
    reason = _check_unblinded(request)
    desk = desk_of(request)
    await desk.served.read(desk.served.trial.look, "the cohort", by=caller(request), reason=reason)

    def made() -> dict[str, Any]:
        values, look = cohort_values(desk), seen(desk)
        reward = look.protocol.reward
        unit = "" if reward.unit == reward.outcome else reward.unit
        found = by_action_section([points_of(each, look.now) for each in present(look.state)], reward.outcome, unit)
        return {**values, "sections": [found, *values["sections"]]}

    return await shown(request, "cohort.html.jinja", "Cohort", made, long=True, may_look=True, looked=True)
