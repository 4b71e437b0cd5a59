"""What calls are answered, as OpenAPI describes it. The bytes themselves come from the ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class AdvantageAnswer(_Answer):
    """What acting adds to the outcome here, as far as is known.

    It is a benefit where a higher outcome is better; where the protocol says `better: lower`, minus it is.
    """

    mean: float
    sd: float


class DecisionAnswer(_Answer):
    """A decision."""

    decision_id: str = Field(description="A UUID of version 7.")
    trial: str
    participant: str
    kind: str
    index: int
    action: Literal[0, 1]
    probability: float = Field(description="Of the action being 1, always.")
    probability_of_action: float = Field(description="Of the action that was taken.")
    available: bool
    reasons: list[str]
    rung: Literal["policy", "last_good", "group_prior", "fixed", "unavailable"]
    rung_reason: str
    policy_version: str | None
    model_id: str | None
    composition: str | None
    advantage: AdvantageAnswer | None
    clipped: Literal["lower", "upper"] | None = Field(description="The limit at which the probability stands.")
    imputed: list[str]
    expires_at: str | None
    words: str


class ScheduleAnswer(_Answer):
    """Decisions drawn ahead, in the order asked for, and the times that they are for."""

    decisions: list[DecisionAnswer]
    times: list[datetime]


class ParticipantAnswer(_Answer):
    """A participant; the ETag is the revision."""

    participant: str
    timezone: str
    starts_on: str
    ends_on: str | None
    attributes: dict[str, Any]


class EventAnswer(_Answer):
    """An event as it was recorded."""

    participant: str
    kind: str


class DeliveryAnswer(_Answer):
    """A delivery as it was recorded."""

    decision: str
    status: str


class ItemAnswer(_Answer):
    """What became of one item."""

    index: int = Field(description="Its place in the list that was sent, from 0 on.")
    client_id: str
    status: Literal["stored", "duplicate", "refused"]
    reason: str = ""


class ItemsAnswer(_Answer):
    """What became of each item, in the order sent."""

    items: list[ItemAnswer]
    stored: int
    duplicate: int
    refused: int


class CheckAnswer(_Answer):
    """A check of a new policy."""

    name: str
    passed: bool
    words: str
    participant: str | None = None


class UpdateAnswer(_Answer):
    """An update, as far as it has come."""

    id: str
    state: Literal["running", "done", "empty", "refused", "failed", "killed", "superseded"]
    version: str | None = None
    base: str | None = None
    checks: list[CheckAnswer] = Field(default_factory=list)
    rows: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)
    rebuilt: list[str] = Field(default_factory=list)
    held: list[str] = Field(default_factory=list)
    words: str = ""


class PolicyAnswer(_Answer):
    """A version of the policy."""

    version: str
    model_id: str
    base: str | None
    made_at: str
    active: bool


class PoliciesAnswer(_Answer):
    """All versions, oldest first; the ETag is the one that serves."""

    active: str | None
    policies: list[PolicyAnswer]


class ActivationAnswer(_Answer):
    """The version that serves."""

    version: str


class IncidentAnswer(_Answer):
    """Something that somebody has to look at."""

    id: str
    kind: str | None
    at: str
    open: bool
    participant: str | None


class IncidentsAnswer(_Answer):
    """Incidents in the order they were recorded."""

    incidents: list[IncidentAnswer]


class AcknowledgementAnswer(_Answer):
    """An acknowledgement as it was recorded."""

    incident: str


class ReplayAnswer(_Answer):
    """A recorded decision beside the one made anew."""

    key: str
    sequence: int
    state: Literal["equal", "different", "removed", "not here"]
    exact: bool
    difference: str
    close_call: bool


class HealthAnswer(_Answer):
    """That the process is alive, or ready."""

    status: str
