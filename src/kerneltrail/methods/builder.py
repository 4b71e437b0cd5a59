"""From a learner's parameters to a method with settings by name: what it needs of a cohort is handed to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from typing import Any, Literal

from kerneltrail.data import Cohort
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.methods.preprocessing import Frame, Scaled, priors_for
from kerneltrail.methods.protocol import Learner
from kerneltrail.methods.refit import Following

Rows = Literal["own", "group"]
"""Whose scaling a learner sees rows in: each user's own (SPEC §8, the baselines), or the training users'."""


def group_rows(cohort: Cohort, *, reward: Reward | None = None, constant: float = 0.0) -> Frame:
    """As the trajectory model sees rows: what is learnt of hyperparameters is in the group's units."""
    scaling: Scaled = "none" if cohort.schema.scaling == "none" else "group"
    return Frame.of(cohort, scaling=scaling, reward=reward, constant=constant)


_FRAMES: Mapping[Rows, Callable[..., Frame]] = {"own": Frame.of, "group": group_rows}


@dataclass(frozen=True)
class Recipe:
    """A factory of methods made of a learner; `registry.register` takes it.

    The learner's `cohort`, `frame`, `pool`, `priors` and `seed` are given to it, as far as it has parameters of these
    names; its other parameters are settings, with the defaults that they have there.

    Attributes:
        name: of the method.
        learn: makes the learner: a function, a class, or a class's `train`.
        rows: how rows are seen, for a learner that takes a frame; it adds the frame's settings.
        fixed: parameters that are decided here.
    """

    name: str
    learn: Callable[..., Learner]
    rows: Rows | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cohort: Cohort, *, seed: int, **settings: Any) -> Following:
        """The method, learnt from training users."""
        self.__signature__.bind(cohort, seed=seed, **settings)  # a setting that nobody has is a mistake
        wanted = signature(self.learn).parameters
        said = {name: value for name, value in settings.items() if value is not None}  # None is to leave it out
        given: dict[str, Any] = {"cohort": cohort, "seed": seed}
        if self.rows is not None:
            framed = set(signature(_FRAMES[self.rows]).parameters)
            given["frame"] = _FRAMES[self.rows](cohort, **{k: v for k, v in said.items() if k in framed})
            given["pool"] = settings.get("pool") or Pool.atoms(cohort.covariates)
            given["priors"] = settings.get("priors") or priors_for(cohort.schema)
        every = {**said, **given, **self.fixed}
        return Following(self.name, self.learn(**{name: value for name, value in every.items() if name in wanted}))

    @property
    def __signature__(self) -> Signature:
        """What the settings are: those of the learner and of its frame."""
        own = signature(self.learn).parameters
        every = {"seed": Parameter("seed", Parameter.KEYWORD_ONLY)}
        if self.rows is not None:
            every |= dict(signature(_FRAMES[self.rows]).parameters)
            offered = [key for key in ("pool", "priors") if key in own]  # if not given, what fits the cohort
            every |= {key: Parameter(key, Parameter.KEYWORD_ONLY, default=None) for key in offered}
        handed = {"cohort", "frame", *every, *self.fixed}
        every |= {key: value.replace(kind=Parameter.KEYWORD_ONLY) for key, value in own.items() if key not in handed}
        every.pop("cohort", None)  # of the frame
        return Signature([Parameter("cohort", Parameter.POSITIONAL_OR_KEYWORD), *every.values()])
