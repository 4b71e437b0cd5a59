"""The simulated experiments of the paper and of the authors' later work (SPEC §9), with the truth beside the data.

Users of the first half of a group have the first true kernel, the others the second. Every user has hyperparameters
of its own, near the same centre, and one function drawn exactly from its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.draw import as_rng, one_thread, simulate_user
from kerneltrail.data.frozen import Frozen
from kerneltrail.data.user import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Composition, Hyperparameters, layout_of, parse

LOG_SD = 0.1
"""Spread of positive hyperparameters between users: standard deviation of the logarithm (SPEC §9)."""


@dataclass(frozen=True)
class Recipe:
    """A true kernel and the centre around which users' hyperparameters are drawn.

    Attributes:
        composition: the kernel.
        centre: natural value by hyperparameter name, noise included: the median over users.
        location_sd: standard deviation of locations, which are Normal; positive ones are LogNormal with `LOG_SD`.
        fixed: hyperparameters that are the same for everybody.
    """

    composition: Composition
    centre: Mapping[str, float]
    location_sd: float
    fixed: tuple[str, ...] = ("noise",)

    @classmethod
    def of(cls, text: str, *, location_sd: float = 1.0, **centre: float) -> Recipe:
        """A recipe from a kernel's text; `centre` by slot name, with ``_`` for what an identifier cannot hold."""
        composition = parse(text)
        plain = {_identifier(name): name for name in layout_of(composition).names}
        return cls(composition, Frozen({plain[key]: value for key, value in centre.items()}), location_sd)

    def draw(self, rng: np.random.Generator) -> Hyperparameters:
        """One user's hyperparameters."""
        centre = Hyperparameters.from_values(self.composition, self.centre)
        sd = [
            0.0 if slot.name in self.fixed else LOG_SD if slot.spec.positive else self.location_sd
            for slot in centre.layout.slots
        ]
        return Hyperparameters(self.composition, tuple(centre.vector + np.array(sd) * rng.standard_normal(len(sd))))


def _identifier(name: str) -> str:
    """``PER[x]*SE[x]: SE[x].lengthscale`` as ``PER_SE__SE_lengthscale``: the covariate is always x here."""
    return name.replace("[x]", "").replace("*", "_").replace(": ", "__").replace(".", "_")


@dataclass(frozen=True)
class Simulation:
    """Simulated users and what is true of them.

    Attributes:
        train: the training users.
        test: the test users.
        truth: the true kernel by user's name.
        hyperparameters: the true hyperparameters by user's name, in data units.
        mean: the constant added to every user's function.
        advantage: by user's name, what the action adds: the coefficient of each covariate, and under ``1`` a constant.
            Empty where there is no action.
    """

    train: Cohort
    test: Cohort
    truth: Mapping[str, Composition]
    hyperparameters: Mapping[str, Hyperparameters]
    mean: float = 0.0
    advantage: Mapping[str, Mapping[str, float]] = field(default_factory=Frozen)


# SPEC §9: medians of the synthetic priors (SPEC §3) are exp(0) for lengthscales and exp(1) for amplitudes and periods.
# The location's prior is N(0, 0.1), with median 0; it has no logarithm, so the spread of 0.1 is taken as it stands.
_PAPER = (
    Recipe.of(
        "LIN[x] + PER[x]",
        LIN_amplitude=np.e,
        LIN_location=0.0,
        PER_amplitude=np.e,
        PER_lengthscale=1.0,
        PER_period=np.e,
        noise=0.15,
        location_sd=LOG_SD,
    ),
    Recipe.of("SE[x]", SE_amplitude=np.e, SE_lengthscale=1.0, noise=0.15),
)
_LINEAR = {"LIN_amplitude": 4.0, "LIN_location": 5.0}
_LINEAR_PERIODIC = Recipe.of(
    "LIN[x] + PER[x]", **_LINEAR, PER_amplitude=5.0, PER_lengthscale=2.0, PER_period=4.0, noise=0.25
)
_DISTINCT = (_LINEAR_PERIODIC, Recipe.of("SE[x]", SE_amplitude=10.0, SE_lengthscale=1.0, noise=0.25))
_SIMILAR = (
    _LINEAR_PERIODIC,
    Recipe.of("LIN[x] + SE[x]", **_LINEAR, SE_amplitude=5.0, SE_lengthscale=3.0, noise=0.25),
)
# A product has one amplitude: the authors' amplitudes of its factors, multiplied (4·1 and 5·4).
_COMPLEX = (
    Recipe.of(
        "LIN[x]*PER[x]",
        LIN_PER_amplitude=4.0,
        LIN_PER__LIN_location=5.0,
        LIN_PER__PER_lengthscale=2.0,
        LIN_PER__PER_period=5.0,
        noise=0.25,
    ),
    Recipe.of(
        "PER[x]*SE[x] + SE[x]",
        PER_SE_amplitude=20.0,
        PER_SE__PER_lengthscale=2.0,
        PER_SE__PER_period=3.0,
        PER_SE__SE_lengthscale=5.0,
        SE_amplitude=7.0,
        SE_lengthscale=10.0,
        noise=0.25,
    ),
)


def simulate_paper(
    train: int = 6,
    test: int = 100,
    seed: int | np.random.Generator = 0,
    *,
    batches: tuple[int, ...] = (3, 4, 10, 20, 50, 100),
) -> Simulation:
    """The paper's synthetic experiment: x ~ U(-4, 4), half LIN+PER and half SE, noise variance 0.15, 187 rows each.

    The paper prints neither the range of x nor the true hyperparameters; these are SPEC §9's.
    """
    return _simulate(_PAPER, (-4.0, 4.0), batches, train, test, seed)


def simulate_distinct(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "distinct": LIN+PER or SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_DISTINCT, (0.0, 20.0), (5,) * 6, train, test, seed)


def simulate_similar(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "similar": LIN+PER or LIN+SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_SIMILAR, (0.0, 20.0), (5,) * 6, train, test, seed)


def simulate_complex(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "complex": LIN×PER or SE×PER+SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_COMPLEX, (0.0, 20.0), (5,) * 6, train, test, seed)


def _simulate(
    recipes: tuple[Recipe, Recipe],
    bounds: tuple[float, float],
    batches: tuple[int, ...],
    train: int,
    test: int,
    seed: int | np.random.Generator,
) -> Simulation:
    if train < 1 or test < 1:
        raise DataError(f"a simulation needs at least one user on each side, got {train} and {test}")
    rng = as_rng(seed)
    ends = np.cumsum(batches).tolist()
    truth: dict[str, Composition] = {}
    drawn: dict[str, Hyperparameters] = {}

    def group(label: str, size: int) -> Cohort:
        users: list[User] = []
        for number in range(size):
            name = f"{label}-{number + 1:0{max(2, len(str(size)))}d}"
            recipe = recipes[0 if 2 * number < size else 1]
            # A stream for each: how many numbers one user takes does not shift what the next one gets.
            own = np.random.default_rng(rng.integers(0, 2**63, size=4))
            truth[name], drawn[name] = recipe.composition, recipe.draw(own)
            x = own.uniform(*bounds, size=(ends[-1], 1))
            users.append(
                simulate_user(recipe.composition, drawn[name], x, own, name=name, covariates=("x",), ends=ends)
            )
        return Cohort.from_users(users, target="y", scaling="none")

    with one_thread():
        return Simulation(group("train", train), group("test", test), Frozen(truth), Frozen(drawn))


__all__ = [
    "Recipe",
    "Simulation",
    "simulate_complex",
    "simulate_distinct",
    "simulate_paper",
    "simulate_similar",
    "simulate_user",
]
