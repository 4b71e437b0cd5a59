"""Evidence so plain that it is obviously right: what the fast code is compared with.

Two of them are for every kernel. `covariance` and `log_evidence` are scalars in a double loop, and NumPy's determinant
and solve, one batch at a time. `precise` is the same with more digits (80-bit where the machine has them) and a
textbook Cholesky, for comparisons in which double precision itself would be the larger error, and for finite
differences.

Two more know no number too large or too small: `Rational` for compositions of LIN, and `precise_grouped` for rows that
repeat.
"""

import math
from fractions import Fraction

import numpy as np

from kerneltrail.kernels import Composition, layout_of

LONG = np.longdouble


def kernel(kind, a, b, values):
    """method (2) to (4), one pair of numbers at a time."""
    if kind == "LIN":
        (c,) = values
        return (a - c) * (b - c)
    if kind == "PER":
        ell, p = values
        return math.exp(-2.0 * math.sin(math.pi * (a - b) / p) ** 2 / ell**2)
    if kind == "SE":
        (ell,) = values
        return math.exp(-((a - b) ** 2) / (2.0 * ell**2))
    if kind == "RQ":
        ell, alpha = values
        return (1.0 + (a - b) ** 2 / (2.0 * alpha * ell**2)) ** -alpha
    if kind == "MATERN52":
        (ell,) = values
        s = math.sqrt(5.0) * abs(a - b) / ell
        return (1.0 + s + s * s / 3.0) * math.exp(-s)
    raise AssertionError(kind)


def natural(composition, theta):
    """Natural values by product: [(amplitude, [(kind, covariate, values), …]), …] and the noise.

    The layout's order, read off one by one: for each product its amplitude, then its atoms'; the noise last.
    """
    numbers = iter(theta)
    products = []
    for product in composition:
        amplitude = math.exp(next(numbers))
        atoms = []
        for atom in product.atoms:
            if atom.kind == "LIN":
                values = [next(numbers)]
            else:
                values = [math.exp(next(numbers)) for _ in atom.spec.hyperparameters]
            atoms.append((atom.kind, atom.covariate, values))
        products.append((amplitude, atoms))
    noise = math.exp(next(numbers))
    assert next(numbers, None) is None
    return products, noise


def covariance(user, composition, theta, block=None):
    """K_θ(X,X) + B Σ Bᵀ + σ²I, entry by entry."""
    products, noise = natural(composition, theta)
    n = len(user.y)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for amplitude, atoms in products:
                term = amplitude
                for kind, covariate, values in atoms:
                    column = user.covariates.index(covariate)
                    term *= kernel(kind, float(user.X[i, column]), float(user.X[j, column]), values)
                K[i, j] += term
            if block is not None:
                K[i, j] += block.features[i] @ block.covariance @ block.features[j]
            if i == j:
                K[i, j] += noise
    return K


def product_covariance(names, hyperparameters, p, X, Z):
    """σ_f² Π k_atom of one product between rows of X and of Z, entry by entry."""
    amplitude, atoms = natural(hyperparameters.composition, hyperparameters.unconstrained)[0][p]
    K = np.full((len(X), len(Z)), amplitude)
    for i in range(len(X)):
        for j in range(len(Z)):
            for kind, covariate, values in atoms:
                column = names.index(covariate)
                K[i, j] *= kernel(kind, float(X[i, column]), float(Z[j, column]), values)
    return K


def gaussian(y, K):
    """log N(y; 0, K)."""
    sign, logdet = np.linalg.slogdet(K)
    assert sign > 0
    return -0.5 * (y @ np.linalg.solve(K, y) + logdet + len(y) * math.log(2.0 * math.pi))


def log_evidence(user, composition, thetas, block=None):
    """(S, T), each batch from its own covariance."""
    out = np.empty((len(thetas), len(user.ends)))
    for s, theta in enumerate(thetas):
        K = covariance(user, composition, theta, block)
        for t, n in enumerate(user.ends):
            out[s, t] = gaussian(user.y[:n], K[:n, :n])
    return out


