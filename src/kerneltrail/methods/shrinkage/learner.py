"""Shrinkage (method §10.2): a horseshoe over the products of a pool, per user, warm-started from the batch before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.gp import Prediction, inputs_for
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of
from kerneltrail.methods.mixture import Mixture
from kerneltrail.methods.periods import Periods
from kerneltrail.methods.preprocessing import PreparedRows, PreprocessedLearner, Preprocessor
from kerneltrail.methods.protocol import Array, Fit
from kerneltrail.methods.registry import register_learner
from kerneltrail.methods.shrinkage.elbo import ComponentWeight, EvidenceLowerBound, Factors, weights_of
from kerneltrail.methods.shrinkage.evidence_selection import SumEvidence, select_by_evidence
from kerneltrail.methods.shrinkage.optima import StartingRound, find_optima, weigh_optima
from kerneltrail.methods.shrinkage.scales import standard_draws
from kerneltrail.methods.shrinkage.starting_points import around, greedy, own_map, periods_of, start_of

SelectionRule = Literal["share", "evidence"]
"""What decides which components are selected."""

HOPS = 0x686F70
"""Sets the random numbers of hops apart from those of rounds."""


@dataclass(frozen=True)
class ShrinkageFit:
    """What shrinkage makes of the rows; a `Fit`. Predictions come from the whole model, draws of the scales averaged.

    Attributes:
        factors: variational factors and hyperparameters: the highest optimum of the bound. What is selected is its.
        bound: the evidence lower bound there; 0 before any row.
        parts: the optima that predictions are averaged over, each with its log weight; one alone unless asked for.
    """

    learner: Shrinkage
    prepared: PreparedRows
    factors: Factors
    bound: float
    parts: tuple[tuple[Factors, float], ...]

    @cached_property
    def mixture(self) -> Mixture:
        """One Gaussian process for each draw of the scales, of every part."""
        elbo = self.learner.elbo(self.prepared)
        members, weights = list[Hyperparameters](), list[float]()
        for factors, log_weight in self.parts:
            for row in elbo.log_scales(factors):
                vector = elbo.vector(factors.theta, row[0] + row[1:])
                members.append(Hyperparameters(self.learner.whole, tuple(vector)))
                weights.append(float(np.exp(log_weight)) / len(elbo.draws))
        return Mixture(self.prepared, tuple(members), tuple(weights), self.composition)

    @cached_property
    def weights(self) -> tuple[ComponentWeight, ...]:
        """The posterior of every component, the largest share first."""
        if not self.prepared.rows.rows:
            return ()
        return weights_of(self.learner.elbo(self.prepared), self.factors, self.learner.whole)

    @cached_property
    def composition(self) -> Composition:
        """Components with at least `share` of the signal's variance and `size` of all, or that are `clear`; or none.

        Where evidence judges, what it makes of them.
        """
        learner, rows = self.learner, self.prepared.whole
        selected = Composition(tuple(weight.product for weight in self.weights if learner.selects(weight)))
        if learner.judge == "share" or not rows.rows:
            return selected
        log_weights, _ = self.factors.log_weights
        vector = learner.elbo(self.prepared).vector(self.factors.theta, log_weights)
        periods = periods_of(rows)
        sums = SumEvidence(rows, learner.pool, learner.priors, self.prepared.block, periods, vector, learner.seed)
        return select_by_evidence(sums, selected)

    def predict(self, X: Array, action: Assignment | None) -> Prediction:
        """Mean and variance in data units."""
        return self.mixture.predict(X, action)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = {**_plain(self.factors), "bound": self.bound}
        if self.learner.average:
            plain["parts"] = [{**_plain(factors), "log_weight": log} for factors, log in self.parts]
        return plain


def _plain(factors: Factors) -> dict[str, list[float]]:
    return {"m": factors.m.tolist(), "v": factors.v.tolist(), "theta": factors.theta.tolist()}


@dataclass(frozen=True)
class Shrinkage(PreprocessedLearner):
    """The shrinkage method; a `Learner`.

    Attributes:
        pool: the products on offer.
        priors: over their hyperparameters; amplitudes have none, the horseshoe takes their place.
        share: least expected share of the signal's variance of a selected component.
        size: least expected share of signal and noise together that goes with it: weak signals select nothing.
        clear: or, whatever its share of the signal, its least share of itself and the noise, almost surely. A steep
            line may have 99 % of the signal's variance, and a wave on it still stand out. 1 leaves the rule out.
        judge: ``share``, by which the three above select (method §10.2); or ``evidence``: sums of few products are
            fitted by themselves, and steps from what was selected go where H0 and Laplace's evidence are larger
            (`select_by_evidence`). The priors' amplitudes count then, and it costs several times the fit.
        pairs: antithetic pairs of draws of the scales.
        greedy: most products of a greedy sum from which the first search starts, besides others; 0 for none. It costs
            about as much again, and pays on a series with a trend and cycles.
        restarts: rounds of starts, each with random numbers of its own and as costly as the first.
        hops: further searches from the best optimum, parts of it begun anew.
        average: whether predictions are averaged over the optima found (see `weigh_optima`), or come from the highest.
        iterations: of a search, at most.
        tolerance: relative change of the bound at which it ends.
        seed: of draws and starts.
    """

    pool: Pool
    priors: Priors
    share: float = 0.1
    size: float = 0.05
    clear: float = 0.5
    judge: SelectionRule = "share"
    pairs: int = 8
    greedy: int = 0
    restarts: int = 1
    hops: int = 0
    average: bool = False
    iterations: int = 500
    tolerance: float = 1e-7
    seed: int = 0

    in_pieces = False  # each batch starts from the optimum of the one before

    def __post_init__(self) -> None:
        if not (0.0 < self.share <= 1.0 and 0.0 <= self.size <= 1.0 and 0.0 < self.clear <= 1.0):
            raise DataError("shrinkage needs share, size and clear between 0 and 1")
        if self.pairs < 1 or self.iterations < 1 or self.greedy < 0:
            raise DataError("shrinkage needs at least one pair of draws, one iteration and greedy ≥ 0")
        if self.judge not in get_args(SelectionRule):
            raise DataError(f"shrinkage has no judge {self.judge!r}; there are {', '.join(get_args(SelectionRule))}")
        if self.restarts < 1 or self.hops < 0:
            raise DataError("shrinkage needs restarts ≥ 1 and hops ≥ 0")

    @classmethod
    def for_series(cls, preprocessor: Preprocessor, pool: Pool, priors: Priors, *, seed: int = 0) -> Shrinkage:
        """Settings for one series that is fitted once: three rounds of starts and twelve hops from the best."""
        return cls(preprocessor, pool, priors, greedy=4, restarts=3, hops=12, average=True, seed=seed)

    @property
    def settings(self) -> str:
        """All settings that are numbers or words but the seed, as one line."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "seed"}
        return " ".join(f"{name}={value}" for name, value in plain.items() if isinstance(value, int | float | str))

    def selects(self, weight: ComponentWeight) -> bool:
        """Whether a component is selected."""
        return (weight.share >= self.share and weight.size >= self.size) or weight.clear >= self.clear

    @cached_property
    def whole(self) -> Composition:
        """The sum of all products."""
        return Composition(self.pool.products)

    @cached_property
    def draws(self) -> Array:
        """Fixed draws, (S, P + 1): the same for all users and batches."""
        return standard_draws(len(self.pool) + 1, self.pairs, self.seed)

    def elbo(self, prepared: PreparedRows) -> EvidenceLowerBound:
        """The bound for these rows; without rows, only its layout makes sense."""
        rows = prepared.rows
        if not rows.rows:
            rows = User(rows.name, rows.covariates, np.zeros((1, len(rows.covariates))), [0.0], (1,))
        inputs = inputs_for(rows, self.whole, block=prepared.block if prepared.rows.rows else None)
        mean, variance = (np.delete(each, inputs.layout.amplitude_index) for each in self.priors.moments(self.whole))
        return EvidenceLowerBound(inputs, mean, variance, self.draws)

    def fit(self, rows: User, before: Fit | None) -> ShrinkageFit:
        """Maximise the bound from several starts; the best bound wins.

        They are each kernel's own MAP, the prior medians, and the optimum of the batch before or else a greedy sum.
        """
        prepared = self.preprocessor.prepare(rows)
        elbo = self.elbo(prepared)
        if not rows.rows:
            # The medians of the half-Cauchy priors: their means are infinite, so there is no prior variance to quote.
            scales = len(self.pool) + 1
            medians = Factors(np.zeros(scales), np.full(scales, 1e-8), elbo.mean)
            return ShrinkageFit(self, prepared, medians, 0.0, ((medians, 0.0),))
        warm = before.factors if isinstance(before, ShrinkageFit) and before.prepared.rows.rows else None
        periods = periods_of(prepared.rows)
        optima = find_optima(
            elbo,
            lambda number: self._round(number, prepared, elbo, periods, warm),
            restarts=self.restarts,
            hops=self.hops,
            rng=np.random.default_rng([self.seed, rows.rows, self.restarts, HOPS]),
            iterations=self.iterations,
            tolerance=self.tolerance,
        )
        best = optima[0]
        parts = weigh_optima(elbo, optima) if self.average else ((best, 0.0),)
        return ShrinkageFit(self, prepared, best.factors, best.bound, tuple((each.factors, log) for each, log in parts))

    def _round(
        self, number: int, prepared: PreparedRows, elbo: EvidenceLowerBound, periods: Periods, warm: Factors | None
    ) -> StartingRound:
        """The starts of one round; the first is the same however many there are."""
        rng = np.random.default_rng([self.seed, prepared.rows.rows, *((number,) if number else ())])
        size, products = float(np.var(prepared.rows.y)) or 1.0, len(self.pool)
        alone = own_map(prepared.whole, self.whole, self.priors, rng, prepared.block, periods)
        theta = alone[elbo.places]
        starts = [start_of(theta, products, size)]
        if not number:
            starts.append(start_of(elbo.mean, products, size))
            if warm is not None:
                return StartingRound((*starts, warm), theta)
        seed = int(rng.integers(2**31)) if number else 0
        fitted = greedy(prepared.whole, self.whole, self.priors, prepared.block, periods, self.greedy, seed=seed)
        if fitted is not None:
            starts.append(around(fitted, self.whole, alone, size))
        return StartingRound(tuple(starts), theta)

    def restore(self, rows: User, stored: Mapping[str, Any]) -> ShrinkageFit:
        """The fit that was kept."""
        optima = stored.get("parts", [{**stored, "log_weight": 0.0}])  # one alone is not kept twice
        parts = tuple((self._factors(part), float(part["log_weight"])) for part in optima)
        return ShrinkageFit(self, self.preprocessor.prepare(rows), self._factors(stored), float(stored["bound"]), parts)

    def _factors(self, stored: Mapping[str, Any]) -> Factors:
        m, v, theta = (np.array(stored[name], dtype=np.float64) for name in ("m", "v", "theta"))
        products = len(self.pool)
        if m.shape != v.shape or len(m) != products + 1 or len(theta) + products != layout_of(self.whole).size:
            raise DataError(f"the stored factors are not of a pool of {products} products")
        return Factors(m, v, theta)


register_learner("shrinkage", Shrinkage, "own rows")
