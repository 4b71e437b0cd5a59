"""Which real data, with which pool, reward model, splits and methods: all that an experiment on them is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kerneltrail.data import Cohort
from kerneltrail.data.fitbit import load_fitbit
from kerneltrail.data.heartsteps import PAPER_TEST, PAPER_TRAIN, heartsteps_pool, load_heartsteps
from kerneltrail.errors import DataError
from kerneltrail.evaluation import Spec
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.methods.cks import SearchSettings
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings

TRAJECTORY, PUBLISHED, WITHOUT = "trajectory", "published", "no mean"
"""Labels of trajectory models: the default, as published, and the default without a population mean."""
GROUP = ("pooled", "pooled-mean", "linear", "mean")
"""Other methods that learn from training users."""
OWN = ("shrinkage", "cks", "se-ard")
"""Methods that look at one user alone: run once for each, whatever the split."""

_CONSTANT = 10.0
"""Prior variance of a constant of everybody's own, for all methods alike, as a reward model has it."""

_MAPS = MapSettings(starts=1, screen=16, tol=1e-3, accuracy=1e-4)
"""Evidences here differ by tenths of nats from one random start to the next, and there are thousands of fits."""


@dataclass(frozen=True)
class Sizes:
    """How large an experiment is.

    Attributes:
        splits: random splits into training and test users.
        test: test users of each.
        seeds: seeds of the chains on the first split.
        users: of the first split's test users, how many are followed; all if None.
        published: random splits on which the published preset is run, besides the first split.
        without: whether the trajectory model without a population mean is run too, where the published preset is.
        own: methods that look at one user alone.
        search: of CKS.
        iterations: of shrinkage.
        changes: of the trajectory model's settings.
    """

    splits: int
    test: int
    seeds: int = 3
    users: int | None = None
    published: int = 0
    without: bool = True
    own: tuple[str, ...] = OWN
    search: SearchSettings = field(default_factory=SearchSettings)
    iterations: int = 60
    changes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(replace(self, changes=dict(self.changes)))

    def settings(self, seed: int, **changes: Any) -> Settings:
        """Of the trajectory model: the default, with the shorter search that so many fits need.

        The target is not standardised here, so that the mean, and a constant as all methods have it, are named.
        """
        base = Settings(scope="together", mean="smooth", constant=_CONSTANT, maps=_MAPS, seed=seed)
        return replace(base, **{**self.changes, **changes})

    def published_settings(self, seed: int) -> Settings:
        """The paper's procedure, on candidates found in the same way; there is no population mean in it.

        Of real users the paper keeps the simplest structure. Chains are short, so they begin at what suits each
        customer best.
        """
        return Settings.published(
            scope="together",
            largest=3,
            constant=_CONSTANT,
            maps=_MAPS,
            seed=seed,
            start="best",
            choice="simplest",
            sweeps=60,
            chains=2,
            check=20,
        )


@dataclass(frozen=True)
class RealStudy:
    """A data set.

    Attributes:
        name: of the experiment.
        title: of its page.
        description: what is in it, in a sentence or two.
        target: what is predicted, in words.
        where: what to download, from where, under which licence; said where the data are absent.
        load: the cohort in a file.
        first: test users of the first split, by name.
        pool: products on offer, by covariates.
        paper_pool: those that the paper names, for its own procedure.
        reward: the reward model, or None.
        full, quick: sizes.
    """

    name: str
    title: str
    description: str
    target: str
    where: str
    load: Callable[[Path], Cohort]
    first: Callable[[Cohort], tuple[str, ...]]
    pool: Callable[[tuple[str, ...]], Pool]
    paper_pool: Callable[[tuple[str, ...]], Pool]
    reward: Reward | None
    full: Sizes
    quick: Sizes

    def cohort(self, data: Path | None) -> Cohort:
        """The data; an error says how to get them where there are none."""
        if data is None or not data.exists():
            reason = "no data were named" if data is None else f"there is no file {data}"
            raise DataError(f"{reason}; give --data FILE. {self.where}")
        return self.load(data)

    def methods(self, cohort: Cohort, sizes: Sizes) -> dict[str, Spec]:
        """Everything but the trajectory model, by label."""
        shared: dict[str, Any] = {"pool": self.pool(cohort.covariates), "reward": self.reward}
        # With a reward model there is one already.
        constant: dict[str, Any] = {} if self.reward is not None else {"constant": _CONSTANT}
        per_user: dict[str, dict[str, Any]] = {
            "shrinkage": {"iterations": sizes.iterations, **constant},
            "cks": {"search": sizes.search, **constant},
            "se-ard": {"starts": 1, "screen": 8, **constant},
        }
        group = {name: constant if name.startswith("pooled") else {} for name in GROUP}  # the others have one in them
        specs: dict[str, Spec] = {name: (name, {**shared, **group[name]}) for name in GROUP}
        return specs | {name: (name, {**shared, **per_user[name]}) for name in sizes.own}


