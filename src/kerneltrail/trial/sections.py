"""The parts of a protocol, each checked by itself: types, texts, times, and what excludes what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.trajectory.configuration import Section
from kerneltrail.trial.allocation import Limits, allocation_of

LadderRung = Literal["policy", "last_good", "group_prior", "fixed"]
LADDER: tuple[LadderRung, ...] = ("policy", "last_good", "group_prior", "fixed")
Imputation = Literal["refuse", "last_seen", "slot_mean"]
Better = Literal["higher", "lower"]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_HEX = re.compile(r"[0-9a-f]{64}")
ANY = Limits(1e-12, 1.0 - 1e-12)
"""Limits that exclude nothing: a rule's parameters are read before the protocol's limits are known."""


def _line(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError(f"must be a text on one line without blanks at its ends, got {text!r}")
    return text


def _name(text: str) -> str:
    if not _line(text):
        raise ValueError("must not be empty")
    return text


def _quoted(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):  # YAML reads 12:30 as 750
        raise ValueError(f'a time is written in quotes, such as "12:30", got the number {value}')
    return value


def _clock(text: str) -> str:
    if not _CLOCK.fullmatch(text):
        raise ValueError(f'a time is written as "08:30", from "00:00" to "23:59", got {text!r}')
    return text


def _weekly(text: str) -> str:
    day, _, clock = text.partition(" ")
    if day not in DAYS or not _CLOCK.fullmatch(clock):
        raise ValueError(f'a weekly time is written as "Monday 03:00", with the day in English, got {text!r}')
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"must be a time zone such as Europe/Zurich, got {text!r}") from None
    return text


def _sha256(text: str) -> str:
    if not _HEX.fullmatch(text):
        raise ValueError(f"must be a SHA-256 in 64 hexadecimal digits, got {text!r}")
    return text


Line = Annotated[str, AfterValidator(_line)]
Name = Annotated[str, AfterValidator(_name)]
Clock = Annotated[str, BeforeValidator(_quoted), AfterValidator(_clock)]
Weekly = Annotated[str, BeforeValidator(_quoted), AfterValidator(_weekly)]
Number = Annotated[float, Field(allow_inf_nan=False)]


class ModelSection(Section):
    """The model: its file, and the digest of all that decisions depend on."""

    file: Name
    fingerprint: Name


@dataclass(frozen=True)
class WorstQuarter:
    """Where the quarter of people lie who fare worst: on one side of a percentile."""

    percent: int
    side: Literal["below", "above"]

    def of(self, values: ArrayLike) -> float:
        """The percentile of values, one for each person."""
        return float(np.quantile(np.asarray(values, dtype=np.float64), self.percent / 100))

    @property
    def name(self) -> str:
        """What the percentile is called."""
        return f"{self.percent}th percentile"


class OutcomeSection(Section):
    """What people call the action and the outcome, which outcome is better, and the advantage's features φ.

    The advantage is what acting adds to the outcome, whichever is better; its benefit is the same where a higher
    outcome is better, and minus it where a lower one is.
    """

    action: Name
    outcome: Name
    unit: Line = ""
    better: Better = "higher"
    features: list[Name] = Field(default_factory=list)
    intercept: bool = True
    coding: Literal["centred", "plain"] = "centred"

    @model_serializer(mode="wrap")
    def _plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `better` where it is higher: protocols of before that key keep their hash."""
        stored: dict[str, Any] = handler(self)
        if self.better == "higher":
            del stored["better"]
        return stored

    @property
    def sign(self) -> float:
        """What a change of the outcome is multiplied by to be a benefit."""
        return 1.0 if self.better == "higher" else -1.0

    def benefit(self, advantage: NormalMixture) -> NormalMixture:
        """The benefit of acting, where this is what acting adds to the outcome."""
        if self.better == "higher":
            return advantage
        return NormalMixture(advantage.weights, -advantage.means, advantage.variances)

    @property
    def worst(self) -> WorstQuarter:
        """Where the quarter of people lie who fare worst."""
        return WorstQuarter(25, "below") if self.better == "higher" else WorstQuarter(75, "above")

    @property
    def direction(self) -> str:
        """Which outcome counts as better, to go on with a sentence."""
        return f"a {self.better} value of {self.outcome} counts as better"


