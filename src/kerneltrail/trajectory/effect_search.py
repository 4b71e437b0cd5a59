"""From the posteriors of the kernels that count to one user's effects (method §8.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Array
from kerneltrail.trajectory.echo import echo_of
from kerneltrail.trajectory.effects import Effect, Effects, Interaction, Shape
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.kernel_posterior import KernelPosterior, block_features
from kerneltrail.trajectory.picking import picking

POINTS = 31
"""Points of a curve."""
FEW = 5
"""Up to so many different values a covariate has levels."""
TURN = 0.15
"""A curve that falls back by less than this share of its range still counts as a trend."""
LIKELY = 0.5
"""From this probability of the kernels with a period on, an effect is called a rhythm; else it is a curve or a line."""
PAIRS = 5
"""Values of each covariate at which an interaction is looked at."""


@dataclass(frozen=True)
class Span:
    """Over which values of a covariate its effect is stated, scaled.

    Attributes:
        x: the points, ascending.
        share: how much of what occurred is nearest to each of them.
        ends: the values below and above which a tenth of what occurred lies.
        leveled: whether the points are all values that there are.
    """

    x: Array
    share: Array
    ends: tuple[float, float]
    leveled: bool

    @classmethod
    def of(cls, model: LearntGraph, name: str, seen: Array) -> Self:
        """The span of values of a covariate, as often as they occurred."""
        distinct, schema = np.unique(seen), model.schema
        leveled = len(distinct) <= FEW or (
            bool(schema.names_of(name))
            and all(schema.name_of(name, model.scaler.location(name, float(value))) for value in distinct)
        )
        low, tenth, ninetieth, high = np.quantile(seen, [0.02, 0.1, 0.9, 0.98])
        if leveled:
            x = distinct if len(distinct) > 1 else np.array([distinct[0], distinct[0] + 1.0])
        else:
            x = np.unique(np.concatenate([np.linspace(low, high, POINTS - 2), [tenth, ninetieth]]))
        nearest = np.searchsorted(0.5 * (x[1:] + x[:-1]), seen)
        return cls(x, np.bincount(nearest, minlength=len(x)) / len(seen), (tenth, ninetieth), leveled)


def spans_of(model: LearntGraph, rows: Array) -> dict[str, Span]:
    """The span of each covariate in scaled rows, (R, d), by its name."""
    return {name: Span.of(model, name, rows[:, j]) for j, name in enumerate(model.covariates)}


def effects_of(
    model: LearntGraph,
    kernels: Sequence[KernelPosterior],
    recent: User | None,
    rows: int,
    over: Mapping[str, Span] | None = None,
    drawn: Array | None = None,
) -> Effects:
    """The effects of all covariates for one user.

    Args:
        model: what the user is followed on.
        kernels: those that count.
        recent: the user's newest rows, scaled and less the population mean: effects are averages over their contexts;
            None before any row.
        rows: number of rows seen.
        over: spans of covariates that many users share, so that they can be compared; those of the user's newest rows
            if None.
        drawn: how far the outcomes of the newest rows lie from what fits read of them (method §8.7), scaled: what is
            left of a row is of its outcome as it is.
    """
    newest = recent.rows if recent is not None and recent.rows < rows else None
    finder = _Finder(model, kernels, recent, over, newest)
    every = [finder.effect(name) for name in model.covariates]
    effects = sorted(every, key=lambda effect: (-abs(effect.size), effect.covariate))
    noise = finder.weights @ [kernel.noise for kernel in finder.kernels] * model.widening
    scale = model.scaler.scale
    rest = None if recent is None else scale * (finder.rest if drawn is None else finder.rest + drawn)
    return Effects(
        tuple(effects),
        finder.interactions(),
        rows,
        float(np.sqrt(noise)) * scale,
        rest,
        finder.echo,
        schema=model.schema,
    )


def _corners(model: LearntGraph) -> Array:
    """Where nobody has been: the pilot users' range, end to end."""
    grid = np.linspace(0.0, 1.0, 11) if model.schema.scaling == "group" else np.linspace(-1.0, 1.0, 11)
    return np.repeat(grid[:, None], len(model.covariates), axis=1)


