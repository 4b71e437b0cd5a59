"""Calls about what is learnt: updates of the policy, its versions, and which one serves."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from kerneltrail.errors import RevisionNeeded, StaleRevision
from kerneltrail.trial.results import Updated
from kerneltrail.trial.service.answers import ActivationAnswer, PoliciesAnswer, UpdateAnswer
from kerneltrail.trial.service.guard import ANALYST, MONITOR, OPERATOR, GuardedRoute, caller, needs
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.models import ActivePolicyBody, Segment, TrialName, UpdateBody
from kerneltrail.trial.service.participants import IfMatch, tags_of
from kerneltrail.trial.service.replies import JSON, documented, recorded, served_of

router = APIRouter(route_class=GuardedRoute, tags=["learning"])


def plain(updated: Updated) -> dict[str, Any]:
    """An update as plain values."""
    return {**asdict(updated), "left_out": dict(updated.left_out)}


@router.post(
    "/updates",
    status_code=202,
    responses=documented({202: UpdateAnswer, 200: UpdateAnswer}, 409),
    response_model=None,
    **needs(OPERATOR),
)
async def update(request: Request, trial: TrialName, body: UpdateBody) -> Response:
    """Start an update beside the decisions; a dry run is answered when it is done, and records nothing."""
    served = served_of(request)
    if body.dry_run:
        done = await served.work(
            served.trial.update, reason=body.reason, as_of=body.as_of, dry_run=True, by=caller(request)
        )
        return Response(as_json(plain(done)), 200, media_type=JSON)
    started = await served.read(served.trial.start_update, reason=body.reason, as_of=body.as_of, by=caller(request))
    where = {"Location": f"/v1/trials/{served.path}/updates/{quote(started, safe='')}"}
    return Response(as_json({"id": started, "state": "running"}), 202, media_type=JSON, headers=where)


@router.get(
    "/updates/{update}",
    responses=documented({200: UpdateAnswer}, 404),
    response_model=None,
    **needs(OPERATOR, ANALYST, MONITOR),
)
async def update_state(request: Request, trial: TrialName, update: Segment) -> Response:
    """An update, as far as it has come."""
    served = served_of(request)
    return Response(as_json(plain(await served.read(served.trial.updated, update))), media_type=JSON)


@router.get(
    "/policies",
    responses=documented({200: PoliciesAnswer}, etag=(200,)),
    response_model=None,
    **needs(OPERATOR, ANALYST, MONITOR),
)
async def policies(request: Request, trial: TrialName) -> Response:
    """All versions of the policy; the ETag is the one that serves."""
    served = served_of(request)
    versions = await served.read(served.trial.policies)
    active = next((each.version for each in versions if each.active), None)
    body = {"active": active, "policies": [asdict(each) for each in versions]}
    tag = {} if active is None else {"ETag": f'"{quote(active, safe="")}"'}
    return Response(as_json(body), media_type=JSON, headers=tag)


@router.put(
    "/active-policy",
    responses=documented({200: ActivationAnswer}, 404, 409, 412, 428, etag=(200,)),
    response_model=None,
    **needs(OPERATOR),
)
async def activate(request: Request, trial: TrialName, body: ActivePolicyBody, if_match: IfMatch = None) -> Response:
    """Let another version serve, such as the one before (rollback); If-Match names the one that serves."""
    served = served_of(request)
    if if_match is None:
        raise RevisionNeeded("name the version that serves now in If-Match, as GET policies has it in ETag")
    tags = tags_of(if_match)
    expected = None
    if "*" not in tags:
        versions = await served.read(served.trial.policies)
        serving = next((each.version for each in versions if each.active), None)
        if serving is None or quote(serving, safe="") not in tags:
            raise StaleRevision(f"the version {serving} serves, not {' or '.join(tags)}")
        expected = serving
    answer = await served.read(
        served.trial.activate, body.version, reason=body.reason, expected=expected, by=caller(request)
    )
    return recorded(answer, status=200, headers={"ETag": f'"{quote(body.version, safe="")}"'})
