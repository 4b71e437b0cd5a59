"""What an evidence is computed from: one user's rows, seen through one composition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data.arrays import finite_numbers, real_numbers
from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp.reward import LinearBlock
from kerneltrail.kernels.atoms import AtomKind
from kerneltrail.kernels.composition import Composition
from kerneltrail.kernels.hyperparameters import Layout, layout_of

Array = NDArray[np.float64]

REACH = 300.0
"""Largest logarithm of a positive hyperparameter, either way: its square and the square's inverse are still numbers."""


class Rows(Protocol):
    """The part of a user that evidence needs; `kerneltrail.data.User` is one."""

    @property
    def name(self) -> str:
        """Named in errors."""
        ...

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        ...

    @property
    def X(self) -> Array:
        """Covariates, (n, d)."""
        ...

    @property
    def y(self) -> Array:
        """Target, (n,)."""
        ...

    @property
    def ends(self) -> tuple[int, ...]:
        """Number of rows seen after each batch."""
        ...


@dataclass(frozen=True)
class Inputs:
    """One user's rows, seen through one composition; build it with `inputs_for`.

    Attributes:
        composition: the kernel.
        covariates: names of the columns of X.
        X: covariates, (n, d), C-contiguous float64.
        y: target, (n,).
        ends: rows seen after each batch, (T,).
        atoms: for each product, its atoms as (kind, column of X, place in the hyperparameter vector).
        block: the linear block, if there is one.
        user: the user's name, for messages.
    """

    composition: Composition
    covariates: tuple[str, ...]
    X: Array
    y: Array
    ends: NDArray[np.int64]
    atoms: tuple[tuple[tuple[AtomKind, int, slice], ...], ...]
    block: LinearBlock | None
    user: str

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @cached_property
    def layout(self) -> Layout:
        """Layout of the hyperparameter vector."""
        return layout_of(self.composition)

    @cached_property
    def weighted(self) -> Array | None:
        """The linear block's weighted features."""
        return None if self.block is None else self.block.weighted

    @cached_property
    def reach(self) -> Array:
        """Smallest and largest value of each column, (2, d)."""
        return np.stack([self.X.min(axis=0), self.X.max(axis=0)]) if self.X.size else np.zeros((2, self.X.shape[1]))

    @cached_property
    def columns(self) -> Array:
        """X with a row for each covariate, (d, n), which the compiled loops run along."""
        return sealed(np.ascontiguousarray(self.X.T))

    @cached_property
    def fixed_features(self) -> Array:
        """Feature rows that depend on no hyperparameter: the linear block's, then y, (q + 1, n)."""
        rows = self.y[None, :] if self.weighted is None else np.vstack([self.weighted.T, self.y])
        return sealed(np.ascontiguousarray(rows))

    @cached_property
    def _kernel(self) -> str:
        """For messages, which are made ready before there is anything to say: the kernel in writing."""
        return str(self.composition) if self.composition else "noise alone"

    @cached_property
    def label(self) -> str:
        """For messages: which kernel, which user, how many rows."""
        return f"{self._kernel} for user {self.user!r} ({self.rows} rows)"

    def upto(self, count: int) -> Inputs:
        """The first `count` rows as one batch."""
        if not 1 <= count <= self.rows:
            raise DataError(f"user {self.user!r} has {self.rows} rows; asked for the first {count}")
        block = None if self.block is None else self.block.rows(count)
        ends = np.array([count], dtype=np.int64)
        return replace(self, X=self.X[:count], y=self.y[:count], ends=ends, block=block)

    def vectors(self, thetas: object) -> Array:
        """Unconstrained hyperparameter vectors as an array (S, k), checked."""
        u = real_numbers(thetas, f"hyperparameters of {self._kernel}", ndmin=2)
        if u.ndim != 2 or u.shape[1] != self.layout.size:
            raise KernelError(
                f"{self._kernel} has {self.layout.size} hyperparameters "
                f"({', '.join(self.layout.names)}); got vectors of shape {u.shape}"
            )
        if not np.isfinite(u).all():
            s, k = np.argwhere(~np.isfinite(u))[0]
            raise KernelError(f"{self.layout.names[k]} of {self._kernel} is {u[s, k]} in vector {s}")
        return u

    def natural(self, thetas: object) -> Array:
        """Natural hyperparameters (S, k) of unconstrained vectors, refused where numbers would over- or underflow."""
        u = self.vectors(thetas)
        far = (np.abs(u) > REACH) & self.layout.positive
        if far.any():
            s, k = np.argwhere(far)[0]
            raise NumericalError(
                f"{self.layout.names[k]} of {self.label} is exp({u[s, k]:g}) in vector {s}: past exp(±{REACH:g}) its "
                "square is no longer a number; the search for it has run away, or it was not given as a logarithm"
            )
        return self.layout.constrain(u)


def sealed(array: Array) -> Array:
    """A read-only view. Compiled code has a version for arrays that can be written and one for those that cannot: with
    all of them sealed, one is enough.
    """
    view = array.view()
    view.setflags(write=False)
    return view


def locate(
    composition: Composition, covariates: Sequence[str], user: str
) -> tuple[tuple[tuple[AtomKind, int, slice], ...], ...]:
    """For each product its atoms as (kind, column, place in the hyperparameter vector)."""
    columns = {name: i for i, name in enumerate(covariates)}
    missing = [name for name in composition.covariates if name not in columns]
    if missing:
        raise DataError(
            f"{composition} reads {', '.join(missing)}, which user {user!r} does not have; its covariates are "
            f"{', '.join(covariates) or 'none'}"
        )
    layout = layout_of(composition)
    return tuple(
        tuple((atom.spec, columns[atom.covariate], slots) for atom, slots in zip(product.atoms, places, strict=True))
        for product, places in zip(composition, layout.atom_index, strict=True)
    )


def inputs_for(user: Rows, composition: Composition, *, block: LinearBlock | None = None) -> Inputs:
    """A user's rows, seen through a composition, checked."""
    X = finite_numbers(user.X, f"user {user.name!r}: covariates", user.covariates)
    y = finite_numbers(user.y, f"user {user.name!r}: target")
    ends = np.asarray(user.ends, dtype=np.int64)
    if X.ndim != 2 or X.shape != (len(y), len(user.covariates)):
        raise DataError(
            f"user {user.name!r}: covariates of shape {X.shape} do not fit {len(y)} targets and "
            f"{len(user.covariates)} names"
        )
    if not len(y):
        raise DataError(f"user {user.name!r} has no rows yet, so there is no evidence")
    if not len(ends) or ends[0] < 1 or ends[-1] != len(y) or np.any(np.diff(ends) < 1):
        raise DataError(f"user {user.name!r}: batch ends {ends.tolist()} must increase from 1 or more to {len(y)}")
    if block is not None and len(block.features) != len(y):
        raise DataError(f"user {user.name!r}: a linear block of {len(block.features)} rows for {len(y)} targets")
    names = tuple(user.covariates)
    return Inputs(composition, names, X, y, ends, locate(composition, names, user.name), block, user.name)
