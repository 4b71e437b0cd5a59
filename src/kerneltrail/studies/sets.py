"""Simulated sets that several studies use: users with a known truth, and priors for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kerneltrail.data import simulate
from kerneltrail.data.simulate import Simulation
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool, Priors, log_normal, normal
from kerneltrail.registry import Registry

PAPER_BATCHES = (3, 4, 10, 20, 50, 100)
"""Rows of each batch in the paper's synthetic experiment: 187 in all."""


@dataclass(frozen=True)
class SimulatedSet:
    """Users with a known truth.

    Attributes:
        simulate: makes them, from ``seed=`` and, where another number is wanted, ``train=`` and ``test=``.
        priors: over hyperparameters, for covariates in the range that the set has.
        pool: products on offer.
        description: what is in it, in a sentence or two.
    """

    simulate: Callable[..., Simulation]
    priors: Callable[[], Priors]
    description: str
    pool: Callable[[], Pool] = Pool.paper


def wide_priors() -> Priors:
    """Priors for covariates in 0…20 whose scale is not known beforehand, as in the authors' later sets.

    The paper's synthetic priors put a location within ±0.6 of 0 and a lengthscale mostly below 4, while those sets have
    locations near 5 and lengthscales up to 10. These only say: a location within the range of x, everything else of
    order 1 to 10.
    """
    return (
        Priors.synthetic()
        .override("location", None, normal(10.0, variance=25.0))
        .override("lengthscale", None, log_normal(1.0, variance=1.0))
        .override("amplitude", None, log_normal(1.5, variance=1.0))
        .override("noise", None, log_normal(-1.0, variance=1.0))
    )


SETS: Registry[SimulatedSet] = Registry("simulation", DataError)
"""The simulations of method §9.1 by name."""

_LATER = (
    "One of the sets of the authors' later work: x ~ U(0, 20), six batches of 5 rows, noise of standard deviation 0.5. "
)
SETS.add(
    "paper",
    SimulatedSet(
        simulate.paper,
        Priors.synthetic,
        "x ~ U(-4, 4); batches of 3, 4, 10, 20, 50 and 100 rows; half of the users follow LIN + PER, half SE. The "
        "paper prints neither the range of x nor the true hyperparameters: ours are medians of its priors, with a "
        "noise variance of 0.15.",
    ),
)
SETS.add(
    "distinct",
    SimulatedSet(simulate.distinct, wide_priors, f"{_LATER}Half of the users follow LIN + PER, half SE."),
)
SETS.add(
    "similar",
    SimulatedSet(simulate.similar, wide_priors, f"{_LATER}Half of the users follow LIN + PER, half LIN + SE."),
)
SETS.add(
    "complex",
    SimulatedSet(simulate.complex, wide_priors, f"{_LATER}Half of the users follow LIN×PER, half SE×PER + SE."),
)
