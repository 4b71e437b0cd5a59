"""What calls may say: strict models of their bodies. An unknown field, a time without a zone, or NaN is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from fastapi import Path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails

ITEMS = 1000
"""Items of a list at most."""
AHEAD = 500
"""Decisions of a schedule at most."""
_ZONE = re.compile(r".*(Z|[+-]\d\d:\d\d)", re.DOTALL)


def _time(value: Any) -> datetime:
    if not isinstance(value, str) or len(value) > 40:
        raise ValueError("expected a time as text, such as 2026-03-01T09:30:00+01:00")
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("expected a time such as 2026-03-01T09:30:00+01:00") from None
    if time.tzinfo is None or not _ZONE.fullmatch(value):
        raise ValueError("the time has no zone; expected one such as 2026-03-01T09:30:00+01:00")
    if not 1970 < time.year < 9000:
        raise ValueError("the year must lie between 1970 and 9000")
    return time


def _day(value: Any) -> date:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        raise ValueError("expected a date such as 2026-03-01")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("there is no such day; expected a date such as 2026-03-01") from None


def _text(value: str) -> str:
    if any(0xD800 <= ord(sign) <= 0xDFFF for sign in value):
        raise ValueError("the text has half a character")
    if "\x00" in value:
        raise ValueError("the text has the character 0")
    return value


def _segment(value: Any) -> str:
    """A part of the path as it was meant: percent signs decoded, whatever is no UTF-8 or not printable refused."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", str(value)):
        raise ValueError("has a percent sign that encodes nothing; the sign itself is written %25")
    try:
        text = unquote_to_bytes(str(value)).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8") from None
    if not text or len(text) > 200 or not text.isprintable():
        raise ValueError("must be 1 to 200 printable characters")
    return text


def _index(value: Any) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", str(value)):
        raise ValueError("must be a whole number from 0 on")
    return int(value)


Time = Annotated[datetime, BeforeValidator(_time), Field(description="ISO 8601 with a zone.")]
Day = Annotated[date, BeforeValidator(_day)]
Text = Annotated[str, Field(max_length=2000), AfterValidator(_text)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_text)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Action = Annotated[int, Field(ge=0, le=1)]
Value = bool | int | Number | Text | None
"""Of a field of a context: a number, a level, or null where it is missing."""
Segment = Annotated[str, BeforeValidator(_segment), Path(min_length=1, max_length=200)]
"""A name in the path, percent-encoded."""
Index = Annotated[int, BeforeValidator(_index), Path(ge=0, le=999_999_999)]
TrialName = Annotated[str, Path(description="The trial's id.")]


