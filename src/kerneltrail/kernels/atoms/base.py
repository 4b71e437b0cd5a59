"""What a base kernel is: the interface that each kind of atom implements in a file of its own, and their registry.

A kind is one class, of which one object is registered once (`ATOMS.add`; from outside `kerneltrail.register`): its
hyperparameters, its covariance and derivative, its spectral form if it has a short one, its words, and what it is
called in other libraries. Nothing elsewhere asks for a kind by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from kerneltrail.errors import KernelError
from kerneltrail.kernels.families import NO_FAMILY
from kerneltrail.kernels.fourier import Array, Series
from kerneltrail.kernels.phrases import Phrase
from kerneltrail.registry import Registry

Foreign = tuple[str | Callable[..., Any], dict[str, float]]
"""A kernel of another library: its class, or the class's name there, and the values to give it by name."""


@dataclass(frozen=True)
class Hyperparameter:
    """One hyperparameter of an atom kind.

    Attributes:
        name: what it is called in texts and files, e.g. ``lengthscale``.
        kind: the type under which priors are looked up (method §3.1); often the same as the name.
        positive: positive ones are optimised as logarithms (method §3.1, unconstrained space).
        unit: how it changes when the covariate is rescaled: ``length`` (times the range), ``location`` (range and
            shift) or ``none``.
        fallback: (mean, variance) of its prior in the unconstrained space where the priors say nothing of `kind`.
    """

    name: str
    kind: str
    positive: bool = True
    unit: Literal["length", "location", "none"] = "none"
    fallback: tuple[float, float] = (0.0, 1.0)


class AtomKind(ABC):
    """What a base kernel is. Arguments named `values` hold its hyperparameters in natural (constrained) form."""

    name: ClassVar[str]
    hyperparameters: ClassVar[tuple[Hyperparameter, ...]]
    in_default_grammar: ClassVar[bool] = False
    """Whether pools and searches are built from it where nobody says from which kinds."""
    idempotent: ClassVar[bool] = False
    """Whether the product of two on one covariate is again one, with other hyperparameters (see `merged`)."""
    linear: ClassVar[bool] = False
    """Whether it is the one-feature kernel (x-c)(x'-c); its only hyperparameter is then the location c."""
    family: ClassVar[int] = NO_FAMILY
    """The family of its series, if compiled code can make it by itself (`compiled.one_series`): a matter of speed."""
    sklearn_names: ClassVar[tuple[str, ...]] = ()
    """Classes of scikit-learn that `from_sklearn` reads."""

    @abstractmethod
    def covariance(self, x: Array, z: Array, values: Array) -> Array:
        """k(x_i, z_j), shape (len(x), len(z))."""

    @abstractmethod
    def gradient(self, x: Array, values: Array, covariance: Array) -> list[Array]:
        """dk(x_i, x_j)/du for each unconstrained hyperparameter u; `covariance` is k(x, x), already computed."""

    @abstractmethod
    def diagonal(self, x: Array, values: Array) -> Array:
        """k(x_i, x_i), shape (len(x),)."""

    def series(self, values: Array, span: float, tail: Array) -> Series | None:
        """Cosine series for S hyperparameter vectors, `values` of shape (S, k), exact to `tail` for |x-z| ≤ span.

        None where the kind has no short one; the dense method is used then.
        """
        return None

    def merged(self, one: Sequence[float], two: Sequence[float]) -> list[float]:
        """The unconstrained hyperparameters of the product of two of an `idempotent` kind on one covariate."""
        raise KernelError(f"how the hyperparameters of {self.name}*{self.name} become those of one is not known")

    @abstractmethod
    def phrase(self, covariate: str, values: Mapping[str, float], unit: str) -> Phrase:
        """What the kernel says, in words; `values` by hyperparameter name, in data units."""

    def phrase_power(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> Phrase:
        """What several of this kind multiplied on one covariate say; by default the first, narrowed by the others."""
        first, *others = (self.phrase(covariate, each, unit) for each in values)
        added = "".join(f", {other.within or other.modifier}" for other in others)
        return Phrase(
            first.clause + added, first.modifier + added, (first.within or first.modifier) + added, first.lead
        )

    def noun(self, covariate: str, values: Sequence[Mapping[str, float]], unit: str) -> str:
        """What one of this kind, or several multiplied on one covariate, is called within a sentence."""
        return f"a pattern in {covariate}"

    def to_sklearn(self, values: Mapping[str, float]) -> Foreign | None:
        """The same kernel of one column in scikit-learn, or of the adapter's own classes; None if there is none."""
        return None

    def from_sklearn(self, kernel: Any, covariates: tuple[str, ...]) -> list[dict[str, tuple[float, ...]]]:
        """The sum of products of this kind that a scikit-learn kernel (one of `sklearn_names`) on some columns is.

        For each product its values by covariate; KernelError where no such sum equals it.
        """
        raise KernelError(f"{type(kernel).__name__} cannot be read as {self.name}")

    def to_gpytorch(self, values: Mapping[str, float]) -> Foreign | None:
        """The same kernel in GPyTorch, or of the adapter's own classes; None if there is none."""
        return None


def _problem(name: str, kind: object) -> str | None:
    if not isinstance(kind, AtomKind):
        return f"it must be an instance of a subclass of AtomKind, got {kind!r}"
    return (
        None if name.isascii() and name.isidentifier() else "a name is a plain identifier, such as 'RQ' or 'MATERN52'"
    )


ATOMS: Registry[AtomKind] = Registry("kernel", KernelError, _problem)
"""All kinds of atoms by name."""


def default_kinds() -> tuple[str, ...]:
    """Names of the kinds that pools and searches are built from unless told otherwise."""
    return tuple(name for name, kind in ATOMS.items() if kind.in_default_grammar)


@dataclass(frozen=True, order=True)
class Atom:
    """One base kernel on one covariate, such as ``SE[hour]``: a value, without hyperparameters."""

    kind: str
    covariate: str

    def __post_init__(self) -> None:
        ATOMS[self.kind]  # refuses an unknown one
        if not self.covariate or self.covariate != self.covariate.strip() or set(self.covariate) & set("[]\n"):
            raise KernelError(
                f"covariate name {self.covariate!r} cannot be written in a kernel: it must be non-empty, without "
                "brackets, line breaks or blanks at its ends"
            )

    @property
    def spec(self) -> AtomKind:
        """The kind's definition."""
        return ATOMS[self.kind]

    def __str__(self) -> str:
        return f"{self.kind}[{self.covariate}]"
