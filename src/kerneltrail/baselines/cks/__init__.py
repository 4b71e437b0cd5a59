"""CKS, the compositional kernel search (Duvenaud et al. 2013; SPEC §10): a grammar of kernels, searched by BIC."""

from kerneltrail.baselines.cks.expression import Expression, Leaf, leaf, plus, read, times
from kerneltrail.baselines.cks.fit import Effort, bic, parameters
from kerneltrail.baselines.cks.form import Form, Tied, form_of
from kerneltrail.baselines.cks.grammar import base_expressions, expand
from kerneltrail.baselines.cks.guard import Guard
from kerneltrail.baselines.cks.holdout import Holdout, held_out_score
from kerneltrail.baselines.cks.priors import wide_priors
from kerneltrail.baselines.cks.search import SearchProgress, search
from kerneltrail.baselines.cks.selector import CKS, CKSFit, CKSLearner
from kerneltrail.baselines.cks.settings import Choice, SearchSettings
from kerneltrail.baselines.cks.tree import Node, SearchTree

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