def precise_covariance(user, composition, theta, block=None):
    """`covariance` with more digits, a matrix at a time."""
    theta = np.asarray(theta, dtype=LONG)
    X, pi = np.asarray(user.X, dtype=LONG), 4 * np.arctan(LONG(1))
    n, at = len(user.y), 0
    K = np.zeros((n, n), dtype=LONG)
    for product in composition:
        term = np.full((n, n), np.exp(theta[at]))
        at += 1
        for atom in product.atoms:
            x = X[:, user.covariates.index(atom.covariate)]
            tau = x[:, None] - x[None, :]
            if atom.kind == "LIN":
                term *= np.outer(x - theta[at], x - theta[at])
                at += 1
            elif atom.kind == "PER":
                ell, p = np.exp(theta[at : at + 2])
                term *= np.exp(-2 * np.sin(pi * tau / p) ** 2 / ell**2)
                at += 2
            elif atom.kind == "SE":
                term *= np.exp(-(tau**2) / (2 * np.exp(2 * theta[at])))
                at += 1
            elif atom.kind == "RQ":
                ell, alpha = np.exp(theta[at : at + 2])
                term *= (1 + tau**2 / (2 * alpha * ell**2)) ** -alpha
                at += 2
            else:
                assert atom.kind == "MATERN52"
                s = np.sqrt(LONG(5)) * np.abs(tau) / np.exp(theta[at])
                term *= (1 + s + s * s / 3) * np.exp(-s)
                at += 1
        K += term
    assert at + 1 == len(theta) == layout_of(composition).size
    if block is not None:
        B = np.asarray(block.features, dtype=LONG)
        K += B @ np.asarray(block.covariance, dtype=LONG) @ B.T
    K[np.diag_indices(n)] += np.exp(theta[at])
    return K


def precise(user, composition, theta, block=None):
    """Log evidences of all batches of one hyperparameter vector, (T,), with more digits than a double."""
    K = precise_covariance(user, composition, theta, block)
    z, total, running = np.asarray(user.y, dtype=LONG).copy(), LONG(0), []
    log_2pi = np.log(8 * np.arctan(LONG(1)))
    for k in range(len(z)):
        assert K[k, k] > 0, "too ill-conditioned for the reference"
        pivot = np.sqrt(K[k, k])
        column = K[k + 1 :, k] / pivot
        z[k] /= pivot
        z[k + 1 :] -= column * z[k]
        K[k + 1 :, k + 1 :] -= column[:, None] * column[None, :]
        total -= z[k] ** 2 / 2 + np.log(pivot) + log_2pi / 2
        running.append(total)
    return np.array([running[n - 1] for n in user.ends])


def precise_gradient(user, composition, theta, block=None, step=1e-6):
    """d precise/dθ of the last batch by the five-point formula, whose own error is of the order step⁴."""
    theta = np.asarray(theta, dtype=LONG)

    def value(k, by):
        moved = theta.copy()
        moved[k] += by
        return precise(user, composition, moved, block)[-1]

    h = LONG(step)
    slopes = [
        (8 * (value(k, h) - value(k, -h)) - (value(k, 2 * h) - value(k, -2 * h))) / (12 * h) for k in range(len(theta))
    ]
    return np.array(slopes, dtype=np.float64)


def precise_grouped(user, composition, theta, times):
    """`precise` for rows of which each stands `times` times in a row, with no matrix that repeats make singular.

    N(y; f, σ²) of c equal rows is N(their mean; f, σ²/c) times what their differences are worth.
    """
    theta = np.asarray(theta, dtype=LONG)
    y = np.asarray(user.y, dtype=LONG).reshape(-1, times)
    means, noise = y.mean(axis=1), np.exp(theta[-1])
    assert (user.X.reshape(len(means), times, -1) == user.X[::times, None]).all()
    reduced = Grouped(user.covariates, user.X[::times], means, (len(means),))
    inner = theta.copy()
    inner[-1] -= np.log(LONG(times))
    within = -((y - means[:, None]) ** 2).sum() / (2 * noise)
    within -= len(means) * (LONG(times - 1) / 2 * np.log(8 * np.arctan(LONG(1)) * noise) + np.log(LONG(times)) / 2)
    return float(precise(reduced, composition, inner)[-1] + within)


