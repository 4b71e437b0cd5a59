"""Allocation: from what is known of a benefit to the probability of acting (method §15.1).

A rule is one class, registered once under the name that a protocol writes. What it answers lies within the limits,
always: an action is never certain, so that its effect can be learnt from what happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf, isfinite, log
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy

from kerneltrail.errors import DataError
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.names import nearest
from kerneltrail.registry import Registry, subclass_of

Bound = Literal["none", "lower", "upper"]
Per = Literal["noise sd", "target unit"]

TOUCH = 1e-3
"""A probability so close to a limit counts as standing at it: smooth rules come close and never arrive."""

NEAR = 1.702
"""Φ(x) and the logistic function of 1.702·x differ by less than 0.0095 everywhere."""

POINTS, REACH = 401, 8.0
"""Points of the logistic rule's sum, equally spaced over so many standard deviations on both sides."""
STEEP, STEP = 25.0, 2500.0
"""Slopes times standard deviation: beyond the first the sum takes more points, beyond the second the logistic function
is a step."""


@dataclass(frozen=True)
class Limits:
    """The least and the largest probability of acting.

    >>> Limits(0.0, 0.8)
    Traceback (most recent call last):
        ...
    kerneltrail.errors.DataError: the limits of a probability must be 0 < lower ≤ upper < 1, got 0.0 and 0.8
    """

    lower: float = 0.2
    upper: float = 0.8

    def __post_init__(self) -> None:
        if not 0.0 < self.lower <= self.upper < 1.0:
            raise DataError(
                f"the limits of a probability must be 0 < lower ≤ upper < 1, got {self.lower} and {self.upper}"
            )

    def held(self, raw: float) -> float:
        """A probability brought within the limits."""
        return min(max(raw, self.lower), self.upper)


@dataclass(frozen=True)
class Allocated:
    """The probability of acting, as a rule allocates it.

    Attributes:
        raw: what the rule says before limits; for a smooth rule its share of the way from the lower to the upper one.
        probability: of acting, within the limits.
        bound: the limit at which it stands, if it does.
    """

    raw: float
    probability: float
    bound: Bound


