"""Spectral features: a composition as columns Φ with K = ΦΦᵀ, exact to tolerance (method (12)).

LIN is one feature; a stationary atom is a cosine series, so two features a term; products multiply, sums are put
side by side. Here the hyperparameters become numbers that the compiled loops of `spectral` read: kernels are data to
them, so nothing is compiled per structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.feature_rows import Batch, CompiledLayout, SpectralTerms, ranks
from kerneltrail.gp.inputs import Inputs, locate
from kerneltrail.kernels.atoms import AtomKind
from kerneltrail.kernels.compiled.cached import compiled
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.hyperparameters import layout_of

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FLOOR = 1e-16
"""Smallest tail of a series: below it the dropped terms are less than the rounding of the sums of those kept."""
FINEST = 1e-30
"""The same where features are not squared (`gram.reflect`)."""
LENIENCE = 100.0
"""How far past the tolerance the bound may be, where the floor is hit, before the expansion counts as failed."""
TEMPORARIES = 1 << 28
"""Bytes that the numbers of features may take at one time, however many vectors there are: 256 MB."""
FEW_VECTORS = 16
"""So many vectors are not worth asking how long their series are."""


@dataclass(frozen=True)
class FeatureLayout:
    """The structure of a composition's features, without hyperparameters.

    Products with a series come first, those of linear factors only after them. Linear factors and series are numbered
    through all products; `*_start[p] : *_start[p+1]` are those of product p.
    """

    linear_start: Ints
    linear_column: Ints
    linear_slot: Ints
    series_start: Ints
    series_column: Ints
    series_atom: tuple[AtomKind, ...]
    series_product: tuple[int, ...]
    series_slot: Ints
    series_size: Ints
    amplitude_slot: Ints

    @cached_property
    def compiled(self) -> CompiledLayout:
        """Itself as compiled code reads it."""
        return CompiledLayout(*(getattr(self, name) for name in CompiledLayout._fields))

    @cached_property
    def tensor(self) -> bool:
        """Whether some product has several series, so that its features multiply."""
        return bool(np.any(np.diff(self.series_start) > 1))

    @cached_property
    def mixed(self) -> bool:
        """Whether several products have series: their features' inner products must be computed one by one."""
        return bool((np.diff(self.series_start) > 0).sum() > 1)


@dataclass(frozen=True)
class SpectralExpansion:
    """Features' numbers for S hyperparameter vectors.

    Attributes:
        layout: the structure.
        amplitude: σ_f² of each product, (S, P).
        noise: σ², (S,).
        location: of each linear factor, (S, linear factors).
        omega, count, weights: of each series, (S, series[, J]).
        dlog_weights, domega: their derivatives by the atom's unconstrained hyperparameters, (S, series, k[, J]).
        cutoff: smallest weight of a feature column kept, relative to the product's amplitude, (S, P).
        attained: whether the tolerance could be kept, give or take the lenience, (S,).
    """

    layout: FeatureLayout
    amplitude: Array
    noise: Array
    location: Array
    omega: Array
    count: Ints
    weights: Array
    dlog_weights: Array
    domega: Array
    cutoff: Array
    attained: NDArray[np.bool_]

    @property
    def batch(self) -> Batch:
        """What `SpectralTerms` has of one θ, for all of them."""
        batch: Batch = _batch_of(self)
        return batch

    def take(self, which: slice | NDArray[np.bool_]) -> SpectralExpansion:
        """The numbers of some of the vectors."""
        return replace(self, **{field.name: getattr(self, field.name)[which] for field in fields(self)[1:]})

    def ranks(self, extra: int = 0) -> Ints:
        """Number of features for each θ, (S,), `extra` columns of a linear block included."""
        return _all_ranks(self.layout.series_start, self.count, self.weights, self.cutoff) + extra

    def terms(self, s: int) -> SpectralTerms:
        """The numbers of one θ."""
        return SpectralTerms(*(part[s] for part in self.batch))


_batch_of = attrgetter(*(field.name for field in fields(SpectralExpansion)[1:-1]))


def feature_layout_for(inputs: Inputs) -> FeatureLayout | None:
    """The structure of the features, or None where an atom has no spectral form."""
    return feature_layout_of(inputs.composition, inputs.covariates)


