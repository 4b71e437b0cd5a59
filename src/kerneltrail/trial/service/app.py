"""The service as an ASGI application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool

from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.service import decisions, justin, learning, looking, participants, problems
from kerneltrail.trial.service.guard import SCOPES
from kerneltrail.trial.service.guard import shown as as_json
from kerneltrail.trial.service.limits import CallLimits
from kerneltrail.trial.service.logs import Log, RawPaths
from kerneltrail.trial.service.replies import JSON, WORDS
from kerneltrail.trial.service.served import Served
from kerneltrail.views import show

PREFIX = "/v1/trials/{trial}"
ABOUT = """Decisions of a micro-randomised trial, with known probabilities, recorded before they are answered.

Keys are sent as `Authorization: Bearer kt_<id>_<secret>`. Each call lists in `x-scopes` the scopes of which its key
needs one: {scopes}. Times are ISO 8601 with a zone. Unknown fields, NaN and names that stand twice are refused. A PUT
may be repeated: the same again is answered with the same bytes."""


def create_app(
    trial: Trial,
    *,
    name: str,
    limits: CallLimits | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    interval: float = 30.0,
    threads: int = 8,
    alone: bool = False,
) -> FastAPI:
    """The service of one trial.

    Args:
        trial: opened with ``warm=False``: states are computed when the service starts, and readyz says when.
        name: the trial's id.
        limits: of bodies and rates.
        clock: what says what time it is.
        interval: seconds between looks at the clock, for updates that are due and alerts; 0 for none.
        threads: that decide at the same time.
        alone: whether this process does nothing but serve it (`engines.leave_settled`).
    """
    served = Served(trial, name, limits or CallLimits(), clock, interval, threads, alone)
    app = _described()
    app.state.served = served
    app.router.lifespan_context = _lifespan
    show("service.desk", app)  # pages for people, in a room after this one
    return app


def openapi() -> dict[str, Any]:
    """The description of the service in OpenAPI, the same for every trial."""
    return _described().openapi()


def openapi_text() -> str:
    """The same as a file has it."""
    return json.dumps(openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    served: Served = app.state.served
    served.start()
    try:
        yield
    finally:
        await run_in_threadpool(served.stop)


def _described() -> FastAPI:
    app = FastAPI(
        title="Kerneltrail trial",
        version=version("kerneltrail"),
        description=ABOUT.format(scopes="; ".join(f"{name} ({about})" for name, about in SCOPES.items())),
        # Pages that would load scripts from a network are left out; the description itself is there.
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
    )
    problems.install(app)
    for part in (participants, decisions, learning, looking):
        app.include_router(part.router, prefix=PREFIX)
    app.include_router(justin.router, prefix="/api/v1")
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    app.add_api_route("/readyz", _ready, include_in_schema=False)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(Log, counted=lambda *call: app.state.served.metrics.called(*call), mistake=problems.mistake)
    app.add_middleware(RawPaths)  # the last one added comes first: it hands on another scope, which the log must see
    return app


async def _alive() -> Response:
    return Response(as_json({"status": "alive"}), media_type=JSON)


async def _ready(request: Request) -> Response:
    return await looking.readiness(request.app.state.served)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description, with problems where it has errors of its own, and the key where one is needed."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document["components"]["schemas"]
        for builtin in ("HTTPValidationError", "ValidationError"):
            schemas.pop(builtin, None)
        problem = problems.ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= problem.pop("$defs", {})
        schemas["Problem"] = problem
        document["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "bearerFormat": "kt_<id>_<secret>"}
        }
        for path in document["paths"].values():
            for operation in path.values():
                _with_problems(operation)
        document["components"]["schemas"] = dict(sorted(schemas.items()))
        app.openapi_schema = document
    return app.openapi_schema


def _with_problems(operation: dict[str, Any]) -> None:
    always = {404, 422}
    if "security" in operation:
        always |= {401, 403, 429, 503}
    if "requestBody" in operation:
        always |= {400, 408, 413, 415}
    responses = operation["responses"]
    for status in always:
        responses.setdefault(str(status), {})
    for status, response in responses.items():
        if int(status) >= 400:
            response.setdefault("description", WORDS[int(status)])
            response["description"] = WORDS[int(status)]
            schema = {"$ref": "#/components/schemas/Problem"}
            response["content"] = {problems.MEDIA_TYPE: {"schema": schema}}
    operation["responses"] = dict(sorted(responses.items()))
