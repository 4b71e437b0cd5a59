"""Calls of those who look after the trial: incidents, exports, replay, health, numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from kerneltrail.errors import KerneltrailError
from kerneltrail.trial.export import BY_ACTION, FORMATS, TABLES
from kerneltrail.trial.export import export as export_table
from kerneltrail.trial.ledger.folds import Incident
from kerneltrail.trial.service.answers import AcknowledgementAnswer, HealthAnswer, IncidentsAnswer, ReplayAnswer
from kerneltrail.trial.service.guard import (
    ANALYST,
    MONITOR,
    OPERATOR,
    UNBLINDED,
    GuardedRoute,
    caller,
    needs,
    scopes_of,
)
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.metrics import MEDIA_TYPE, Sample
from kerneltrail.trial.service.models import AcknowledgementBody, Segment, TrialName
from kerneltrail.trial.service.problems import RETRY, Problem
from kerneltrail.trial.service.replies import JSON, documented, recorded, served_of
from kerneltrail.trial.service.served import Served

router = APIRouter(route_class=GuardedRoute, tags=["looking after it"])
MEDIA = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}
"""Media types of the formats."""
Table = StrEnum("Table", {name: name for name in TABLES})  # type: ignore[misc]
Format = StrEnum("Format", {name: name for name in FORMATS})  # type: ignore[misc]


def incident_plain(incident: Incident) -> dict[str, Any]:
    """An incident as plain values."""
    payload = dict(incident.payload or {})
    return {
        "id": incident.id,
        "at": incident.received_at,
        "open": incident.is_open,
        "participant": incident.participant,
        **{name: payload.get(name) for name in ("kind", "severity", "words")},
        "acknowledged": [{"at": at, **dict(note)} for at, note in incident.acknowledged],
    }


@router.get(
    "/incidents",
    responses=documented({200: IncidentsAnswer}),
    response_model=None,
    **needs(OPERATOR, ANALYST, MONITOR),
)
async def incidents(
    request: Request, trial: TrialName, open_only: Annotated[bool, Query(description="Only open ones.")] = False
) -> Response:
    """Incidents in the order they were recorded."""
    served = served_of(request)
    incidents = await served.read(served.trial.incidents, open_only=open_only)
    return Response(as_json({"incidents": [incident_plain(each) for each in incidents]}), media_type=JSON)


@router.post(
    "/incidents/{incident}/acknowledgement",
    status_code=201,
    responses=documented({201: AcknowledgementAnswer, 200: AcknowledgementAnswer}, 404),
    response_model=None,
    **needs(OPERATOR),
)
async def acknowledge(request: Request, trial: TrialName, incident: Segment, body: AcknowledgementBody) -> Response:
    """Record that somebody has seen an incident."""
    served = served_of(request)
    return recorded(await served.read(served.trial.acknowledge, incident, by=body.by, note=body.note))


def check_unblinded(scopes: Collection[str], what: str) -> None:
    """Refuse to show outcomes by action to a key that is not for that."""
    if UNBLINDED not in scopes:
        words = (
            f"{what} shows outcomes by action: it needs a key with the scope {UNBLINDED} beside another one; this one "
            f"has {', '.join(scopes)}"
        )
        raise Problem(403, "wrong-scope", "This key is not for that", words)


@router.get(
    "/export/{table}.{format}",
    responses={
        200: {
            "description": "The table",
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA.values()},
        },
        404: {"description": "There is no such table or format"},
    },
    response_model=None,
    **needs(ANALYST),
)
async def export(
    request: Request,
    trial: TrialName,
    table: Table,
    format: Format,
    reason: Annotated[str, Query(max_length=500, description="Why outcomes by action have to be seen.")] = "",
) -> Response:
    """A table of the trial as a file.

    One with outcomes that can be set beside actions (decisions, outcomes, mrt, lifejacket, obp) needs a key that is
    `unblinded` besides, and that it was taken is recorded in the ledger.
    """
    served = served_of(request)
    if table.value in BY_ACTION:
        check_unblinded(scopes_of(request.state.key), f"the table {table.value}")
        await served.read(served.trial.look, f"the table {table.value}", by=caller(request), reason=reason)

    def made() -> bytes:
        return export_table(served.trial.snapshot(), table.value, format.value)

    content = await served.work(made)
    headers = {"Content-Disposition": f'attachment; filename="{table.value}.{format.value}"'}
    return Response(content, media_type=MEDIA[format.value], headers=headers)


@router.get(
    "/replay/{decision}",
    responses=documented({200: ReplayAnswer}, 404),
    response_model=None,
    **needs(OPERATOR, ANALYST, MONITOR),
)
async def replay(request: Request, trial: TrialName, decision: Segment) -> Response:
    """Recompute one decision from the ledger and compare."""
    served = served_of(request)
    return Response(as_json(asdict(await served.work(served.trial.replay_one, decision))), media_type=JSON)


@router.get("/healthz", responses=documented({200: HealthAnswer}), response_model=None)
async def healthz(request: Request, trial: TrialName) -> Response:
    """Whether the process is alive."""
    return Response(as_json({"status": "alive"}), media_type=JSON)


@router.get("/readyz", responses=documented({200: HealthAnswer}, 503), response_model=None)
async def readyz(request: Request, trial: TrialName) -> Response:
    """Whether decisions will be in time: states are computed, and the ledger can be read."""
    return await readiness(served_of(request))


async def readiness(served: Served) -> Response:
    """The answer of readyz."""
    if not served.ready:
        raise Problem(503, "not-ready", "Not ready yet, or stopping", headers=RETRY)
    await served.read(_read, served)
    return Response(as_json({"status": "ready"}), media_type=JSON)


def _read(served: Served) -> int:
    with served.trial.reading() as state:
        return state.sequence


@router.get(
    "/metrics",
    responses={200: {"description": "Numbers", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_model=None,
    **needs(MONITOR, OPERATOR),
)
async def metrics(request: Request, trial: TrialName) -> Response:
    """Numbers for Prometheus."""
    served = served_of(request)
    gauges = [("kerneltrail_ready", {}, float(served.ready)), *await served.read(_gauges, served)]
    return Response(served.metrics.text(gauges), media_type=MEDIA_TYPE)


def _gauges(served: Served) -> list[Sample]:
    return list(_standing(served))


def _standing(served: Served) -> Iterator[Sample]:
    """What the trial's status says, as numbers; nothing where it cannot be had."""
    try:
        status = served.trial.status()
    except KerneltrailError:
        return
    yield "kerneltrail_entries", {}, status.entries
    yield "kerneltrail_open_incidents", {}, status.open_incidents
    yield "kerneltrail_expected_decisions", {}, status.expected
    yield "kerneltrail_received_decisions", {}, status.received
    yield "kerneltrail_update_due", {}, float(bool(status.update_due))
    for name, count in status.participants.items():
        yield "kerneltrail_participants", {"status": name}, count
    kinds: dict[tuple[str, str], int] = {}
    for alert in status.alerts:
        kinds[alert.kind, alert.severity] = kinds.get((alert.kind, alert.severity), 0) + 1
    for (kind, severity), count in sorted(kinds.items()):
        yield "kerneltrail_alerts", {"kind": kind, "severity": severity}, count
    if status.last_call is not None:
        yield "kerneltrail_last_decision_timestamp_seconds", {}, status.last_call.timestamp()
