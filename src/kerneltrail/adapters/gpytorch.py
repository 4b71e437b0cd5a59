"""Compositions as GPyTorch kernels, for those who continue there.

The conventions differ (method §2). With this package's lengthscale ℓ:

- What an atom is called there, and with which values, is said by the atom (`AtomKind.to_gpytorch`).
- GPyTorch's LinearKernel has no location, so there is a kernel of its own here, with a `location` parameter.
- GPflow's Periodic(SquaredExponential) is exp(-½ sin²(π(x-x')/p)/l²), so its lengthscale is l = ℓ/2. There is no
  adapter to GPflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import add, mul
from typing import Any

from kerneltrail.adapters.terms import columns_of, named_values
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Hyperparameters


def to_gpytorch(hyperparameters: Hyperparameters, covariates: Sequence[str]) -> tuple[Any, float]:
    """A GPyTorch kernel in double precision, each atom on its column, and the noise variance for the likelihood.

    Args:
        hyperparameters: a composition with its hyperparameters.
        covariates: names of X's columns, in order.

    Raises:
        KernelError: for an atom that says nothing of GPyTorch (`AtomKind.to_gpytorch`), and for the empty composition.
    """
    composition, layout, values = hyperparameters.composition, hyperparameters.layout, hyperparameters.values_array
    columns = columns_of(composition, covariates)
    gpytorch = _module()
    if not composition:
        raise KernelError("the empty composition is noise alone: there is no kernel to build")
    terms = []
    for p, product in enumerate(composition):
        factors = []
        for atom, slots in zip(product.atoms, layout.atom_index[p], strict=True):
            factors.append(_atom(atom, named_values(atom, values[slots]), columns[atom.covariate]))
        scaled = gpytorch.kernels.ScaleKernel(reduce(mul, factors)).double()
        scaled.outputscale = _double(values[layout.amplitude_index[p]])
        terms.append(scaled)
    return reduce(add, terms), float(values[-1])


def _atom(atom: Atom, values: Mapping[str, float], column: int) -> Any:
    foreign = atom.spec.to_gpytorch(values)
    if foreign is None:
        raise KernelError(f"{atom} has no counterpart in GPyTorch: {atom.kind} defines no to_gpytorch")
    make, arguments = foreign
    if isinstance(make, str):
        make = _linear_class() if make == "Linear" else getattr(_module().kernels, make)
    kernel = make(active_dims=(column,)).double()
    kernel.initialize(**{name: _double(value) for name, value in arguments.items()})
    return kernel


def _module() -> Any:
    try:
        import gpytorch
    except ImportError as error:
        raise ImportError("this adapter needs GPyTorch: python -m pip install 'kerneltrail[gpytorch]'") from error
    return gpytorch


def _double(value: float) -> Any:
    """A tensor: GPyTorch's setters would pass a plain number through single precision."""
    import torch

    return torch.tensor(float(value), dtype=torch.float64)


@cache
def _linear_class() -> Any:
    """The kernel (x-c)(x'-c); a class made on first use, since its base class is GPyTorch's."""
    import torch

    class Linear(_module().kernels.Kernel):  # type: ignore[misc]
        """(x-c)(x'-c), a straight line through zero at the location c."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.register_parameter("location", torch.nn.Parameter(torch.zeros(())))

        def forward(self, x1: Any, x2: Any, diag: bool = False, **options: Any) -> Any:
            left, right = x1 - self.location, x2 - self.location
            return (left * right).sum(-1) if diag else left @ right.transpose(-2, -1)

    return Linear


__all__ = ["to_gpytorch"]
