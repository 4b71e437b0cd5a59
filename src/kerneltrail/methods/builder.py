"""From a learner's parameters to a method with settings by name: what it needs of a cohort is handed to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from typing import Any, Literal

from kerneltrail.data import Cohort, default_priors
from kerneltrail.kernels import Pool
from kerneltrail.methods.preprocessing import Preprocessor, group_preprocessor
from kerneltrail.methods.protocol import Learner
from kerneltrail.methods.refit import RefittingMethod

LearnsFrom = Literal["own rows", "group"]
"""Whose rows a method learns from. ``own rows``: the followed user's alone, scaled by themselves (method §8, the
baselines); of the training users it takes nothing but how rows are scaled before the first. ``group``: the training
users' too, in their units."""

_PREPROCESSORS: Mapping[LearnsFrom, Callable[..., Preprocessor]] = {
    "own rows": Preprocessor.of,
    "group": group_preprocessor,
}


@dataclass(frozen=True)
class MethodBuilder:
    """Builds a method from a learner; ``kerneltrail.register("method", name, builder)`` takes it.

    The learner's `cohort`, `preprocessor`, `pool`, `priors` and `seed` are given to it, as far as it has parameters of
    these names; its other parameters are settings, with the defaults that they have there. A learner that takes a
    preprocessor has the preprocessor's settings too.

    Attributes:
        name: of the method.
        learn: makes the learner: a function, a class, or a class's `train`.
        learns_from: whose rows, and so how they are scaled.
        fixed: parameters that are decided here.
    """

    name: str
    learn: Callable[..., Learner]
    learns_from: LearnsFrom = "group"
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cohort: Cohort, *, seed: int, **settings: Any) -> RefittingMethod:
        """The method, learnt from training users."""
        self.__signature__.bind(cohort, seed=seed, **settings)  # a setting that nobody has is a mistake
        wanted = signature(self.learn).parameters
        stated = {name: value for name, value in settings.items() if value is not None}  # None is to leave it out
        given: dict[str, Any] = {"cohort": cohort, "seed": seed}
        if "preprocessor" in wanted:
            prepare = _PREPROCESSORS[self.learns_from]
            known = set(signature(prepare).parameters)
            given["preprocessor"] = prepare(cohort, **{k: v for k, v in stated.items() if k in known})
            given["pool"] = settings.get("pool") or Pool.atoms(cohort.covariates)
            given["priors"] = settings.get("priors") or default_priors(cohort.schema)
        every = {**stated, **given, **self.fixed}
        learner = self.learn(**{name: value for name, value in every.items() if name in wanted})
        return RefittingMethod(self.name, learner)

    @property
    def __signature__(self) -> Signature:
        """What the settings are: those of the learner and of its preprocessor."""
        wanted = signature(self.learn).parameters
        every = {"seed": Parameter("seed", Parameter.KEYWORD_ONLY)}
        if "preprocessor" in wanted:
            every |= dict(signature(_PREPROCESSORS[self.learns_from]).parameters)
            offered = [key for key in ("pool", "priors") if key in wanted]  # if not given, what fits the cohort
            every |= {key: Parameter(key, Parameter.KEYWORD_ONLY, default=None) for key in offered}
        handed = {"cohort", "preprocessor", *every, *self.fixed}
        every |= {key: value.replace(kind=Parameter.KEYWORD_ONLY) for key, value in wanted.items() if key not in handed}
        every.pop("cohort", None)  # of the preprocessor
        return Signature([Parameter("cohort", Parameter.POSITIONAL_OR_KEYWORD), *every.values()])