@dataclass(frozen=True)
class Allocation(ABC):
    """An allocation rule with its parameters; a subclass says what is `raw` and, if it is not a clip, how it is held.

    >>> mixture = NormalMixture([0.5, 0.5], [[1.0], [-0.1]], [[0.01], [0.01]])
    >>> round(ClippedThompson().allocate(mixture).probability, 3)
    0.579
    """

    limits: Limits = Limits()

    name: ClassVar[str]

    def allocate(self, parts: NormalMixture, delta: float = 0.0) -> Allocated:
        """The probability of acting, given the benefit at one context and what it must exceed, in the same units.

        Raises:
            DataError: where a number is not finite, naming it.
        """
        _check(parts, delta)
        with np.errstate(over="ignore"):  # an advantage that is huge is certain
            raw = self.raw(parts, float(delta))
        probability = self.limits.held(self.within(raw))
        return Allocated(raw, probability, self._bound(probability))

    @abstractmethod
    def raw(self, parts: NormalMixture, delta: float) -> float:
        """What the rule says before limits."""

    def within(self, raw: float) -> float:
        """What becomes of it; the limits cut what still lies outside."""
        return raw

    def in_units(self, noise_sd: float) -> Self:
        """The rule with its slope, if it has one, for advantages in the target's units."""
        return self

    def _bound(self, probability: float) -> Bound:
        lower, upper = self.limits.lower, self.limits.upper
        if upper - lower <= 2.0 * TOUCH:  # there is one probability
            return "none"
        return "lower" if probability <= lower + TOUCH else "upper" if probability >= upper - TOUCH else "none"

    def to_json(self) -> dict[str, Any]:
        """Its name, its parameters and its limits, as plain values."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "limits"}
        return {"rule": self.name, **own, "lower": self.limits.lower, "upper": self.limits.upper}


def _check(parts: NormalMixture, delta: float) -> None:
    if parts.means.shape[1] != 1:
        raise DataError(f"a probability is allocated at one context, got {parts.means.shape[1]}")
    for what, values in (("weight", parts.weights), ("mean", parts.means), ("variance", parts.variances)):
        for i, value in enumerate(values.ravel().tolist()):
            if not isfinite(value) or (value < 0.0 and what != "mean"):
                rule = "finite" if what == "mean" else "finite and not below 0"
                raise DataError(
                    f"the {what} of the advantage under kernel {i + 1} of {len(parts.weights)} is {value}; it must be "
                    f"{rule}"
                )
    if not isfinite(delta):
        raise DataError(f"what the advantage must exceed (delta) is {delta}; it must be finite")


ALLOCATIONS: Registry[type[Allocation]] = Registry("allocation", DataError, subclass_of(Allocation))
"""Allocation rules by name."""


@dataclass(frozen=True)
class _Smooth(Allocation):
    """A rule that rises smoothly with the advantage, between the limits.

    Attributes:
        slope: how steeply: b of the logistic function.
        odds_against: C, the odds against acting, between the limits, where the advantage is known to be none.
        per: what the slope is per: the model's noise standard deviation, or a unit of the target.
    """

    slope: float = 10.0
    odds_against: float = 3.0
    per: Per = "noise sd"

    def __post_init__(self) -> None:
        for key in ("slope", "odds_against"):
            if not 0.0 < getattr(self, key) < inf:
                raise DataError(f"{key} of the rule {self.name} must be above 0, got {getattr(self, key)}")
        if self.per not in ("noise sd", "target unit"):
            raise DataError(f"the slope of the rule {self.name} is per 'noise sd' or 'target unit', got {self.per!r}")

    def in_units(self, noise_sd: float) -> Self:
        """The same rule with its slope per unit of the target."""
        if self.per == "target unit":
            return self
        if not 0.0 < noise_sd < inf:
            raise DataError(f"a slope per noise standard deviation needs one above 0, got {noise_sd}")
        return replace(self, slope=self.slope / noise_sd, per="target unit")

    def within(self, raw: float) -> float:
        """So far on the way from the lower limit to the upper one."""
        return self.limits.lower + (self.limits.upper - self.limits.lower) * raw  # method (54)

    def _slope(self) -> float:
        if self.per != "target unit":
            raise DataError(f"the slope of the rule {self.name} is per noise sd; convert it with in_units(noise_sd)")
        return self.slope


@ALLOCATIONS.named("smooth-probit")
@dataclass(frozen=True)
class SmoothProbit(_Smooth):
    """The default: smooth, and in closed form (method (54))."""

    name: ClassVar[str] = "smooth-probit"

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """The expected value of Φ(η(x - δ) - κ)."""
        eta, kappa = self._slope() / NEAR, log(self.odds_against) / NEAR
        width = np.hypot(1.0, eta * np.sqrt(parts.variances[:, 0]))
        z = (eta * (parts.means[:, 0] - delta) - kappa) / width
        return float(parts.weights @ np.asarray(scipy.special.ndtr(z)))  # method (54)


@ALLOCATIONS.named("smooth-logistic")
@dataclass(frozen=True)
class SmoothLogistic(_Smooth):
    """The smooth rule as it was published (method (55)); without a closed form, so by a sum over equal steps."""

    name: ClassVar[str] = "smooth-logistic"

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """The expected value of 1 / (1 + C exp(-b(x - δ)))."""
        columns = zip(parts.means[:, 0].tolist(), np.sqrt(parts.variances[:, 0]).tolist(), strict=True)
        return float(parts.weights @ np.array([self._expected(mean - delta, sd) for mean, sd in columns]))

    def _expected(self, mean: float, sd: float) -> float:
        b, middle = self._slope(), log(self.odds_against) / self._slope()
        if sd == 0.0:
            return float(scipy.special.expit(b * (mean - middle)))
        if b * sd > STEP:
            return float(scipy.special.ndtr((mean - middle) / sd))
        points = POINTS if b * sd <= STEEP else 1 + 2 * int(np.ceil(REACH * b * sd))
        z = np.linspace(-REACH, REACH, points)
        weights = np.exp(-0.5 * z**2)
        # method (55)
        return float(weights @ np.asarray(scipy.special.expit(b * (mean - middle + sd * z)))) / float(weights.sum())


@ALLOCATIONS.named("clipped-thompson")
@dataclass(frozen=True)
class ClippedThompson(Allocation):
    """The probability that acting helps, cut off at the limits (method (56))."""

    name: ClassVar[str] = "clipped-thompson"

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """Of the mixture, not of one Normal in its place."""
        return float(parts.above(delta)[0])  # method (56)


@ALLOCATIONS.named("heartsteps-v2")
@dataclass(frozen=True)
class HeartStepsV2(Allocation):
    """The rule of HeartSteps V2: the lower limit up to even odds, from there a line (method (57))."""

    name: ClassVar[str] = "heartsteps-v2"

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """What the line says."""
        helps = float(parts.above(delta)[0])
        return self.limits.lower + max(helps - 0.5, 0.0) * 0.8 / 0.5  # method (57)


@ALLOCATIONS.named("epsilon-mix")
@dataclass(frozen=True)
class EpsilonMix(Allocation):
    """The probability that acting helps, mixed with a fair coin (method (58)).

    Attributes:
        epsilon: share of the coin.
    """

    epsilon: float = 0.4

    name: ClassVar[str] = "epsilon-mix"

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon <= 1.0:
            raise DataError(f"epsilon of the rule {self.name} lies in [0, 1], got {self.epsilon}")

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """Both together."""
        return (1.0 - self.epsilon) * float(parts.above(delta)[0]) + 0.5 * self.epsilon  # method (58)


@ALLOCATIONS.named("fixed")
@dataclass(frozen=True)
class Fixed(Allocation):
    """One probability, whatever is known: that of a micro-randomised trial.

    Attributes:
        p: the probability, within the limits.
    """

    p: float = 0.5

    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        if not self.limits.lower <= self.p <= self.limits.upper:
            raise DataError(
                f"p of the rule {self.name} must lie within the limits {self.limits.lower} and {self.limits.upper}, "
                f"got {self.p}"
            )

    def raw(self, parts: NormalMixture, delta: float) -> float:
        """The same everywhere."""
        return self.p


ALLOCATIONS.complete()

PRESETS: Mapping[str, Allocation] = {
    "default": SmoothProbit(),
    "oralytics": SmoothLogistic(slope=0.515, odds_against=3.0, per="target unit"),
    "miwaves": SmoothLogistic(slope=10.53, odds_against=5.0, per="target unit"),
    "heartsteps-v2": HeartStepsV2(),
}
"""Rules with the parameters of known trials. Their slopes were published per unit of those trials' rewards."""


def allocation_of(name: str, limits: Limits | None = None, **parameters: Any) -> Allocation:
    """The rule or the preset of that name, with other limits or parameters where they are given.

    >>> allocation_of("smooth-logistic", slope=5.0).to_json()["slope"]
    5.0
    >>> allocation_of("fixed", slpoe=5.0)
    Traceback (most recent call last):
        ...
    kerneltrail.errors.DataError: the rule fixed has no parameter 'slpoe'; known are p
    """
    if name not in PRESETS and name not in ALLOCATIONS:
        raise DataError(f"no allocation is called {name!r}; {nearest(name, tuple({**ALLOCATIONS, **PRESETS}))}")
    preset = PRESETS.get(name)
    rule = ALLOCATIONS[name] if preset is None else type(preset)
    known = [field.name for field in fields(rule) if field.name != "limits"]
    for key in parameters:
        if key not in known:
            hint = nearest(key, known, "known are") if known else "it has none"
            raise DataError(f"the rule {rule.name} has no parameter {key!r}; {hint}")
    if limits is not None:
        parameters["limits"] = limits
    return rule(**parameters) if preset is None else replace(preset, **parameters)
