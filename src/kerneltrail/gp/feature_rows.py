"""Compiled: the feature rows of one hyperparameter vector. They lie along memory, (r, n), as all loops run.

All functions are compiled once and cached on disk. All they know of kernels is the numbers of a
`features.SpectralExpansion`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Sums may be reordered and fused; infinities and NaN keep their meaning, because failures are told by them.
FAST = {"reassoc", "contract", "nsz", "arcp"}
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1, HALF_PI_2, HALF_PI_3 = 1.57079625129699707031, 7.54978941586159635335e-8, 5.39030285815811905290e-15
ROUNDING = 1.5 * 2.0**52  # added and taken off again, it leaves the nearest whole number
MOST_TURNS = 1e6  # angles up to which a multiple of the first part of π/2 is exact
MOST = 1 << 13  # features beyond which no matrix of them is built: it would fill the memory


class CompiledLayout(NamedTuple):
    """The structure of a composition's features as compiled code reads it; see `features.FeatureLayout`."""

    linear_start: Ints
    linear_column: Ints
    linear_slot: Ints
    series_start: Ints
    series_column: Ints
    series_slot: Ints
    series_size: Ints
    amplitude_slot: Ints


class SpectralTerms(NamedTuple):
    """The features' numbers of one hyperparameter vector; see `features.SpectralExpansion`, which has them for many."""

    amplitude: Array
    noise: float
    location: Array
    omega: Array
    counts: Ints
    weights: Array
    dlog_weights: Array
    domega: Array
    cutoff: Array


Batch = tuple[Array, Array, Array, Array, Ints, Array, Array, Array, Array]
"""What `SpectralTerms` has of one vector, for all of them."""


class FeatureRows(NamedTuple):
    """Feature rows, with what the gradient needs to know of each.

    Attributes:
        features: F, (r, n); Φ = scale · F.
        scale: (r,).
        owner: the product of each row, (r,).
        order: its term in each series of the product, (r, series).
        partner: the row with sine and cosine exchanged in that series, -1 where the term is constant, (r, series).
    """

    features: Array
    scale: Array
    owner: Ints
    order: Ints
    partner: Ints


