"""What pilot users say of a composition's hyperparameters: a Normal in the unconstrained space, shrunk to the prior.

It is the prior for a new user's MAP, and the `group` evidence's for each pilot user given the others (method §5.7). A
node of the learnt graph is a composition with its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerneltrail.errors import KernelError
from kerneltrail.gp.map import Prior
from kerneltrail.kernels import Array, Composition
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler.urn import Paths

MEAN_WEIGHT = 0.25
"""How many users the prior's mean is worth: it is vague, so one user's well-determined value should outweigh it."""

SPREAD_WEIGHT = 1.0
"""How many users the prior's variance is worth: with three users a quarter of it is left, with thirty a thirtieth."""


@dataclass(frozen=True)
class Group:
    """A Normal over a composition's k unconstrained hyperparameters, independent between them, learnt from `users`."""

    composition: Composition
    mean: Array
    variance: Array
    users: int

    def moments(self, composition: Composition) -> tuple[Array, Array]:
        """(mean, variance) of each hyperparameter."""
        if composition != self.composition:
            raise KernelError(f"a group of {self.composition} says nothing of {composition}")
        return self.mean, self.variance


def group_of(composition: Composition, thetas: Sequence[Array], prior: Prior) -> Group:
    """The group of users whose MAP hyperparameters are given, one vector each.

    Each hyperparameter by itself, in the manner of a normal-inverse-gamma update (method (18)): with n users of mean
    θ̄, the mean is (κμ₀ + nθ̄)/(κ + n) and the variance (νv₀ + Σ(θ-θ̄)²)/(ν + n). The conjugate term in (θ̄-μ₀)² is
    left out: a group that is far from the prior's mean is not for that reason wide.
    """
    mean0, variance0 = prior.moments(composition)
    n = len(thetas)
    if n == 0:
        return Group(composition, mean0, variance0, 0)
    values = np.array(thetas, dtype=np.float64)
    centre = values.mean(axis=0)
    mean = (MEAN_WEIGHT * mean0 + n * centre) / (MEAN_WEIGHT + n)
    spread = ((values - centre) ** 2).sum(axis=0)
    variance = (SPREAD_WEIGHT * variance0 + spread) / (SPREAD_WEIGHT + n)
    return Group(composition, mean, np.minimum(variance, variance0), n)


def last_use(paths: Paths) -> dict[int, dict[int, int]]:
    """For each composition, the last batch at which each of its users is assigned to it.

    >>> last_use(((1, 1, 3), (3,)))
    {1: {0: 1}, 3: {0: 2, 1: 0}}
    """
    last: dict[int, dict[int, int]] = {}
    for m, path in enumerate(paths):
        for t, mask in enumerate(path):
            last.setdefault(mask, {})[m] = t
    return last


def node_group(table: MapTable, mask: int, paths: Paths) -> Group:
    """What the users assigned to a composition say of its hyperparameters, each at its last batch there."""
    members = sorted(last_use(paths).get(mask, {}).items())
    return group_of(table.pool.composition(mask), [table.get(m, mask).theta[t] for m, t in members], table.prior)


@dataclass(frozen=True)
class Node:
    """A composition of the graph with what the pilot users say of its hyperparameters.

    Attributes:
        mask: within the model's pool.
        composition: the kernel.
        thetas: MAP hyperparameters of the customers assigned to it, (customers, k): the published p(θ|K).
        group: a Normal over them, shrunk to the prior: where a new user's search starts from.
        users: names of the pilot users who passed.
    """

    mask: int
    composition: Composition
    thetas: Array
    group: Group
    users: tuple[str, ...]
