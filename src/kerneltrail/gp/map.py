"""Maximum a posteriori hyperparameters (method (16)), from many starts, with the curvature at the optimum.

The search runs in the unconstrained space, whitened by the prior (method §3.1): one unit is one prior standard
deviation of every hyperparameter, so one step size fits all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp.batch_search import BatchSearch
from kerneltrail.gp.evidence import TOLERANCE, Method
from kerneltrail.gp.inputs import Inputs, Rows, inputs_for
from kerneltrail.gp.numerics import LEAST_CURVATURE, LOG_2PI
from kerneltrail.gp.reward import LinearBlock
from kerneltrail.gp.starts import KnownPoints, best_apart, other_periods, spread_points
from kerneltrail.gp.whitened import WhitenedPosterior
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.hyperparameters import Hyperparameters

Array = NDArray[np.float64]

ACCURACY = 1e-9
"""Default relative change of a log posterior below which a search ends."""


PERIODIC_SCREEN = 6
"""Times as many points are screened for the batches of a user where there are periods; all batches share them."""

SCREENED = 0.1
"""Error of a log evidence that is allowed where starts are chosen: points that differ by less are as good."""

OTHER_PERIODS = (40, 24)
"""Points at which other values of each period are tried: with the optimum of the last batch, and of each other one."""


class Prior(Protocol):
    """A Normal over a composition's unconstrained hyperparameters; `kerneltrail.kernels.Priors` is one."""

    def moments(self, composition: Composition) -> tuple[Array, Array]:
        """(mean, variance) of each hyperparameter."""
        ...


@dataclass(frozen=True)
class MapResult:
    """The best hyperparameters found, and how.

    Attributes:
        hyperparameters: the maximum a posteriori value.
        log_posterior: log p(y|X,θ) + log p(θ) there, the prior's density taken in the unconstrained space.
        log_likelihood: log p(y|X,θ) there, the function integrated out and the hyperparameters not.
        precision: minus the Hessian of the log posterior in the unconstrained space, (k, k).
        prior_variance: of each hyperparameter in the unconstrained space, (k,).
        status: of the winning search: ``converged``, ``flat``, ``edge``, ``stuck`` or ``iterations`` (see `Minimum`).
        iterations: of the winning search.
        evaluations: evidences computed, all starts and the curvature together.
        optima: log posterior at the end of every search, best first; more than one near the top means several modes.
        handed_over: searches that compiled code could not finish, and the general search did.
        ends: unconstrained hyperparameters at the end of every search, in the same order, (searches, k).
    """

    hyperparameters: Hyperparameters
    log_posterior: float
    log_likelihood: float
    precision: Array
    prior_variance: Array
    status: str
    iterations: int
    evaluations: int
    optima: tuple[float, ...]
    handed_over: int = 0
    ends: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def composition(self) -> Composition:
        """The kernel that was fitted."""
        return self.hyperparameters.composition

    @property
    def converged(self) -> bool:
        """Whether the search ended because nothing was left to gain."""
        return self.status in ("converged", "flat")

    @cached_property
    def log_laplace(self) -> float:
        """Laplace's approximation of log p(y|X,K) (method (17)): log posterior + (k/2) log 2π - ½ log|precision|.

        A direction in which the optimum is not a maximum (a saddle, or a search cut short) would make the integral
        diverge; its curvature, relative to the prior's, is floored at `LEAST_CURVATURE`.
        """
        scale = np.sqrt(self.prior_variance)
        eigenvalues = np.linalg.eigvalsh(self.precision * np.multiply.outer(scale, scale))
        logdet = float(np.log(np.maximum(eigenvalues, LEAST_CURVATURE)).sum()) - float(
            np.log(self.prior_variance).sum()
        )
        return self.log_posterior + 0.5 * len(eigenvalues) * LOG_2PI - 0.5 * logdet


def find_map(
    user: Rows,
    composition: Composition,
    priors: Prior,
    *,
    rng: np.random.Generator | None = None,
    batch: int | None = None,
    starts: int = 8,
    screen: int = 64,
    points: Array | None = None,
    warm: Sequence[Hyperparameters | ArrayLike] = (),
    block: LinearBlock | None = None,
    method: Method = "auto",
    tol: float = TOLERANCE,
    accuracy: float = ACCURACY,
) -> MapResult:
    """The maximum a posteriori hyperparameters of a composition for a user's rows up to a batch.

    Args:
        user: rows in time order.
        composition: the kernel.
        priors: over its hyperparameters.
        rng: source of the starts that are drawn; a fixed one if None.
        batch: how many batches count (from 1); all if None.
        starts: number of searches.
        screen: number of points evaluated to choose the starts from. Periods are spread evenly over their prior there,
            because the likelihood has a mode near every fraction and multiple of the true one.
        points: `screen` points to choose from that were drawn before, whitened, (screen, k); drawn here if None.
        warm: further starts, e.g. the optimum of the batch before.
        block: linear block of a reward model, for all of the user's rows.
        method: how evidence is computed.
        tol: error allowed in a log evidence.
        accuracy: relative change of the log posterior below which a search ends.
    """
    inputs = inputs_for(user, composition, block=block)
    count = len(inputs.ends) if batch is None else batch
    if not 1 <= count <= len(inputs.ends):
        raise DataError(f"user {user.name!r} has batches 1 to {len(inputs.ends)}; asked for {batch}")
    if starts < 1 and not warm:
        raise KernelError("a search needs at least one start")
    target = _target(inputs.upto(int(inputs.ends[count - 1])), priors, method, tol)
    given = np.reshape([target.whiten(_vector(item, inputs)) for item in warm], (-1, len(target.mean)))
    chosen = np.empty((0, len(target.mean)))
    screened = 0
    if starts:
        source = np.random.default_rng(0) if rng is None else rng
        chosen = spread_points(composition, source, max(screen, starts)) if points is None else points
        if screen > starts:
            chosen, screened = chosen[best_apart(chosen, target.values(chosen)[:, -1], starts)], screen
    search = BatchSearch(target, accuracy)
    search.run(np.concatenate([given, chosen]), max(starts, 1))
    return _result(search, screened)


