"""Compiled: sums of products of feature rows, their factorisation, and the evidences that follow.

Rows lie along memory, (r, n). All functions are compiled once and cached on disk. Two ways lead to the same factor of
A = ΦΦᵀ + σ²I: Cholesky of the sums (`add_gram`, `cholesky`), which is fast, and whose rounding is relative to squares
of features; and reflections of the rows themselves (`reflect`), which are slower, and whose rounding is relative to the
features. `numerics.RESOLUTION` says when either gives up.

Inner loops run from 0 over slices. An index that might be negative counts from the end in Python, and a compiler that
cannot rule that out handles one number at a time, which takes six times as long.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kerneltrail.gp.feature_rows import FAST
from kerneltrail.gp.numerics import RESOLUTION
from kerneltrail.kernels.compiled.cached import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 512  # rows of data per tile: a few feature rows of this length stay in the first-level cache
MOST_REFLECTED = 1000  # features beyond which reflections take many seconds


@compiled(fastmath=FAST)
def add_trigonometric(
    features: Array,
    constants: Array,
    last_cosines: Array,
    last_sines: Array,
    first: int,
    terms: int,
    start: int,
    stop: int,
    moments: Array,
) -> None:
    """Add Σ hg cos mθ and Σ hg sin mθ over data rows start … stop to moments[0, m], moments[1, m], m ≤ 2(terms - 1).

    The rows from `first` on are g, g cos θ, g sin θ, g cos 2θ, …; sums beyond the last term come from the angle-sum
    identity with that term. h, h cos and h sin of the last term are given beside them.
    """
    top = terms - 1
    for low in range(start, stop, BLOCK):
        high = min(stop, low + BLOCK)
        constant, last_cosine, last_sine = constants[low:high], last_cosines[low:high], last_sines[low:high]
        row = features[first, low:high]
        total = 0.0
        for i in range(constant.shape[0]):
            total += constant[i] * row[i]
        moments[0, 0] += total
        for b in range(1, terms):
            cosines, sines = features[first + 2 * b - 1, low:high], features[first + 2 * b, low:high]
            c, s, cc, ss, sc, cs = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(constant.shape[0]):
                cosine, sine = cosines[i], sines[i]
                c += constant[i] * cosine
                s += constant[i] * sine
                cc += last_cosine[i] * cosine
                ss += last_sine[i] * sine
                sc += last_sine[i] * cosine
                cs += last_cosine[i] * sine
            moments[0, b] += c
            moments[1, b] += s
            moments[0, top + b] += cc - ss
            moments[1, top + b] += sc + cs


@compiled(fastmath=FAST)
def _spread_trigonometric(first: int, terms: int, moments: Array, gram: Array) -> None:
    """Write a series' own block of FFᵀ (upper triangle) from its moments: 2 cos a cos b = cos(a-b) + cos(a+b), …"""
    gram[first, first] = moments[0, 0]
    for k in range(1, terms):
        gram[first, first + 2 * k - 1] = moments[0, k]
        gram[first, first + 2 * k] = moments[1, k]
    for j in range(1, terms):
        cosine = first + 2 * j - 1
        for k in range(j, terms):
            c_minus, c_plus = moments[0, k - j], moments[0, k + j]
            s_minus, s_plus = moments[1, k - j], moments[1, k + j]
            column = first + 2 * k - 1
            gram[cosine, column] = 0.5 * (c_minus + c_plus)
            gram[cosine, column + 1] = 0.5 * (s_plus + s_minus)
            gram[cosine + 1, column + 1] = 0.5 * (c_minus - c_plus)
            if k > j:
                gram[cosine + 1, column] = 0.5 * (s_plus - s_minus)