def _paper_test(cohort: Cohort) -> tuple[str, ...]:
    return tuple(name for name in PAPER_TEST if name in cohort.names)


def _every_fourth(cohort: Cohort) -> tuple[str, ...]:
    return cohort.names[3::4]


def _heartsteps(path: Path) -> Cohort:
    return load_heartsteps(path).subset((*PAPER_TRAIN, *PAPER_TEST))


def _fitbit(path: Path) -> Cohort:
    cohort = load_fitbit(path)
    return cohort.subset(tuple(user.name for user in cohort.users if user.batches > 1))


HEARTSTEPS = RealStudy(
    "heartsteps",
    "HeartSteps V1: step counts of a trial",
    "The outcome is the log of the step count in the 30 minutes after a decision point, of which there are five a day; "
    "the action is a suggestion to be active. Rows are those at which the user was available, the steps before were "
    "recorded, and the outcome was; batches have 40 rows.",
    "log step count",
    "The data of HeartSteps V1 are public: suggestions.csv of github.com/klasnja/HeartStepsV1, licence CC-BY-4.0; cite "
    "Klasnja et al. 2019 (doi 10.1093/abm/kay067). A rebuilt table of decision points is read too.",
    _heartsteps,
    _paper_test,
    heartsteps_pool,
    lambda covariates: heartsteps_pool(covariates, ours=False),
    Reward(("log_steps30pre",), coding="plain"),  # as in the paper
    Sizes(splits=20, test=6, published=3, search=SearchSettings(depth=3, patience=1)),
    Sizes(
        splits=1,
        test=4,
        seeds=1,
        users=3,
        without=False,
        search=SearchSettings(depth=1, fits=40, patience=1, refits=1),
        iterations=10,
        changes={"largest": 2, "sweeps": 100, "chains": 2},
    ),
)


def _fitbit_pool(covariates: tuple[str, ...]) -> Pool:
    return Pool.atoms(covariates, probability=0.03) | Pool.of("SE[hour]*SE[log_steps_prev_hour]", probability=0.01)


FITBIT = RealStudy(
    "fitbit",
    "Fitbit trackers: hourly step counts without a treatment",
    "The outcome is the log of the step count in an hour, at five hours a day; nobody was sent anything. Users with "
    "a single batch are left out.",
    "log step count",
    "The data are those of Furberg et al. 2016, hourly step counts of 33 people: Zenodo 53894, or Kaggle "
    "arashnic/fitbit, there under the licence CC0; check it where you take them from. The file is a table of decision "
    "points with the columns user, time, log_steps and steps_prev_hour.",
    _fitbit,
    _every_fourth,
    _fitbit_pool,
    lambda covariates: Pool.atoms(covariates, probability=0.03),
    None,
    Sizes(splits=5, test=8, seeds=1, search=SearchSettings(depth=2, patience=1)),
    Sizes(
        splits=0,
        test=4,
        seeds=1,
        users=3,
        without=False,
        own=("se-ard",),
        iterations=10,
        changes={"largest": 2, "sweeps": 100, "chains": 2},
    ),
)
