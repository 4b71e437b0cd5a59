"""Kernels as values: atoms, products, compositions, pools, priors, and their text form."""

from kerneltrail.kernels.atoms import Atom, AtomKind, Hyperparameter, kind_of, kinds, register
from kerneltrail.kernels.composition import Composition, Product
from kerneltrail.kernels.layout import Hyperparameters, Layout, layout_of
from kerneltrail.kernels.pool import Pool, by_order
from kerneltrail.kernels.priors import Prior, Priors, log_normal, normal
from kerneltrail.kernels.text import parse

__all__ = [
    "Atom",
    "AtomKind",
    "Composition",
    "Hyperparameter",
    "Hyperparameters",
    "Layout",
    "Pool",
    "Prior",
    "Priors",
    "Product",
    "by_order",
    "kind_of",
    "kinds",
    "layout_of",
    "log_normal",
    "normal",
    "parse",
    "register",
]
