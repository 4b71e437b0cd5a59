"""The simulated experiments of the paper and of the authors' later work (method §9.1), with the truth beside the data.

Users of the first half of a group have the first true kernel, the others the second. Every user has hyperparameters
of its own, near the same centre, and one function drawn exactly from its kernel.
"""

from __future__ import annotations

import numpy as np

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.frozen_dict import FrozenDict
from kerneltrail.data.simulate.truth import LOG_SD, Simulation, TrueKernel, as_rng, draw_group, truth_of, user
from kerneltrail.data.user import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import DataError
from kerneltrail.kernels import Hyperparameters, parse

# method §9.1: medians of the synthetic priors (method §3.1) are exp(0) for lengthscales and exp(1) for amplitudes and
# periods. The location's prior is N(0, 0.1), with median 0; it has no logarithm, so the spread of 0.1 is taken as it
# stands.
_PAPER = (
    TrueKernel(
        parse("LIN[x] + PER[x]"),
        {
            "LIN[x].amplitude": np.e,
            "LIN[x].location": 0.0,
            "PER[x].amplitude": np.e,
            "PER[x].lengthscale": 1.0,
            "PER[x].period": np.e,
            "noise": 0.15,
        },
        location_sd=LOG_SD,
    ),
    TrueKernel(parse("SE[x]"), {"SE[x].amplitude": np.e, "SE[x].lengthscale": 1.0, "noise": 0.15}),
)
_LINEAR = {"LIN[x].amplitude": 4.0, "LIN[x].location": 5.0, "noise": 0.25}
_LINEAR_PERIODIC = TrueKernel(
    parse("LIN[x] + PER[x]"),
    {**_LINEAR, "PER[x].amplitude": 5.0, "PER[x].lengthscale": 2.0, "PER[x].period": 4.0},
)
_DISTINCT = (
    _LINEAR_PERIODIC,
    TrueKernel(parse("SE[x]"), {"SE[x].amplitude": 10.0, "SE[x].lengthscale": 1.0, "noise": 0.25}),
)
_SIMILAR = (
    _LINEAR_PERIODIC,
    TrueKernel(parse("LIN[x] + SE[x]"), {**_LINEAR, "SE[x].amplitude": 5.0, "SE[x].lengthscale": 3.0}),
)
# The authors give each factor of a product an amplitude. Here a product has one (method §2): theirs multiplied, 4·1 and
# 5·4, with the same log-sd as every other hyperparameter.
_COMPLEX = (
    TrueKernel(
        parse("LIN[x]*PER[x]"),
        {
            "LIN[x]*PER[x].amplitude": 4.0,
            "LIN[x]*PER[x]: LIN[x].location": 5.0,
            "LIN[x]*PER[x]: PER[x].lengthscale": 2.0,
            "LIN[x]*PER[x]: PER[x].period": 5.0,
            "noise": 0.25,
        },
    ),
    TrueKernel(
        parse("PER[x]*SE[x] + SE[x]"),
        {
            "PER[x]*SE[x].amplitude": 20.0,
            "PER[x]*SE[x]: PER[x].lengthscale": 2.0,
            "PER[x]*SE[x]: PER[x].period": 3.0,
            "PER[x]*SE[x]: SE[x].lengthscale": 5.0,
            "SE[x].amplitude": 7.0,
            "SE[x].lengthscale": 10.0,
            "noise": 0.25,
        },
    ),
)


def paper(
    train: int = 6,
    test: int = 100,
    seed: int | np.random.Generator = 0,
    *,
    batches: tuple[int, ...] = (3, 4, 10, 20, 50, 100),
) -> Simulation:
    """The paper's synthetic experiment: x ~ U(-4, 4), half LIN+PER and half SE, noise variance 0.15, 187 rows each.

    The paper prints neither the range of x nor the true hyperparameters; these are ours (method §9.1).
    """
    return _simulate(_PAPER, (-4.0, 4.0), batches, train, test, seed)


def distinct(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "distinct": LIN+PER or SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_DISTINCT, (0.0, 20.0), (5,) * 6, train, test, seed)


def similar(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "similar": LIN+PER or LIN+SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_SIMILAR, (0.0, 20.0), (5,) * 6, train, test, seed)


def complex(train: int = 10, test: int = 50, seed: int | np.random.Generator = 0) -> Simulation:
    """The authors' later set "complex": LIN×PER or SE×PER+SE; x ~ U(0, 20), six batches of five rows, noise sd 0.5."""
    return _simulate(_COMPLEX, (0.0, 20.0), (5,) * 6, train, test, seed)


def _simulate(
    kernels: tuple[TrueKernel, TrueKernel],
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
    drawn: dict[str, Hyperparameters] = {}

    def group(label: str, size: int) -> Cohort:
        users: list[User] = []
        for name, kernel, stream in draw_group(rng, kernels, label, size):
            drawn[name] = kernel
            x = stream.uniform(*bounds, size=(ends[-1], 1))
            users.append(user(kernel.composition, kernel, x, stream, name=name, covariates=("x",), ends=ends))
        return Cohort.from_users(users, target="y", scaling="none")

    with one_blas_thread():
        return Simulation(group("train", train), group("test", test), truth_of(drawn), FrozenDict(drawn))
