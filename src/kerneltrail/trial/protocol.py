"""The protocol of a trial: one checked file, the same for everybody who has the same hash.

It says which model decides, how contexts arrive, who can be asked when, how probabilities are allocated, and what
answers when something fails. `Protocol.from_model` infers all of it that a model knows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from math import isclose, sqrt
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import ConfigError
from kerneltrail.gp import Reward
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.names import nearest, shortened
from kerneltrail.store.canonical import canonical, sha256_of
from kerneltrail.store.document import Language, explain, parse_text, read_text
from kerneltrail.trajectory.configuration import Section
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.allocation import Allocated, Allocation, Limits, allocation_of
from kerneltrail.trial.burden import Burden
from kerneltrail.trial.sections import (
    AllocationSection,
    BurdenSection,
    CovariateSection,
    DecisionSection,
    DrawSection,
    FallbackSection,
    LimitsSection,
    ModelSection,
    Name,
    OutcomeSection,
    UpdatesSection,
)

REASONS = ("asleep", "driving", "switched_off", "no_connection")
"""Why somebody may be unavailable, unless a protocol says otherwise."""


class Protocol(Section):
    """What was agreed before the trial. Two protocols are the same if their `hash` is.

    Errors name the key and say what was expected:

    >>> Protocol.parse("titel: Walks")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    kerneltrail.errors.ConfigError: the protocol: the file lacks the key 'title'...
    """

    title: Name
    trial: Name
    model: ModelSection
    reward: OutcomeSection
    covariates: dict[Name, CovariateSection]
    decisions: dict[Name, DecisionSection]
    availability: list[Name] = Field(default_factory=lambda: list(REASONS))
    allocation: AllocationSection
    limits: LimitsSection = LimitsSection()
    burden: BurdenSection = BurdenSection()
    updates: UpdatesSection
    pooling: Literal["participant", "pooled"] = "participant"
    deadline_ms: int = Field(default=500, ge=1)
    fallback: FallbackSection = FallbackSection()
    draw: DrawSection

    @model_validator(mode="before")
    @classmethod
    def _fields(cls, value: Any) -> Any:
        """A covariate's field is called as the covariate unless it says otherwise."""
        if isinstance(value, Mapping) and isinstance(covariates := value.get("covariates"), Mapping):
            named = {
                name: {"field": name, **each} if isinstance(each, Mapping) else each
                for name, each in covariates.items()
            }
            return {**value, "covariates": named}
        return value

    @model_validator(mode="after")
    def _fits(self) -> Protocol:
        fields = [each.field for each in self.covariates.values() if each.arrives == "context"]
        for field in fields:
            if fields.count(field) > 1:
                raise ValueError(f"covariates: two of them arrive in the context's field {field!r}")
        if not self.covariates or not self.decisions or not self.availability:
            raise ValueError("covariates, decisions and availability must each have at least one entry")
        if len(set(self.availability)) < len(self.availability):
            raise ValueError("availability: a reason stands twice")
        for name in self.reward.features:
            if name not in self.covariates:
                raise ValueError(
                    f"reward.features names {name!r}, which is no covariate; {nearest(name, tuple(self.covariates))}"
                )
        lower, upper = self.limits.lower, self.limits.upper
        if not lower <= self.fallback.fixed <= upper:
            raise ValueError(
                f"fallback.fixed must lie within the limits {lower} and {upper}, got {self.fallback.fixed}"
            )
        try:
            self._stated()
        except ValueError as problem:
            raise ValueError(f"allocation: {problem}") from None
        return self

    @classmethod
    def parse(cls, text: str, *, format: Language = "yaml", source: str = "the protocol") -> Protocol:
        """The protocol in a text; `source` is what messages call it."""
        return cls.from_json(parse_text(text, format, source), source=source)

    @classmethod
    def from_json(cls, stored: Any, *, source: str = "the protocol") -> Protocol:
        """The protocol of plain values, such as those that `to_json` gave."""
        try:
            return cls.model_validate(stored)
        except ValidationError as problem:
            raise ConfigError(explain(problem, cls, source)) from None

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, what was left to defaults included."""
        return self.model_dump(mode="json")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Protocol:
        """A protocol with other values: checked, and with a hash of its own, which a plain copy would not have."""
        return self.from_json({**self.to_json(), **(update or {})})

    def canonical(self) -> bytes:
        """Its canonical JSON: what is hashed."""
        return canonical(self.to_json())

    @cached_property  # every decision asks for it many times, and it does not change
    def hash(self) -> str:
        """SHA-256 of its canonical JSON. Comments, order of keys and the file's language do not change it."""
        return sha256_of(self.to_json())

    @property
    def bounds(self) -> Limits:
        """The least and the largest probability of acting."""
        return Limits(self.limits.lower, self.limits.upper)

    @property
    def cost(self) -> Burden:
        """What the benefit must exceed."""
        return Burden(self.burden.delta, self.burden.per_dose, self.burden.decay)

    @cached_property
    def rule(self) -> Allocation:
        """The allocation rule, with its slope in the target's units."""
        return self._stated().in_units(self.allocation.noise_sd)

    def allocate(self, rule: Allocation, advantage: NormalMixture, delta: float = 0.0) -> Allocated:
        """The probability of acting by a rule, this one's or another, whose benefit must exceed `delta`.

        Args:
            rule: with its slope in the target's units.
            advantage: what acting adds to the outcome at one context.
            delta: in the same units, for a benefit (`OutcomeSection`).
        """
        return rule.allocate(self.reward.benefit(advantage), delta)

    def _stated(self) -> Allocation:
        return allocation_of(self.allocation.rule, self.bounds, **self.allocation.parameters)

    @classmethod
    def from_model(
        cls,
        model: LearntGraph,
        *,
        trial: str,
        commitment: str,
        file: str = "pilot.trail",
        allocation: str | Allocation = "default",
        better: str = "higher",
        **changes: Any,
    ) -> Protocol:
        """A protocol for a model, with all that can be inferred from it.

        Args:
            model: with a reward model.
            trial: the trial's id.
            commitment: SHA-256 of the key of the draws (`Draws.commitment`).
            file: where the model is kept.
            allocation: a rule or a preset by name, or a rule with its parameters and its limits.
            better: whether a ``higher`` or a ``lower`` outcome is better.
            **changes: other keys of the protocol, as a file has them.
        """
        reward, schema = _reward_of(model), model.schema
        rule = allocation_of(allocation) if isinstance(allocation, str) else allocation
        parameters = rule.to_json()
        limits = {key: parameters.pop(key) for key in ("lower", "upper")}
        action, outcome = (schema.label(name) if name else "action" for name in (schema.action, schema.target))
        stored = {
            "title": f"{action} and {outcome}",
            "trial": trial,
            "model": {"file": file, "fingerprint": fingerprint(model)},
            "reward": {
                "action": action,
                "outcome": outcome,
                "unit": schema.unit(schema.target),
                "better": better,
                "features": list(reward.features),
                "intercept": reward.intercept,
                "coding": "centred" if reward.centred else "plain",
            },
            "covariates": {name: _covariate(model, name) for name in model.covariates},
            "decisions": {"decision": {}},
            "allocation": {"rule": parameters.pop("rule"), "parameters": parameters, "noise_sd": noise_sd(model)},
            "limits": limits,
            "updates": {"daily": "03:00"},
            "draw": {"commitment": commitment},
        }
        return cls.from_json({**stored, **changes})

    def check_model(self, model: LearntGraph) -> None:
        """Refuse a model that is not the protocol's.

        Raises:
            ConfigError: saying what does not fit.
        """
        reward, schema = _reward_of(model), model.schema
        if set(self.covariates) != set(model.covariates):
            raise ConfigError(
                f"the protocol's covariates are {shortened(list(self.covariates))}; those of the model are "
                f"{shortened(model.covariates)}"
            )
        for name, each in self.covariates.items():
            levels = list(schema.levels.get(name, ())) or None
            if each.levels != levels:
                raise ConfigError(
                    f"covariates.{name}.levels is {each.levels}; in the model it is {levels}, and their order matters"
                )
        stated, learnt = (self.reward.features, self.reward.intercept), (list(reward.features), reward.intercept)
        if stated != learnt:
            raise ConfigError(
                f"reward.features is {stated[0]} with intercept {stated[1]}; the model's advantage has {learnt[0]} "
                f"with intercept {learnt[1]}"
            )
        if (actual := fingerprint(model)) != self.model.fingerprint:
            raise ConfigError(
                f"model.fingerprint is {self.model.fingerprint}; this model's is {actual}: the protocol was written "
                "for another model"
            )
        if not isclose(actual_sd := noise_sd(model), self.allocation.noise_sd, rel_tol=1e-3):
            raise ConfigError(
                f"allocation.noise_sd is {self.allocation.noise_sd:g}; the model's is {actual_sd:g}, and the slope is "
                "stated for that"
            )


