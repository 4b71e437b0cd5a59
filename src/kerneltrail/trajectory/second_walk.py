"""Pilot users walk the learnt graph once more, judged as new users are: under what the others share (method (72)).

The chains judge kernels under the stated priors. These are vague, so a kernel with many hyperparameters pays for them
while rows are few, and pilot users may begin at a simple kernel that is nobody's. A new user is judged under the nodes'
groups, where the same kernel pays less. So the steps that a new user is expected to take are counted once more, by the
evidences that a new user is judged by. Where a pilot user ends stays as the chains chose it, with all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.engines import Engine, keep_freed_memory, results
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Array
from kerneltrail.trajectory.evidence import PathEvidence
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.map_table import Fits, Group, MapTable, block_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.node_fit import BUDGET, NodeFit
from kerneltrail.trajectory.sampler.book import Book
from kerneltrail.trajectory.sampler.joint import EvidenceArray, Joint, State
from kerneltrail.trajectory.sampler.moves import EXACT, Sweep
from kerneltrail.trajectory.sampler.urn import Paths, last_use
from kerneltrail.trajectory.sharing import likelihoods, maximise_group

SWEEPS = 100
"""Sweeps from each of two starts: there are few nodes to choose from."""

ELSEWHERE = -1e6
"""Log evidence with which a pilot user would end at another node than the chains chose: no path does."""

LEFT_OUT = 30
"""Pilot users of a node up to whom each is judged by the group of the others: one of more hardly moves it."""


@dataclass(frozen=True)
class Judge:
    """What judges pilot users at the nodes of a graph.

    Attributes:
        nodes: with their groups, which are learnt from everybody who passed.
        without: for each node, the groups without one user, by the user's number.
        evidence: what judges a followed user.
        reward: the reward model, or None.
    """

    nodes: tuple[Node, ...]
    without: tuple[Mapping[int, Group], ...]
    evidence: type[PathEvidence]
    reward: Reward | None

    @classmethod
    def of(cls, model: TrajectoryModel, users: Sequence[User], table: MapTable) -> Judge:
        """The judge of a model whose groups are learnt; users are those that it was learnt from, less its mean."""
        last = last_use(model.paths)
        without = tuple(_groups_without(node, last[node.mask], users, table, model.reward) for node in model.nodes)
        return cls(model.nodes, without, model.evidence, model.reward)

    def evidences(self, number: int, user: User) -> Array:
        """Log evidences of the rows up to each batch at every node, (T, nodes): method (72)."""
        values = np.empty((user.batches, len(self.nodes)))
        for column, (node, others) in enumerate(zip(self.nodes, self.without, strict=True)):
            fit = NodeFit.start(replace(node, group=others.get(number, node.group)))
            for t in range(user.batches):
                rows = user.upto(t + 1)
                fit = fit.refine(rows, block_of(rows, self.reward), self.evidence, BUDGET / len(self.nodes))
                values[t, column] = fit.log_evidence
        return values


def _groups_without(
    node: Node, members: Mapping[int, int], users: Sequence[User], table: MapTable, reward: Reward | None
) -> dict[int, Group]:
    """The node's group without each of its members, who are given with their last batch there; none where many are."""
    if len(members) > LEFT_OUT:
        return {}
    found = [
        gp.find_map(
            users[m],
            node.composition,
            node.group,
            rng=np.random.default_rng(0),
            batch=t + 1,
            starts=0,
            warm=[table.get(m, node.mask).theta[t], node.group.mean],
            block=block_of(users[m], reward),
            tol=table.settings.tol,
            accuracy=table.settings.accuracy,
        )
        for m, t in members.items()
    ]
    every = likelihoods(Fits.of(found), node.group.mean, node.group.variance)
    return {m: _group_of(node, every, i, table) for i, m in enumerate(members)}


def _group_of(node: Node, users: Quadratic, left_out: int, table: MapTable) -> Group:
    """The group of all users but one; the prior where there is nobody else."""
    mean0, variance0 = table.prior.moments(node.composition)
    kept = np.arange(len(users.value)) != left_out
    if not kept.any():
        return Group(node.composition, mean0, variance0, 0)
    others = Quadratic(users.value[kept], users.centre[kept], users.gradient[kept], users.curvature[kept])
    return maximise_group(node.composition, others, mean0, variance0)


def _evidences(judge: Judge, number: int, user: User) -> Array:
    """One job; at module level, so that another process can do it."""
    keep_freed_memory()
    return judge.evidences(number, user)


def walked_again(model: TrajectoryModel, users: Sequence[User], table: MapTable, engine: Engine) -> Paths:
    """The paths of the pilot users, scaled, once more, over the nodes of a model whose groups are learnt.

    Everybody ends at the same node as before. The joint (method (9)) is that of the chains with other evidences. Where
    they cannot be computed, the paths stay, and so they do where nobody ever changes the kernel.
    """
    if all(len(set(path)) == 1 for path in model.paths):
        return model.paths
    centred = list(users) if model.mean is None else [model.mean.levelled(user) for user in users]
    try:
        judge = Judge.of(model, centred, table)
        jobs = ((m, (m, user)) for m, user in enumerate(centred))
        values = dict(results(engine, _evidences, jobs, judge))
    except (NumericalError, np.linalg.LinAlgError) as problem:  # a finished fit is worth more than its first steps
        warnings.warn(f"pilot users were not judged again by what they share: {problem}", stacklevel=2)
        return model.paths
    book = Book(tuple(node.mask for node in model.nodes), tuple(user.batches for user in users))
    for m, path in enumerate(model.paths):
        values[m][-1, np.arange(len(book.masks)) != book.index[path[-1]]] = ELSEWHERE
    return _best_paths(model, EvidenceArray(book, np.concatenate([values[m] for m in range(len(users))])))


def _best_paths(model: TrajectoryModel, evidences: EvidenceArray) -> Paths:
    """The paths with the fewest changes of kernel within the margin of the best: a step must be worth that much.

    Chains begin at the paths of before, and with everybody straight where they end.
    """
    joint = Joint(model.urn, evidences)
    sweep, settings, book = Sweep(joint, EXACT), model.settings, evidences.book
    straight = tuple((path[-1],) * len(path) for path in model.paths)
    visited: dict[bytes, State] = {}
    for number, paths in enumerate((model.paths, straight)):
        rng = np.random.default_rng([settings.seed, number])
        state = joint.state(paths)
        visited[state.codes(book).tobytes()] = state
        for _ in range(SWEEPS):
            state, _ = sweep.step(rng, state)
            visited[state.codes(book).tobytes()] = state
    least = max(state.log_joint for state in visited.values()) - settings.margin
    near = {key: state for key, state in visited.items() if state.log_joint >= least}
    return near[min(near, key=lambda key: (changes(book, near[key]), -near[key].log_joint, key))].paths


def changes(book: Book, state: State) -> int:
    """How often somebody's kernel changes from one batch to the next."""
    codes = state.codes(book)
    differs = codes[1:] != codes[:-1]
    differs[book.starts[1:-1] - 1] = False  # from one user to the next
    return int(differs.sum())
