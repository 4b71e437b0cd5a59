"""What a horseshoe selects, put right by evidence: products that stand in for one another are told apart by refitting.

In one model at once, PER and PER·SE, or SE and LIN·SE, share the same signal out between them, and no share of variance
says which of them is needed. Sums of few products, each fitted by itself, are compared instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kerneltrail.data import User
from kerneltrail.gp import LinearBlock
from kerneltrail.kernels import Composition, Pool, Priors, layout_of
from kerneltrail.methods.periods import Periods
from kerneltrail.methods.protocol import Array
from kerneltrail.methods.shrinkage.starting_points import at_periods, coarse_map


@dataclass
class SumEvidence:
    """How probable sums of a pool's products are on the same rows, by H0 and Laplace's evidence; each is fitted once.

    The rows are scaled, as one batch; H0 is the pool's, and the priors include amplitudes. Fits start from the likely
    periods on each covariate, from `whole`, the hyperparameters of the sum of all products, and at random by the seed.
    """

    rows: User
    pool: Pool
    priors: Priors
    block: LinearBlock | None
    periods: Periods
    whole: Array
    seed: int
    known: dict[Composition, float] = field(default_factory=dict)

    def of(self, composition: Composition) -> float:
        """log H0(K) + log p(y|X,K), the latter by Laplace's approximation; the empty sum has its share of H0 too.

        Without H0 all 2^P sums would count alike, and most of these have half of the products.
        """
        if composition not in self.known:
            numbers = [self.pool.products.index(product) for product in composition]
            mean, _ = self.priors.moments(composition)
            warm = [self._inherited(composition), at_periods(mean, composition, self.periods)]
            rng = np.random.default_rng([self.seed, self.rows.rows, *numbers])
            evidence = coarse_map(self.rows, composition, self.priors, rng, self.block, warm).log_laplace
            included = np.isin(np.arange(len(self.pool)), numbers)
            probable = np.where(included, self.pool.probabilities, 1.0 - np.array(self.pool.probabilities))
            self.known[composition] = evidence + float(np.log(probable).sum())
        return self.known[composition]

    def _inherited(self, composition: Composition) -> Array:
        """Hyperparameters as they are in the sum of all."""
        every = Composition(self.pool.products)  # in an order of its own
        numbers = [every.products.index(product) for product in composition]
        slots = layout_of(every).slots
        places = [index for number in numbers for index, slot in enumerate(slots) if slot.product == number]
        return self.whole[[*places, -1]]


def select_by_evidence(sums: SumEvidence, first: Composition) -> Composition:
    """The sum that is reached from `first` by single steps, each to a more probable sum, until there is none.

    Steps of the cheapest kind are tried first and the best of a kind is taken: one product less, one more, one
    exchanged for another of the pool. It may be the empty sum.
    """
    here = first
    while True:
        for nearby in (fewer(here), more(here, sums.pool), exchanged(here, sums.pool)):
            best = max(nearby, key=sums.of, default=here)
            if sums.of(best) > sums.of(here):
                here = best
                break
        else:
            return here


def fewer(composition: Composition) -> tuple[Composition, ...]:
    """Sums with one product less."""
    inside = composition.products
    return tuple(Composition(inside[:i] + inside[i + 1 :]) for i in range(len(inside)))


def more(composition: Composition, pool: Pool) -> tuple[Composition, ...]:
    """Sums with one product of the pool more."""
    inside = composition.products
    return tuple(Composition((*inside, product)) for product in pool.products if product not in inside)


def exchanged(composition: Composition, pool: Pool) -> tuple[Composition, ...]:
    """Sums with one product exchanged for one of the pool that is not among them."""
    return tuple(other for less in fewer(composition) for other in more(less, pool) if other != composition)
