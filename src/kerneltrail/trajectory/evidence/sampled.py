"""`sampled`: the integral over hyperparameters by importance sampling, one set of draws for all batches (method (45)).

Draws come from a mixture: the prior, and a t around the mode of every batch. Each is weighed for every batch, whatever
component it came from. Where a single draw, a mode that some search ended in, or a point of a coarse scan has much of a
batch's weight, the mixture misses something there: the nearest mode gets a component of its own, and more is drawn.
What is left is judged by Pareto's k (Vehtari et al. 2024, "Pareto smoothed importance sampling"): where it is large
there are too few draws to trust, and Laplace's approximation is used and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.engines import Engine, Serial, engine_for, keep_freed_memory, results
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock
from kerneltrail.gp.importance import Component, effective_size, log_normal_density, log_sum, log_total
from kerneltrail.gp.starts import other_explanations
from kerneltrail.kernels import Array, Composition
from kerneltrail.store.digest import seed_of
from kerneltrail.store.packed import PackedTable
from kerneltrail.trajectory import sampler
from kerneltrail.trajectory.evidence.base import TOLERANCE, PathEvidence
from kerneltrail.trajectory.map_table import Fits, Group, MapTable, block_of

DRAWS = 192
"""Draws to begin with, of all components together."""

OF_PRIOR, OF_GROUP = 0.2, 0.15
"""Shares of them that come from the prior, and from a group where there is one."""

MORE = 32
"""Draws of a component that is added."""

HEAVY = 0.1
"""Share of a batch's weight from which a single draw means that the mixture misses something near it."""

ROUNDS, MODES = 3, 4
"""Most rounds in which components are added, and most components of a round."""

KNOWN = 0.05
"""A mode within so many prior standard deviations of a component is that component's."""

MOST = 768
"""Most draws."""

ROUGH = 1e-2
"""Error allowed in a draw's log likelihood: a tenth of the error of a sampled log evidence (docs, lab notes)."""

SCANNED = 0.1
"""Error allowed where missed modes are looked for: they are told by whole nats."""

RELIABLE = 0.7
"""Largest Pareto k of weights whose mean can be trusted."""

FEW = 8
"""Up to so many (user, composition) pairs are sampled in this process: others would cost more than they save."""

FARTHEST = 8.0
"""A hyperparameter so many prior standard deviations out has no likelihood here: its prior is below 1e-13."""


@dataclass(frozen=True)
class Draws:
    """Weighted draws of one composition's hyperparameters for one user; whitened by the prior.

    Attributes:
        points: (S, k).
        log_proposal: log density of the mixture that they come from, (S,).
        log_likelihood: of each batch at each of them, (S, T).
        log_laplace: Laplace's log evidences under the prior, (T,).
    """

    points: Array
    log_proposal: Array
    log_likelihood: Array
    log_laplace: Array

    def log_weights(self, log_prior: Array) -> Array:
        """Log of likelihood × prior / proposal, (S, T), from the prior's log density at the points (method (45))."""
        return self.log_likelihood + (log_prior - self.log_proposal)[:, None]


@dataclass(frozen=True)
class SampledValues:
    """Log evidences of one composition for one user's batches, and how far they can be trusted.

    Attributes:
        log_evidence: (T,).
        pareto_k: of the weights, (T,); above `RELIABLE` they are not trusted.
        size: how many draws they are worth, (T,).
        replaced: where Laplace's approximation stands in, (T,).
        draws: how many there were.
    """

    log_evidence: Array
    pareto_k: Array
    size: Array
    replaced: np.ndarray[tuple[int], np.dtype[np.bool_]]
    draws: int

    def packed(self) -> bytes:
        """As few bytes, with what only says how far to trust in single precision: there may be a million of them."""
        trust = np.array([self.pareto_k, self.size], dtype=np.float32)
        return np.r_[self.draws, self.log_evidence].tobytes() + trust.tobytes() + self.replaced.tobytes()

    @classmethod
    def unpacked(cls, data: bytes | memoryview) -> SampledValues:
        """From `packed`."""
        batches = (len(data) - 8) // 17
        draws, *_ = exact = np.frombuffer(data, count=1 + batches)
        k, size = np.frombuffer(data, np.float32, 2 * batches, exact.nbytes).astype(np.float64).reshape(2, -1)
        replaced = np.frombuffer(data, np.bool_, batches, exact.nbytes + 8 * batches)
        return cls(exact[1:], k, size, replaced, int(draws))


def log_mean(log_weights: Array) -> Array:
    """Log of the mean weight of each batch, (T,)."""
    return log_total(log_weights) - math.log(len(log_weights))


