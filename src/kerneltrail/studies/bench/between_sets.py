"""The sets of `kerneltrail bench between`: random splits of real users, and simulated ones whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import scipy

from kerneltrail.data import Cohort, User, simulate
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.simulate import STUDIES, MixedTruth, Study
from kerneltrail.data.table import read_table
from kerneltrail.errors import DataError
from kerneltrail.evaluation import splits
from kerneltrail.gp import Prediction, Reward
from kerneltrail.gp.population import design
from kerneltrail.gp.prediction import freedom_of
from kerneltrail.methods import Method, Preprocessor, RefittingMethod
from kerneltrail.methods.linear import LinearFit, LinearRegression, Weights
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.names import nearest
from kerneltrail.studies.experiments.real.design import FITBIT, HEARTSTEPS, RealStudy

Blind = Literal["choose", "report"]

OTHER_SEEDS = 1_000_000
"""Added to the seed of what settings are chosen on."""
TRUTH = "truth"
"""Label of the method that knows the population's true weights and variances."""
TURNS = 50
"""Of posterior and noise weights; they settle in a dozen."""


@dataclass(frozen=True)
class Split:
    """Pilot users, new users, and, where it is known, the method that knows the truth."""

    label: str
    pilots: Cohort
    new: Cohort
    truth: Method | None = None


class UserSet(Protocol):
    """Users who can be split into pilot users and new ones again and again."""

    @property
    def name(self) -> str:
        """In tables."""

    @property
    def reward(self) -> Reward | None:
        """The reward model that all methods share, if there is an action."""

    def splits(self, count: int, seed: int, blind: Blind | None) -> Iterator[Split]:
        """So many random splits."""


@dataclass(frozen=True)
class RealSet:
    """Users of a study, split at random; the target is standardised by the pilot users, as that of a table is.

    Of Fitbit, ``choose`` takes every second user and ``report`` the others: no person is in both. HeartSteps has too
    few users for that. There, both take all 21, in other random splits: what is chosen has seen the people whom it is
    reported on, though in other roles, so its report is not blind in the strict sense.

    Attributes:
        study: how the file is read, and the reward model.
        path: the file.
        new: new users of a split; half of all if None.
        apart: whether ``choose`` and ``report`` have other people.
    """

    study: RealStudy
    path: Path
    new: int | None = None
    apart: bool = False

    @property
    def name(self) -> str:
        """Of the study."""
        return self.study.name

    @property
    def reward(self) -> Reward | None:
        """Of the study."""
        return self.study.reward

    def splits(self, count: int, seed: int, blind: Blind | None) -> Iterator[Split]:
        """Random splits of the same people."""
        cohort = self.study.cohort(self.path).rescaled("group", "standard")
        if self.apart and blind is not None:
            cohort = cohort.subset(cohort.names[0 if blind == "choose" else 1 :: 2])
        elif blind == "choose":
            seed += OTHER_SEEDS
        new = len(cohort) // 2 if self.new is None else self.new
        for number, names in enumerate(splits(cohort.names, new, count, seed=seed)):
            yield Split(f"split {number}", *cohort.split(test=names))


@dataclass(frozen=True)
class MixedSet:
    """Simulated users with random intercepts and slopes; every split has other people, and ``choose`` other seeds."""

    name: str
    truth: MixedTruth
    pilots: int = 15
    new: int = 10
    batches: tuple[int, ...] = (20, 20, 20, 20)
    reward: Reward | None = None

    def splits(self, count: int, seed: int, blind: Blind | None) -> Iterator[Split]:
        """A simulation for each."""
        first = seed + (OTHER_SEEDS if blind == "choose" else 0)
        for number in range(count):
            rng = np.random.default_rng([first, number])
            made = simulate.mixed(self.pilots, self.new, rng, truth=self.truth, batches=self.batches)
            yield Split(f"split {number}", made.train, made.test, true_method(made.train, self.truth))


@dataclass(frozen=True)
class StudySet:
    """A simulated study whose truth no method knows; every split has other people, and ``choose`` other seeds."""

    name: str
    study: Study
    reward: Reward | None = None

    def splits(self, count: int, seed: int, blind: Blind | None) -> Iterator[Split]:
        """A simulation for each."""
        first = seed + (OTHER_SEEDS if blind == "choose" else 0)
        for number in range(count):
            yield Split(f"split {number}", *self.study.simulated(first, number))


