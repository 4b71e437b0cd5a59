"""Covariances, evidence, gradients and predictions of an expression, computed on its tree: dense, and once an atom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import LinearBlock, Prediction
from kerneltrail.gp.inputs import REACH
from kerneltrail.gp.numerics import LOG_2PI, factorise, solve_lower, solve_upper
from kerneltrail.methods.cks.expression import Expression, Leaf, Sum
from kerneltrail.methods.cks.layout import ExpressionLayout, ExpressionParameters, expression_layout
from kerneltrail.methods.protocol import Array


@dataclass(frozen=True)
class _Cell:
    """One node of the tree, evaluated: its covariance with amplitudes, and its parts.

    `leaf` says which atom it is, -1 for sums and products; `unit` is an atom's covariance without amplitude.
    """

    matrix: Array
    parts: tuple[_Cell, ...]
    leaf: int
    unit: Array | None


class CovarianceTree:
    """An expression's covariance between rows whose columns are the covariates."""

    def __init__(self, expression: Expression, covariates: tuple[str, ...]) -> None:
        self.expression = expression
        self.layout: ExpressionLayout = expression_layout(expression)
        self.leaves = expression.leaves
        self.columns = [covariates.index(leaf.atom.covariate) for leaf in self.leaves]

    def amplitudes(self, vector: Array) -> Array:
        """The amplitude of each atom."""
        return np.exp(self.layout.carry @ vector[self.layout.amplitudes])

    def cells(self, vector: Array, X: Array, Z: Array) -> _Cell:
        """Every node's covariance between the rows of X and of Z."""
        values, amplitudes = self.layout.constrain(vector), self.amplitudes(vector)
        return self._cell(self.expression, iter(range(len(self.leaves))), values, amplitudes, X, Z)

    def _cell(
        self, node: Expression, places: Iterator[int], values: Array, amplitudes: Array, X: Array, Z: Array
    ) -> _Cell:
        if isinstance(node, Leaf):
            index = next(places)
            column = self.columns[index]
            unit = node.atom.spec.covariance(X[:, column], Z[:, column], values[self.layout.places[index]])
            scaled = unit if amplitudes[index] == 1.0 else amplitudes[index] * unit
            return _Cell(scaled, (), index, unit)
        parts = tuple(self._cell(part, places, values, amplitudes, X, Z) for part in node.parts)
        join = np.add if isinstance(node, Sum) else np.multiply
        matrix = join(parts[0].matrix, parts[1].matrix)
        for part in parts[2:]:
            join(matrix, part.matrix, out=matrix)
        return _Cell(matrix, parts, -1, None)

    def diagonal(self, vector: Array, X: Array) -> Array:
        """The prior variance at each row of X."""
        values, amplitudes = self.layout.constrain(vector), self.amplitudes(vector)
        places = iter(range(len(self.leaves)))

        def of(node: Expression) -> Array:
            if isinstance(node, Leaf):
                index = next(places)
                unit = node.atom.spec.diagonal(X[:, self.columns[index]], values[self.layout.places[index]])
                return amplitudes[index] * unit
            parts = np.array([of(part) for part in node.parts])
            return np.asarray(parts.sum(axis=0) if isinstance(node, Sum) else parts.prod(axis=0))

        return of(self.expression)

    def contract(self, root: _Cell, weights: Array, vector: Array, X: Array) -> Array:
        """Σ_ij W_ij dK_ij/du for every unconstrained hyperparameter u but the noise, from the root down.

        What reaches a factor is W times the other factors: each atom's slope is then needed once, however many products
        the expression multiplies out to.
        """
        values, amplitudes = self.layout.constrain(vector), self.amplitudes(vector)
        by_leaf = np.zeros(len(self.leaves))
        out = np.zeros(self.layout.size)

        def down(cell: _Cell, node: Expression, weight: Array) -> None:
            if isinstance(node, Leaf):
                index, slots = cell.leaf, self.layout.places[cell.leaf]
                assert cell.unit is not None  # an atom's cell has it
                x = np.ascontiguousarray(X[:, self.columns[index]])
                by_leaf[index] = amplitudes[index] * np.vdot(weight, cell.unit)
                slopes = node.atom.spec.gradient(x, values[slots], cell.unit)
                out[slots] = [amplitudes[index] * np.vdot(weight, slope) for slope in slopes]
                return
            for i, (part, child) in enumerate(zip(cell.parts, node.parts, strict=True)):
                passed = weight
                if not isinstance(node, Sum):
                    for j, other in enumerate(cell.parts):
                        passed = passed * other.matrix if j != i else passed
                down(part, child, passed)

        down(root, self.expression, weights)
        out[self.layout.amplitudes] = self.layout.carry.T @ by_leaf
        return out


