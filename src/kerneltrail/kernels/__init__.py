"""Kernels as values: atoms, products, compositions, pools, priors, and their text form."""

from kerneltrail.kernels.atoms import ATOMS, Atom, AtomKind, Hyperparameter, default_kinds
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.fourier import Array, Series
from kerneltrail.kernels.hyperparameters import Hyperparameters, Layout, Prior, Priors, layout_of, log_normal, normal
from kerneltrail.kernels.phrases import Phrase, likeness, quantity
from kerneltrail.kernels.pool import Pool, by_order
from kerneltrail.kernels.text import NOTHING, parse

__all__ = [
    "ATOMS",
    "NOTHING",
    "Array",
    "Atom",
    "AtomKind",
    "Composition",
    "Hyperparameter",
    "Hyperparameters",
    "Layout",
    "Phrase",
    "Pool",
    "Prior",
    "Priors",
    "Product",
    "Series",
    "by_order",
    "default_kinds",
    "layout_of",
    "likeness",
    "log_normal",
    "normal",
    "parse",
    "quantity",
]