class Grouped:
    """Rows as `precise` reads them, with a target of more digits than a double."""

    def __init__(self, covariates, X, y, ends):
        self.covariates, self.X, self.y, self.ends = covariates, X, y, ends


class Rational:
    """A composition of LIN alone, conditioned in exact fractions: regression on one feature for each product."""

    def __init__(self, user, composition, theta, rows=None):
        self.products, noise = natural(composition, theta)
        self.noise, self.covariates = Fraction(noise), user.covariates
        y = [Fraction(float(v)) for v in user.y[:rows]]
        self.rows, r = len(y), len(self.products)
        phi = [self._features(row) for row in user.X[:rows]]
        prior = [Fraction(amplitude) for amplitude, _ in self.products]
        a = [[sum(f[i] * f[j] for f in phi) for j in range(r)] for i in range(r)]
        for i in range(r):
            a[i][i] += self.noise / prior[i]
        b = [sum(f[i] * v for f, v in zip(phi, y, strict=True)) for i in range(r)]
        self.inverse, determinant = _inverted(a)
        self.mean = [sum(u * v for u, v in zip(row, b, strict=True)) for row in self.inverse]
        self.quad = (sum(v * v for v in y) - sum(u * v for u, v in zip(b, self.mean, strict=True))) / self.noise
        self.logdet = (self.rows - r) * _log(self.noise) + _log(determinant) + sum(map(_log, prior))

    def _features(self, row):
        out = []
        for _, atoms in self.products:
            value = Fraction(1)
            for kind, covariate, (c,) in atoms:
                assert kind == "LIN"
                value *= Fraction(float(row[self.covariates.index(covariate)])) - Fraction(c)
            out.append(value)
        return out

    @property
    def log_evidence(self):
        return -0.5 * (float(self.quad) + self.logdet + self.rows * math.log(2.0 * math.pi))

    def predict(self, row):
        """Mean and variance of the function."""
        f = self._features(row)
        mean = sum(u * v for u, v in zip(f, self.mean, strict=True))
        spread = sum(f[i] * self.inverse[i][j] * f[j] for i in range(len(f)) for j in range(len(f)))
        return float(mean), float(self.noise * spread)


def _log(fraction):
    return math.log(fraction.numerator) - math.log(fraction.denominator)


def _inverted(matrix):
    """Inverse and determinant by elimination."""
    n = len(matrix)
    rows = [list(row) + [Fraction(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    determinant = Fraction(1)
    for k in range(n):
        determinant *= rows[k][k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [u - rows[i][k] * v for u, v in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows], determinant


class Nested:
    """An expression of sums and products evaluated as it is written, to check the multiplying-out.

    A leaf is (kind, covariate, values); each has amplitude 1.
    """

    def __init__(self, sign, *parts):
        self.sign, self.parts = sign, parts

    def at(self, row, other, covariates):
        """k(row, other)."""
        total = 0.0 if self.sign == "+" else 1.0
        for part in self.parts:
            if isinstance(part, Nested):
                value = part.at(row, other, covariates)
            else:
                kind, covariate, values = part
                column = covariates.index(covariate)
                value = kernel(kind, float(row[column]), float(other[column]), values)
            total = total + value if self.sign == "+" else total * value
        return total

    def composition(self, leaf):
        """The same with `+` and `*` of compositions; `leaf` makes one of (kind, covariate)."""
        total = None
        for part in self.parts:
            value: Composition = part.composition(leaf) if isinstance(part, Nested) else leaf(part[0], part[1])
            total = value if total is None else total + value if self.sign == "+" else total * value
        return total
