"""CKS, the compositional kernel search (Duvenaud et al. 2013; method §10.1): a grammar of kernels, searched by BIC."""

from kerneltrail.methods.cks.expression import Expression, Leaf, leaf, plus, read, times
from kerneltrail.methods.cks.fit import Effort, bic, parameters
from kerneltrail.methods.cks.grammar import base_expressions, expand
from kerneltrail.methods.cks.holdout import Holdout, held_out_score
from kerneltrail.methods.cks.layout import ExpressionLayout, ExpressionParameters, expression_layout
from kerneltrail.methods.cks.method import CKS, CKSFit, CKSLearner
from kerneltrail.methods.cks.period_guard import PeriodGuard
from kerneltrail.methods.cks.search import SearchProgress, search, wide_priors
from kerneltrail.methods.cks.search_tree import SearchNode, SearchTree
from kerneltrail.methods.cks.settings import Choice, SearchSettings

__all__ = [
    "CKS",
    "CKSFit",
    "CKSLearner",
    "Choice",
    "Effort",
    "Expression",
    "ExpressionLayout",
    "ExpressionParameters",
    "Holdout",
    "Leaf",
    "PeriodGuard",
    "SearchNode",
    "SearchProgress",
    "SearchSettings",
    "SearchTree",
    "base_expressions",
    "bic",
    "expand",
    "expression_layout",
    "held_out_score",
    "leaf",
    "parameters",
    "plus",
    "read",
    "search",
    "times",
    "wide_priors",
]
