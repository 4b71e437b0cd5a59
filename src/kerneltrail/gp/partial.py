"""Partial effects: what some products add as one or two covariates vary, averaged over how the others occurred.

A partial effect is linear in the function, so its posterior is a Gaussian in closed form (method (42)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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
) -> tuple[Array, Array]:
    """Mean (G,) and covariance (G, G) of Σ_p (1/R) Σ_i f_p(names = point, other covariates as in row i) at G points.

    Args:
        posterior: of all products together.
        products: indices of those that are summed, within the composition.
        names: the covariates that vary.
        points: their values, scaled, (G, number of names).
        rows: how the other covariates occurred, scaled, (R, d); at least one.
        linear: features of the linear block at the points, (G, q), whose weights are added; None for none.
        echo: correlation of the noise in neighbouring rows, for which the covariance allows where
            the posterior is made of the rows' covariance.
    """
    if isinstance(posterior, Posterior) and not posterior.by_weights:
        return _dense(posterior, products, names, points, rows, linear, echo)
    columns = [posterior.covariates.index(name) for name in names]
    reads = {atom.covariate for p in products for atom in posterior.composition.products[p].atoms}
    others = rows if reads - set(names) else rows[:1]
    grid = np.repeat(others[None], len(points), axis=0)
    grid[:, :, columns] = points[:, None, :]
    weights, features, groups = posterior.features_at(grid.reshape(-1, rows.shape[1]))
    chosen = np.zeros_like(features)
    for p in products:
        chosen[groups[p]] = features[groups[p]]
    averaged = chosen.reshape(len(chosen), len(points), len(others)).mean(axis=2)
    if linear is not None and (root := posterior.block_root) is not None:
        averaged[-linear.shape[1] :] = root.T @ linear.T
    spread = weights.spread(averaged)
    return weights.mean @ averaged, weights.noise * (spread.T @ spread)


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
    apart = np.arange(len(weights))
    alike = echo ** np.abs(np.subtract.outer(apart, apart)) - np.eye(len(weights))
    return np.asarray(noise * (weights.T @ alike @ weights))
