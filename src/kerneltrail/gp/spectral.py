"""Compiled: evidence and gradient from features (method (15)), O(n r²) for all batches together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp import feature_rows, gradients, gram
from kerneltrail.gp.feature_rows import Batch, CompiledLayout, SpectralTerms
from kerneltrail.gp.numerics import RESOLUTION
from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_DISAGREEMENT = 1e-3
"""Error of a gradient by log amplitudes past which it is refused."""


@compiled()
def _blocks(series_start: Ints, widths: Ints, rows: int) -> tuple[Ints, Ints]:
    """Where each block of rows starts, and the terms of those that are a single series.

    Products without a series come last in a layout; they, the linear block and y make one block together.
    """
    products = widths.shape[0]
    blocks = 0
    while blocks < products and series_start[blocks + 1] > series_start[blocks]:
        blocks += 1
    starts = np.zeros(blocks + 2, dtype=np.int64)
    terms = np.zeros(blocks + 1, dtype=np.int64)
    for p in range(blocks):
        starts[p + 1] = starts[p] + widths[p]
        # Few terms are as cheap by plain inner products.
        if series_start[p + 1] - series_start[p] == 1 and widths[p] > 7:
            terms[p] = (widths[p] + 1) // 2
    starts[blocks + 1] = rows
    return starts, terms


@compiled()
def terms_of(batch: Batch, s: int) -> SpectralTerms:
    """The numbers of one θ."""
    amplitude, noise, location, omega, count, weights, dlog_weights, domega, cutoff = batch
    return SpectralTerms(
        amplitude[s], noise[s], location[s], omega[s], count[s], weights[s], dlog_weights[s], domega[s], cutoff[s]
    )


@compiled()
def evidence(
    X: Array, centre: Array, ends: Ints, extra: Array, layout: CompiledLayout, batch: Batch, rank: Ints, reflected: bool
) -> Array:
    """Log evidence (S, T); NaN where the noise is too small for the method: by sums, or `reflected` (see `gram`)."""
    samples, q = rank.shape[0], extra.shape[0]
    out = np.empty((samples, ends.shape[0]))
    room = feature_rows.empty_rows(rank.max() + 1, X.shape[1], layout.series_start)
    plain = np.empty((0, 0))
    widths = np.empty(layout.series_start.shape[0] - 1, dtype=np.int64)
    for s in range(samples):
        rows = rank[s] + 1
        terms = terms_of(batch, s)
        view = feature_rows.FeatureRows(room.features[:rows], room.scale[:rows], room.owner, room.order, room.partner)
        feature_rows.fill(X, centre, layout, terms, view, plain)
        for c in range(q):
            feature_rows.copy(extra[c], view.features[rows - q + c])
        view.scale[rows - q :] = 1.0
        if reflected:
            gram.reflected_prefix_evidence(view.features, view.scale, ends, terms.noise, out[s])
            continue
        feature_rows.ranks(layout.series_start, terms.counts, terms.weights, terms.cutoff, widths)
        starts, lengths = _blocks(layout.series_start, widths, rows)
        gram.prefix_evidence(view.features, view.scale, starts, lengths, ends, terms.noise, out[s])
    return out


@compiled()
def _moving(layout: CompiledLayout, terms: SpectralTerms, product: int) -> bool:
    """Whether a frequency of a product depends on a hyperparameter (PER's period)."""
    for f in range(layout.series_start[product], layout.series_start[product + 1]):
        for k in range(layout.series_size[f]):
            if terms.domega[f, k] != 0.0:
                return True
    return False


@compiled(fastmath=feature_rows.FAST)
def slope_one(
    X: Array,
    centre: Array,
    extra: Array,
    layout: CompiledLayout,
    terms: SpectralTerms,
    r: int,
    reflected: bool,
    out: Array,
) -> float:
    """Log evidence of one hyperparameter vector, its gradient written to `out`; NaN where a factorisation failed."""
    n, q, size = X.shape[1], extra.shape[0], out.shape[0]
    products = layout.series_start.shape[0] - 1
    noise = terms.noise
    rows = feature_rows.empty_rows(r + 1, n, layout.series_start)
    features, scale, owner, order, partner = rows.features, rows.scale, rows.owner, rows.order, rows.partner
    plain = np.empty((r + 1 if layout.linear_slot.shape[0] else 0, n))
    widths = np.empty(products, dtype=np.int64)
    residual = np.empty(n)
    slope = np.empty(n)
    pull = np.empty(n)
    out[:] = 0.0
    feature_rows.fill(X, centre, layout, terms, rows, plain)
    for c in range(q):
        feature_rows.copy(extra[c], features[r + 1 - q + c])
    scale[r + 1 - q :] = 1.0
    products_of_rows = np.zeros((r + 1, r + 1))
    factor = np.empty((r + 1, r + 1))
    if reflected:
        logdet = gram.reflect(features, scale, n, noise, factor)
    else:
        feature_rows.ranks(layout.series_start, terms.counts, terms.weights, terms.cutoff, widths)
        starts, lengths = _blocks(layout.series_start, widths, r + 1)
        moments = np.zeros((lengths.shape[0], 2, 2 * max(1, lengths.max())))
        gram.add_gram(features, starts, lengths, np.int64(0), n, moments, products_of_rows)
        gram.scaled_gram(products_of_rows, scale, noise, factor)
        logdet = gram.cholesky(factor, r)
    log = -0.5 * (factor[r, r] ** 2 / noise + (n - r) * math.log(noise) + logdet + n * math.log(2.0 * math.pi))
    if math.isnan(logdet) or (not reflected and factor[r, r] ** 2 < RESOLUTION * products_of_rows[r, r]):
        return math.nan
    mean = factor[:r, r].copy()  # U⁻ᵀΦy, which bordering has left there
    gram.backward(factor, mean)

    # α = K⁻¹y = (y - Φm)/σ², and d log p/dΦ = α m' - Φ A⁻¹ =: W, since Φ'K⁻¹ = A⁻¹Φ' and Φ'α = m.
    feature_rows.copy(features[r], residual)
    gradients.subtract(features, scale[:r] * mean, residual)
    alpha2 = 0.0
    for i in range(n):
        residual[i] /= noise
        alpha2 += residual[i] * residual[i]
    if reflected and not gram.disagreement(features, scale, mean, residual) < LARGEST_DISAGREEMENT:
        return math.nan
    inverse = np.empty((r, r))
    shifted = np.zeros(r, dtype=np.bool_)  # rows that move with a hyperparameter, not only their weights
    for c in range(r + 1 - q):
        p = owner[c]
        shifted[c] = layout.linear_start[p + 1] > layout.linear_start[p] or _moving(layout, terms, p)
    gradients.invert(factor, shifted, inverse)
    trace = 0.0
    for c in range(r):
        trace += inverse[c, c]
    out[size - 1] = 0.5 * (noise * alpha2 - (n - r + noise * trace))

    begin = np.int64(0)
    for p in range(products):
        first, last = layout.series_start[p], layout.series_start[p + 1]
        lines = layout.linear_start[p + 1] - layout.linear_start[p]
        moving = _moving(layout, terms, p)
        if moving and not reflected and not lines and last == first + 1:
            column = layout.series_column[first]
            for i in range(n):
                pull[i] = X[column, i] - centre[column]
            stop = begin + 2 * terms.counts[first] - 1
            change = gradients.frequency_slope(features, scale, mean, inverse, residual, pull, begin, stop)
            for k in range(layout.series_size[first]):
                out[layout.series_slot[first] + k] += change * terms.domega[first, k]
            moving = False
        pull[:] = 0.0
        for c in range(r + 1 - q):
            if owner[c] != p:
                continue
            begin = np.int64(c + 1)
            # Σ_i W_ic Φ_ic = m_c² - (A⁻¹G)_cc, no pass over the data: all that weights and amplitude need.
            total = mean[c] * mean[c] - 1.0 + noise * inverse[c, c]
            out[layout.amplitude_slot[p]] += 0.5 * total
            for f in range(first, last):
                for k in range(layout.series_size[f]):
                    out[layout.series_slot[f] + k] += 0.5 * total * terms.dlog_weights[f, k, order[c, f - first]]
            if not (moving or lines):
                continue
            for i in range(n):
                slope[i] = mean[c] * residual[i]
            gradients.subtract(features, inverse[c] * scale[:r], slope)
            if lines:
                for i in range(n):
                    pull[i] += slope[i] * (scale[c] * plain[c, i])
            for f in range(first, last):
                j = order[c, f - first]
                other = partner[c, f - first]
                if j == 0:
                    continue
                change = 0.0
                for i in range(n):
                    change += (
                        slope[i]
                        * features[other, i]
                        * (X[layout.series_column[f], i] - centre[layout.series_column[f]])
                    )
                # d cos(jωx)/dω = -jx sin(jωx), d sin(jωx)/dω = jx cos(jωx); partners stand cosine first.
                sign = -1.0 if c < other else 1.0
                for k in range(layout.series_size[f]):
                    out[layout.series_slot[f] + k] += sign * j * scale[c] * change * terms.domega[f, k]
        for line in range(layout.linear_start[p], layout.linear_start[p + 1]):
            total = 0.0
            for i in range(n):
                others = pull[i]
                for g in range(layout.linear_start[p], layout.linear_start[p + 1]):
                    if g != line:
                        others *= X[layout.linear_column[g], i] - terms.location[g]
                total -= others
            out[layout.linear_slot[line]] += total
    return log


@compiled()
def evidence_and_gradient(
    X: Array, centre: Array, extra: Array, layout: CompiledLayout, batch: Batch, rank: Ints, size: int, reflected: bool
) -> tuple[Array, Array]:
    """Log evidence (S,) of all rows and its gradient (S, k) in the unconstrained space; NaN where it failed."""
    log = np.empty(rank.shape[0])
    out = np.empty((rank.shape[0], size))
    for s in range(rank.shape[0]):
        log[s] = slope_one(X, centre, extra, layout, terms_of(batch, s), rank[s], reflected, out[s])
    return log, out
