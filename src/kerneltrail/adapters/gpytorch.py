"""Compositions as GPyTorch kernels, for those who continue there.

The conventions differ (SPEC §2). With this package's lengthscale ℓ:

- GPyTorch's PeriodicKernel is exp(-2 sin²(π(x-x')/p)/λ), not squared, so λ = ℓ².
- GPflow's Periodic(SquaredExponential) is exp(-½ sin²(π(x-x')/p)/l²), so its lengthscale is l = ℓ/2. There is no
  bridge to GPflow; for SE its lengthscale is ℓ, and its variance the amplitude.
- GPyTorch's LinearKernel has no location, so LIN is a kernel of its own here, with a `location` parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from operator import add, mul
from typing import Any

from kerneltrail.adapters.columns import columns_of
from kerneltrail.errors import KernelError
from kerneltrail.kernels import Hyperparameters


def to_gpytorch(hyperparameters: Hyperparameters, covariates: Sequence[str]) -> tuple[Any, float]:
    """A GPyTorch kernel in double precision, each atom on its column, and the noise variance for the likelihood.

    Args:
        hyperparameters: a composition with its hyperparameters.
        covariates: names of X's columns, in order.

    Raises:
        KernelError: for an atom that `TO_GPYTORCH` has no converter for, and for the empty composition.
    """
    composition, layout, values = hyperparameters.composition, hyperparameters.layout, hyperparameters.values_array
    columns = columns_of(composition, covariates)
    gpytorch = _module()
    if not composition:
        raise KernelError("the empty composition is noise alone: there is no kernel to build")
    terms = []
    for p, product in enumerate(composition):
        factors = []
        for atom, place in zip(product.atoms, layout.atom_index[p], strict=True):
            if atom.kind not in TO_GPYTORCH:
                raise KernelError(f"{atom} has no converter to GPyTorch; those with one: {', '.join(TO_GPYTORCH)}")
            names = (spec.name for spec in atom.spec.hyperparameters)
            natural = dict(zip(names, map(float, values[place]), strict=True))
            factors.append(TO_GPYTORCH[atom.kind](natural, columns[atom.covariate]))
        scaled = gpytorch.kernels.ScaleKernel(reduce(mul, factors)).double()
        scaled.outputscale = _double(values[layout.amplitude_index[p]])
        terms.append(scaled)
    return reduce(add, terms), float(values[-1])


def _module() -> Any:
    try:
        import gpytorch
    except ImportError as error:
        raise ImportError("this bridge needs GPyTorch: python -m pip install 'kerneltrail[gpytorch]'") from error
    return gpytorch


def _double(value: float) -> Any:
    """A tensor: GPyTorch's setters would pass a plain number through single precision."""
    import torch

    return torch.tensor(float(value), dtype=torch.float64)


def _squared_exponential(values: Mapping[str, float], column: int) -> Any:
    kernel = _module().kernels.RBFKernel(active_dims=(column,)).double()
    kernel.lengthscale = _double(values["lengthscale"])
    return kernel


def _periodic(values: Mapping[str, float], column: int) -> Any:
    kernel = _module().kernels.PeriodicKernel(active_dims=(column,)).double()
    kernel.lengthscale = _double(values["lengthscale"] ** 2)
    kernel.period_length = _double(values["period"])
    return kernel


def _linear(values: Mapping[str, float], column: int) -> Any:
    kernel = _linear_class()(active_dims=(column,)).double()
    kernel.initialize(location=_double(values["location"]))
    return kernel


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


TO_GPYTORCH: dict[str, Callable[[Mapping[str, float], int], Any]] = {
    "LIN": _linear,
    "PER": _periodic,
    "SE": _squared_exponential,
}
"""From an atom's name to what makes a GPyTorch kernel of its values and column. Add to it for your own atoms."""

__all__ = ["TO_GPYTORCH", "to_gpytorch"]
