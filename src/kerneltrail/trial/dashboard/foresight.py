"""What was predicted of a participant's outcomes before they were seen: computed anew from the record, batch by batch.

A prediction is that of an outcome before anybody knew whether the action would be drawn: over both actions, each with
its probability. So it says nothing of what was assigned.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt

import numpy as np

from kerneltrail.evaluation.predicted import before_draw
from kerneltrail.report.figures import WITHIN_90
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.rows import Row, arrays
from kerneltrail.trial.versions import Batches

KEPT = 16
"""Participants whose predictions are remembered."""


@dataclass(frozen=True)
class Foreseen:
    """The prediction of one outcome before the draw.

    Attributes:
        mean: expected, over both actions.
        doubt: variance of what the model does not know.
        noise: variance of everything else, the draw of the action included.
        reach: standard deviations on either side that hold 90 %.
        ends: of its own 90 % interval, where that does not reach as far to either side.
        least, most: outcomes below and above which there are none.
    """

    mean: float
    doubt: float
    noise: float
    reach: float = WITHIN_90
    ends: tuple[float, float] | None = None
    least: float = -inf
    most: float = inf


def interval(several: Sequence[Foreseen]) -> tuple[float, float, float]:
    """Mean and 90 % interval of the mean of several outcomes.

    What the model does not know may be the same for all of them, so it does not shrink with their number; the interval
    then holds at least what it promises. The rest is each outcome's own, and does shrink.
    """
    number = len(several)
    mean = sum(each.mean for each in several) / number
    if number == 1 and several[0].ends is not None:
        return mean, *several[0].ends
    doubt = (sum(sqrt(each.doubt) for each in several) / number) ** 2
    spread = sqrt(doubt + sum(each.noise for each in several) / number**2)
    reach = spread * sum(each.reach for each in several) / number
    return mean, max(mean - reach, several[0].least), min(mean + reach, several[0].most)


@dataclass
class _Followed:
    """A participant as far as they were followed here: by which batches, and what was foreseen of their outcomes."""

    model_id: str
    batches: Batches
    user: NewUser
    foreseen: dict[int, Foreseen] = field(default_factory=dict)


class Foresight:
    """Predictions of participants' outcomes, by the sequence of the decision; goes on from where it stood."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Followed] = OrderedDict()
        self._lock = threading.Lock()

    def forget(self, names: Collection[str] | None = None) -> None:
        """Drop some participants, or all."""
        with self._lock:
            for name in list(self._known) if names is None else names:
                self._known.pop(name, None)

    def of(
        self,
        model: LearntGraph,
        model_id: str,
        participant: str,
        batches: Batches,
        rows: Sequence[Sequence[Row]],
        newest: Sequence[Row],
    ) -> Mapping[int, Foreseen]:
        """What was foreseen of every outcome.

        Args:
            model, model_id: that they are followed on.
            participant: whose.
            batches: of outcomes that the policy knows, and
            rows: the same as rows.
            newest: rows whose outcomes it does not know yet.
        """
        with self._lock:  # one at a time: two who look at one participant need not compute it twice
            known = self._known.pop(participant, None)
            if known is None or known.model_id != model_id or batches[: len(known.batches)] != known.batches:
                known = _Followed(model_id, (), NewUser.start(model, participant))
            for batch in rows[len(known.batches) :]:
                known.foreseen.update(foresee(known.user, batch))
                X, y, assignment = arrays(batch, model.covariates)
                known.user.update(X, y, action=assignment)
            known.batches = batches
            self._known[participant] = known
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return {**known.foreseen, **foresee(known.user, newest)}


def foresee(user: NewUser, rows: Sequence[Row]) -> dict[int, Foreseen]:
    """Predictions at rows, over both actions, by the sequence of the decision."""
    if not rows:
        return {}
    X, _, assignment = arrays(rows, user.model.covariates)
    chance = np.where(np.array([row.available for row in rows]) > 0, np.array([row.probability for row in rows]), 0.0)
    without, acting = (user.predict(X, action=replace(assignment, action=np.full(len(rows), a))) for a in (0.0, 1.0))
    step = acting.mean - without.mean
    doubt = (1.0 - chance) * without.variance + chance * acting.variance
    noise = without.noise + chance * (1.0 - chance) * step**2
    mean = without.mean + chance * step
    reach = (replace(without, shape=None).interval(0.9)[1] - without.mean) / without.sd
    columns = zip(rows, mean, doubt, noise, reach, strict=True)
    foreseen = {row.decision: Foreseen(float(m), float(d), float(n), float(r)) for row, m, d, n, r in columns}
    if without.shape is None:
        return foreseen
    least, most = without.shape.within(np.array([-inf, inf])).tolist()
    ends = zip(*(end.tolist() for end in before_draw((without, acting), chance).interval(0.9)), strict=True)
    return {
        key: replace(each, ends=own, least=least, most=most)
        for (key, each), own in zip(foreseen.items(), ends, strict=True)
    }
