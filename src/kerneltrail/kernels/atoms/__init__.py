"""Atoms: the base kernels, each on one covariate. A file here is a kind; importing it registers it."""

from kerneltrail.kernels.atoms import lin, per, se  # noqa: F401  # they register themselves, in this order
from kerneltrail.kernels.atoms.base import ATOMS, Atom, AtomKind, Foreign, Hyperparameter, default_kinds

ATOMS.complete()

__all__ = ["ATOMS", "Atom", "AtomKind", "Foreign", "Hyperparameter", "default_kinds"]
