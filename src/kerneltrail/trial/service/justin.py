"""The calls of a JustIn server, for apps that were written for one: add_user, action, upload_data, update.

They go to the same functions as the calls under /v1, and to the same ledger. What differs from a JustIn server:

- A key is needed, as everywhere here (scope app; operator for `update`).
- `action_prob` is the probability of the action that was chosen, as JustIn has it.
- The outcome is a number: `outcome` has one field, or one that is called as the protocol's outcome.
- Nobody is called back: `update` answers with the place where its state can be asked for.
- A time without a zone is taken on the participant's clock, which is that of the protocol's updates unless `add_user`
  names another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, Response
from pydantic import Field, JsonValue

from kerneltrail.errors import RevisionNeeded
from kerneltrail.trial import request as requests
from kerneltrail.trial.ledger import key_of
from kerneltrail.trial.service.answers import HealthAnswer
from kerneltrail.trial.service.decisions import count
from kerneltrail.trial.service.guard import APP, OPERATOR, GuardedRoute, caller, needs
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.models import Body, Name, Number, Text, Value
from kerneltrail.trial.service.problems import Problem, refused
from kerneltrail.trial.service.replies import JSON, documented, served_of
from kerneltrail.trial.service.served import Served

router = APIRouter(route_class=GuardedRoute, tags=["JustIn"])
Stamp = Annotated[str, Field(min_length=10, max_length=40)]
Index = Annotated[int, Field(ge=0, le=999_999_999)]


class JustInUser(Body):
    """A new participant."""

    user_id: Name
    timezone: Name | None = None


class JustInAction(Body):
    """A request for an action."""

    user_id: Name
    timestamp: Stamp
    decision_idx: Index
    context: dict[Name, Value] = Field(default_factory=dict, max_length=200)
    kind: Name | None = None


class JustInData(Body):
    """What came of an action; what is not the outcome was recorded with the action already."""

    outcome: dict[Name, Number | None] = Field(min_length=1, max_length=20)
    context: dict[Name, JsonValue] = Field(default_factory=dict)
    action: JsonValue = None
    action_prob: JsonValue = None
    state: JsonValue = None


class JustInUpload(Body):
    """An outcome."""

    user_id: Name
    timestamp: Stamp
    decision_idx: Index
    data: JustInData
    kind: Name | None = None


class JustInUpdate(Body):
    """A request for an update."""

    timestamp: Stamp | None = None
    callback_url: Text | None = Field(default=None, description="Is not called; ask at Location.")


def _post(path: str, status: int, *scopes: str) -> Any:
    good = documented({201: HealthAnswer} if status == 201 else {202: HealthAnswer}, 404, 409, 410)
    return router.post(path, status_code=status, responses=good, response_model=None, **needs(*scopes))


def _reply(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(as_json(body), status, media_type=JSON, headers=dict(headers or {}))


@_post("/add_user", 201, APP, OPERATOR)
async def add_user(request: Request, body: JustInUser) -> Response:
    """Enrol somebody from today on."""
    served = served_of(request)

    def enrol() -> None:
        zone = body.timezone or served.trial.protocol.updates.timezone
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            raise refused(f"timezone {zone!r} is not known", field="body.timezone") from None
        today = served.now().astimezone(ZoneInfo(zone)).date()
        served.trial.enrol(body.user_id, timezone=zone, starts_on=today)

    try:
        await served.read(enrol)
    except RevisionNeeded:
        raise Problem(409, "known", "This user is there already", f"user {body.user_id!r} was added before") from None
    return _reply(201, {"status": "success", "message": "User added.", "user_id": body.user_id})


@_post("/action", 201, APP)
async def action(request: Request, body: JustInAction) -> Response:
    """Ask for an action."""
    served = served_of(request)

    def decide() -> Any:
        at, kind = _clock(served, body.user_id, body.timestamp), _kind(served, body.kind)
        wanted = requests.Request(body.user_id, kind, body.decision_idx, at, context=body.context)
        return served.trial.decide(wanted, began=request.state.began)

    answer = await served.decide(decide)
    count(served, answer)
    value = answer.value
    shown = {
        "status": "success",
        "message": "Action taken.",
        "user_id": body.user_id,
        "decision_idx": body.decision_idx,
        "action": value["action"],
        "action_prob": value["probability_of_action"],
        "state": dict(body.context),
        "rid": value["decision_id"],
    }
    return _reply(201, shown)


@_post("/upload_data", 201, APP)
async def upload_data(request: Request, body: JustInUpload) -> Response:
    """Report the outcome of an action."""
    served = served_of(request)

    def upload() -> Any:
        at, kind = _clock(served, body.user_id, body.timestamp), _kind(served, body.kind)
        item = {
            "client_id": f"justin {kind} {body.decision_idx}",
            "participant": body.user_id,
            "decision": key_of(body.user_id, kind, body.decision_idx),
            "value": _outcome(served, body.data.outcome),
            "observed_at": at.isoformat(),
        }
        return served.trial.outcomes([item])[0]

    item = await served.decide(upload)
    if item.status == "refused":
        raise refused(item.reason)
    return _reply(201, {"status": "success", "message": "Data uploaded.", "user_id": body.user_id})


@_post("/update", 202, OPERATOR)
async def update(request: Request, body: JustInUpdate) -> Response:
    """Start an update of the policy."""
    served = served_of(request)
    started = await served.read(served.trial.start_update, reason="asked for by the app", by=caller(request))
    where = {"Location": f"/v1/trials/{served.path}/updates/{quote(started, safe='')}"}
    return _reply(202, {"status": "processing", "message": "Update started.", "id": started}, where)


def _kind(served: Served, kind: str | None) -> str:
    kinds = tuple(served.trial.protocol.decisions)
    if kind is None and len(kinds) > 1:
        raise refused(f"the protocol has several kinds of decisions: name one as kind ({', '.join(kinds)})")
    return kind or kinds[0]


def _clock(served: Served, participant: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise refused("expected a time such as 2026-03-01T09:30:00", field="body.timestamp") from None
    if not 1970 < time.year < 9000:
        raise refused("the year must lie between 1970 and 9000", field="body.timestamp")
    enrolled: Mapping[str, Any] = served.trial.participant(participant).enrolled or {}
    return time if time.tzinfo else time.replace(tzinfo=ZoneInfo(enrolled.get("timezone", "UTC")))


def _outcome(served: Served, given: Mapping[str, float | None]) -> float | None:
    name = served.trial.protocol.reward.outcome
    if name in given:
        return given[name]
    if len(given) > 1:
        raise refused(f"outcome has several fields, and none is called {name!r}", field="body.data.outcome")
    return next(iter(given.values()))
