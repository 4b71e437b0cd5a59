"""Compositions to and from scikit-learn's kernels.

What an atom is called there is said by the atom (`AtomKind.to_sklearn`, `from_sklearn`). scikit-learn's kernels act on
all columns of X, so an atom on one of several columns is wrapped in `Column`; its DotProduct has no location, so there
is `Linear`. Both are complete scikit-learn kernels: they clone, have `theta`, bounds and gradients, and can be
optimised by GaussianProcessRegressor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kerneltrail.adapters.terms import Factor, Polynomial, Term, check_names, columns_of, named_values
from kerneltrail.errors import KernelError
from kerneltrail.kernels import ATOMS, Atom, Hyperparameters

try:
    from sklearn.gaussian_process import kernels
    from sklearn.gaussian_process.kernels import Hyperparameter, Kernel
except ImportError as error:
    raise ImportError("this adapter needs scikit-learn: python -m pip install 'kerneltrail[sklearn]'") from error

Array = NDArray[np.float64]


def to_sklearn(hyperparameters: Hyperparameters, covariates: Sequence[str]) -> Any:
    """A scikit-learn kernel whose matrix is the composition's, noise included as a WhiteKernel.

    Args:
        hyperparameters: a composition with its hyperparameters.
        covariates: names of X's columns, in order.

    Raises:
        KernelError: for an atom that says nothing of scikit-learn (`AtomKind.to_sklearn`).
    """
    composition, layout, values = hyperparameters.composition, hyperparameters.layout, hyperparameters.values_array
    columns = columns_of(composition, covariates)
    terms = []
    for p, product in enumerate(composition):
        factors = [kernels.ConstantKernel(float(values[layout.amplitude_index[p]]))]
        for atom, slots in zip(product.atoms, layout.atom_index[p], strict=True):
            foreign = atom.spec.to_sklearn(named_values(atom, values[slots]))
            if foreign is None:
                raise KernelError(f"{atom} has no counterpart in scikit-learn: {atom.kind} defines no to_sklearn")
            make, arguments = foreign
            if isinstance(make, str):
                make = _OWN[make] if make in _OWN else getattr(kernels, make)
            kernel = make(**arguments)
            factors.append(kernel if len(covariates) == 1 else Column(kernel, columns[atom.covariate]))
        terms.append(reduce(mul, factors))
    terms.append(kernels.WhiteKernel(float(values[-1])))
    return reduce(add, terms)


def from_sklearn(kernel: Any, covariates: Sequence[str], *, noise: float = 0.0) -> Hyperparameters:
    """The composition and hyperparameters that a scikit-learn kernel stands for, exactly.

    Sums and integer powers are multiplied out. RBF on several columns is the product of SE over them. DotProduct is
    σ0² + x·x': with σ0 = 0 it is the sum over the columns of LIN at location 0; with any other σ0 it holds a constant,
    for which there is no atom, so it is refused. Refused as well: a constant on its own, ExpSineSquared on
    several columns (it depends on their joint distance), two terms that differ in their hyperparameters only (a
    composition is a set of products), WhiteKernel multiplied with a kernel, and every kernel that no atom reads
    (`AtomKind.sklearn_names`).

    Args:
        kernel: a scikit-learn kernel.
        covariates: names of X's columns, in order.
        noise: noise variance held outside the kernel, as in GaussianProcessRegressor's `alpha`.

    Raises:
        KernelError: naming the part that no composition expresses.
    """
    check_names(covariates)
    return _read(kernel, tuple(covariates)).hyperparameters(noise)


def _read(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    name = type(kernel).__name__
    if name in _STRUCTURE:
        return _STRUCTURE[name](kernel, covariates)
    readers = {each: (kind, spec) for kind, spec in ATOMS.items() for each in spec.sklearn_names}
    if name not in readers:
        raise KernelError(f"{name} is no part of any composition; readable are {', '.join((*_STRUCTURE, *readers))}")
    kind, spec = readers[name]
    products = spec.from_sklearn(kernel, covariates)
    return Polynomial(
        tuple(Term(1.0, tuple(Factor(Atom(kind, c), values) for c, values in each.items())) for each in products)
    )


def _read_column(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    if not -len(covariates) <= kernel.column < len(covariates):
        raise KernelError(f"Column {kernel.column} is outside the {len(covariates)} columns {', '.join(covariates)}")
    return _read(kernel.kernel, (covariates[kernel.column],))


def _read_power(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    exponent = kernel.exponent
    if exponent != int(exponent) or exponent < 1:
        raise KernelError(f"Exponentiation by {exponent} is no product of atoms; only 1, 2, 3, … are")
    return reduce(mul, [_read(kernel.kernel, covariates)] * int(exponent))


_STRUCTURE = {
    "Sum": lambda kernel, names: _read(kernel.k1, names) + _read(kernel.k2, names),
    "Product": lambda kernel, names: _read(kernel.k1, names) * _read(kernel.k2, names),
    "Exponentiation": _read_power,
    "ConstantKernel": lambda kernel, names: Polynomial((Term(float(kernel.constant_value), ()),)),
    "WhiteKernel": lambda kernel, names: Polynomial((Term(float(kernel.noise_level), (), white=True),)),
    "Column": _read_column,
}
"""What reads the classes of scikit-learn that are no atoms, as sums of products."""


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


_OWN: dict[str, Callable[..., Any]] = {"Linear": Linear}
"""Kernels that scikit-learn lacks, by the names that atoms use."""

__all__ = ["Column", "Linear", "from_sklearn", "to_sklearn"]