def find_map_path(
    user: Rows,
    composition: Composition,
    priors: Prior,
    *,
    rng: np.random.Generator,
    starts: int = 8,
    screen: int = 64,
    block: LinearBlock | None = None,
    method: Method = "auto",
    tol: float = TOLERANCE,
    accuracy: float = ACCURACY,
) -> tuple[MapResult, ...]:
    """`find_map` for every batch of a user, the last one first.

    All batches are screened at the same points, in one pass, and the optimum of each is a start for the others. Where
    there are periods, `PERIODIC_SCREEN` times as many points are screened; then other periods are tried with the rest
    of the hyperparameters as they were found.
    """
    if starts < 1:
        raise KernelError("a search needs at least one start")
    inputs = inputs_for(user, composition, block=block)
    whole = _target(inputs, priors, method, tol)
    rough = max(tol, SCREENED)
    periodic = any(slot.spec.kind == "period" for slot in inputs.layout.slots)
    points = spread_points(composition, rng, max(screen, starts) * (PERIODIC_SCREEN if periodic else 1))
    known = KnownPoints(points, whole.values(points, rough))
    searches = [BatchSearch(replace(whole, inputs=inputs.upto(int(end))), accuracy) for end in inputs.ends]

    def learn(search: BatchSearch, periods: int = 0) -> None:
        """Add an optimum to what is known, with points that differ from it in a period."""
        best = search.best.point
        new = np.concatenate([best[None], other_periods(best, composition, rng, periods)]) if periods else best[None]
        known.add(new, whole.values(new, rough), search.learnt)

    for t, search in reversed(list(enumerate(searches))):
        which = best_apart(known.points, known.values[:, t], 1 + starts)
        search.run(known.points[which], inverse=[known.inverse[i] for i in which])
        if search is searches[-1]:
            learn(search, OTHER_PERIODS[0])
            if periodic and search.improve(known.points, known.values[:, t]):
                learn(search, OTHER_PERIODS[0])
                search.improve(known.points, known.values[:, t])
            continue
        learn(search)
        if periodic and t:  # with the first few rows every period is about as good
            points = other_periods(search.best.point, composition, rng, OTHER_PERIODS[1])
            search.improve(points, search.target.values(points, rough)[:, -1])
    for t, search in enumerate(searches):
        if search.improve(known.points, known.values[:, t]):
            learn(search)
    return tuple(_result(search, len(known.points)) for search in searches)


def _result(search: BatchSearch, screened: int) -> MapResult:
    """The best optimum of a search, with the curvature there."""
    target, ends = search.target, sorted(search.ends, key=attrgetter("value"))
    best = ends[0]
    if not math.isfinite(best.value):
        raise NumericalError(
            f"no start gave a finite posterior for {target.inputs.label}: the targets may be far out of scale"
        )
    return MapResult(
        Hyperparameters(target.inputs.composition, tuple(target.unwhiten(best.point))),
        -best.value,
        -best.value - float(target.log_prior(best.point)),
        search.hessian / np.multiply.outer(target.scale, target.scale),
        target.scale**2,
        best.status,
        best.iterations,
        screened + search.evaluations + 2 * len(best.point),
        tuple(-end.value for end in ends),
        search.handed_over,
        target.unwhiten(np.array([end.point for end in ends])),
    )


def _target(inputs: Inputs, priors: Prior, method: Method, tol: float) -> WhitenedPosterior:
    mean, variance = priors.moments(inputs.composition)
    return WhitenedPosterior(inputs, mean, np.sqrt(variance), method, tol)


def _vector(item: Hyperparameters | ArrayLike, inputs: Inputs) -> Array:
    if isinstance(item, Hyperparameters):
        if item.composition != inputs.composition:
            raise KernelError(f"a warm start of {item.composition} cannot serve {inputs.composition}")
        return item.vector
    return inputs.vectors(item)[0]