@compiled(fastmath=FAST)
def _add_block(features: Array, a0: int, a1: int, b0: int, b1: int, start: int, stop: int, gram: Array) -> None:
    """gram[a, b] += F_a · F_b for rows a0 ≤ a < a1 and b0 ≤ b < b1, b ≥ a: two by two, in tiles that fit the cache."""
    for low in range(start, stop, BLOCK):
        high = min(stop, low + BLOCK)
        for a in range(a0, a1, 2):
            two_a = a + 1 < a1
            rows_a, rows_a2 = features[a, low:high], features[a + 1 if two_a else a, low:high]
            for b in range(b0 if b0 > a else a, b1, 2):
                two_b = b + 1 < b1
                rows_b, rows_b2 = features[b, low:high], features[b + 1 if two_b else b, low:high]
                s00, s01, s10, s11 = 0.0, 0.0, 0.0, 0.0
                for i in range(rows_a.shape[0]):
                    x0, x1 = rows_a[i], rows_a2[i]
                    y0, y1 = rows_b[i], rows_b2[i]
                    s00 += x0 * y0
                    s01 += x0 * y1
                    s10 += x1 * y0
                    s11 += x1 * y1
                gram[a, b] += s00
                if two_b:
                    gram[a, b + 1] += s01
                if two_a and b > a:
                    gram[a + 1, b] += s10
                if two_a and two_b:
                    gram[a + 1, b + 1] += s11


@compiled()
def add_gram(features: Array, starts: Ints, terms: Ints, start: int, stop: int, moments: Array, gram: Array) -> None:
    """gram (upper triangle) becomes FFᵀ of all data rows up to `stop`, those before `start` being in it already.

    Rows starts[p] : starts[p+1] belong to block p. A block of one series (terms[p] > 0 terms) is kept as trigonometric
    moments, O(n r) instead of O(n r²); everything else is plain inner products.
    """
    blocks = starts.shape[0] - 1
    for p in range(blocks):
        if terms[p] > 0:
            g, last = features[starts[p]], starts[p + 1] - 1
            add_trigonometric(
                features, g, features[last - 1], features[last], starts[p], terms[p], start, stop, moments[p]
            )
            _spread_trigonometric(starts[p], terms[p], moments[p], gram)
        else:
            _add_block(features, starts[p], starts[p + 1], starts[p], starts[p + 1], start, stop, gram)
        if p + 1 < blocks:
            _add_block(features, starts[p], starts[p + 1], starts[p + 1], starts[blocks], start, stop, gram)


@compiled(fastmath=FAST)
def scaled_gram(gram: Array, scale: Array, noise: float, out: Array) -> None:
    """out (upper triangle) = [[ΦΦᵀ + σ²I, Φy], [·, y'y]] with Φ = scale · F; the last row of F is y, without noise."""
    size = gram.shape[0]
    for i in range(size):
        row, sums, scales = out[i, i:], gram[i, i:], scale[i:]
        for j in range(size - i):
            row[j] = scale[i] * scales[j] * sums[j]
        if i + 1 < size:
            out[i, i] += noise


@compiled(fastmath=FAST)
def scale_row(row: Array, factor: float) -> None:
    """Multiply in place; ``row *= factor`` compiles an error message with it, as ``row[:] =`` does."""
    for j in range(row.shape[0]):
        row[j] *= factor