class Body(BaseModel):
    """Of all bodies: strict, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ParticipantBody(Body):
    """Who takes part, from when to when, and on which clock."""

    timezone: Name = Field(description="Such as Europe/Zurich.", examples=["Europe/Zurich"])
    starts_on: Day
    ends_on: Day | None = None
    attributes: dict[Name, JsonValue] = Field(default_factory=dict, max_length=100)


class EventBody(Body):
    """A pause, its end, a withdrawal, or the removal of all data of a participant (scope operator)."""

    kind: Literal["pause", "resume", "withdraw", "remove_data"]
    at: Time
    reason: Text = ""


class DecisionBody(Body):
    """A request for a decision.

    An app that could not reach the server draws by its declared rule, and reports that later in the same call, with
    `drawn_by`, `action`, `probability` and `reason`.
    """

    decided_at: Time
    expires_at: Time | None = None
    available: bool = True
    reasons: list[Name] = Field(default_factory=list, max_length=50)
    context: dict[Name, Value] = Field(default_factory=dict, max_length=200)
    drawn_by: Literal["app"] | None = None
    action: Action | None = None
    probability: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _drawn(self) -> DecisionBody:
        given = self.action is not None, self.probability is not None
        if self.drawn_by is None and (any(given) or self.reason):
            raise ValueError("action, probability and reason are for what the app drew: say drawn_by: app")
        if self.drawn_by is not None and not all(given):
            raise ValueError("what the app drew needs its action and its probability")
        return self


class DeliveryBody(Body):
    """What became of a decision on the phone; null is not 0: nobody knows."""

    status: Literal["sent", "delivered", "seen", "dismissed", "failed", "not_delivered", "unknown"]
    at: Time | None = None
    delivered_action: Action | None = None


class ObservationItem(Body):
    """Covariates that arrive on their own."""

    client_id: Name
    participant: Name
    observed_at: Time
    values: dict[Name, Value] = Field(max_length=200)


class OutcomeItem(Body):
    """An outcome of a decision; a value of null was looked for and is missing, which is not 0."""

    client_id: Name
    participant: Name
    decision: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_text)] = Field(
        description="Its decision_id, or participant/kind/index."
    )
    value: Number | None
    observed_at: Time
    supersedes: Name | None = Field(default=None, description="The client_id of the item that this one corrects.")


@dataclass(frozen=True)
class Malformed:
    """An item that cannot be read, with what was expected of it; the others of its list are none the worse."""

    client_id: str
    reason: str


def _by_itself(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError as problem:
        name = value.get("client_id") if isinstance(value, dict) else None
        parts = [(".".join(map(str, each["loc"])), _expected(each)) for each in problem.errors()[:3]]
        words = "; ".join(f"{field}: {words}" if field else words for field, words in parts)
        return Malformed(name if isinstance(name, str) else "", words)


def _expected(error: ErrorDetails) -> str:
    """What was expected in place of what came, and that, if it is short."""
    given = error["input"]
    came = f", got {given!r}" if isinstance(given, str | int | float | bool) and len(str(given)) <= 40 else ""
    if error["type"] in ("float_type", "finite_number", "float_parsing") and error["loc"][-1:] == ("value",):
        return f"expected a number, or null where it is missing{came}"
    return error["msg"].removeprefix("Value error, ") + came


class ObservationsBody(Body):
    """A list of observations; each is answered by itself."""

    items: list[Annotated[ObservationItem, WrapValidator(_by_itself)]]


class OutcomesBody(Body):
    """A list of outcomes; each is answered by itself."""

    items: list[Annotated[OutcomeItem, WrapValidator(_by_itself)]]


class Planned(Body):
    """One decision of a schedule."""

    kind: Name
    index: Annotated[int, Field(ge=0, le=999_999_999)]
    decided_at: Time
    expires_at: Time | None = None
    available: bool = True
    reasons: list[Name] = Field(default_factory=list, max_length=50)
    context: dict[Name, Value] = Field(default_factory=dict, max_length=200)


class ScheduleBody(Body):
    """Decisions ahead, for a phone that goes offline: all in one commit, or none.

    Either the decisions themselves, or days: then those of a kind, at the protocol's times on the participant's clock.
    """

    participant: Name
    decisions: list[Planned] | None = Field(default=None, min_length=1, max_length=AHEAD)
    kind: Name | None = None
    begins_on: Day | None = Field(default=None, examples=["2026-03-01"])
    days: Annotated[int, Field(ge=1, le=60)] | None = None
    first_index: Annotated[int, Field(ge=0, le=999_999_999)] | None = Field(
        default=None, description="Of the first decision; the others count on from it, so that a repeat is the same."
    )
    contexts: dict[Name, dict[Name, Value]] = Field(
        default_factory=dict, max_length=50, description="What is expected at a time of the day, such as 08:30."
    )

    @model_validator(mode="after")
    def _either(self) -> ScheduleBody:
        ahead = (self.kind, self.begins_on, self.days, self.first_index)
        if self.decisions is not None and (any(each is not None for each in ahead) or self.contexts):
            raise ValueError("give the decisions or days, not both")
        if self.decisions is None and any(each is None for each in ahead):
            raise ValueError("give the decisions, or days with kind, begins_on and first_index")
        return self


class UpdateBody(Body):
    """An update of the policy from the outcomes so far."""

    reason: Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_text)]
    as_of: Time | None = None
    dry_run: bool = False


class ActivePolicyBody(Body):
    """Which version serves from now on, and why."""

    version: Name
    reason: Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_text)]


class AcknowledgementBody(Body):
    """That somebody has seen an incident."""

    by: Name
    note: Text = ""
