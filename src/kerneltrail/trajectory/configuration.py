"""The configuration of a fit in one YAML or TOML file: pool with H0, priors, settings, reward (docs/configuration.md).

A key that is not known is refused with its place and the nearest one that is; nothing is ignored in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from math import comb
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, create_model, model_validator

from kerneltrail.data import Cohort, default_priors
from kerneltrail.data.heartsteps import heartsteps_pool
from kerneltrail.errors import ConfigError, KerneltrailError
from kerneltrail.gp import Reward
from kerneltrail.kernels import ATOMS, Pool, Prior, Priors, by_order, default_kinds, log_normal, normal, parse
from kerneltrail.kernels.hyperparameters import AMPLITUDE, NOISE
from kerneltrail.kernels.pool import COMPOUND, SIMPLE
from kerneltrail.names import nearest
from kerneltrail.store.document import explain, parse_text, read_text
from kerneltrail.trajectory import EVIDENCES, MOVES, Urn
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import CONSTANT, Settings

PRODUCTS = 10_000
"""The most products that a pool may be generated with."""


class Section(BaseModel):
    """A part of the file. Types are taken as written: "4" is not a number, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Listed(Section):
    """A kernel of an explicit list, with a probability of its own if it has one."""

    kernel: str
    probability: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return {"kernel": value} if isinstance(value, str) else value


class Inclusion(Section):
    """H0: the probability with which a product is part of a composition (method (6))."""

    simple: float = SIMPLE
    compound: float = COMPOUND
    overrides: dict[str, float] = Field(default_factory=dict)


class PoolSection(Section):
    """The products on offer: generated ones, listed ones, or both."""

    preset: Literal["atoms", "paper", "heartsteps"] | None = None
    covariates: list[str] | None = None
    kinds: list[str] | None = None
    order: int | None = Field(default=None, ge=1)
    kernels: list[Listed] = Field(default_factory=list)
    inclusion: Inclusion = Inclusion()
    allow_empty: bool | None = None

    def build(self, covariates: tuple[str, ...], around_mean: bool = False) -> Pool:
        """The pool for data with these covariates; users who vary around a mean may have noise alone."""
        rule = by_order(self.inclusion.simple, self.inclusion.compound)
        listed = [
            Pool.of(each.kernel, probability=rule if each.probability is None else each.probability)
            for each in self.kernels
        ]
        stated = [(each.kernel, each.probability) for each in self.kernels if each.probability is not None]
        probabilities = {str(product): probability for text, probability in stated for product in parse(text)}
        parts = listed
        if not listed or {"preset", "covariates", "kinds", "order"} & self.model_fields_set:
            parts = [*self._generated(covariates), *listed]
        pool = reduce(or_, parts).with_probabilities(probabilities).with_probabilities(self.inclusion.overrides)
        for name in pool.covariates:
            _known_name(name, covariates, "pool reads", "the data have")
        return pool.with_empty(around_mean if self.allow_empty is None else self.allow_empty)

    def _generated(self, covariates: tuple[str, ...]) -> Iterator[Pool]:
        chosen = covariates if self.covariates is None else tuple(self.covariates)
        for name in chosen:
            _known_name(name, covariates, "pool.covariates names", "the data have")
        rule = by_order(self.inclusion.simple, self.inclusion.compound)
        if self.preset in ("paper", "heartsteps"):
            if self.kinds is not None or self.order is not None:
                raise ConfigError(
                    f"pool: the preset {self.preset!r} has its own kinds and orders; leave kinds and order out"
                )
            if self.preset == "heartsteps":  # it has its own probabilities too; overrides still stand above them
                if {"simple", "compound"} & self.inclusion.model_fields_set:
                    raise ConfigError("pool: the preset 'heartsteps' has its own inclusion; state overrides alone")
                yield heartsteps_pool(chosen)
                return
            for name in chosen:
                yield Pool.paper(name).with_probabilities(rule)
            return
        wanted = default_kinds() if self.kinds is None else tuple(self.kinds)
        for kind in wanted:
            _known_name(kind, tuple(ATOMS), "pool.kinds names", "there are")
        atoms, order = len(chosen) * len(wanted), self.order or 1
        if max(atoms, order) > PRODUCTS or comb(atoms + order, order) > PRODUCTS:
            raise ConfigError(
                f"pool.order: products of up to {order} of {atoms} atoms are more than {PRODUCTS:,}; lower the order, "
                "or name fewer covariates or kinds"
            )
        yield Pool.products_up_to(self.order or 1, chosen, kinds=wanted, probability=rule)