class Proposal:
    """Draws that grow, with the components they come from, for one user and one composition."""

    def __init__(
        self,
        rows: User,
        composition: Composition,
        prior: gp.map.Prior,
        block: LinearBlock | None,
        fits: Fits,
        rng: np.random.Generator,
        group: Group | None = None,
    ) -> None:
        self.rows, self.composition, self.prior, self.block, self.fits, self.rng = (
            rows, composition, prior, block, fits, rng,
        )  # fmt: skip
        mean, variance = prior.moments(composition)
        self.mean, self.scale = mean, np.sqrt(variance)
        k, batches = len(mean), len(fits.theta)
        share = 1.0 - OF_PRIOR - (0.0 if group is None else OF_GROUP)
        each = max(8, round(share * DRAWS / batches))
        self.components = [Component.prior(k, round(OF_PRIOR * DRAWS))]
        self.components += [self._component(fits.theta[t], fits.precision[t], each) for t in range(batches)]
        if group is not None:
            self.components.append(self._component(group.mean, np.diag(1.0 / group.variance), round(OF_GROUP * DRAWS)))
        self.points = np.empty((0, k))
        self.log_likelihood = np.empty((0, batches))
        self._log_sum = np.empty(0)
        self._searched = gp.whitened.can_search(gp.inputs_for(rows, composition, block=block)) is not None

    def run(self) -> Draws:
        """Draw until no draw is heavy, or until there are enough."""
        self._add_missed_modes()
        self._draw(self.components)
        for _ in range(ROUNDS):
            known = len(self.components)
            self._add_missed_draws()
            if len(self.components) == known:
                break
            self._draw(self.components[known:])
        return self.draws

    def double(self) -> Draws:
        """As many draws again, of every component."""
        self._draw(self.components)
        self._log_sum += math.log(2.0)
        self.components = [replace(each, draws=2 * each.draws) for each in self.components]
        return self.draws

    @property
    def draws(self) -> Draws:
        """What was drawn so far."""
        log_proposal = self._log_sum - math.log(len(self.points))
        return Draws(self.points, log_proposal, self.log_likelihood, self.fits.log_laplace)

    def _whitened(self, thetas: Array) -> Array:
        return (np.reshape(thetas, (-1, len(self.mean))) - self.mean) / self.scale

    def _component(self, theta: Array, precision: Array, draws: int) -> Component:
        whitened = precision * np.multiply.outer(self.scale, self.scale)
        return Component.at_mode((theta - self.mean) / self.scale, whitened, draws)

    def _draw(self, components: Sequence[Component]) -> None:
        """Draw from some of the components; what all of them say of the draws is counted."""
        points = np.concatenate([component.sample(self.rng) for component in components])
        self.points = np.concatenate([self.points, points])
        self.log_likelihood = np.concatenate([self.log_likelihood, self._evaluate(points)])
        self._log_sum = np.concatenate([self._log_sum, log_sum(self.components, points)])

    def _evaluate(self, points: Array, tol: float = ROUGH) -> Array:
        """Log likelihoods of all batches, (S, T); -inf where they cannot be computed."""
        log = np.full((len(points), self.rows.batches), -math.inf)
        near = np.abs(points).max(axis=1, initial=0.0) < FARTHEST
        if near.any():
            log[near] = self._likelihoods(self.mean + self.scale * points[near], tol)
        return log

    def _likelihoods(self, thetas: Array, tol: float) -> Array:
        try:
            return gp.log_evidence(self.rows, self.composition, thetas, tol=tol, block=self.block)
        except NumericalError:  # of one of them
            if len(thetas) == 1:
                return np.full((1, self.rows.batches), -math.inf)
            half = len(thetas) // 2
            return np.concatenate([self._likelihoods(thetas[:half], tol), self._likelihoods(thetas[half:], tol)])

    def _add_missed_modes(self) -> None:
        """Components near points that would be heavy if they were draws, with Laplace's for the total.

        The points are the ends of searches, and a scan from the last batch's mode for modes that no search came near.
        Where a mode cannot be searched for from there, evidences are not cheap either, and there is no scan.
        """
        points = self._whitened(self.fits.ends)
        if self._searched:
            last = self._whitened(self.fits.theta[-1])[0]
            points = np.concatenate([points, other_explanations(last, self.composition)])
        if not len(points):
            return
        log_posterior = self._evaluate(points, SCANNED) + log_normal_density(points)[:, None]
        density = log_sum(self.components, points)
        for _ in range(MODES):
            log_weights = log_posterior - density[:, None]
            missed = self._heaviest(log_weights, np.logaddexp(self.fits.log_laplace, log_weights), points)
            if missed is None:
                return
            density = np.logaddexp(density, missed.log_density(points) + math.log(missed.draws))

    def _add_missed_draws(self) -> None:
        """Components near draws that have too much of some batch's weight."""
        log_posterior = self.log_likelihood + log_normal_density(self.points)[:, None]
        for _ in range(MODES):
            if sum(each.draws for each in self.components) + MORE > MOST:
                return
            log_weights = log_posterior - self._log_sum[:, None]
            missed = self._heaviest(log_weights, log_total(log_weights), self.points)
            if missed is None:
                return
            density = missed.log_density(self.points) + math.log(missed.draws)
            self._log_sum = np.logaddexp(self._log_sum, density)

    def _heaviest(self, log_weights: Array, log_total: Array, points: Array) -> Component | None:
        """A new component where a point has the largest share of a batch's weight; None if no point has much."""
        share = np.exp(log_weights - np.where(np.isfinite(log_total), log_total, 0.0))
        point, batch = np.unravel_index(int(share.argmax()), share.shape)
        if share[point, batch] < HEAVY:
            return None
        self.components.append(self._near(points[point], int(batch)))
        return self.components[-1]

    def _near(self, point: Array, batch: int) -> Component:
        """A component at the mode of a batch that lies uphill from a point.

        It is at the point itself where that mode is known already, or where a search would take longer than draws.
        """
        here = replace(self._component(self.fits.theta[batch], self.fits.precision[batch], MORE), centre=point)
        if not self._searched:
            return here
        try:
            mode = gp.find_map(
                self.rows,
                self.composition,
                self.prior,
                rng=self.rng,
                batch=batch + 1,
                starts=0,
                warm=[self.mean + self.scale * point],
                block=self.block,
                tol=TOLERANCE,
                accuracy=1e-4,
            )
        except NumericalError:
            return here
        component = self._component(mode.hyperparameters.vector, mode.precision, MORE)
        nearest = min(float(np.abs(component.centre - each.centre).max()) for each in self.components[1:])
        return component if nearest > KNOWN else replace(component, centre=point)


