"""Which column of X a covariate is: other libraries' kernels know numbers, not names."""

from __future__ import annotations

from collections.abc import Sequence

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Composition


def columns_of(composition: Composition, covariates: Sequence[str]) -> dict[str, int]:
    """Column number of every covariate, checked to hold all that the composition reads."""
    check_names(covariates)
    columns = {name: i for i, name in enumerate(covariates)}
    missing = [name for name in composition.covariates if name not in columns]
    if missing:
        raise KernelError(
            f"{composition} reads {', '.join(missing)}, which is not among the columns {', '.join(covariates)}"
        )
    return columns


def check_names(covariates: Sequence[str]) -> None:
    """Refuse names that would not tell the columns apart."""
    if isinstance(covariates, str):
        raise KernelError(f"covariates must be a list of names, got the text {covariates!r}")
    if len(set(covariates)) != len(covariates):
        raise KernelError(f"covariates must differ from each other, got {', '.join(covariates)}")
