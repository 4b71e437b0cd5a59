"""The pages: Today, Participants, a participant, Cohort, Policies, Incidents, Data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote, unquote, urlencode
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, Response

from kerneltrail.errors import KerneltrailError, UnknownName
from kerneltrail.kernels.phrases import counted
from kerneltrail.report.page import Paragraph, Section
from kerneltrail.trial.dashboard import cohort as cohorts
from kerneltrail.trial.dashboard import findings, people
from kerneltrail.trial.dashboard import person as persons
from kerneltrail.trial.dashboard.access import PEOPLE, Desk, DeskRoute, desk_of, may, needs, shown, unblinded
from kerneltrail.trial.dashboard.contact import contact_of
from kerneltrail.trial.dashboard.descriptions import nouns
from kerneltrail.trial.dashboard.outcomes import outcome_section
from kerneltrail.trial.dashboard.overview import data_values, incident_values, policy_values
from kerneltrail.trial.dashboard.texts import dated, day_of
from kerneltrail.trial.dashboard.today import today
from kerneltrail.trial.decided import Point, present, updates_at
from kerneltrail.trial.export import BY_ACTION
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rhythm import status_at
from kerneltrail.trial.rows import Row, rows_of, usable
from kerneltrail.trial.service.guard import ANALYST, OPERATOR
from kerneltrail.trial.versions import Versions

router = APIRouter(route_class=DeskRoute)
DONE = {
    "acknowledged": "The incident was acknowledged.",
    "activated": "The policy was changed.",
    "same": "That policy serves already; nothing was changed.",
}
"""What a page says after a form was sent."""


@dataclass(frozen=True)
class Seen:
    """What a page reads: a copy of the ledger's state, so that decisions wait for nobody who reads."""

    desk: Desk
    state: State
    protocol: Protocol
    now: datetime

    @property
    def zone(self) -> str:
        """Of the trial's clock."""
        return self.protocol.updates.timezone


def seen(desk: Desk) -> Seen:
    """The trial as it is now."""
    trial = desk.served.trial
    return Seen(desk, trial.snapshot(), trial.protocol, desk.now())


def done(request: Request) -> str:
    """What to say of the form that led here."""
    return DONE.get(request.query_params.get("done", ""), "")


@router.get("/desk", **needs(*PEOPLE))
async def show_today(request: Request) -> Response:
    """How the trial stands, and who needs a call."""
    desk = desk_of(request)

    def made() -> dict[str, Any]:
        look, ready = seen(desk), desk.served.ready
        open_incidents = incident_values(look.state, look.zone, open_only=True)
        return {
            "today": today(look.state, look.protocol, look.now, ready, desk.points.of),
            "incidents": open_incidents,
            "zone": look.zone,
            "heading": look.protocol.title,
        }

    def kept() -> dict[str, Any]:  # browsers ask again every half minute, each of them
        with desk.served.trial.reading() as state:
            sequence = state.sequence
        return desk.today.of(sequence, desk.now(), desk.served.ready, made)

    return await shown(request, "today.html.jinja", "Today", kept, quoted=_quoted)


def _quoted(name: str) -> str:
    return quote(name, safe="")


@router.get("/desk/participants", **needs(*PEOPLE))
async def show_people(request: Request) -> Response:
    """All participants with their headline numbers."""
    desk, asked = desk_of(request), request.query_params
    sort, _, order = asked.get("sort", "participant").partition(".")  # the form has both in one field
    sort = sort if sort in people.COLUMNS else "participant"
    down, search = (order or asked.get("order")) == "down", asked.get("q", "")[:100]

    def made() -> dict[str, Any]:
        look = seen(desk)
        rows = people.listed(
            look.state, look.protocol, look.now, sort=sort, down=down, search=search, points=desk.points.of
        )
        return {"rows": rows, "total": len(look.state.participants), "now": look.now}

    def link(name: str) -> str:
        other = {"sort": name, "order": "down" if sort == name and not down else "up"}
        return "?" + urlencode({**other, **({"q": search} if search else {})})

    return await shown(
        request, "people.html.jinja", "Participants", made, columns=list(people.COLUMNS.values()), sort=sort, down=down,
        search=search, link=link, quoted=_quoted,
    )  # fmt: skip


@router.get("/desk/participants/{participant}", **needs(*PEOPLE))
async def show_person(request: Request, participant: str) -> Response:
    """One participant."""
    return await person_page(request, unquote(participant), by_action=False)


async def person_page(request: Request, participant: str, *, by_action: bool) -> Response:
    """The page on a participant; with outcomes by action only after that was recorded."""
    make = partial(_person, desk_of(request), participant, by_action=by_action)
    return await shown(
        request, "person.html.jinja", participant, make, long=True, participant=participant, quoted=_quoted,
        by_action=by_action, may_look=unblinded(request),
    )  # fmt: skip


