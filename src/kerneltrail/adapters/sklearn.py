"""Compositions to and from scikit-learn's kernels.

scikit-learn's RBF and ExpSineSquared are SE and PER with the same hyperparameters (SPEC §2). Its kernels act on all
columns of X, so an atom on one of several columns is wrapped in `Column`; LIN has a location, so it is `Linear`
(both in `kerneltrail.adapters.sklearn_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from kerneltrail.adapters.columns import check_names, columns_of
from kerneltrail.adapters.terms import Factor, Polynomial, Term
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Hyperparameters


def to_sklearn(hyperparameters: Hyperparameters, covariates: Sequence[str]) -> Any:
    """A scikit-learn kernel whose matrix is the composition's, noise included as a WhiteKernel.

    Args:
        hyperparameters: a composition with its hyperparameters.
        covariates: names of X's columns, in order.

    Raises:
        KernelError: for an atom that `TO_SKLEARN` has no converter for.
    """
    composition, layout, values = hyperparameters.composition, hyperparameters.layout, hyperparameters.values_array
    columns = columns_of(composition, covariates)
    kernels, ours = _modules()
    terms = []
    for p, product in enumerate(composition):
        factors = [kernels.ConstantKernel(float(values[layout.amplitude_index[p]]))]
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            if atom.kind not in TO_SKLEARN:
                raise KernelError(f"{atom} has no converter to scikit-learn; those with one: {', '.join(TO_SKLEARN)}")
            names = (spec.name for spec in atom.spec.hyperparameters)
            kernel = TO_SKLEARN[atom.kind](dict(zip(names, map(float, values[place]), strict=True)))
            factors.append(kernel if len(covariates) == 1 else ours.Column(kernel, columns[atom.covariate]))
        terms.append(reduce(mul, factors))
    terms.append(kernels.WhiteKernel(float(values[-1])))
    return reduce(add, terms)


def from_sklearn(kernel: Any, covariates: Sequence[str], *, noise: float = 0.0) -> Hyperparameters:
    """The composition and hyperparameters that a scikit-learn kernel stands for, exactly.

    Sums and integer powers are multiplied out. RBF on several columns is the product of SE over them. DotProduct is
    σ0² + x·x': with σ0 = 0 it is the sum over the columns of LIN at location 0; with any other σ0 it holds a constant,
    for which there is no atom, so it is refused. Refused as well: a constant on its own, ExpSineSquared on
    several columns (it depends on their joint distance), two terms that differ in their hyperparameters only (a
    composition is a set of products), WhiteKernel multiplied with a kernel, and every kernel not named in
    `FROM_SKLEARN`.

    Args:
        kernel: a scikit-learn kernel.
        covariates: names of X's columns, in order.
        noise: noise variance held outside the kernel, as in GaussianProcessRegressor's `alpha`.

    Raises:
        KernelError: naming the part that no composition expresses.
    """
    check_names(covariates)
    _modules()
    return _read(kernel, tuple(covariates)).hyperparameters(noise)


def _modules() -> tuple[Any, Any]:
    try:
        from sklearn.gaussian_process import kernels
    except ImportError as error:
        raise ImportError("this bridge needs scikit-learn: python -m pip install 'kerneltrail[sklearn]'") from error
    from kerneltrail.adapters import sklearn_kernels

    return kernels, sklearn_kernels


def _linear(values: Mapping[str, float]) -> Any:
    return _modules()[1].Linear(values["location"])


def _periodic(values: Mapping[str, float]) -> Any:
    return _modules()[0].ExpSineSquared(values["lengthscale"], values["period"])


def _squared_exponential(values: Mapping[str, float]) -> Any:
    return _modules()[0].RBF(values["lengthscale"])


TO_SKLEARN: dict[str, Callable[[Mapping[str, float]], Any]] = {
    "LIN": _linear,
    "PER": _periodic,
    "SE": _squared_exponential,
}
"""From an atom's name to what makes a one-column scikit-learn kernel of its values. Add to it for your own atoms."""


def _read(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    name = type(kernel).__name__
    if name not in FROM_SKLEARN:
        raise KernelError(f"{name} is no part of any composition; readable are {', '.join(FROM_SKLEARN)}")
    return FROM_SKLEARN[name](kernel, covariates)


def _one(covariates: tuple[str, ...], name: str) -> str:
    if len(covariates) != 1:
        raise KernelError(
            f"{name} on the columns {', '.join(covariates)} is no product of atoms; put it on one column with "
            "kerneltrail.adapters.sklearn_kernels.Column"
        )
    return covariates[0]


def _read_rbf(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    lengths = np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64).ravel(), len(covariates))
    factors = tuple(Factor(Atom("SE", c), (float(length),)) for c, length in zip(covariates, lengths, strict=True))
    return Polynomial((Term(1.0, factors),))


def _read_periodic(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    values = (float(kernel.length_scale), float(kernel.periodicity))
    return Polynomial((Term(1.0, (Factor(Atom("PER", _one(covariates, "ExpSineSquared")), values),)),))


def _read_dot(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    if kernel.sigma_0 != 0.0:
        raise KernelError(
            f"DotProduct(sigma_0={kernel.sigma_0:.3g}) is sigma_0² + x·x', and no atom is a constant; only "
            "DotProduct(sigma_0=0) is a composition (LIN with location 0)"
        )
    return Polynomial(tuple(Term(1.0, (Factor(Atom("LIN", name), (0.0,)),)) for name in covariates))


def _read_linear(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    at = float(kernel.location)
    return Polynomial(tuple(Term(1.0, (Factor(Atom("LIN", name), (at,)),)) for name in covariates))


def _read_column(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    if not -len(covariates) <= kernel.column < len(covariates):
        raise KernelError(f"Column {kernel.column} is outside the {len(covariates)} columns {', '.join(covariates)}")
    return _read(kernel.kernel, (covariates[kernel.column],))


def _read_power(kernel: Any, covariates: tuple[str, ...]) -> Polynomial:
    exponent = kernel.exponent
    if exponent != int(exponent) or exponent < 1:
        raise KernelError(f"Exponentiation by {exponent} is no product of atoms; only 1, 2, 3, … are")
    return reduce(mul, [_read(kernel.kernel, covariates)] * int(exponent))


FROM_SKLEARN: dict[str, Callable[[Any, tuple[str, ...]], Polynomial]] = {
    "Sum": lambda kernel, names: _read(kernel.k1, names) + _read(kernel.k2, names),
    "Product": lambda kernel, names: _read(kernel.k1, names) * _read(kernel.k2, names),
    "Exponentiation": _read_power,
    "ConstantKernel": lambda kernel, names: Polynomial((Term(float(kernel.constant_value), ()),)),
    "WhiteKernel": lambda kernel, names: Polynomial((Term(float(kernel.noise_level), (), white=True),)),
    "RBF": _read_rbf,
    "ExpSineSquared": _read_periodic,
    "DotProduct": _read_dot,
    "Linear": _read_linear,
    "Column": _read_column,
}
"""From a scikit-learn class's name to what reads it as a sum of products. Add to it for your own kernels."""

__all__ = ["FROM_SKLEARN", "TO_SKLEARN", "from_sklearn", "to_sklearn"]
