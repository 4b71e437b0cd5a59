"""What the calls share: the trial of a request, and how what was recorded is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from kerneltrail.trial.results import Answer
from kerneltrail.trial.service.served import Served

JSON = "application/json"
REPLAYED = "Idempotency-Replayed"
WORDS = {
    200: "As recorded before, or as asked for",
    201: "Recorded",
    202: "Started",
    400: "The body is not JSON",
    401: "A valid key is needed",
    403: "The key has another scope",
    404: "There is nothing of this name",
    408: "The body did not arrive in time",
    409: "It cannot be now",
    410: "The participant's time is over, or their data were removed",
    412: "It was changed meanwhile",
    413: "Too long, or too many items",
    415: "The body is not application/json",
    422: "It cannot be as it stands",
    428: "If-Match is needed",
    429: "Too many calls",
    503: "Nothing was recorded; send the same again",
}
"""What each status means here."""


def served_of(request: Request) -> Served:
    """The trial that a request is about."""
    served: Served = request.app.state.served
    return served


def recorded(answer: Answer, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """What was recorded, to the byte: 201 the first time, 200 for a repeat, which says so."""
    more = dict(headers or {})
    if answer.repeated:
        more[REPLAYED] = "true"
    code = status or (201 if answer.new else 200)
    return Response(answer.body, code, media_type=JSON, headers=more)


def documented(good: Mapping[int, type[BaseModel]], *errors: int, etag: tuple[int, ...] = ()) -> dict[int | str, Any]:
    """The responses of a call, for OpenAPI."""
    responses: dict[int | str, Any] = {}
    for status, model in good.items():
        responses[status] = {"model": model, "description": WORDS[status]}
        headers: dict[str, Any] = {}
        if status == 200 and 201 in good:
            headers[REPLAYED] = {"description": "true for a repeat.", "schema": {"type": "string"}}
        if status in etag:
            headers["ETag"] = {"description": "For If-Match.", "schema": {"type": "string"}}
        if headers:
            responses[status]["headers"] = headers
    return responses | {status: {"description": WORDS[status]} for status in errors}