@dataclass(frozen=True)
class StudentRegression(LinearRegression):
    """The regression whose noise is known to be Student's t: posterior and noise weights in turn (variational Bayes).

    A row far out counts less, λ_i = (ν + 1)/(ν + E[(y_i - b_i'w)²]/s²), s² the t's squared scale; the posterior given
    all λ is that of rows weighed by them.
    """

    df: float = 3.0

    def fit(self, rows: User, before: Fit | None) -> LinearFit:
        """The posterior of the weights."""
        fitted, prior = super().fit(rows, before), self.prior
        square = prior.noise * (self.df - 2.0) / self.df
        user = fitted.prepared.rows
        features, y, posterior = design(user.X, user.covariates, None, None), user.y, fitted.weights
        for _ in range(TURNS if len(y) else 0):
            spread = np.einsum("ij,jk,ik->i", features, posterior.covariance, features)
            root = np.sqrt((self.df + 1.0) / (self.df + ((y - features @ posterior.mean) ** 2 + spread) / square))
            posterior = replace(prior, noise=square).given(root[:, None] * features, root * y)
        return StudentFit(
            fitted.prepared, replace(posterior, noise=prior.noise), fitted.composition, fitted.reward, self.df
        )


@dataclass(frozen=True)
class StudentFit(LinearFit):
    """The posterior of a `StudentRegression`; a `Fit`."""

    df: float = 3.0

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean, variance and tails in data units (method (53))."""
        prediction = super().predict(X, action)
        tails = float(scipy.special.polygamma(1, 0.5 * self.df))
        return replace(prediction, freedom=freedom_of((prediction.noise / prediction.total) ** 2 * tails))


def true_method(cohort: Cohort, truth: MixedTruth) -> Method:
    """The regression that knows what is true of the population, in data units; users' noise must not differ."""
    prior = Weights(np.array(truth.weights), np.diag(truth.between), truth.noise)
    preprocessor = Preprocessor.of(cohort, scaling="none", target_scaling="none")
    if np.isinf(truth.df):
        return RefittingMethod(TRUTH, LinearRegression(preprocessor, None, prior))
    return RefittingMethod(TRUTH, StudentRegression(preprocessor, None, prior, truth.df))


SIMULATED = (
    MixedSet("slopes", MixedTruth()),
    MixedSet("heavy tails", MixedTruth(df=3.0)),
    MixedSet("alike", MixedTruth(between=(0.0, 0.0, 0.0, 0.0))),
)
"""Random intercepts and slopes; the same with Student's t noise; and users who do not differ at all."""


def simulated(names: Sequence[str]) -> tuple[UserSet, ...]:
    """The simulated sets of these names."""
    known: dict[str, UserSet] = {each.name: each for each in SIMULATED}
    known |= {name: StudySet(name, study) for name, study in STUDIES.items()}
    for name in names:
        if name not in known:
            raise DataError(f"there is no simulated set {name!r}; {nearest(name, tuple(known), 'there are')}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"the simulated set {twice[0]!r} is named twice")
    return tuple(known[name] for name in names)


def sets_in(data: Sequence[Path]) -> tuple[RealSet, ...]:
    """The sets in files, or in folders that hold one file of each; its columns say which set a file has.

    Raises:
        DataError: if a file is none of them, or a set is there twice.
    """
    known: dict[str, RealSet] = {}
    where = f"{HEARTSTEPS.where} {FITBIT.where}"
    for path in data:
        if not path.exists():
            raise DataError(f"there is no file or folder {path}. {where}")
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        sets = [each for file in files if (each := _set_in(file)) is not None]
        if not sets:
            raise DataError(f"{path} holds no users of HeartSteps or Fitbit. {where}")
        for each in sets:
            if each.name in known:
                raise DataError(f"{known[each.name].path} and {each.path} both hold {each.name}; name one of the files")
            known[each.name] = each
    return tuple(known.values())


def _set_in(file: Path) -> RealSet | None:
    """HeartSteps: 15 pilot users and 6 new ones. Fitbit: half and half."""
    columns = set(read_table(file).names)
    if "user.index" in columns or "jbsteps30" in columns:
        return RealSet(HEARTSTEPS, file, HEARTSTEPS.full.test)
    return RealSet(FITBIT, file, apart=True) if {"user", "time", "log_steps"} <= columns else None
