"""What an app asks for: a decision for one participant at one decision point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.errors import DataError, DecisionError
from kerneltrail.names import nearest, shortened
from kerneltrail.trial.draw import checked_id
from kerneltrail.trial.protocol import Protocol


@dataclass(frozen=True)
class Request:
    """A request for a decision. Participant, kind and index name it: the same three, the same draw.

    Attributes:
        participant: the study id.
        kind: of decision, as the protocol lists them.
        index: the how manieth of its kind for this participant, from 0 on.
        decided_at: with a time zone, that of the participant.
        available: whether somebody can act at all; if not, `reasons` say why.
        reasons: for being unavailable, of the protocol's list.
        context: by field a number, a level, or None where it is missing.
        expires_at: after this the action makes no sense any more; with a time zone, or None.
    """

    participant: str
    kind: str
    index: int
    decided_at: datetime
    available: bool = True
    reasons: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=FrozenDict)
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        reasons: Any = self.reasons
        context: Any = self.context
        if isinstance(reasons, str) or not isinstance(reasons, Sequence):
            raise DecisionError(f"reasons must be a list of texts, got {reasons!r}")
        if not isinstance(context, Mapping):
            raise DecisionError(f"context must hold fields with values, got {context!r}")
        object.__setattr__(self, "reasons", tuple(reasons))
        object.__setattr__(self, "context", FrozenDict(context))

    def check(self, protocol: Protocol) -> None:
        """Refuse what the protocol does not know, and times that could be anywhere.

        Raises:
            DecisionError: naming the field.
        """
        try:
            checked_id(self.participant, "participant")
        except DataError as problem:
            raise DecisionError(str(problem)) from None
        if self.kind not in protocol.decisions:
            hint = nearest(str(self.kind), tuple(protocol.decisions), "there are")
            raise DecisionError(f"kind {self.kind!r} is not in the protocol; {hint}")
        if type(self.index) is not int or self.index < 0:
            raise DecisionError(f"index must be a whole number from 0 on, got {self.index!r}")
        for name in ("decided_at", "expires_at"):
            time = getattr(self, name)
            if time is None and name == "expires_at":
                continue
            if not isinstance(time, datetime) or time.utcoffset() is None:
                raise DecisionError(f"{name} must be a time with its time zone, got {time!r}")
        if self.expires_at is not None and self.expires_at <= self.decided_at:
            raise DecisionError("expires_at must come after decided_at")
        if type(self.available) is not bool:
            raise DecisionError(f"available must be true or false, got {self.available!r}")
        self._check_reasons(protocol)

    def _check_reasons(self, protocol: Protocol) -> None:
        for reason in self.reasons:
            if reason not in protocol.availability:
                hint = nearest(str(reason), protocol.availability, "the protocol has")
                raise DecisionError(f"reasons names {reason!r}; {hint}")
        if self.available and self.reasons:
            raise DecisionError("reasons are for being unavailable, but available is true")
        if not self.available and not self.reasons:
            raise DecisionError(f"reasons must say why nobody can act: {shortened(protocol.availability)}")