def read_protocol(path: str | os.PathLike[str]) -> Protocol:
    """The protocol in a ``.yaml``, ``.yml`` or ``.toml`` file.

    Raises:
        ConfigError: naming the file, the key and its place.
    """
    text, language = read_text(path)
    return Protocol.parse(text, format=language, source=os.fspath(path))


def noise_sd(model: LearntGraph) -> float:
    """The noise's standard deviation in a new user's prediction, in the target's units."""
    middle = model.scaler.inverse(np.full((1, len(model.covariates)), 0.5))
    return sqrt(NewUser.start(model, "new").predict(middle, action=Assignment(np.zeros(1), np.full(1, 0.5))).noise)


def _reward_of(model: LearntGraph) -> Reward:
    if model.reward is None or not model.takes_action:
        raise ConfigError(
            "this model has no reward model, so it cannot say what acting adds: fit it again with the pilot table's "
            "column of actions (0 and 1) and the covariates on which their effect may depend, as in `kerneltrail "
            "fit pilot.csv … --action send --features hour`, or `--features none`"
        )
    return model.reward


def _covariate(model: LearntGraph, name: str) -> dict[str, Any]:
    """How a covariate arrives, as far as the pilot users' table says it."""
    schema = model.schema
    section: dict[str, Any] = {"unit": schema.unit(name)}
    if name in schema.levels:
        return {**section, "levels": list(schema.levels[name])}
    plausible = model.pilot.plausible(name) if schema.knows_ranges else None
    if plausible is not None:
        section |= {key: float(f"{end:.3g}") for key, end in zip(("low", "high"), plausible, strict=True)}
    return section