def values_of(proposal: Proposal) -> SampledValues:
    """Log evidences under the prior: more draws where Pareto's k is large, Laplace's value where it stays so."""
    draws = proposal.run()
    while True:
        log_weights = draws.log_weights(log_normal_density(draws.points))
        k = sampler.pareto_k(log_weights)
        if (k <= RELIABLE).all() or 2 * len(draws.points) > MOST:
            break
        draws = proposal.double()
    log_evidence = log_mean(log_weights)
    # Weights that cannot be trusted give too little: heavy draws are missing. So does a single mode.
    replaced = (k > RELIABLE) & (draws.log_laplace > log_evidence)
    values = np.where(replaced, draws.log_laplace, log_evidence)
    return SampledValues(values, k, effective_size(log_weights), replaced, len(draws.points))


def proposal_for(table: MapTable, user: int, mask: int, fits: Fits, group: Group | None = None) -> Proposal:
    """The proposal of one (user, mask), seeded by the content of rows and kernel."""
    rows, composition = table.users[user], table.pool.composition(mask)
    rng = np.random.default_rng(seed_of(f"{rows.gist}|{composition.text}|sampled"))
    return Proposal(rows, composition, table.prior, block_of(rows, table.reward), fits, rng, group)


def _values(table: MapTable, user: int, mask: int, fits: bytes) -> bytes:
    """One job, from packed fits to packed values; at module level, so that another process can do it."""
    keep_freed_memory()
    return values_of(proposal_for(table, user, mask, Fits.unpacked(fits))).packed()


class SampledEvidence(PathEvidence):
    """Importance sampling under the prior; what was computed for one (user, mask) is kept."""

    name = "sampled"

    def __init__(self, table: MapTable, largest: int) -> None:
        super().__init__(table, largest)
        self._known: PackedTable[tuple[int, int]] = PackedTable()

    def evaluate(self, user: int, mask: int) -> Array:
        """Log evidences for all batches of one user, (T,)."""
        return self.values(user, mask).log_evidence

    def values(self, user: int, mask: int) -> SampledValues:
        """Log evidences of one user's batches, with Pareto's k and the effective number of draws of each."""
        if (user, mask) not in self._known:
            self._known[user, mask] = _values(self.table, user, mask, self.table.packed(user, mask))
        return SampledValues.unpacked(self._known[user, mask])

    def prepare(
        self,
        pairs: Iterable[tuple[int, int]],
        *,
        workers: Engine | int = 1,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Sample for all (user, mask) pairs, in parallel."""
        missing = [pair for pair in pairs if pair not in self._known]
        jobs = ((pair, (*pair, self.table.packed(*pair))) for pair in missing)
        engine = engine_for(workers) if len(missing) > FEW else Serial()
        progress(0, len(missing))
        for done, (pair, values) in enumerate(results(engine, _values, jobs, self.table.without_fits()), start=1):
            self._known[pair] = values
            progress(done, len(missing))

    @property
    def about(self) -> dict[str, float]:
        """What a model keeps of how its evidences came about."""
        if not self._known:
            return {}
        counts = np.zeros(4, dtype=np.int64)
        for packed in self._known.values():
            values = SampledValues.unpacked(packed)
            unreliable = int((values.pareto_k > RELIABLE).sum())
            counts += (len(values.pareto_k), values.draws, unreliable, int(values.replaced.sum()))
        evidences, draws, unreliable, replaced = counts.tolist()
        return {
            "evidences": evidences,
            "draws": draws / len(self._known),
            "unreliable": unreliable,
            "by_laplace": replaced,
        }