class _Apart:
    """What covariates that a kernel does not read add for one user: how far the user is from the population there.

    What the kernel leaves of the rows is taken for Σ_j d_j(x_j) + ε, with d_j as users differ (method (43)).
    """

    def __init__(self, mean: PopulationMean | None, unread: Sequence[int], X: Array, rest: Array, noise: float) -> None:
        self.mean, self.X, self.rest, self.noise = mean, X, rest, noise
        total = noise * np.eye(len(rest))
        for j in unread if mean is not None else ():
            assert mean is not None
            total += mean.difference(j, X[:, j], X[:, j])
        self.lower: Array = np.asarray(np.linalg.cholesky(total), dtype=np.float64)

    def effect(self, j: int, x: Array, echo: float) -> tuple[Array, Array]:
        """Mean (g,) and covariance (g, g) of d_j at x; nothing without a population to differ from."""
        if self.mean is None:
            return np.zeros(len(x)), np.zeros((len(x), len(x)))
        prior = self.mean.difference(j, x, x)
        if not len(self.rest):
            return np.zeros(len(x)), prior
        cross = gp.numerics.solve_lower(self.lower, self.mean.difference(j, self.X[:, j], x))
        covariance = prior - cross.T @ cross
        if echo:
            covariance += gp.partial.from_echo(gp.numerics.solve_upper(self.lower, cross), self.noise, echo)
        return cross.T @ gp.numerics.solve_lower(self.lower, self.rest), covariance


