"""Flat: the nodes of the learnt graph without what was learnt of the ways between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.methods.variant import register_variant
from kerneltrail.trajectory.graph import Averaged
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.urn import Counts


def flat(cohort: Cohort, model: TrajectoryModel) -> TrajectoryModel:
    """A model in which all nodes are equally probable before every batch: the rows seen so far alone decide.

    That is what a graph says in which every node leads to every node with the same probability. The kernel of the next
    batch would then be anybody's guess, though, so predictions come from the kernels as they stand: nobody moves.
    """
    nodes = model.selectable
    shares, _ = model.urn.step_matrix(Counts(), tuple(node.mask for node in nodes))
    counts = np.zeros((len(nodes) + 1, len(nodes)))
    counts[0] = shares[0].max() - shares[0]  # with the shares of H0 added, all the same
    settings = replace(model.settings, paths="constant", structure="averaged", selection="filter", memory="newest")
    return replace(model, settings=settings, averaged=Averaged(nodes[len(model.nodes) :], counts, 0.0))


register_variant("flat", flat)
