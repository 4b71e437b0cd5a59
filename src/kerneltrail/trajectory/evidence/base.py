"""What an evidence of compositions is, and the plainest one (method §5). Each is one class, registered once.

An evidence says how probable the rows of a customer are under a composition, hyperparameters integrated out in its own
way. It serves twice: chains ask it for pilot users, from their fits (`PathEvidence.evaluate`), and a followed user asks
it for each node of the learnt graph (`PathEvidence.estimate`). Nothing elsewhere knows which evidences there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.engines import Engine
from kerneltrail.errors import TrajectoryError
from kerneltrail.gp import LinearBlock
from kerneltrail.kernels import Array, Composition
from kerneltrail.registry import Registry, subclass_of
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler.urn import Paths

if TYPE_CHECKING:
    from kerneltrail.trajectory.graph import Node

TOLERANCE = 1e-4
"""Error allowed in a log evidence of a followed user: far below what could change a choice."""


SCREENED = 8
"""Points of which the best is a start beside the optimum of the batch before."""


@lru_cache(maxsize=4096)
def _starts(composition: Composition, rows: int) -> Array:
    """The points for so many rows: the same rows give the same answer, whenever they are shown."""
    points = gp.starts.spread_points(composition, np.random.default_rng(rows), SCREENED)
    points.setflags(write=False)
    return points


class Evidence(Protocol):
    """log p(y[m,t] | X[m,t], K) for given data, as samplers see it. It remembers what it has computed."""

    @property
    def customers(self) -> Sequence[int]:
        """T_m, the number of batches of each user."""
        ...

    def log_evidence(self, user: int, mask: int) -> Array:
        """The log evidences of one composition for all batches of one user, shape (T_m,)."""
        ...


class NodeEstimate(NamedTuple):
    """What an evidence makes of a followed user's rows at one node of the graph.

    Attributes:
        theta: the user's hyperparameters there, unconstrained, (k,).
        log_evidence: of all rows.
        precision: curvature of the log posterior at `theta`, (k, k); None where the evidence has no Laplace factor.
    """

    theta: Array
    log_evidence: float
    precision: Array | None


class PathEvidence(ABC):
    """An evidence of pilot users' batches, which may learn hyperparameters from the paths.

    A subclass defines `evaluate`. If its values depend on who is assigned where, it also defines `for_paths`; if it
    does not judge a followed user by Laplace's approximation, `estimate`. A fit makes it with (table, largest).

    A composition is given as a mask, a number whose bit i says whether product i of the pool is in it;
    ``table.pool.composition(mask)`` is the composition itself.

    Attributes:
        name: what a configuration calls it.
        learns: whether its values depend on the paths, so that chains ask for them anew after every sweep. It is so
            where `for_paths` is defined, and need not be stated.
        table: MAP fits of every (user, composition).
        largest: most products of a composition; larger ones have no evidence.
        customers: the number of batches of each user.
    """

    name: ClassVar[str]
    learns: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.learns = cls.for_paths is not PathEvidence.for_paths

    def __init__(self, table: MapTable, largest: int) -> None:
        self.table = table
        self.largest = largest
        self.customers = tuple(user.batches for user in table.users)

    @abstractmethod
    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences of a composition of allowed size for one user, (T,): of the rows up to each of T batches."""

    def log_evidence(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        if mask.bit_count() > self.largest:
            return np.full(self.customers[user], -math.inf)
        return self.evaluate(user, mask)

    def for_paths(self, paths: Paths) -> PathEvidence:
        """The evidence when customers are assigned as in `paths`; itself if it learns nothing from them."""
        return self

    def prepare(  # noqa: B027  most evidences need nothing
        self,
        pairs: Iterable[tuple[int, int]],
        *,
        workers: Engine | int = 1,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Compute ahead, in parallel, what chains will ask for of (user, mask) pairs; nothing unless defined.

        `progress` is called with (done, total).
        """

    @property
    def about(self) -> Mapping[str, float]:
        """What a model should keep of how its evidences came about; nothing unless defined."""
        return {}

    @classmethod
    def estimate(cls, node: Node, rows: User, block: LinearBlock | None, start: Array) -> NodeEstimate:
        """All rows of a followed user at one node, searched from `start`: Laplace's under the node's group."""
        result = gp.find_map(
            rows,
            node.composition,
            node.group,
            batch=rows.batches,
            starts=1,
            screen=SCREENED,
            points=_starts(node.composition, rows.rows),
            warm=[start],
            block=block,
            tol=TOLERANCE,
            accuracy=1e-5,
        )
        return NodeEstimate(result.hyperparameters.vector, result.log_laplace, result.precision)


class LaplaceEvidence(PathEvidence):
    """`laplace`: Laplace's approximation around each customer's own MAP (method (17)): what the table of fits holds."""

    name = "laplace"

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        return self.table.get(user, mask).log_laplace


EVIDENCES: Registry[type[PathEvidence]] = Registry("evidence", TrajectoryError, subclass_of(PathEvidence))
"""What `Settings.evidence` may name."""
