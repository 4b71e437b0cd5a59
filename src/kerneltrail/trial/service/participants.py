"""Calls about who takes part."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response

from kerneltrail.errors import NotActive, UnknownName
from kerneltrail.trial.service.answers import EventAnswer, ParticipantAnswer
from kerneltrail.trial.service.guard import APP, OPERATOR, GuardedRoute, caller, needs, scopes_of
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.models import EventBody, ParticipantBody, Segment, TrialName
from kerneltrail.trial.service.problems import Problem, refused
from kerneltrail.trial.service.replies import JSON, documented, recorded, served_of

router = APIRouter(route_class=GuardedRoute, tags=["participants"])
IfMatch = Annotated[str | None, Header(description="The ETag of what is changed.")]
_TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')


def tags_of(header: str) -> list[str]:
    """The tags of an If-Match header; `*` is any. Weak ones never match."""
    if header.strip() == "*":
        return ["*"]
    if not _TAGS.fullmatch(header):
        raise refused('If-Match is a tag in quotes, such as "12", or *', field="header.if-match")
    return re.findall(r'(?<!W/)"([^"]*)"', header)


@router.put(
    "/participants/{participant}",
    status_code=201,
    responses=documented({201: ParticipantAnswer, 200: ParticipantAnswer}, 409, 410, 412, 428, etag=(200, 201)),
    response_model=None,
    **needs(APP, OPERATOR),
)
async def enrol(
    request: Request, trial: TrialName, participant: Segment, body: ParticipantBody, if_match: IfMatch = None
) -> Response:
    """Enrol somebody, or change what is known of them (with If-Match)."""
    served = served_of(request)
    revision = await _revision(request, participant, if_match) if if_match is not None else None
    answer = await served.read(
        served.trial.enrol,
        participant,
        timezone=body.timezone,
        starts_on=body.starts_on,
        ends_on=body.ends_on,
        attributes=body.attributes,
        revision=revision,
    )
    status = 201 if answer.new and revision is None else 200
    return recorded(answer, status=status, headers={"ETag": f'"{answer.sequence}"'})


async def _revision(request: Request, participant: str, header: str) -> int:
    """The revision that an If-Match header allows to change, or one that is none."""
    tags, served = tags_of(header), served_of(request)
    try:
        person = await served.read(served.trial.participant, participant)
    except UnknownName:
        return 0
    current = person.revision or 0
    return current if "*" in tags or str(current) in tags else -1


@router.get(
    "/participants/{participant}",
    responses=documented({200: ParticipantAnswer}, 404, 410, etag=(200,)),
    response_model=None,
    **needs(APP, OPERATOR),
)
async def participant_as_recorded(request: Request, trial: TrialName, participant: Segment) -> Response:
    """A participant as recorded, with the ETag that a change needs."""
    served = served_of(request)
    person = await served.read(served.trial.participant, participant)
    body = {"participant": participant, **dict(person.enrolled or {}), "status": person.status(served.now())}
    return Response(as_json(body), media_type=JSON, headers={"ETag": f'"{person.revision}"'})


@router.post(
    "/participants/{participant}/events",
    status_code=201,
    responses=documented({201: EventAnswer, 200: EventAnswer}, 404, 409, 410),
    response_model=None,
    **needs(APP, OPERATOR),
)
async def event(request: Request, trial: TrialName, participant: Segment, body: EventBody) -> Response:
    """Pause, resume or withdraw a participant, or remove all their data (scope operator)."""
    served = served_of(request)
    if body.kind == "remove_data":
        return await _remove(request, participant, body)
    try:
        answer = await served.read(served.trial.event, participant, body.kind, at=body.at, reason=body.reason)
    except NotActive as error:
        raise Problem(409, "not-active", "This cannot be as the participant is", error.words) from None
    return recorded(answer)


async def _remove(request: Request, participant: str, body: EventBody) -> Response:
    served = served_of(request)
    if OPERATOR not in scopes_of(request.state.key):
        challenge = {"WWW-Authenticate": 'Bearer realm="kerneltrail", error="insufficient_scope", scope="operator"'}
        words = "the removal of data needs a key with the scope operator"
        raise Problem(403, "wrong-scope", "This key is not for that", words, headers=challenge)
    removed = await served.read(served.trial.remove, participant, reason=body.reason, by=caller(request))
    facts: dict[str, Any] = asdict(removed)
    shown = {**facts, "kind": body.kind, "backups": [path.name for path in removed.backups]}
    return Response(as_json(shown), 201 if removed.new else 200, media_type=JSON)