class CovariateSection(Section):
    """How a covariate arrives: the context's field, its unit, what is plausible, and what to do if it is missing."""

    field: Name
    arrives: Literal["context", "dose"] = "context"
    unit: Line = ""
    low: Number | None = None
    high: Number | None = None
    levels: list[Name] | None = None
    missing: Imputation = "refuse"

    @model_validator(mode="after")
    def _fits(self) -> CovariateSection:
        if self.levels is not None and (self.low is not None or self.high is not None):
            raise ValueError("has levels, so low and high mean nothing; leave them out")
        if self.levels is not None and (len(self.levels) < 2 or len(set(self.levels)) < len(self.levels)):
            raise ValueError(f"levels must be at least two, all different, got {self.levels}")
        if self.levels is not None and self.missing == "slot_mean":
            raise ValueError("levels have no mean; missing must be 'refuse' or 'last_seen'")
        if self.levels is not None and self.arrives == "dose":
            raise ValueError("the dose is a number, so it has no levels")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low must not be above high, got {self.low:g} and {self.high:g}")
        return self


class DecisionSection(Section):
    """A kind of decision: at which times of the day it is due; without times, whenever the app asks."""

    times: list[Clock] = Field(default_factory=list)

    @model_validator(mode="after")
    def _ordered(self) -> DecisionSection:
        if self.times != sorted(set(self.times)):
            raise ValueError(f"times must be in order and all different, got {', '.join(self.times)}")
        return self


class AllocationSection(Section):
    """The allocation rule or preset by its name; read, it is the rule with all its parameters."""

    rule: Name
    parameters: dict[str, Any] = Field(default_factory=dict)
    noise_sd: Number = Field(gt=0.0)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get("rule"), str):
            return value
        given = value.get("parameters", {})
        if not isinstance(given, Mapping):
            return value
        for key, each in given.items():
            if isinstance(each, bool) or not isinstance(each, int | float | str):
                raise ValueError(f"parameters.{key} must be a number or a text, got {each!r}")
        parameters = {key: float(each) if isinstance(each, int) else each for key, each in given.items()}
        try:
            stored = allocation_of(value["rule"], ANY, **parameters).to_json()
        except TypeError:
            raise ValueError(f"a parameter of the rule {value['rule']} is a text where it must be a number") from None
        rule = stored.pop("rule")
        del stored["lower"], stored["upper"]
        return {**value, "rule": rule, "parameters": stored}


class LimitsSection(Section):
    """The least and the largest probability of acting."""

    lower: Number = 0.2
    upper: Number = 0.8

    @model_validator(mode="after")
    def _inside(self) -> LimitsSection:
        Limits(self.lower, self.upper)
        return self


class BurdenSection(Section):
    """What the benefit must exceed: a number, and a cost for each unit of the dose."""

    delta: Number = 0.0
    per_dose: Number = Field(default=0.0, ge=0.0)
    decay: Number = Field(default=0.95, ge=0.0, lt=1.0)


class UpdatesSection(Section):
    """When the policy learns: after so many outcomes, every day, every week, or when somebody says so.

    Days and times are on the clock of `timezone`. A participant whose probability moves by more than `largest_shift` at
    one update, in one of their last contexts, is reported.
    """

    every: int | None = Field(default=None, ge=1)
    daily: Clock | None = None
    weekly: Weekly | None = None
    by_hand: bool = False
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    largest_shift: Number = Field(default=0.5, gt=0.0, le=1.0)

    @model_validator(mode="after")
    def _one(self) -> UpdatesSection:
        stated = [self.every is not None, self.daily is not None, self.weekly is not None, self.by_hand]
        if sum(stated) != 1:
            raise ValueError('must be one of every: 20, daily: "03:00", weekly: "Monday 03:00" and by_hand: true')
        return self


class FallbackSection(Section):
    """What answers when the policy cannot, in this order; the last rung is a fixed probability, which always can."""

    ladder: list[LadderRung] = Field(default_factory=lambda: list(LADDER))
    fixed: Number = 0.5

    @model_validator(mode="after")
    def _ends(self) -> FallbackSection:
        if not self.ladder or self.ladder[0] != "policy" or self.ladder[-1] != "fixed":
            raise ValueError(f"ladder must begin with policy and end with fixed, got {', '.join(self.ladder)}")
        if len(set(self.ladder)) < len(self.ladder):
            raise ValueError(f"ladder names a rung twice: {', '.join(self.ladder)}")
        return self


class DrawSection(Section):
    """The SHA-256 of the secret key of the draws, published before the trial."""

    commitment: Annotated[str, AfterValidator(_sha256)]
