"""CKS, the compositional kernel search (Duvenaud et al. 2013; SPEC §10): a grammar of kernels, searched by BIC."""

from kerneltrail.methods.cks.expression import Expression, Leaf, leaf, plus, read, times
from kerneltrail.methods.cks.fit import Effort, bic, parameters
from kerneltrail.methods.cks.form import Form, Tied, form_of
from kerneltrail.methods.cks.grammar import base_expressions, expand
from kerneltrail.methods.cks.guard import Guard
from kerneltrail.methods.cks.holdout import Holdout, held_out_score
from kerneltrail.methods.cks.method import CKS, CKSFit, CKSLearner
from kerneltrail.methods.cks.priors import wide_priors
from kerneltrail.methods.cks.search import SearchProgress, search
from kerneltrail.methods.cks.settings import Choice, SearchSettings
from kerneltrail.methods.cks.tree import Node, SearchTree

__all__ = [
    "CKS",
    "CKSFit",
    "CKSLearner",
    "Choice",
    "Effort",
    "Expression",
    "Form",
    "Guard",
    "Holdout",
    "Leaf",
    "Node",
    "SearchProgress",
    "SearchSettings",
    "SearchTree",
    "Tied",
    "base_expressions",
    "bic",
    "expand",
    "form_of",
    "held_out_score",
    "leaf",
    "parameters",
    "plus",
    "read",
    "search",
    "times",
    "wide_priors",
]
