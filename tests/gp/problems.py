"""What the posteriors are tested on: drawn kernels and rows, and Gaussian conditioning so plain that it is obviously
right: scalars in a double loop, one inverse, and the textbook's formula."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from kerneltrail.data.user import User
from kerneltrail.gp import LinearBlock, Posterior
from kerneltrail.kernels import Hyperparameters, Priors, parse

from . import oracle

PRODUCTS = (
    "LIN[x]", "PER[x]", "SE[x]", "SE[z]", "LIN[x]*PER[x]", "LIN[z]*SE[x]", "PER[x]*SE[z]", "SE[x]*SE[z]",
    "LIN[x]*LIN[z]",
)  # fmt: skip
COVARIATES = ("x", "z")

compositions = st.lists(st.sampled_from(PRODUCTS), max_size=3, unique=True).map(lambda texts: parse(" + ".join(texts)))
"""Up to three products over two covariates, none included."""
splits = st.lists(st.integers(1, 50), min_size=1, max_size=5)
"""Sizes of batches."""


@dataclass(frozen=True)
class Problem:
    """Rows, a kernel with hyperparameters, and a linear block or None; `new` and `features` are rows to predict at."""

    user: User
    hyperparameters: Hyperparameters
    block: LinearBlock | None
    new: np.ndarray
    features: np.ndarray | None

    @property
    def pieces(self):
        """(X, y, keyword with the features) of every batch."""
        starts = (0, *self.user.ends[:-1])
        return [
            (self.user.X[a:b], self.user.y[a:b], {} if self.block is None else {"linear": self.block.features[a:b]})
            for a, b in zip(starts, self.user.ends, strict=True)
        ]

    @property
    def linear(self):
        """The keyword with the features at the new rows."""
        return {} if self.features is None else {"linear": self.features}


def rows(rng, count):
    """Rows with some repeated."""
    X = np.stack([rng.uniform(-4.0, 4.0, count), rng.uniform(0.0, 1.0, count)], axis=1)
    X[rng.random(count) < 0.1] = X[0]
    return X


def problem(composition, sizes, seed, *, with_block=False, new=7):
    """A problem whose hyperparameters are a draw from the paper's synthetic priors."""
    if isinstance(composition, str):
        composition = parse(composition)
    rng = np.random.default_rng(seed)
    count = sum(sizes)
    theta = Priors.synthetic().sample(composition, 1, rng)[0]
    X = rows(rng, count)
    user = User("u", COVARIATES, X, rng.normal(0.0, 2.0, count), np.cumsum(sizes).tolist())
    block = features = None
    if with_block:
        half = rng.normal(size=(3, 3))
        block = LinearBlock(rng.normal(size=(count, 3)), half @ half.T + 0.1 * np.eye(3), ("a", "b", "c"))
        features = rng.normal(size=(new, 3))
    return Problem(user, Hyperparameters(composition, tuple(theta)), block, rows(rng, new), features)


problems = st.builds(problem, compositions, splits, st.integers(0, 2**32 - 1), with_block=st.booleans())


def product_covariance(hyperparameters, p, X, Z, covariates=COVARIATES):
    """σ_f² Π k_atom of product p, entry by entry."""
    products, _ = oracle.natural(hyperparameters.composition, hyperparameters.unconstrained)
    amplitude, atoms = products[p]
    out = np.empty((len(X), len(Z)))
    for i in range(len(X)):
        for j in range(len(Z)):
            out[i, j] = amplitude
            for kind, covariate, values in atoms:
                column = covariates.index(covariate)
                out[i, j] *= oracle.kernel(kind, float(X[i, column]), float(Z[j, column]), values)
    return out


@dataclass(frozen=True)
class Naive:
    """Mean and covariance of the function at the new rows, and of each of its parts."""

    mean: np.ndarray
    covariance: np.ndarray
    part_means: list
    part_covariances: list
    log_evidence: float


def condition(problem):
    """k*'K⁻¹y and k** - k*'K⁻¹k* (Rasmussen and Williams 2006, eq. 2.23 and 2.24), for the whole and for every part."""
    h, X, new = problem.hyperparameters, problem.user.X, problem.new
    triples = [
        tuple(product_covariance(h, p, a, b) for a, b in ((X, X), (X, new), (new, new)))
        for p in range(len(h.composition))
    ]
    if problem.block is not None:
        B, S, F = problem.block.features, problem.block.covariance, problem.features
        triples.append((B @ S @ B.T, B @ S @ F.T, F @ S @ F.T))
    K = sum((t[0] for t in triples), np.zeros((len(X), len(X)))) + h["noise"] * np.eye(len(X))
    inverse = np.linalg.inv(K)
    cross = sum((t[1] for t in triples), np.zeros((len(X), len(new))))
    prior = sum((t[2] for t in triples), np.zeros((len(new), len(new))))
    y = problem.user.y
    return Naive(
        cross.T @ inverse @ y,
        prior - cross.T @ inverse @ cross,
        [t[1].T @ inverse @ y for t in triples],
        [t[2] - t[1].T @ inverse @ t[1] for t in triples],
        oracle.gaussian(y, K),
    )


def scale_of(problem):
    """Largest prior variance of the new rows: what rounding is relative to."""
    h = problem.hyperparameters
    total = sum(product_covariance(h, p, problem.new, problem.new).max() for p in range(len(h.composition)))
    return 1.0 + total


def fitted(problem):
    return Posterior.fit(problem.user, problem.hyperparameters, block=problem.block)


def assert_same(one, other, problem, tol, *, evidence_tol=None):
    """Two posteriors (or an online state) give the same answers, relative to the prior's scale."""
    scale = scale_of(problem)
    a, b = one.predict(problem.new, **problem.linear), other.predict(problem.new, **problem.linear)
    np.testing.assert_allclose(a.mean, b.mean, atol=tol * scale, rtol=0)
    np.testing.assert_allclose(a.variance, b.variance, atol=tol * scale, rtol=0)
    assert a.noise == b.noise
    parts = zip(
        one.components(problem.new, **problem.linear), other.components(problem.new, **problem.linear), strict=True
    )
    for mine, theirs in parts:
        assert mine.product == theirs.product
        np.testing.assert_allclose(mine.mean, theirs.mean, atol=tol * scale, rtol=0)
        np.testing.assert_allclose(mine.variance, theirs.variance, atol=tol * scale, rtol=0)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=evidence_tol or tol, rel=evidence_tol or tol)
