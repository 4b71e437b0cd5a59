"""Problems: every refusal as application/problem+json (RFC 9457), and which error is which problem.

A problem's `detail` is for whoever made the call. It is never logged: it may repeat what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from kerneltrail.errors import (
    ConfigError,
    DataError,
    DecisionError,
    InFlight,
    KerneltrailError,
    KeyConflict,
    KeyPublished,
    LedgerError,
    NotActive,
    NotRecorded,
    ParticipantRemoved,
    RevisionNeeded,
    StaleRevision,
    TrialError,
    UnknownName,
    UpdateRunning,
)
from kerneltrail.store.canonical import canonical
from kerneltrail.trial.service.logs import note_failure

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:kerneltrail:problem:"
RETRY = {"Retry-After": "1"}


@dataclass
class Problem(Exception):
    """A refusal.

    Attributes:
        status: of HTTP.
        kind: the end of the problem's `type`; what a program looks at.
        title: the same for all problems of a kind.
        detail: this one, for people.
        errors: field by field, where several are at fault.
        headers: beside it.
    """

    status: int
    kind: str
    title: str
    detail: str = ""
    errors: Sequence[Mapping[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        """As it is sent."""
        body: dict[str, Any] = {"type": PREFIX + self.kind, "title": self.title, "status": self.status}
        if self.detail:
            body["detail"] = _sendable(self.detail)
        if self.errors:
            body["errors"] = [{key: _sendable(text) for key, text in each.items()} for each in self.errors]
        return Response(canonical(body), self.status, media_type=MEDIA_TYPE, headers=dict(self.headers))


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(extra="forbid")
    field: str = Field(description="Where: body.context.hour, path.index, query.open_only.")
    detail: str


class ProblemDocument(BaseModel):
    """A refusal, as RFC 9457 has it."""

    model_config = ConfigDict(title="Problem")
    type: str = Field(description="urn:kerneltrail:problem:<kind>; what a program looks at.")
    title: str
    status: int
    detail: str = Field(default="", description="This problem, for people.")
    errors: list[FieldProblem] = Field(default_factory=list, description="Field by field, for a refused body.")


TABLE: tuple[tuple[type[KerneltrailError], int, str, str], ...] = (
    (DecisionError, 422, "refused", "The request cannot be answered as it stands"),
    (UnknownName, 404, "unknown", "There is nothing of this name"),
    (InFlight, 409, "in-flight", "The same decision is being made just now"),
    (UpdateRunning, 409, "update-running", "Another update is running"),
    (KeyPublished, 409, "key-published", "The key of the draws is public, so nothing is drawn with it"),
    (RevisionNeeded, 428, "revision-needed", "A change must say what it changes: send If-Match"),
    (StaleRevision, 412, "stale-revision", "It was changed meanwhile"),
    (NotActive, 409, "not-active", "Nothing is decided for this participant now"),
    (ParticipantRemoved, 410, "removed", "The data of this participant were removed"),
    (KeyConflict, 422, "key-conflict", "The same key came with another payload"),
    (NotRecorded, 503, "not-recorded", "Nothing was recorded; send the same again"),
    (LedgerError, 503, "not-recorded", "The ledger cannot be reached; nothing was recorded"),
    (TrialError, 409, "not-now", "This step cannot be taken as things stand"),
    (ConfigError, 422, "refused", "The request cannot be answered as it stands"),
    (DataError, 422, "refused", "The request cannot be answered as it stands"),
)
"""Which error is which problem: the first line that fits counts, so a class stands before those it is made from."""


def problem_of(error: KerneltrailError) -> Problem:
    """The problem that an error is."""
    if isinstance(error, NotActive) and error.status in ("ended", "withdrawn"):
        return Problem(410, "ended", "This participant's time is over", error.words)
    for kind, status, name, title in TABLE:
        if isinstance(error, kind):
            # Of the database nothing is told but that it failed: its address is nobody's business.
            detail = "" if status == 503 else str(error)
            headers = RETRY if kind in (InFlight, NotRecorded, LedgerError) else {}
            return Problem(status, name, title, detail, headers=headers)
    return _mistake()


def _mistake() -> Problem:
    return Problem(500, "mistake", "Kerneltrail made a mistake; the log says where")


def refused(detail: str, *, field: str | None = None) -> Problem:
    """A body, path or header that cannot be."""
    errors = [] if field is None else [{"field": field, "detail": detail}]
    return Problem(422, "refused", "The request cannot be answered as it stands", detail, errors)


async def mistake(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an error that nobody expected."""
    await _mistake().response()(scope, receive, send)


def install(app: FastAPI) -> None:
    """Answer every error with a problem."""

    async def refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, KerneltrailError)
        problem = problem_of(error)
        if problem.status >= 500:
            note_failure(request.scope, error)
        return problem.response()

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [{"field": ".".join(map(str, each["loc"])), "detail": each["msg"]} for each in error.errors()]
        words = "; ".join(f"{each['field']}: {each['detail']}" for each in errors[:3])
        return Problem(422, "refused", "The request cannot be answered as it stands", words, errors).response()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kinds = {404: "unknown-path", 405: "method-not-allowed"}
        words = str(error.detail)
        return Problem(
            error.status_code, kinds.get(error.status_code, "http"), words, headers=dict(error.headers or {})
        ).response()

    app.add_exception_handler(Problem, refusal)
    app.add_exception_handler(KerneltrailError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def _sendable(text: str) -> str:
    """A text without halves of characters, which UTF-8 does not have."""
    return text.encode("utf-8", "replace").decode("utf-8")