@compiled(fastmath=FAST)
def cholesky(matrix: Array, counted: int) -> float:
    """Replace the upper triangle of `matrix` by U with UᵀU = matrix; the log determinant of its first `counted` rows.

    NaN where the matrix is not positive definite.

    Two pivots at a time, each row then updated by both: at these sizes faster than LAPACK, which pays for generality.
    """
    r = matrix.shape[0]
    logdet = 0.0
    # Below a row's own floor its pivot is mostly rounding. Rows of very different scale do not disturb each other.
    floor = np.empty(counted)
    for k in range(counted):
        floor[k] = RESOLUTION * matrix[k, k]
    for k in range(0, r, 2):
        pivot = matrix[k, k]
        if k < counted:
            if not pivot > floor[k]:
                return math.nan
            logdet += math.log(pivot)
        elif pivot <= 0.0:  # the remainder of y'y: zero where the features explain y to the last digit
            matrix[k, k] = 0.0
            return logdet
        factor = 1.0 / math.sqrt(pivot)
        scale_row(matrix[k, k:], factor)
        if k + 1 == r:
            break
        upper, lower = matrix[k, k + 1 :], matrix[k + 1, k + 1 :]
        f0 = upper[0]
        for j in range(r - k - 1):
            lower[j] -= f0 * upper[j]
        pivot = matrix[k + 1, k + 1]
        if k + 1 < counted:
            if not pivot > floor[k + 1]:
                return math.nan
            logdet += math.log(pivot)
        elif pivot <= 0.0:
            matrix[k + 1, k + 1] = 0.0
            return logdet
        factor = 1.0 / math.sqrt(pivot)
        scale_row(matrix[k + 1, k + 1 :], factor)
        for i in range(k + 2, r - 1, 2):
            upper, lower, here, below = matrix[k, i:], matrix[k + 1, i:], matrix[i, i:], matrix[i + 1, i:]
            f0, g0, f1, g1 = upper[0], lower[0], upper[1], lower[1]
            for j in range(r - i):
                here[j] -= f0 * upper[j] + g0 * lower[j]
                below[j] -= f1 * upper[j] + g1 * lower[j]
        if (r - k) % 2:
            f0, g0 = matrix[k, r - 1], matrix[k + 1, r - 1]
            matrix[r - 1, r - 1] -= f0 * matrix[k, r - 1] + g0 * matrix[k + 1, r - 1]
    return logdet


@compiled()
def reflect(features: Array, scale: Array, rows: int, noise: float, out: Array) -> float:
    """The factor that `cholesky` makes of `scaled_gram`, from the first `rows` data rows without their sums.

    It is the triangle of [Φᵀ y; σI 0] after Householder reflections: rounding is relative to the features, not to their
    squares, so features 1e8 times the noise are no matter. NaN where even that is not enough.
    """
    size = features.shape[0]
    r = size - 1
    columns = np.zeros((size, rows + r))  # large rows first: a small one loses nothing to them
    length = np.empty(size)
    for c in range(size):
        total = 0.0
        for i in range(rows):
            columns[c, i] = scale[c] * features[c, i]
            total += columns[c, i] * columns[c, i]
        if c < r:
            columns[c, rows + c] = math.sqrt(noise)
            total += noise
        length[c] = math.sqrt(total)
    logdet = 0.0
    for k in range(size):
        total = 0.0
        column = columns[k, k:]
        for i in range(rows + r - k):
            total += column[i] * column[i]
        pivot = math.sqrt(total)
        if k == r:  # what the features do not explain of y
            out[k, k] = pivot
            return logdet
        if not pivot > RESOLUTION * length[k]:
            return math.nan
        logdet += 2.0 * math.log(pivot)
        sign = -1.0 if columns[k, k] > 0.0 else 1.0  # away from the first entry, so that nothing cancels
        out[k, k] = pivot
        columns[k, k] -= sign * pivot
        half = pivot * (pivot + abs(columns[k, k] + sign * pivot))  # half the reflection's squared length
        for j in range(k + 1, size):
            inner = 0.0
            other = columns[j, k:]
            for i in range(rows + r - k):
                inner += column[i] * other[i]
            inner /= half
            for i in range(rows + r - k):
                other[i] -= inner * column[i]
            out[k, j] = sign * columns[j, k]
    return logdet


@compiled()
def disagreement(features: Array, scale: Array, mean: Array, alpha: Array) -> float:
    """How far α = (y - Φᵀm)/σ² and m = Φα are from each other, as the error of a gradient by log amplitudes.

    Rounding of y over a noise far smaller spoils α, and with it the gradient, before it spoils anything else.
    """
    total = 0.0
    for c in range(mean.shape[0]):
        miss = -mean[c]
        for i in range(alpha.shape[0]):
            miss += scale[c] * features[c, i] * alpha[i]
        total += abs(mean[c] * miss)
    return total


@compiled(fastmath=FAST)
def forward(upper: Array, right: Array) -> None:
    """right ← U⁻ᵀ right."""
    r = upper.shape[0]
    for k in range(r):
        right[k] /= upper[k, k]
        factor, row, rest = right[k], upper[k, k + 1 :], right[k + 1 :]
        for j in range(r - k - 1):
            rest[j] -= row[j] * factor