class PriorEntry(Section):
    """A prior: mean and spread of the logarithm, or of the value itself for a location."""

    mean: float
    variance: float | None = None
    scale: float | None = None

    @model_validator(mode="after")
    def _one_spread(self) -> PriorEntry:
        if (self.variance is None) == (self.scale is None):
            raise ValueError("say either variance or scale (the standard deviation), and only one of them")
        return self


class PriorsSection(Section):
    """Priors by type of hyperparameter, and by covariate where one differs."""

    preset: Literal["synthetic", "heartsteps", "standardised"] | None = None
    types: dict[str, PriorEntry] = Field(default_factory=dict)
    covariates: dict[str, dict[str, PriorEntry]] = Field(default_factory=dict)

    def build(self, cohort: Cohort) -> Priors:
        """The priors for a cohort; without a preset, what fits its scaling (`default_priors`)."""
        presets = {
            "synthetic": Priors.synthetic,
            "heartsteps": Priors.heartsteps,
            "standardised": Priors.standardised,
        }
        priors = default_priors(cohort.schema) if self.preset is None else presets[self.preset]()
        for kind, entry in self.types.items():
            priors = priors.override(kind, None, _prior(kind, entry, "priors.types"))
        for name, entries in self.covariates.items():
            _known_name(name, cohort.covariates, "priors.covariates names", "the data have")
            for kind, entry in entries.items():
                priors = priors.override(kind, name, _prior(kind, entry, f"priors.covariates.{name}"))
        return priors


class RewardSection(Section):
    """The reward model (method §8)."""

    features: list[str] = Field(default_factory=list)
    advantage_variance: float = 1.0
    constant_variance: float | None = None
    intercept: bool = True
    coding: Literal["centred", "plain"] = "centred"

    def build(self, cohort: Cohort) -> Reward:
        """The reward model for a cohort."""
        for name in self.features:
            _known_name(name, cohort.covariates, "reward.features names", "the data have")
        if not self.features and not self.intercept:
            raise ConfigError(
                "reward: without features and intercept there is no advantage; for a constant mean alone "
                "leave the reward model out and state settings.constant"
            )
        if cohort.schema.action is None:
            raise ConfigError("reward: a reward model needs the action's column to be named: --action NAME, or action=")
        standardised = cohort.schema.target_scaling == "standard"
        return Reward(
            tuple(self.features),
            self.advantage_variance,
            (CONSTANT if standardised else 10.0) if self.constant_variance is None else self.constant_variance,
            self.intercept,
            coding=self.coding,
        )


if TYPE_CHECKING:

    class SettingsSection(Section):
        """All of `Settings`; what is left out is the preset's."""

else:

    def _section(name: str, source: type, **replaced: Any) -> type[Section]:
        """A section with a key for every field of a dataclass, so that no setting is ever out of reach."""
        hints = {**get_type_hints(source), **replaced}
        return create_model(name, __base__=Section, **{key: (hints[key], None) for key in source.__dataclass_fields__})

    SettingsSection = _section(
        "SettingsSection",
        Settings,
        moves=list[str],
        options=dict[str, dict[str, Any]],
        maps=_section("MapsSection", MapSettings),
    )


class Parts(TypedDict):
    """What a configuration amounts to: arguments of `fit`."""

    pool: Pool
    priors: Priors
    settings: Settings
    reward: Reward | None


