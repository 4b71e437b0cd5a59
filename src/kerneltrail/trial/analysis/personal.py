"""Did it personalise? What the policy did, beside the same policy in trials in which acting does everybody the same.

What is drawn anew and what stays is in method §16.2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kerneltrail.engines import engine_for, results
from kerneltrail.errors import TrialError
from kerneltrail.evaluation.intervals import exact_share
from kerneltrail.kernels.phrases import counted, number
from kerneltrail.progress import Progress, Tell
from kerneltrail.store.cache import JSON, KEY, Cache
from kerneltrail.store.canonical import canonical
from kerneltrail.trial.analysis.record import Record
from kerneltrail.trial.analysis.resampling import POLICY, Followed, Ground, ground_of, resampled
from kerneltrail.trial.models import Models

Tail = Literal["larger", "either"]
STAGE = "trials under the null"
LEVEL = 0.95
FEWEST_TRIALS = 19
"""Simulated trials with which p can be as small as 0.05."""
FEWEST = 4
"""Decisions in the second half of a participant's, below which nothing is computed of them."""


@dataclass(frozen=True)
class Measure:
    """What is measured of a trial: how π, or the mean advantage, varies between participants or with a feature.

    Attributes:
        quantity: `probability` or `advantage`.
        feature: with which it may vary within participants; None for differences between participants.
        spread: of a feature's slopes between participants; else their mean.
        tail: which values speak against the null.
    """

    quantity: Literal["probability", "advantage"]
    feature: str | None = None
    spread: bool = True

    @property
    def tail(self) -> Tail:
        """A spread can only be larger than by chance; a mean slope can be off to either side."""
        return "larger" if self.spread else "either"

    @property
    def name(self) -> str:
        """In words."""
        what = "probability of acting" if self.quantity == "probability" else "expected advantage"
        if self.feature is None:
            return f"{what}: differences between participants"
        kind = "differences between participants in how it follows" if self.spread else "how it follows"
        return f"{what}: {kind} {self.feature}"


@dataclass(frozen=True)
class Statistic:
    """A measure in the trial, beside the same in trials under the null.

    Attributes:
        measure: what.
        observed: in the trial.
        null: its values in the simulated trials.
        p_value: the share of trials, the real one included, that are at least as far out.
        low, high: limits of the p value that infinitely many simulated trials would give.
    """

    measure: Measure
    observed: float
    null: tuple[float, ...]
    p_value: float
    low: float
    high: float


@dataclass(frozen=True)
class Personalisation:
    """Whether what the policy did varies more than it would if acting did the same for everybody at all times.

    Attributes:
        statistics: the first is the one that decides; the others describe.
        resamples: simulated trials.
        effect: of acting in all of them.
        seed: of their draws.
    """

    statistics: tuple[Statistic, ...]
    resamples: int
    effect: float
    seed: int

    @property
    def too_few(self) -> bool:
        """Whether there are so few simulated trials that no p could be as small as 0.05."""
        return self.resamples < FEWEST_TRIALS

    def words(self) -> list[str]:
        """What was found, in sentences."""
        main = self.statistics[0]
        middle = float(np.nanmedian(main.null))
        more = (
            f"In the trial, participants' mean probabilities of acting (second half of their decisions) had a standard "
            f"deviation of {number(main.observed)}. In {counted(self.resamples, 'simulated trial')} in which acting "
            f"does the same for everybody it was {number(middle)} as a rule."
        )
        around = f"{100 * LEVEL:g} % Monte-Carlo interval {number(main.low)} to {number(main.high)}"
        size = f"p {number(main.p_value)} ({around})"
        if self.too_few:
            least = 1.0 / (1.0 + self.resamples)
            return [
                more,
                f"{counted(self.resamples, 'simulated trial')} cannot tell: p cannot go below 1/(1 + "
                f"{self.resamples}) = {number(least)}, whatever the policy did. Take 200 or more.",
            ]
        if main.high < 0.05:
            verdict = f"So the policy treated participants more differently than chance explains: {size}."
        elif main.low > 0.05:
            verdict = (
                f"Differences of this size can come by chance alone; these data do not tell whether there is more to "
                f"them: {size}."
            )
        else:
            verdict = f"Whether that is more than chance, so few simulated trials do not tell: {size}."
        return [more, verdict]


def second_halves(followed: Sequence[Followed]) -> dict[str, list[Followed]]:
    """The later half of each participant's decisions, in their order: by then the policy has learnt of them."""
    people: dict[str, list[Followed]] = {}
    for each in followed:
        people.setdefault(each.participant, []).append(each)
    halves = {name: several[len(several) // 2 :] for name, several in people.items()}
    return {name: several for name, several in halves.items() if len(several) >= FEWEST}


def measures_of(features: Sequence[str]) -> tuple[Measure, ...]:
    """What is measured: between participants first, then with each feature; π before the advantage."""
    found = []
    for quantity in ("probability", "advantage"):
        found.append(Measure(quantity))
        for feature in features:
            found += [Measure(quantity, feature, spread=False), Measure(quantity, feature)]
    return tuple(found)


def measured(followed: Sequence[Followed], measures: Sequence[Measure]) -> list[float]:
    """The measures of a trial: method (68) and (69); NaN where there are fewer than two participants."""
    people = list(second_halves(followed).values())
    return [_measured(people, measure) for measure in measures]


def _measured(people: Sequence[Sequence[Followed]], measure: Measure) -> float:
    values: list[float] = []
    for several in people:
        y = np.array([getattr(each, measure.quantity) for each in several])
        if measure.feature is None:
            values.append(float(y.mean()))  # method (68)
            continue
        z = np.array([each.context[measure.feature] for each in several])
        apart = z - z.mean()
        if np.any(apart):
            values.append(float(apart @ (y - y.mean()) / (apart @ apart)))  # method (69)
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) if measure.spread else np.mean(values))