@compiled(fastmath=FAST)
def backward(upper: Array, right: Array) -> None:
    """right ← U⁻¹ right, for the leading rows that `right` has."""
    for i in range(right.shape[0] - 1, -1, -1):
        s = right[i]
        row, rest = upper[i, i + 1 :], right[i + 1 :]
        for k in range(rest.shape[0]):
            s -= row[k] * rest[k]
        right[i] = s / upper[i, i]


@compiled(fastmath=FAST)
def _head(features: Array, scale: Array, rows: int, noise: float, out: Array) -> bool:
    """Running log evidences of the first `rows` rows from their own small covariance (method (11), prefix property)."""
    matrix = np.zeros((rows, rows))
    last = features.shape[0] - 1
    for c in range(last):
        weight = scale[c] * scale[c]
        for i in range(rows):
            factor = weight * features[c, i]
            row, rest = matrix[i, i:], features[c, i:rows]
            for j in range(rows - i):
                row[j] += factor * rest[j]
    for i in range(rows):
        matrix[i, i] += noise
    if math.isnan(cholesky(matrix, rows)):
        return False
    z = features[last, :rows].copy()
    forward(matrix, z)
    total = 0.0
    for i in range(rows):
        total -= 0.5 * z[i] * z[i] + math.log(matrix[i, i]) + 0.5 * math.log(2.0 * math.pi)
        out[i] = total
    return True


@compiled()
def prefix_evidence(
    features: Array, scale: Array, starts: Ints, terms: Ints, ends: Ints, noise: float, out: Array
) -> None:
    """Log evidences of y[:n] under ΦᵀΦ + σ²I for every n in `ends`; NaN where a factorisation failed.

    The last row of `features` is y. With A = ΦΦᵀ + σ²I (r × r): log|K| = (n - r) log σ² + log|A|, and
    σ² y'K⁻¹y = y'y - (Φy)'A⁻¹(Φy) is the last squared pivot when A is bordered by Φy and y'y. Each batch adds its own
    rows to the sums, so all batches cost one pass over the data and a small factorisation each. Batches that end
    before row r/2 have a covariance so much smaller than A that building it pays; one factorisation serves all those.
    """
    r = features.shape[0] - 1
    t = 0
    head = 0
    while t < ends.shape[0] and ends[t] <= r // 2:
        head = ends[t]
        t += 1
    if head > 0:
        running = np.empty(head)
        fine = _head(features, scale, head, noise, running)
        for early in range(t):
            out[early] = running[ends[early] - 1] if fine else math.nan
    if t == ends.shape[0]:
        return
    moments = np.zeros((terms.shape[0], 2, 2 * max(1, terms.max())))
    gram = np.zeros((r + 1, r + 1))
    factor = np.empty((r + 1, r + 1))
    begin = np.int64(0)
    while t < ends.shape[0]:
        end = ends[t]
        add_gram(features, starts, terms, begin, end, moments, gram)
        begin = end
        scaled_gram(gram, scale, noise, factor)
        logdet = cholesky(factor, r)
        quad = factor[r, r] * factor[r, r] / noise
        out[t] = -0.5 * (quad + (end - r) * math.log(noise) + logdet + end * math.log(2.0 * math.pi))
        if factor[r, r] * factor[r, r] < RESOLUTION * gram[r, r]:  # what is left of y'y is mostly rounding
            out[t] = math.nan
        t += 1


@compiled()
def reflected_prefix_evidence(features: Array, scale: Array, ends: Ints, noise: float, out: Array) -> None:
    """`prefix_evidence` by reflections, each batch by itself."""
    r = features.shape[0] - 1
    factor = np.empty((r + 1, r + 1))
    for t in range(ends.shape[0]):
        end = ends[t]
        logdet = reflect(features, scale, end, noise, factor)
        quad = factor[r, r] * factor[r, r] / noise
        out[t] = -0.5 * (quad + (end - r) * math.log(noise) + logdet + end * math.log(2.0 * math.pi))