class Config(Section):
    """What a configuration file says. `build` makes it concrete for a cohort.

    >>> Config.parse("settings: {chains: 2}").settings_value().chains
    2
    """

    preset: Literal["default", "published"] = "default"
    pool: PoolSection = PoolSection()
    priors: PriorsSection = PriorsSection()
    settings: SettingsSection = SettingsSection()
    reward: RewardSection | None = None
    _source: str = PrivateAttr(default="the configuration")

    @classmethod
    def parse(cls, text: str, *, format: Literal["yaml", "toml"] = "yaml", source: str = "the configuration") -> Config:
        """The configuration in a text; `source` is what messages call it."""
        stored = parse_text(text, format, source)
        try:
            config = cls.model_validate(stored)
        except ValidationError as problem:
            raise ConfigError(explain(problem, cls, source)) from None
        config._source = source
        config.settings_value()  # what can be refused without data is refused now
        return config

    def with_preset(self, preset: Literal["default", "published"]) -> Config:
        """The same on another preset; what the file states itself still stands."""
        return self.model_copy(update={"preset": preset})

    def with_features(self, features: list[str]) -> Config:
        """The same with a reward model whose advantage depends on these covariates; what else it states stands."""
        section = self.reward or RewardSection()
        return self.model_copy(update={"reward": section.model_copy(update={"features": list(features)})})

    def settings_value(self, **changes: Any) -> Settings:
        """The settings: the preset's, then the file's, then `changes`."""
        stated = self.settings.model_dump(exclude_unset=True)
        with self._blamed("settings."):
            _known_name(stated.get("evidence", Settings().evidence), tuple(EVIDENCES), "evidence names", "there are")
            for key in ("moves", "options"):
                for name in stated.get(key, ()):
                    _known_name(name, tuple(MOVES), f"{key} names", "there are")
        with self._blamed("settings: "):
            base = Settings.published() if self.preset == "published" else Settings()
            if "maps" in stated:
                stated["maps"] = replace(base.maps, **stated["maps"])
            return replace(base, **{**stated, **changes})

    def build(self, cohort: Cohort, **changes: Any) -> Parts:
        """Pool, priors, settings and reward model for a cohort: arguments of `fit`. `changes` override settings."""
        settings = self.settings_value(**changes).resolved(cohort.schema.target_scaling == "standard")
        with self._blamed():
            pool = self.pool.build(cohort.covariates, settings.mean != "none")
            priors = self.priors.build(cohort)
            reward = None if self.reward is None else self.reward.build(cohort)
            options = {name: _with_library(dict(values), pool) for name, values in settings.options.items()}
            settings = replace(settings, options=options)
            _check_moves(settings, pool)
        return Parts(pool=pool, priors=priors, settings=settings, reward=reward)

    @contextmanager
    def _blamed(self, prefix: str = "") -> Iterator[None]:
        """Errors of the library, with the file they come from."""
        try:
            yield
        except KerneltrailError as problem:
            raise ConfigError(f"{self._source}: {prefix}{problem}") from None


def read_config(path: str | os.PathLike[str]) -> Config:
    """The configuration in a ``.yaml``, ``.yml`` or ``.toml`` file.

    Raises:
        ConfigError: naming the file, the key and its place.
    """
    text, format = read_text(path)
    return Config.parse(text, format=format, source=os.fspath(path))


def _known_name(name: str, known: tuple[str, ...], what: str, those: str) -> None:
    if name not in known:
        raise ConfigError(f"{what} {name!r}, which is not known; {nearest(name, known, those)}")


def _prior(kind: str, entry: PriorEntry, where: str) -> Prior:
    positive = {spec.kind: spec.positive for atom in ATOMS.values() for spec in atom.hyperparameters}
    positive |= {AMPLITUDE.kind: True, NOISE.kind: True}
    _known_name(kind, tuple(positive), f"{where} names", "there are")
    make = log_normal if positive[kind] else normal
    return make(entry.mean, variance=entry.variance, scale=entry.scale)


def _with_library(options: dict[str, Any], pool: Pool) -> Mapping[str, Any]:
    """Options with the library, which people list as texts, turned into masks for the moves."""
    library = options.get("library")
    if library is None:
        return options
    if not isinstance(library, list) or not all(isinstance(each, str | int) for each in library):
        raise ConfigError(f"settings.options: a library is a list of kernels in text, got {library!r}")
    masks = [pool.mask(parse(each)) if isinstance(each, str) else each for each in library]
    return {**options, "library": masks}


def _check_moves(settings: Settings, pool: Pool) -> None:
    """Refuse a bad option before the long computation and not after."""
    try:
        Urn(pool, alpha=settings.alpha, keep=settings.keep)
    except KerneltrailError as problem:
        raise ConfigError(f"settings.alpha, settings.keep: {problem}") from None
    for name in dict.fromkeys((*settings.moves, *settings.options)):
        options = settings.options.get(name, {})
        for key in options:
            _known_name(key, MOVES[name].option_names(), f"settings.options.{name} names", "it has")
        MOVES[name].check(options, pool)