@lru_cache(maxsize=4096)
def feature_layout_of(composition: Composition, covariates: tuple[str, ...]) -> FeatureLayout | None:
    """The structure of a composition's features over named columns, or None where an atom has no spectral form."""
    located = locate(composition, covariates, "any")
    linear_start, linear_column, linear_slot = [0], [], []
    series_start, series_column, series_slot, series_size, series_product = [0], [], [], [], []
    series_atom: list[AtomKind] = []
    order = sorted(range(len(located)), key=lambda p: all(kind.linear for kind, _, _ in located[p]))
    for position, p in enumerate(order):
        for kind, column, slots in located[p]:
            if kind.linear:
                linear_column.append(column)
                linear_slot.append(slots.start)
            elif type(kind).series is AtomKind.series:  # not defined by the kind
                return None
            else:
                series_column.append(column)
                series_atom.append(kind)
                series_product.append(position)
                series_slot.append(slots.start)
                series_size.append(slots.stop - slots.start)
        linear_start.append(len(linear_column))
        series_start.append(len(series_column))

    def ints(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    return FeatureLayout(
        ints(linear_start),
        ints(linear_column),
        ints(linear_slot),
        ints(series_start),
        ints(series_column),
        tuple(series_atom),
        tuple(series_product),
        ints(series_slot),
        ints(series_size),
        ints([layout_of(composition).amplitude_index[p] for p in order]),
    )


def expand(
    layout: FeatureLayout, values: Array, tol: float, spans: Array, reach: Array, rows: int, floor: float = FLOOR
) -> SpectralExpansion:
    """The features' numbers for natural hyperparameters `values` (S, k).

    Args:
        layout: the composition's structure.
        values: natural hyperparameters, (S, k).
        tol: error allowed in a log evidence. Dropping a feature of weight w costs at most n σ_f² w / (2σ²) there (its
            trace against K⁻¹ ≤ 1/σ²), and that bound is nearly met, so each series is cut accordingly.
        spans: distance over which each column's kernels must hold.
        reach: (2, d): smallest and largest value of each column, which bound the linear factors.
        rows: number of rows n the tolerance is meant for.
        floor: smallest tail of a series.
    """
    samples = len(values)
    amplitude, location, noise, tail, attained = _tails_of(layout, values, tol, reach, rows, floor)
    series = []
    for f, kind in enumerate(layout.series_atom):
        slot, column = int(layout.series_slot[f]), int(layout.series_column[f])
        theta = values[:, slot : slot + int(layout.series_size[f])]
        spectrum = kind.series(theta, float(spans[column]), np.ascontiguousarray(tail[:, layout.series_product[f]]))
        assert spectrum is not None  # feature_layout_for takes only kinds that define one
        series.append(spectrum)
    length = max((s.weights.shape[1] for s in series), default=1)
    most = max((len(s.domega) for s in series), default=1)
    omega = np.ones((samples, len(series)))
    count = np.ones((samples, len(series)), dtype=np.int64)
    weights = np.zeros((samples, len(series), length))
    dlog = np.zeros((samples, len(series), most, length))
    domega = np.zeros((samples, len(series), most))
    for f, spectrum in enumerate(series):
        width, k = spectrum.weights.shape[1], len(spectrum.domega)
        omega[:, f], count[:, f] = spectrum.omega, spectrum.count
        weights[:, f, :width] = spectrum.weights
        dlog[:, f, :k, :width] = spectrum.dlog_weights.transpose(1, 0, 2)
        domega[:, f, :k] = spectrum.domega.T
    # One series is cut by its own tail already; of a product of several, columns too small together are left out.
    cutoff = np.zeros_like(tail)
    if layout.tensor:
        combinations = np.ones_like(tail)
        for f, spectrum in enumerate(series):
            combinations[:, layout.series_product[f]] *= 2 * spectrum.count
        cutoff = np.where(np.diff(layout.series_start) > 1, tail / combinations, 0.0)
    return SpectralExpansion(layout, amplitude, noise, location, omega, count, weights, dlog, domega, cutoff, attained)


def expansion_of(
    inputs: Inputs, layout: FeatureLayout, values: Array, tol: float, floor: float = FLOOR
) -> SpectralExpansion:
    """The features' numbers over the range of the rows themselves, wherever they lie."""
    low, high = inputs.reach
    with np.errstate(over="ignore", invalid="ignore"):  # such a θ is left to the dense method, which says what is wrong
        return expand(layout, values, tol, high - low, inputs.reach, inputs.rows, floor)


def expansions(
    inputs: Inputs, layout: FeatureLayout, values: Array, tol: float
) -> Iterator[tuple[slice, SpectralExpansion]]:
    """The expansion of all vectors, part by part in bounded memory; bit for bit what one of all would hold.

    One vector with a short lengthscale makes the arrays of all in its company long, and the length decides the last
    bits of the total of a Gaussian series. So the longest keep company with every part.
    """
    size = len(values)
    longest = np.empty(0, dtype=np.int64)
    if size > FEW_VECTORS:
        longest = _longest_series(layout, values, tol, inputs.reach, inputs.rows)
        probe = expansion_of(inputs, layout, values[longest], tol)
        # Each series as its atom made it, beside the others, and those of the vectors that are chosen.
        each = 3 * (probe.weights.nbytes + probe.dlog_weights.nbytes) // max(1, len(longest))
        size = max(1, TEMPORARIES // max(1, each) - len(longest))
    if size >= len(values):
        yield slice(0, len(values)), expansion_of(inputs, layout, values, tol)
        return
    for start in range(0, len(values), size):
        part = slice(start, min(start + size, len(values)))
        company = np.concatenate([values[longest], values[part]])
        yield part, expansion_of(inputs, layout, company, tol).take(slice(len(longest), None))


def _tails_of(
    layout: FeatureLayout, values: Array, tol: float, reach: Array, rows: int, floor: float
) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """Amplitudes, locations and noise of each θ, the weight its series may lose, whether that keeps the tolerance."""
    # Picking columns gives column-major arrays; the compiled loops would be compiled a second time for those.
    amplitude = np.ascontiguousarray(values[:, layout.amplitude_slot])
    location = np.ascontiguousarray(values[:, layout.linear_slot])
    noise = values[:, -1].copy()
    starts = (layout.linear_start, layout.linear_column, layout.series_start)
    return amplitude, location, noise, *tails(amplitude, location, noise, *starts, reach, tol / max(rows, 1), floor)


def _longest_series(layout: FeatureLayout, values: Array, tol: float, reach: Array, rows: int) -> Ints:
    """The vectors that decide how long the arrays for all are: each is smallest or largest in something."""
    tail = _tails_of(layout, values, tol, reach, rows, FLOOR)[3]
    slots = [s + i for s, size in zip(layout.series_slot, layout.series_size, strict=True) for i in range(size)]
    series = values[:, slots]
    return np.unique(np.concatenate([series.argmin(axis=0), series.argmax(axis=0), tail.argmin(axis=0)]))


@compiled()
def _all_ranks(series_start: Ints, count: Ints, weights: Array, cutoff: Array) -> Ints:
    out = np.empty(count.shape[0], dtype=np.int64)
    each = np.empty(series_start.shape[0] - 1, dtype=np.int64)
    for s in range(count.shape[0]):
        ranks(series_start, count[s], weights[s], cutoff[s], each)
        out[s] = each.sum()
    return out


@compiled()
def tails(
    amplitude: Array,
    location: Array,
    noise: Array,
    linear_start: Ints,
    linear_column: Ints,
    series_start: Ints,
    reach: Array,
    tol: float,
    floor: float,
) -> tuple[Array, NDArray[np.bool_]]:
    """For each θ and product the weight a series may lose, (S, P), and whether that keeps the tolerance, (S,)."""
    samples, products = amplitude.shape
    tail = np.empty((samples, products))
    attained = np.ones(samples, dtype=np.bool_)
    for s in range(samples):
        for p in range(products):
            size = amplitude[s, p]  # the product's largest prior variance over the rows
            for j in range(linear_start[p], linear_start[p + 1]):
                column = linear_column[j]
                far = max(abs(reach[0, column] - location[s, j]), abs(reach[1, column] - location[s, j]), 1e-150)
                size *= far * far
            wanted = 2.0 * tol * noise[s] / (products * max(size, 1e-300))
            factors = series_start[p + 1] - series_start[p]
            if factors > 0 and not wanted * LENIENCE >= floor:
                attained[s] = False
            wanted = min(max(wanted, floor), 1e-3)
            # A product of several series shares its tail among them.
            tail[s, p] = max(wanted / max(factors, 1), floor)
    return tail, attained