class _Finder:
    """Finds one user's effects."""

    def __init__(
        self,
        model: LearntGraph,
        kernels: Sequence[KernelPosterior],
        recent: User | None,
        over: Mapping[str, Span] | None,
        newest: int | None,
    ) -> None:
        self.model, self.newest = model, newest
        self.kernels = sorted(kernels, key=lambda kernel: -kernel.weight)
        self.recent = recent
        self.contexts = _corners(model) if recent is None else recent.X
        self.over = over
        self.weights = np.array([kernel.weight for kernel in self.kernels])
        self.weights = self.weights / self.weights.sum()

    def column(self, name: str) -> int:
        return self.model.covariates.index(name)

    def in_units(self, name: str, x: Array) -> Array:
        return np.array([self.model.scaler.location(name, float(value)) for value in x])

    def span(self, name: str) -> Span:
        """Where the effect of a covariate is stated; before any row, at each of the values that have names."""
        if self.over is not None:
            return self.over[name]
        names = self.model.schema.names_of(name)
        if self.recent is None and len(names) > 1:
            seen = np.array([self.model.scaler.scaled_location(name, value) for value in names])
        else:
            seen = self.contexts[:, self.column(name)]
        return Span.of(self.model, name, seen)

    def effect(self, name: str) -> Effect:
        span = self.span(name)
        x = span.x
        means, covariances, fitted = self._parts(name, x)
        shape, period = self._shape(name, span, self.weights @ means)
        start, end, among = self._compared(shape, span, self.weights @ means)
        centred = np.eye(len(x)) - span.share
        spread = np.array([np.einsum("ij,jk,ik->i", centred, c, centred) for c in covariances])
        scale = self.model.scaler.scale
        curve = NormalMixture(self.weights, scale * means @ centred.T, scale**2 * np.maximum(spread, 0.0))
        contrast = np.zeros(len(x))
        contrast[end] += 1.0
        contrast[start] -= 1.0
        read = sum(weight for weight, kernel in zip(self.weights, self.kernels, strict=True) if kernel.reads(name))
        units = self.in_units(name, x)
        readable = any(name in node.composition.covariates for node in self.model.selectable)
        return Effect(
            name,
            shape,
            units,
            curve,
            float(units[start]),
            float(units[end]),
            self._contrast(means, covariances, contrast),
            float(read),
            period,
            scale * centred @ (self.weights @ fitted),
            *picking(self.weights @ means, np.einsum("s,sij->ij", self.weights, covariances), start, end, among),
            self.newest,
            readable,
        )

    def _contrast(self, means: Array, covariances: Array, contrast: Array) -> NormalMixture:
        scale = self.model.scaler.scale
        variance = np.maximum(np.einsum("i,sij,j->s", contrast, covariances, contrast), 0.0)
        return NormalMixture(self.weights, scale * (means @ contrast)[:, None], scale**2 * variance[:, None])

    def _parts(self, name: str, x: Array) -> tuple[Array, Array, Array]:
        """For each kernel mean (S, g) and covariance (S, g, g) of the effect at x, scaled; and its mean in the kernel.

        How far a user is from the others, where a kernel does not read the covariate, is not in the kernel.
        """
        mean, j = self.model.mean, self.column(name)
        shared = np.zeros(len(x)) if mean is None else mean.along(j, x)
        means, covariances, fitted = [], [], []
        for kernel, apart in zip(self.kernels, self._apart, strict=True):
            products, slope = kernel.reads(name), self._slope(name, x)
            part, covariance = np.zeros(len(x)), np.zeros((len(x), len(x)))
            if products or slope is not None:
                part, covariance = gp.partial.partial_effect(
                    kernel.posterior, products, [name], x[:, None], self.contexts, slope, self.echo, self.block
                )
            fitted.append(part + shared)
            if not products:
                further, uncertainty = apart.effect(j, x, self.echo)
                part, covariance = part + further, covariance + uncertainty
            means.append(part + shared)
            covariances.append(covariance)
        return np.array(means), np.array(covariances), np.array(fitted)

    def _slope(self, name: str, x: Array) -> Array | None:
        """Features of the user's own slope of a covariate at x, among those of the reward model; None without one."""
        reward = self.model.reward
        if reward is None or name not in reward.slopes:
            return None
        features = np.zeros((len(x), len(reward.names)))
        features[:, len(reward.names) - len(reward.slopes) + reward.slopes.index(name)] = x
        return features

    @cached_property
    def _apart(self) -> list[_Apart]:
        """For each kernel, what covariates that it does not read add for this user."""
        every = []
        for kernel in self.kernels:
            unread = [j for j, name in enumerate(self.model.covariates) if not kernel.reads(name)]
            rest = np.empty(0) if self.recent is None else kernel.rest(self.model, self.recent)
            every.append(_Apart(self.model.mean, unread, self.contexts[: len(rest)], rest, kernel.noise))
        return every

    @property
    def rest(self) -> Array:
        """What the average over kernels leaves unexplained of each of the user's newest rows, scaled."""
        return self.weights @ np.array([apart.rest for apart in self._apart])

    @cached_property
    def echo(self) -> float:
        """Correlation of what is left of neighbouring rows, for which intervals allow (method (79)); 0 for none."""
        return 0.0 if self.recent is None else echo_of(self.rest, self.model.echo)

    @cached_property
    def block(self) -> Array | None:
        """Features of the linear block at the user's newest rows."""
        return None if self.recent is None else block_features(self.model, self.recent)

    def _shape(self, name: str, span: Span, mean: Array) -> tuple[Shape, float | None]:
        if span.leveled:
            return "levels", None
        readers = [kernel for kernel in self.kernels if kernel.reads(name)]
        periods = [next(kernel.periods(name), None) for kernel in self.kernels]
        likely = sum(weight for weight, period in zip(self.weights, periods, strict=True) if period is not None)
        if likely >= LIKELY:
            return "rhythm", self.model.scaler.length(name, next(period for period in periods if period is not None))
        shared = self.model.mean
        # What users share may be curved, and so may be how this one differs where a kernel does not read the covariate.
        differs = shared is not None and shared.between is not None and len(readers) < len(self.kernels)
        bent = differs or (shared is not None and shared.bends(self.column(name)))
        if not bent and all(kernel.straight(name) for kernel in readers):
            return "line", None
        inside = mean[(span.x >= span.ends[0]) & (span.x <= span.ends[1])]
        rising = inside if inside[-1] >= inside[0] else -inside
        back = float((np.maximum.accumulate(rising) - rising).max())
        return ("trend" if back <= TURN * float(np.ptp(rising)) else "curve"), None

    def _compared(self, shape: Shape, span: Span, mean: Array) -> tuple[int, int, NDArray[np.int64]]:
        """Indices of the two points that the effect compares, and of those among which they were picked, if so."""
        x, given = span.x, np.empty(0, dtype=np.int64)
        if shape in ("line", "trend"):
            tenth, ninetieth = (int(np.abs(x - value).argmin()) for value in span.ends)
            return (tenth, ninetieth, given) if tenth != ninetieth else (0, len(x) - 1, given)
        if shape == "levels" and len(x) == 2:
            return 0, 1, given
        inside = np.flatnonzero((x >= span.ends[0]) & (x <= span.ends[1])) if shape != "levels" else np.arange(len(x))
        return int(inside[mean[inside].argmin()]), int(inside[mean[inside].argmax()]), inside

    def interactions(self) -> tuple[Interaction, ...]:
        """One for each pair of covariates that the most probable kernel multiplies."""
        pairs = dict.fromkeys(
            (a, b)
            for product in self.kernels[0].composition
            for i, a in enumerate(product.covariates)
            for b in product.covariates[i + 1 :]
        )
        return tuple(self._interaction(a, b) for a, b in pairs)

    def _interaction(self, a: str, b: str) -> Interaction:
        x, z = (self._few(name) for name in (a, b))
        points = np.array([(u, v) for u in x for v in z])
        means, covariances = [], []
        for kernel in self.kernels:
            products = kernel.reads(a, b)
            if products:
                part, covariance = gp.partial.partial_effect(
                    kernel.posterior, products, [a, b], points, self.contexts, echo=self.echo, block=self.block
                )
            else:
                part, covariance = np.zeros(len(points)), np.zeros((len(points), len(points)))
            means.append(part)
            covariances.append(covariance)
        surface = (self.weights @ np.array(means)).reshape(len(x), len(z))
        surface = surface - surface.mean(axis=0) - surface.mean(axis=1, keepdims=True) + surface.mean()
        best = max(
            (
                (i, j, k, m)
                for i in range(len(x))
                for j in range(i + 1, len(x))
                for k in range(len(z))
                for m in range(k + 1, len(z))
            ),
            key=lambda at: abs(_double(surface, *at)),
        )
        i, j, k, m = best
        contrast = np.zeros((len(x), len(z)))
        contrast[j, m], contrast[i, m], contrast[j, k], contrast[i, k] = 1.0, -1.0, -1.0, 1.0
        x_units, z_units = self.in_units(a, x), self.in_units(b, z)
        return Interaction(
            (a, b),
            x_units,
            z_units,
            self.model.scaler.scale * surface,
            (float(x_units[i]), float(x_units[j])),
            (float(z_units[k]), float(z_units[m])),
            self._contrast(np.array(means), np.array(covariances), contrast.reshape(-1)),
        )

    def _few(self, name: str) -> Array:
        """A few values of a covariate that the user meets; two at least."""
        seen = self.contexts[:, self.column(name)]
        distinct = np.unique(seen)
        if len(distinct) > PAIRS:
            distinct = np.unique(np.quantile(seen, np.linspace(0.1, 0.9, PAIRS)))
        return distinct if len(distinct) > 1 else np.array([distinct[0], distinct[0] + 1.0])


def _double(surface: Array, i: int, j: int, k: int, m: int) -> float:
    """The difference of differences between two rows and two columns."""
    return float(surface[j, m] - surface[i, m] - surface[j, k] + surface[i, k])