def _person(desk: Desk, participant: str, *, by_action: bool) -> dict[str, Any]:
    look = seen(desk)
    known = look.state.participants.get(participant)
    if known is None or (known.enrolled is None and known.removed is None):
        raise UnknownName(f"nobody is called {participant!r} in this trial")
    if known.removed is not None:
        removed = f"The data of this participant were removed on {dated(known.changes[-1].at, look.zone)}."
        return {"removed": removed, "sections": [], "facts": [], "contact": None}
    facts = known.enrolled or {}
    zone = facts["timezone"]
    points = desk.points.of(known, look.now)
    contact = contact_of(known, points, look.protocol, look.now)
    view = persons.PersonView(
        participant, zone, look.protocol, points, updates_at(look.state), _foreseen(look, known, points), look.now
    )
    status = known.status(look.now)
    change = next((each for each in reversed(known.changes) if each.reason and each.status == status), None)
    listed = [
        ("Status", status_at(known, look.now) + (f" ({change.reason})" if change is not None else "")),
        ("Takes part", _days(facts["starts_on"], facts["ends_on"])),
        ("Clock", f"{zone}; it is {look.now.astimezone(ZoneInfo(zone)):%H:%M} there"),
        ("Enrolled", dated(known.enrolled_at, zone)),
    ]
    if ahead := sum(each.payload is not None for each in known.decisions.values()) - len(points):
        words = f"{counted(ahead, 'decision')}, for a phone that may be offline; each is shown when its time has come"
        listed.append(("Drawn ahead", words))
    found, *path = _found(look, known, view)
    sections = [
        persons.last_decision(view),
        found,
        persons.decisions_section(view),
        persons.advantage_section(view),
        outcome_section(view, by_action=by_action),
        *path,
    ]
    return {"removed": "", "sections": sections, "facts": listed, "contact": contact}


def _days(first: str, last: str | None) -> str:
    """From when to when somebody takes part, on their clock.

    >>> _days("2026-03-01", None)
    'from Sun 1 Mar 2026, no end set'
    """
    end = f" to {day_of(f'{last}T12:00:00+00:00')}" if last else ", no end set"
    return f"from {day_of(f'{first}T12:00:00+00:00')}{end}"


def _foreseen(look: Seen, known: Participant, points: Sequence[Point]) -> Any:
    """What was predicted of their outcomes; nothing where the model is missing."""
    versions = Versions(look.state)
    active = versions.active
    if active is None:
        return {}
    try:
        model = look.desk.served.trial.model(active.model_id)
        batches = versions.batches(active.version, known.id)
        used = {outcome for batch in batches for outcome in batch}
        newest: list[Row] = [row for row in usable(known, model).rows if row.outcome not in used]
        rows = rows_of(known, batches)
        return look.desk.foresight.of(model, active.model_id, known.id, batches, rows, newest)
    except (KerneltrailError, KeyError, ArithmeticError, ValueError):
        return {}


def _found(look: Seen, known: Participant, view: persons.PersonView) -> list[Section]:
    """What the model has found, and the path there."""
    versions = Versions(look.state)
    active = versions.active
    if active is None:
        return [Section("What the model has found", [Paragraph("No policy serves.")], "found")]
    try:
        user = look.desk.served.trial.followed(known.id)
        model = look.desk.served.trial.model(active.model_id)
    except (KerneltrailError, ArithmeticError, ValueError) as problem:
        words = "It cannot be computed now; decisions come from a fallback."
        more = f" {problem}" if isinstance(problem, UnknownName) else ""
        return [Section("What the model has found", [Paragraph(words + more)], "found")]
    found = [findings.findings_section(user, active.version)]
    if user is not None and user.history:
        made = findings.steps_of(versions, active, known.id)
        found.append(findings.path_section(user, model, made, view.zone, view.lines()))
    return found


@router.get("/desk/cohort", **needs(*PEOPLE))
async def show_cohort(request: Request) -> Response:
    """All participants together."""
    make = partial(cohort_values, desk_of(request))
    may_look = unblinded(request)
    return await shown(request, "cohort.html.jinja", "Cohort", make, long=True, may_look=may_look, looked=False)


def cohort_values(desk: Desk) -> dict[str, Any]:
    """What the page on the cohort shows."""
    look = seen(desk)
    everybody = [desk.points.of(each, look.now) for each in present(look.state)]
    points = cohorts.all_points(everybody)
    users = desk.served.trial.everybody(look.state)
    view = cohorts.CohortView(look.state, look.protocol, points, updates_at(look.state), look.zone, look.now, users)
    return {"sections": cohorts.sections(view, nouns_of(look)), "zone": look.zone}


def nouns_of(look: Seen) -> dict[str, str]:
    """Kernels of the model that serves, in words."""
    active = Versions(look.state).active
    try:
        model = None if active is None else look.desk.served.trial.model(active.model_id)
    except KerneltrailError:
        return {}
    return {} if model is None else nouns(model)


@router.get("/desk/policies", **needs(*PEOPLE))
async def show_policies(request: Request) -> Response:
    """Versions of the policy, their checks, and a form to let another one serve."""
    desk = desk_of(request)

    def made() -> dict[str, Any]:
        look = seen(desk)
        return policy_values(look.state, look.zone)

    may_change = may(request, OPERATOR)
    return await shown(request, "policies.html.jinja", "Policies", made, done=done(request), may_change=may_change)


@router.get("/desk/incidents", **needs(*PEOPLE))
async def show_incidents(request: Request) -> Response:
    """Incidents, open ones first, with a form to acknowledge each."""
    desk = desk_of(request)

    def made() -> dict[str, Any]:
        look = seen(desk)
        return {"incidents": incident_values(look.state, look.zone), "zone": look.zone}

    return await shown(
        request, "incidents.html.jinja", "Incidents", made, done=done(request), may_change=may(request, OPERATOR),
        quoted=_quoted,
    )  # fmt: skip


@router.get("/desk/data", **needs(*PEOPLE))
async def show_data(request: Request) -> Response:
    """Tables to download, what is in them, and whether the record is whole."""
    desk = desk_of(request)

    def made() -> dict[str, Any]:
        look = seen(desk)
        return data_values(look.state, look.protocol, look.zone)

    jobs = [(kind, desk.jobs.get(kind)) for kind in ("replay", "verify")]
    return await shown(
        request, "data.html.jinja", "Data", made, jobs=jobs, may_export=may(request, ANALYST), dated=dated,
        may_look=unblinded(request), by_action=BY_ACTION,
    )  # fmt: skip
