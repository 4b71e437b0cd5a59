"""Forms as browsers send them, read within the service's limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request, Response

from kerneltrail.errors import StaleRevision
from kerneltrail.trial.service.limits import CallLimits, body_of
from kerneltrail.trial.service.problems import Problem, problem_of, refused

MEDIA_TYPE = "application/x-www-form-urlencoded"
FIELDS = 20
"""That a form has at most."""
LONGEST = 2000
"""Characters of one field."""


@dataclass
class FormProblem(Problem):
    """A refusal of a form, which is shown again with what was typed; `field` is the one at fault, if it is one."""

    field: str = ""


def field_refused(field: str, words: str) -> FormProblem:
    """The refusal of one field."""
    problem = refused(words)
    return FormProblem(problem.status, problem.kind, problem.title, problem.detail, field=field)


Handler = Callable[..., Awaitable[Response]]


def again(show: Handler) -> Callable[[Handler], Handler]:
    """Of a form's handler: what to answer where the form is refused; the page that holds it."""

    def decorated(handler: Handler) -> Handler:
        @wraps(handler)
        async def answered(request: Request, **path: Any) -> Response:
            try:
                return await handler(request, **path)
            except FormProblem as problem:
                request.state.refused = problem
            except StaleRevision as error:
                stale = problem_of(error)
                request.state.refused = FormProblem(stale.status, stale.kind, stale.title, stale.detail)
            return await show(request, **path)

        return answered

    return decorated


async def fields_of(request: Request, limits: CallLimits) -> dict[str, str]:
    """The fields of a form, without blanks at their ends.

    Raises:
        Problem: for a body that is no form, has a field twice, or is too long.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise Problem(415, "not-a-form", "This is not a form")
    content = await body_of(request, limits)
    try:
        pairs = parse_qsl(
            content.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS, strict_parsing=True
        )
    except ValueError:
        raise refused("the form cannot be read") from None
    fields = {name: value.strip() for name, value in pairs}
    if len(fields) < len(pairs) or any(len(value) > LONGEST for value in fields.values()):
        raise refused(f"a field stands twice, or has more than {LONGEST} characters")
    return fields
