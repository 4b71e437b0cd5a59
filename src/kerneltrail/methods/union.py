"""Union: one kernel for everybody and all times, the sum of all products that the learnt graph has somewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.methods.variant import register_variant
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.sharing import Member, learn_group


def union(cohort: Cohort, model: TrajectoryModel) -> TrajectoryModel:
    """A model of one node, the union of the graph's products; its group is of all training users, fitted under it."""
    mask = reduce(or_, (node.mask for node in model.nodes))
    users = [model.scaler.apply(user) for user in cohort.raw if user.rows]
    if model.mean is not None:
        users = [model.mean.levelled(user) for user in users]
    whole = [user.with_ends((user.rows,)) for user in users]
    table = MapTable(whole, model.pool, model.priors, model.settings.maps, model.reward)
    everybody = [(m, 0) for m in range(len(whole))]
    thetas = np.array([table.get(m, mask).theta[t] for m, t in everybody])
    names = tuple(user.name for user in whole)
    group = table.group(mask, everybody)
    if model.settings.sharing == "joint":
        members = [Member(m, 0, theta) for m, theta in enumerate(thetas)]
        group, _ = learn_group(group.composition, members, whole, model.reward, model.priors, model.settings.maps)
    node = Node(mask, group.composition, thetas, group, names)
    # Nothing was sampled, so there is no log joint.
    structure = Structure(tuple((mask,) * len(path) for path in model.paths), math.nan, 1, 2)
    settings = replace(model.settings, structure="chosen")
    return replace(model, settings=settings, nodes=(node,), structures=(structure,), averaged=None)


register_variant("union", union)