def personalisation(
    record: Record,
    models: Models,
    effect: float,
    *,
    resamples: int,
    seed: int = 0,
    workers: Any = 1,
    folder: str | os.PathLike[str] | None = None,
    tell: Tell = lambda now: None,
) -> Personalisation:
    """Compare the trial with simulated ones under the null.

    Args:
        record: of the trial.
        models: of the trial.
        effect: of acting under the null, the same for everybody: the estimate over all decisions.
        resamples: simulated trials; p values are at least 1/(resamples + 1).
        seed: of their draws.
        workers: processes, or an engine.
        folder: keeps each simulated trial's measures, so that a stopped computation goes on.
        tell: hears how far it is.

    Raises:
        TrialError: for a protocol that pools, or a trial with too few decisions to tell participants apart.
        UnknownName: for a model that is not there.
    """
    ground = ground_of(record.state, models, effect, seed)
    measures = measures_of(record.protocol.reward.features)
    followed = recorded(record)
    people = len(second_halves(followed))
    if people < 2:
        raise TrialError(
            f"{counted(people, 'participant has', 'participants have')} {FEWEST} decisions of the policy or more in "
            "the second half of theirs, and it takes two to differ"
        )
    observed = measured(followed, measures)
    drawn = _simulated(ground, measures, resamples, workers, folder, tell)
    return judged(measures, observed, drawn, effect, seed)


def recorded(record: Record) -> list[Followed]:
    """What the policy made of every decision, as recorded."""
    return [
        Followed(point.participant, point.probability, point.gain, point.context)
        for point in record.points
        if point.available and point.rung in POLICY and point.gain is not None
    ]


def judged(
    measures: Sequence[Measure], observed: Sequence[float], drawn: NDArray[np.float64], effect: float, seed: int
) -> Personalisation:
    """Measures of the trial beside those of simulated ones, (trials, measures)."""
    statistics = [
        _statistic(measure, observed[place], drawn[:, place])
        for place, measure in enumerate(measures)
        if np.isfinite(observed[place])
    ]
    return Personalisation(tuple(statistics), len(drawn), effect, seed)


def _statistic(measure: Measure, observed: float, null: NDArray[np.float64]) -> Statistic:
    total = len(null)
    # Sums of the same numbers may differ in their last bits; those are ties, and ties speak for the null.
    near = 1e-12 * max(1.0, abs(observed))
    # A trial that could not be measured counts as if it were as far out: that makes p larger, never smaller.
    above, below = int(np.sum(~(null < observed - near))), int(np.sum(~(null > observed + near)))
    hits = above if measure.tail == "larger" else min(above, below)
    sides = 1.0 if measure.tail == "larger" else 2.0
    share = exact_share(hits, total, level=LEVEL)
    p_value = min(1.0, sides * (1 + hits) / (1 + total))  # method (70)
    low, high = min(1.0, sides * share.low), min(1.0, sides * share.high)
    return Statistic(measure, float(observed), tuple(null.tolist()), p_value, low, high)


def _simulated(
    ground: Ground,
    measures: Sequence[Measure],
    resamples: int,
    workers: Any,
    folder: str | os.PathLike[str] | None,
    tell: Tell,
) -> NDArray[np.float64]:
    cache = None if folder is None else Cache.at(folder)
    key = _key(ground)
    found: dict[int, list[float]] = {}
    for place in range(resamples):
        known = None if cache is None else cache.get(f"trial-{place}-{key}", JSON)
        if known is not None and len(known.value) == len(measures):
            found[place] = known.value
    missing = [place for place in range(resamples) if place not in found]
    tell(Progress(STAGE, len(found), resamples))
    engine = engine_for(workers, most=max(1, len(missing)))
    jobs = [(place, (place,)) for place in missing]
    for place, values in results(engine, _job, jobs, (ground, measures)):
        found[place] = values if cache is None else cache.put(f"trial-{place}-{key}", values, JSON)
        tell(Progress(STAGE, len(found), resamples))
    return np.array([found[place] for place in range(resamples)]).reshape(resamples, len(measures))


def _job(shared: tuple[Ground, Sequence[Measure]], place: int) -> list[float]:
    ground, measures = shared
    return measured(resampled(ground, place), measures)


def _key(ground: Ground) -> str:
    """A digest of all that simulated trials depend on, but for their number."""
    state = ground.state
    content = [
        state.trial,
        ground.effect.hex(),
        ground.seed,
        sorted(ground.protocols),
        sorted(ground.models),
        [
            [person.id, *([each.sequence for each in person.decisions.values()])]
            + [[each.sequence, None if each.value is None else each.value.hex()] for each in person.outcomes.values()]
            for person in state.participants.values()
        ],
    ]
    return hashlib.sha256(canonical(content)).hexdigest()[:KEY]
