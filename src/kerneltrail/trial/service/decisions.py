"""Calls about decisions, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from kerneltrail.errors import KeyConflict
from kerneltrail.trial import request as requests
from kerneltrail.trial.ahead import days_ahead
from kerneltrail.trial.results import Answer, Item
from kerneltrail.trial.service.answers import DecisionAnswer, DeliveryAnswer, ItemsAnswer, ScheduleAnswer
from kerneltrail.trial.service.guard import APP, GuardedRoute, needs
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.models import (
    AHEAD,
    ITEMS,
    DecisionBody,
    DeliveryBody,
    Index,
    Malformed,
    ObservationsBody,
    OutcomesBody,
    Planned,
    ScheduleBody,
    Segment,
    TrialName,
)
from kerneltrail.trial.service.problems import Problem
from kerneltrail.trial.service.replies import JSON, REPLAYED, documented, recorded, served_of
from kerneltrail.trial.service.served import Served

router = APIRouter(route_class=GuardedRoute, tags=["decisions"])


def asked(participant: str, kind: str, index: int, body: DecisionBody | Planned) -> requests.Request:
    """A request as the trial takes it."""
    return requests.Request(
        participant,
        kind,
        index,
        body.decided_at,
        body.available,
        tuple(body.reasons),
        body.context,
        body.expires_at,
    )


def count(served: Served, answer: Answer) -> None:
    """Count a decision by its rung."""
    rung = "repeat" if answer.repeated else str(answer.value.get("rung", "unknown"))
    served.metrics.count("kerneltrail_decisions_total", rung=rung)


@router.put(
    "/participants/{participant}/decisions/{kind}/{index}",
    status_code=201,
    responses=documented({201: DecisionAnswer, 200: DecisionAnswer}, 404, 409, 410),
    response_model=None,
    **needs(APP),
)
async def decide(
    request: Request, trial: TrialName, participant: Segment, kind: Segment, index: Index, body: DecisionBody
) -> Response:
    """Ask for a decision. The same again is answered with the same bytes."""
    served = served_of(request)
    wanted = asked(participant, kind, index, body)
    if body.drawn_by is None:
        answer = await served.decide(served.trial.decide, wanted, began=request.state.began)
    else:
        assert body.action is not None
        assert body.probability is not None
        answer = await served.decide(
            served.trial.report, wanted, action=body.action, probability=body.probability, reason=body.reason
        )
    count(served, answer)
    return recorded(answer)


@router.put(
    "/decisions/{decision}/delivery",
    status_code=201,
    responses=documented({201: DeliveryAnswer, 200: DeliveryAnswer}, 404, 410),
    response_model=None,
    **needs(APP),
)
async def deliver(request: Request, trial: TrialName, decision: Segment, body: DeliveryBody) -> Response:
    """Report what became of a decision on the phone."""
    served = served_of(request)
    answer = await served.decide(
        served.trial.deliver, decision, status=body.status, at=body.at, delivered_action=body.delivered_action
    )
    return recorded(answer)


@router.post("/observations", responses=documented({200: ItemsAnswer}), response_model=None, **needs(APP, by_item=True))
async def observe(request: Request, trial: TrialName, body: ObservationsBody) -> Response:
    """Report covariates that arrive on their own, at most 1000 at a time; each is answered by itself."""
    served = served_of(request)

    def plain(each: Any) -> dict[str, Any]:
        return {**each.model_dump(), "observed_at": each.observed_at.isoformat()}

    return await _items(served, "observations", body.items, plain, served.trial.observe)


@router.post("/outcomes", responses=documented({200: ItemsAnswer}), response_model=None, **needs(APP, by_item=True))
async def outcomes(request: Request, trial: TrialName, body: OutcomesBody) -> Response:
    """Report outcomes, at most 1000 at a time; each is answered by itself. A correction names what it supersedes."""
    served = served_of(request)

    def plain(each: Any) -> dict[str, Any]:
        given = each.model_dump(exclude_none=True)
        return {**given, "value": each.value, "observed_at": each.observed_at.isoformat()}

    return await _items(served, "outcomes", body.items, plain, served.trial.outcomes)


async def _items(
    served: Served,
    what: str,
    items: Sequence[object],
    plain: Callable[[Any], dict[str, Any]],
    record: Callable[[list[dict[str, Any]]], list[Item]],
) -> Response:
    """Record a list's items that can be read, and answer each in its place."""
    if len(items) > ITEMS:
        words = f"a list has at most {ITEMS}, this one {len(items)}; nothing of it was recorded"
        raise Problem(413, "too-many-items", "Too many items", words)
    done = iter(await served.decide(record, [plain(each) for each in items if not isinstance(each, Malformed)]))
    answers = [
        Item(each.client_id, "refused", each.reason) if isinstance(each, Malformed) else next(done) for each in items
    ]
    counts = {"stored": 0, "duplicate": 0, "refused": 0}
    for item in answers:
        counts[item.status] += 1
    for status, number in counts.items():
        if number:
            served.metrics.count("kerneltrail_items_total", number, list=what, status=status)
    listed = [{"index": index, **asdict(item)} for index, item in enumerate(answers)]
    return Response(as_json({"items": listed, **counts}), media_type=JSON)


@router.post(
    "/schedules",
    status_code=201,
    responses=documented({201: ScheduleAnswer, 200: ScheduleAnswer}, 404, 409, 410),
    response_model=None,
    **needs(APP),
)
async def schedule(request: Request, trial: TrialName, body: ScheduleBody) -> Response:
    """Draw decisions ahead, for a phone that goes offline: those that are listed, or all of some days."""
    served = served_of(request)
    wanted = await served.decide(_planned, served, body)
    try:
        answers = await served.decide(served.trial.schedule, wanted)
    except KeyConflict as conflict:
        raise Problem(409, "key-conflict", "One of these was decided before", conflict.words) from None
    for answer in answers:
        count(served, answer)
    times = as_json([each.decided_at.isoformat() for each in wanted])
    content = b'{"decisions":[' + b",".join(answer.body for answer in answers) + b'],"times":' + times + b"}"
    new = any(answer.new for answer in answers)
    return Response(content, 201 if new else 200, media_type=JSON, headers={} if new else {REPLAYED: "true"})


def _planned(served: Served, body: ScheduleBody) -> list[requests.Request]:
    """The requests of a schedule."""
    if body.decisions is not None:
        return [asked(body.participant, each.kind, each.index, each) for each in body.decisions]
    assert body.kind is not None
    assert body.begins_on is not None
    assert body.days is not None
    assert body.first_index is not None
    person = served.trial.participant(body.participant)
    wanted = days_ahead(
        served.trial.protocol,
        body.participant,
        (person.enrolled or {})["timezone"],
        kind=body.kind,
        begins_on=body.begins_on,
        days=body.days,
        first_index=body.first_index,
        contexts=body.contexts,
    )
    if len(wanted) > AHEAD:
        raise Problem(
            413, "too-many-items", "Too many decisions", f"a schedule has at most {AHEAD}, these days {len(wanted)}"
        )
    return wanted
