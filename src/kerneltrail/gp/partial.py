"""Partial effects: what some products add as one or two covariates vary, averaged over how the others occurred.

A partial effect is linear in the function, so its posterior is a Gaussian in closed form (method (42)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from kerneltrail.gp.numerics import solve_lower, solve_upper
from kerneltrail.gp.online import OnlineState
from kerneltrail.gp.posterior import Posterior

Array = NDArray[np.float64]


def partial_effect(
    posterior: Posterior | OnlineState,
    products: Sequence[int],
    names: Sequence[str],
    points: Array,
    rows: Array,
    linear: Array | None = None,
    echo: float = 0.0,
    block: Array | None = None,
) -> tuple[Array, Array]:
    """Mean (G,) and covariance (G, G) of Σ_p (1/R) Σ_i f_p(names = point, other covariates as in row i) at G points.

    Args:
        posterior: of all products together.
        products: indices of those that are summed, within the composition.
        names: the covariates that vary.
        points: their values, scaled, (G, number of names).
        rows: how the other covariates occurred, scaled, (R, d); at least one. With an `echo` the newest rows, in order.
        linear: features of the linear block at the points, (G, q), whose weights are added; None for none.
        echo: correlation of the noise in neighbouring rows, for which the covariance allows (method (79)).
        block: features of the linear block at the rows, (R, q); needed with an echo where sums have replaced the rows.
    """
    if isinstance(posterior, Posterior) and not posterior.by_weights:
        return _dense(posterior, products, names, points, rows, linear, echo)
    columns = [posterior.covariates.index(name) for name in names]
    reads = {atom.covariate for p in products for atom in posterior.composition.products[p].atoms}
    others = rows if reads - set(names) else rows[:1]
    grid = np.repeat(others[None], len(points), axis=0)
    grid[:, :, columns] = points[:, None, :]
    known = np.empty((0, rows.shape[1]))
    if echo:
        inputs = posterior.inputs if isinstance(posterior, Posterior) else None
        known = rows if inputs is None else inputs.X
        block = block if inputs is None or inputs.block is None else inputs.block.features
    weights, features, groups = posterior.features_at(np.concatenate([grid.reshape(-1, rows.shape[1]), known]))
    features, seen = np.split(features, [len(points) * len(others)], axis=1)
    chosen = np.zeros_like(features)
    for p in products:
        chosen[groups[p]] = features[groups[p]]
    averaged = chosen.reshape(len(chosen), len(points), len(others)).mean(axis=2)
    root = posterior.block_root if linear is not None or block is not None else None
    if linear is not None and root is not None:
        averaged[-linear.shape[1] :] = root.T @ linear.T
    spread = weights.spread(averaged)
    covariance = weights.noise * (spread.T @ spread)
    if echo:
        if block is not None and root is not None:
            seen[-block.shape[1] :] = root.T @ block.T
        ours = weights.spread(seen)
        # Rows before the newest ones say as much as these, but in no direction do all together say more than is known.
        left, size, right = np.linalg.svd(ours, full_matrices=False)
        size = np.minimum(size * np.sqrt(posterior.rows / len(known)), 1.0)
        covariance += from_echo(right.T @ (size[:, None] * (left.T @ spread)), weights.noise, echo)
    return weights.mean @ averaged, covariance


def _dense(
    posterior: Posterior,
    products: Sequence[int],
    names: Sequence[str],
    points: Array,
    rows: Array,
    linear: Array | None,
    echo: float,
) -> tuple[Array, Array]:
    """By the rows' covariance. A product's kernel is a product over covariates: averages are taken factor by factor."""
    inputs, values = posterior.inputs, posterior.hyperparameters.values_array
    cross = np.zeros((inputs.rows, len(points)))
    prior = np.zeros((len(points), len(points)))
    for p in products:
        near, at = np.ones((inputs.rows, len(points))), np.ones((len(points), len(points)))
        far, between = np.ones((inputs.rows, len(rows))), np.ones((len(rows), len(rows)))
        for kind, column, index in inputs.atoms[p]:
            theta, name = values[index], inputs.covariates[column]
            if name in names:
                point = points[:, list(names).index(name)]
                near *= kind.covariance(inputs.X[:, column], point, theta)
                at *= kind.covariance(point, point, theta)
            else:
                far *= kind.covariance(inputs.X[:, column], rows[:, column], theta)
                between *= kind.covariance(rows[:, column], rows[:, column], theta)
        amplitude = values[inputs.layout.amplitude_index[p]]
        cross += amplitude * far.mean(axis=1, keepdims=True) * near
        prior += amplitude * between.mean() * at
    if linear is not None and inputs.block is not None:
        weighted = linear @ inputs.block.covariance
        cross += inputs.block.features @ weighted.T
        prior += weighted @ linear.T
    spread = solve_lower(posterior.lower, cross)
    covariance = prior - spread.T @ spread
    if echo:
        covariance += from_echo(solve_upper(posterior.lower, spread), float(values[-1]), echo)
    return cross.T @ posterior.alpha, covariance


def from_echo(weights: Array, noise: float, echo: float) -> Array:
    """What noise that is alike in neighbouring rows adds to the covariance of sums of rows, (G, G) (method (79)).

    Args:
        weights: of each row in each sum, (n, G).
        noise: its variance.
        echo: its correlation from one row to the next; between rows further apart it is that to a power.
    """
    # Row i meets all rows before it as one sum, which falls by the correlation from row to row.
    band = np.stack([np.ones(len(weights)), np.full(len(weights), -echo)])
    shifted = np.concatenate([np.zeros_like(weights[:1]), echo * weights[:-1]])
    before: Array = np.asarray(scipy.linalg.solve_banded((1, 0), band, shifted), dtype=np.float64)
    half = weights.T @ before
    return np.asarray(noise * (half + half.T))
