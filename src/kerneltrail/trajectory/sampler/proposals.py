"""The random choices of moves in Python: the few ways in which they use chance, and the proposal of plates.

Every random choice of such a move goes through a function of this module, called as `proposals.name(...)`. So a test
can put an enumerator in their place, run a move through all its outcomes, and have its exact transition matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerneltrail.kernels import Pool

ADD = 0.3
"""P(add) away from the smallest and the largest composition (paper, Appendix A.1)."""


def index(rng: np.random.Generator, n: int) -> int:
    """0, …, n-1 with equal probability."""
    return int(rng.random() * n)  # random() < 1 in steps of 2⁻⁵³: never n, and ten times faster than integers(n)


def pick(rng: np.random.Generator, weights: Sequence[float]) -> int:
    """An index with probability proportional to its weight."""
    left = rng.random() * math.fsum(weights)
    last = 0
    for i, weight in enumerate(weights):
        if weight > 0.0:
            left -= weight
            last = i
            if left < 0.0:
                break
    return last


def pick_log(rng: np.random.Generator, log_weights: Sequence[float]) -> int:
    """An index with probability proportional to exp of its log weight."""
    top = max(log_weights)
    return pick(rng, [math.exp(w - top) for w in log_weights])


def accept(rng: np.random.Generator, log_ratio: float) -> bool:
    """True with probability min(1, exp(log_ratio)): Metropolis and Hastings."""
    return log_ratio >= 0.0 or (log_ratio > -math.inf and math.log1p(-rng.random()) < log_ratio)


@dataclass(frozen=True)
class Toggle:
    """Add or remove one product (method (24); paper, Appendix A.1).

    P(add) is 1 at the smallest legal size, 0 at the largest, else 0.3. The paper says "N_K ≤ 1" for the smallest; where
    the empty composition is legal that would cut it off from all others, so there the smallest size is 0.

    >>> toggle = Toggle(size=8)
    >>> round(math.exp(toggle.log_prob(0b11, 0b111)), 4), round(math.exp(toggle.log_prob(0b111, 0b11)), 4)
    (0.05, 0.2333)
    """

    size: int
    smallest: int = 1

    @classmethod
    def of(cls, pool: Pool) -> Toggle:
        """The proposal for a pool."""
        return cls(len(pool), 0 if pool.allow_empty else 1)

    def add_probability(self, n: int) -> float:
        """P(add) for a composition of n products."""
        return 0.0 if n >= self.size else 1.0 if n <= self.smallest else ADD

    def log_prob(self, mask: int, proposal: int) -> float:
        """log q(mask → proposal); -inf if they do not differ by one product."""
        if (mask ^ proposal).bit_count() != 1 or proposal.bit_count() < self.smallest:
            return -math.inf
        n = mask.bit_count()
        p_add = self.add_probability(n)
        chance = p_add / (self.size - n) if proposal > mask else (1.0 - p_add) / n
        return math.log(chance) if chance > 0.0 else -math.inf

    def propose(self, rng: np.random.Generator, mask: int) -> tuple[int, float]:
        """A neighbour and log q(proposal → mask) - log q(mask → proposal); the mask itself if it has no neighbour."""
        n = mask.bit_count()
        if self.size == self.smallest:
            return mask, 0.0
        adding = pick(rng, (self.add_probability(n), 1.0 - self.add_probability(n))) == 0
        options = [i for i in range(self.size) if (mask >> i & 1) != adding]
        proposal = mask ^ (1 << options[index(rng, len(options))])
        return proposal, self.log_prob(proposal, mask) - self.log_prob(mask, proposal)
