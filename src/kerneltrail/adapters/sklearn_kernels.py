"""The two kernels that scikit-learn lacks: one column of X, and a straight line with a location.

Both are complete scikit-learn kernels: they clone, have `theta`, bounds and gradients, and can be optimised by
GaussianProcessRegressor. Importing this module imports scikit-learn.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

Array = NDArray[np.float64]


class Column(Kernel):
    """Another kernel, acting on one column of X; scikit-learn's own act on all of them.

    Args:
        kernel: a kernel for inputs of one column.
        column: the column's number.
    """

    def __init__(self, kernel: Kernel, column: int) -> None:
        self.kernel = kernel
        self.column = column

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of the inner kernel begin with ``kernel__``."""
        params = {"kernel": self.kernel, "column": self.column}
        if deep:
            params |= {f"kernel__{name}": value for name, value in self.kernel.get_params().items()}
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The inner kernel's, with ``kernel__`` before their names."""
        return [
            Hyperparameter(f"kernel__{inner.name}", inner.value_type, inner.bounds, inner.n_elements)
            for inner in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Array:
        """The inner kernel's hyperparameters, as it transforms them."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: Array) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Array:
        """The inner kernel's bounds."""
        return self.kernel.bounds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Column) and self.column == other.column and self.kernel == other.kernel

    __hash__ = None  # type: ignore[assignment]  # mutable, like every scikit-learn kernel

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        """The inner kernel's matrix of the column, with its gradient if asked."""
        return self.kernel(self._of(X), None if Y is None else self._of(Y), eval_gradient=eval_gradient)

    def diag(self, X: Array) -> Array:
        """The inner kernel's diagonal of the column."""
        return self.kernel.diag(self._of(X))

    def is_stationary(self) -> bool:
        """Whether the inner kernel is."""
        return self.kernel.is_stationary()

    def __repr__(self) -> str:
        return f"Column({self.kernel}, {self.column})"

    def _of(self, X: Array) -> Array:
        return np.atleast_2d(X)[:, [self.column]]


class Linear(Kernel):
    """(x-c)·(x'-c): scikit-learn's DotProduct is σ0² + x·x', which is another kernel unless σ0 = c = 0.

    Unlike other hyperparameters of scikit-learn, the location is not positive, so `theta` holds it as it is, not its
    logarithm, and so do the bounds and the gradient.

    Args:
        location: c, where the line crosses zero.
        location_bounds: smallest and largest value for the optimiser, or "fixed".
    """

    def __init__(
        self, location: float = 0.0, location_bounds: tuple[float, float] | Literal["fixed"] = (-1e5, 1e5)
    ) -> None:
        self.location = location
        self.location_bounds = location_bounds

    @property
    def hyperparameter_location(self) -> Hyperparameter:
        """The location, as scikit-learn lists hyperparameters."""
        return Hyperparameter("location", "numeric", self.location_bounds)

    @property
    def theta(self) -> Array:
        """The location itself, unless it is fixed."""
        return np.array([] if self.hyperparameter_location.fixed else [self.location], dtype=np.float64)

    @theta.setter
    def theta(self, theta: Array) -> None:
        if len(theta) != self.n_dims:
            raise ValueError(f"theta has {len(theta)} entries, expected {self.n_dims}")
        if len(theta):
            self.location = float(theta[0])

    @property
    def bounds(self) -> Array:
        """The location's bounds, not their logarithms."""
        spec = self.hyperparameter_location
        return np.array([]) if spec.fixed else np.array(spec.bounds, dtype=np.float64).reshape(1, 2)

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        """The matrix, with its derivative by the location if asked."""
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        left = np.atleast_2d(X) - self.location
        right = left if Y is None else np.atleast_2d(Y) - self.location
        matrix = left @ right.T
        if not eval_gradient:
            return matrix
        total = left.sum(axis=1)
        gradient = -np.add.outer(total, total)[:, :, np.newaxis]
        return matrix, gradient[:, :, : self.n_dims]

    def diag(self, X: Array) -> Array:
        """Squared distance of every row from the location."""
        return np.sum((np.atleast_2d(X) - self.location) ** 2, axis=1)

    def is_stationary(self) -> bool:
        """It is not."""
        return False

    def __repr__(self) -> str:
        return f"Linear(location={self.location:.3g})"