@dataclass(frozen=True)
class Rows:
    """Rows to be explained by expressions, with the linear block of a reward model if there is one."""

    user: User
    block: LinearBlock | None = None

    @cached_property
    def linear(self) -> Array | None:
        """The linear block's covariance, (n, n)."""
        return None if self.block is None else (weighted := self.block.weighted) @ weighted.T

    def _factor(self, tree: CovarianceTree, vector: Array) -> tuple[_Cell, Array]:
        """The evaluated tree and the Cholesky factor of the covariance with noise."""
        what = f"the covariance of {tree.expression} for user {self.user.name!r}"
        if np.abs(vector[tree.layout.positive]).max() > REACH:
            raise NumericalError(f"a hyperparameter of {what} has run away")
        with np.errstate(all="ignore"):  # an overflow ends in an error by name
            cells = tree.cells(vector, self.user.X, self.user.X)
            total = cells.matrix.copy() if self.linear is None else cells.matrix + self.linear
            total.reshape(-1)[:: self.user.rows + 1] += np.exp(vector[-1])
        return cells, factorise(total, what=what, overwrite=True)

    def log_evidence(self, tree: CovarianceTree, vector: Array) -> float:
        """log p(y|X,θ)."""
        _, lower = self._factor(tree, vector)
        return log_density(lower, solve_lower(lower, self.user.y))

    def slope(self, tree: CovarianceTree, vector: Array) -> tuple[float, Array]:
        """log p(y|X,θ) and its gradient, ½ tr((αα' - K⁻¹) dK/du) (Rasmussen and Williams 2006, eq. 5.9)."""
        cells, lower = self._factor(tree, vector)
        z = solve_lower(lower, self.user.y)
        matrix = gp.dense.outer_minus_inverse(lower, solve_upper(lower, z))
        with np.errstate(all="ignore"):
            gradient = 0.5 * tree.contract(cells, matrix, vector, self.user.X)
        gradient[-1] = 0.5 * np.exp(vector[-1]) * np.trace(matrix)
        return log_density(lower, z), gradient


def log_density(lower: Array, z: Array) -> float:
    """log N(y; 0, LL'), z = L⁻¹y."""
    return float(-0.5 * z @ z - np.log(np.diagonal(lower)).sum() - 0.5 * len(z) * LOG_2PI)


class ExpressionPosterior:
    """A Gaussian process with an expression's kernel, given rows; without rows, the prior."""

    def __init__(self, rows: Rows, kernel: ExpressionParameters) -> None:
        self.rows = rows
        self.kernel = kernel
        self.tree = None if kernel.expression is None else CovarianceTree(kernel.expression, rows.user.covariates)
        vector = kernel.vector
        if self.tree is not None and rows.user.rows:
            _, self.lower = rows._factor(self.tree, vector)
        else:
            linear = np.zeros((rows.user.rows,) * 2) if rows.linear is None else rows.linear
            self.lower = factorise(linear + np.exp(vector[-1]) * np.eye(rows.user.rows))
        self.z = solve_lower(self.lower, rows.user.y)

    @property
    def alpha(self) -> Array:
        """K⁻¹y, (n,)."""
        return solve_upper(self.lower, self.z)

    def predict(self, X: Array, *, linear: Array | None = None) -> Prediction:
        """Mean and variance of the function at rows of X, with the linear block's features at them if there is one."""
        vector, prepared = self.kernel.vector, self.rows.user.X
        cross, prior = np.zeros((len(prepared), len(X))), np.zeros(len(X))
        if self.tree is not None:
            cross += self.tree.cells(vector, prepared, X).matrix
            prior += self.tree.diagonal(vector, X)
        block = self.rows.block
        if block is not None and linear is not None:
            weighted = linear @ block.covariance
            cross += block.features @ weighted.T
            prior += np.einsum("ij,ij->i", weighted, linear)
        v = solve_lower(self.lower, cross)
        variance = np.maximum(prior - np.einsum("ij,ij->j", v, v), 0.0)
        return Prediction(v.T @ self.z, variance, float(np.exp(vector[-1])))