@compiled()
def copy(source: Array, target: Array) -> None:
    """Copy numbers. ``target[:] = source`` takes seconds more to compile: its error message is compiled with it."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@compiled()
def empty_rows(rank: int, n: int, series_start: Ints) -> FeatureRows:
    """Room for so many feature rows."""
    factors = 1
    for p in range(series_start.shape[0] - 1):
        factors = max(factors, series_start[p + 1] - series_start[p])
    return FeatureRows(
        np.empty((rank, n)),
        np.empty(rank),
        np.empty(rank, dtype=np.int64),
        np.empty((rank, factors), dtype=np.int64),
        np.empty((rank, factors), dtype=np.int64),
    )


@compiled()
def _weight(weights: Array, first: int, index: Ints) -> float:
    """Weight of one combination of terms. Without FAST: `ranks` and `_tensor` must agree on it to the last bit."""
    weight = 1.0
    for f in range(index.shape[0]):
        weight *= weights[first + f, index[f]]
    return weight


@compiled()
def ranks(series_start: Ints, count: Ints, weights: Array, cutoff: Array, out: Ints) -> None:
    """Number of feature columns of each product, for one hyperparameter vector; a bound where it is far above MOST."""
    products = series_start.shape[0] - 1
    for p in range(products):
        first, last = series_start[p], series_start[p + 1]
        factors = last - first
        if factors == 0:
            out[p] = 1
            continue
        if factors == 1:
            out[p] = 2 * count[first] - 1
            continue
        combinations, all_columns = 1.0, 1.0
        for f in range(factors):
            combinations *= count[first + f]
            all_columns *= 2 * count[first + f] - 1
        if combinations > 16 * MOST:  # a good part of them would be kept: not worth counting one by one
            out[p] = int(min(all_columns, 1e12))
            continue
        index = np.zeros(factors, dtype=np.int64)
        total = 0
        while True:
            columns = 1
            for f in range(factors):
                if index[f] > 0:
                    columns *= 2
            if _weight(weights, first, index) > cutoff[p]:
                total += columns
            f = factors - 1
            while f >= 0:
                index[f] += 1
                if index[f] < count[first + f]:
                    break
                index[f] = 0
                f -= 1
            if f < 0:
                break
        out[p] = total


@compiled(fastmath={"contract"})
def _cosines_and_sines(x: Array, centre: float, omega: float, cosines: Array, sines: Array) -> None:
    """cos θ and sin θ of θ = ω(x - centre), to the last bit or two, without a branch: several numbers at a time.

    A multiple of π/2 is taken off in three parts (Cody and Waite 1980), and polynomials of Moshier's Cephes do the
    rest. Sums must stay in the order in which they are written.
    """
    for i in range(x.shape[0]):
        angle = omega * (x[i] - centre)
        turns = (angle * TWO_OVER_PI + ROUNDING) - ROUNDING
        rest = ((angle - turns * HALF_PI_1) - turns * HALF_PI_2) - turns * HALF_PI_3
        quarter = turns - 4.0 * ((turns * 0.25 + ROUNDING) - ROUNDING)  # -2 … 2
        z = rest * rest
        s = 1.58962301576546568060e-10 * z - 2.50507477628578072866e-8
        s = ((s * z + 2.75573136213857245213e-6) * z - 1.98412698295895385996e-4) * z + 8.33333333332211858878e-3
        s = rest + rest * z * (s * z - 1.66666666666666307295e-1)
        c = -1.13585365213876817300e-11 * z + 2.08757008419747316778e-9
        c = ((c * z - 2.75573141792967388112e-7) * z + 2.48015872888517045348e-5) * z - 1.38888888888730564116e-3
        c = 1.0 - 0.5 * z + z * z * (c * z + 4.16666666666665929218e-2)
        swapped, opposite = abs(quarter) == 1.0, abs(quarter) == 2.0
        a = s if swapped else c
        b = c if swapped else s
        cosines[i] = -a if opposite or quarter == 1.0 else a
        sines[i] = -b if opposite or quarter == -1.0 else b


@compiled(fastmath=FAST)
def _farthest(x: Array, centre: float) -> float:
    """Largest distance from the centre."""
    far = 0.0
    for i in range(x.shape[0]):
        far = max(far, abs(x[i] - centre))
    return far


@compiled(fastmath=FAST)
def waves(x: Array, centre: float, omega: float, count: int, rows: Array) -> None:
    """Rows 1, cos θ, sin θ, cos 2θ, sin 2θ, … of θ = ω(x - centre), (2 count - 1, n), by the angle-sum identity."""
    n = x.shape[0]
    rows[0, :] = 1.0
    if count > 1:
        if abs(omega) * _farthest(x, centre) < MOST_TURNS:
            _cosines_and_sines(x, centre, omega, rows[1], rows[2])
        else:
            for i in range(n):
                angle = omega * (x[i] - centre)
                rows[1, i] = math.cos(angle)
                rows[2, i] = math.sin(angle)
    for j in range(2, count):
        # From the two halves of j, so that rounding grows with log j, not with j.
        a, b = 2 * (j // 2), 2 * (j - j // 2)
        for i in range(n):
            cosine = rows[a - 1, i] * rows[b - 1, i] - rows[a, i] * rows[b, i]
            sine = rows[a, i] * rows[b - 1, i] + rows[a - 1, i] * rows[b, i]
            rows[2 * j - 1, i] = cosine
            rows[2 * j, i] = sine


@compiled(fastmath=FAST)
def _tensor(
    X: Array,
    centre: Array,
    layout: CompiledLayout,
    terms: SpectralTerms,
    product: int,
    row: int,
    tables: Array,
    out: FeatureRows,
) -> int:
    """Rows of a product of several series: all products of their rows whose weight is above the cutoff."""
    n = X.shape[1]
    first = layout.series_start[product]
    factors = layout.series_start[product + 1] - first
    for f in range(factors):
        column = layout.series_column[first + f]
        waves(X[column], centre[column], terms.omega[first + f], terms.counts[first + f], tables[f])
    index = np.zeros(factors, dtype=np.int64)
    while True:
        weight = _weight(terms.weights, first, index)
        varying = 0
        for f in range(factors):
            if index[f] > 0:
                varying += 1
        if weight > terms.cutoff[product]:
            base = row
            for bits in range(1 << varying):  # bit set: the sine of that series, else its cosine
                out.scale[row], out.owner[row] = math.sqrt(terms.amplitude[product] * weight), product
                out.features[row, :] = 1.0
                bit = 0
                for f in range(factors):
                    out.order[row, f] = index[f]
                    out.partner[row, f] = -1
                    if index[f] > 0:
                        wave = tables[f, 2 * index[f] - 1 + ((bits >> bit) & 1)]
                        for i in range(n):
                            out.features[row, i] *= wave[i]
                        out.partner[row, f] = base + (bits ^ (1 << bit))
                        bit += 1
                row += 1
        f = factors - 1
        while f >= 0:
            index[f] += 1
            if index[f] < terms.counts[first + f]:
                break
            index[f] = 0
            f -= 1
        if f < 0:
            return row


@compiled(fastmath=FAST)
def fill(X: Array, centre: Array, layout: CompiledLayout, terms: SpectralTerms, out: FeatureRows, plain: Array) -> None:
    """Write the feature rows of one hyperparameter vector: Φ = scale · F.

    X is (d, n). `plain` (r, n) gets the features before the linear factors; it may be empty where no gradient is
    wanted. The rows of a product with one series stand as constant, cos θ, sin θ, cos 2θ, sin 2θ, …
    """
    n = X.shape[1]
    products = layout.series_start.shape[0] - 1
    longest = 1
    most = 0
    for p in range(products):
        factors = layout.series_start[p + 1] - layout.series_start[p]
        if factors > 1:
            most = max(most, factors)
            for f in range(layout.series_start[p], layout.series_start[p + 1]):
                longest = max(longest, terms.counts[f])
    tables = np.empty((most, 2 * longest - 1, n))
    row = np.int64(0)  # a plain 0 is a type of its own, for which all that it is passed to would be compiled again
    for p in range(products):
        first, factors = layout.series_start[p], layout.series_start[p + 1] - layout.series_start[p]
        start = row
        if factors == 0:
            out.features[row, :] = 1.0
            out.scale[row] = math.sqrt(terms.amplitude[p])
            out.owner[row] = p
            row += 1
        elif factors == 1:
            column, count = layout.series_column[first], terms.counts[first]
            waves(X[column], centre[column], terms.omega[first], count, out.features[row : row + 2 * count - 1])
            for j in range(count):
                root = math.sqrt(terms.amplitude[p] * terms.weights[first, j])
                for sine in range(2 if j else 1):
                    out.scale[row], out.owner[row], out.order[row, 0] = root, p, j
                    out.partner[row, 0] = -1 if j == 0 else (row - 1 if sine else row + 1)
                    row += 1
        else:
            row = _tensor(X, centre, layout, terms, p, row, tables, out)
        if plain.shape[0] > 0:
            for c in range(start, row):
                copy(out.features[c], plain[c])
        for j in range(layout.linear_start[p], layout.linear_start[p + 1]):
            column = layout.linear_column[j]
            for c in range(start, row):
                for i in range(n):
                    out.features[c, i] *= X[column, i] - terms.location[j]
