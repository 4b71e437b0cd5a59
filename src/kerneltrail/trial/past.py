"""What a decision needs to know of the participant's earlier ones: the dose, and values that may stand in for missing.

It is folded from the record, one decision point after the other, so that whoever has the record has it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.trial.burden import dose_after
from kerneltrail.trial.protocol import Protocol

DAY = 24 * 60


@dataclass(frozen=True)
class Past:
    """A participant's earlier decision points, as far as the next one needs them.

    Attributes:
        dose: of what was sent (method (60)).
        seen: the last value of each covariate that arrived; a level as its code.
        slots: for each slot and covariate the sum of the values that arrived, and their number.
    """

    dose: float = 0.0
    seen: Mapping[str, float] = field(default_factory=FrozenDict)
    slots: Mapping[str, Mapping[str, tuple[float, int]]] = field(default_factory=FrozenDict)

    def after(self, protocol: Protocol, slot: str, arrived: Mapping[str, float], sent: bool) -> Past:
        """One decision point more.

        Args:
            protocol: says how the dose fades.
            slot: of the decision (`slot_of`).
            arrived: covariates that were in the context, without those that were filled in.
            sent: whether the action reached the participant.
        """
        values = {name: float(value) for name, value in arrived.items()}  # JSON has whole numbers without a point
        sums = dict(self.slots.get(slot, {}))
        for name, value in values.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = (total + value, count + 1)
        return Past(
            dose_after(self.dose, sent, protocol.burden.decay),
            FrozenDict({**self.seen, **values}),
            FrozenDict({**self.slots, slot: FrozenDict(sums)}),
        )

    def mean(self, slot: str, covariate: str) -> float | None:
        """The mean of a covariate at a slot; None where it was never seen there."""
        total, count = self.slots.get(slot, {}).get(covariate, (0.0, 0))
        return total / count if count else None


def slot_of(protocol: Protocol, kind: str, decided_at: datetime) -> str:
    """The slot of a decision: its kind, and of the kind's times the one that is nearest on the clock.

    The clock is that of `decided_at`, so it should be in the participant's time zone.
    """
    times = protocol.decisions[kind].times
    if not times:
        return kind
    now = decided_at.hour * 60 + decided_at.minute

    def apart(clock: str) -> int:
        minutes = abs(int(clock[:2]) * 60 + int(clock[3:]) - now)
        return min(minutes, DAY - minutes)

    return f"{kind} {min(times, key=apart)}"
