"""The learnt graph: compositions with transition counts and the rest of what a trajectory model consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kerneltrail.data import PilotSummary, Scaler, Schema
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.gp.population import PopulationMean
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import NOTHING, Array, Composition, Hyperparameters, Pool, Priors
from kerneltrail.kernels.phrases import counted
from kerneltrail.names import shortened
from kerneltrail.trajectory.echo import PilotEcho
from kerneltrail.trajectory.evidence import EVIDENCES, PathEvidence
from kerneltrail.trajectory.map_table import Group
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.sampler.urn import ROOT, Counts, Paths, Urn
from kerneltrail.trajectory.settings import Settings

LIGHT = -1.0
"""The heaviness of tails that are a Normal's, whatever is not known of the noise."""


@dataclass(frozen=True)
class Node:
    """A composition of the graph with what the pilot users say of its hyperparameters.

    Attributes:
        mask: within the model's pool.
        composition: the kernel.
        thetas: MAP hyperparameters of the customers assigned to it, (customers, k): the published p(θ|K).
        group: a Normal over them, shrunk to the prior: where a new user's search starts from.
        users: names of the pilot users who passed.
    """

    mask: int
    composition: Composition
    thetas: Array
    group: Group
    users: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """A transition: `count` of the `total` customers that left `parent` went to `child` ("2/3" in the paper)."""

    parent: Composition | None
    child: Composition
    count: int
    total: int

    @property
    def label(self) -> str:
        """As in the paper's figure."""
        return f"{self.count}/{self.total}"


@dataclass(frozen=True)
class Worth:
    """What kernels on covariates that move on add to the prediction of pilot users' next batches (method (78)).

    Attributes:
        covariates: those that move on, of which the best graph with them has kernels.
        gain: nats a row by which batches are predicted better with these kernels, on average over pilot users.
        error: its standard error.
        users: how many pilot users.
    """

    covariates: tuple[str, ...]
    gain: float
    error: float
    users: int

    @property
    def clear(self) -> bool:
        """Whether the gain is more than one standard error: only then the kernels are kept.

        >>> Worth(("day",), 0.02, 0.01, 12).clear, Worth(("day",), 0.005, 0.01, 12).clear
        (True, False)
        """
        return self.gain > self.error


@dataclass(frozen=True)
class Diagnostics:
    """How the chains did.

    Attributes:
        sweeps: of each chain.
        rhat: of the log joint, the number of edges and the agreement with the chosen paths.
        ess: bulk effective sample size of the same.
        acceptance: share of proposals accepted, by move.
        traces: log joint, number of edges and agreement with the chosen paths, each (chains, sweeps), all sweeps.
        seconds: spent on fits and on sampling.
        cut: of promising ``kernels`` that were no candidates because there were too many, the number and their
            ``share`` of the pilot users' probability (method (62)); empty where none was.
        advancing: what kernels on covariates that move on are worth; None where no graph had any, or nobody asked.
    """

    sweeps: int
    rhat: Mapping[str, float]
    ess: Mapping[str, float]
    acceptance: Mapping[str, float]
    traces: Mapping[str, Array]
    seconds: Mapping[str, float]
    cut: Mapping[str, float] = field(default_factory=dict)
    advancing: Worth | None = None

    @property
    def log_joint(self) -> Array:
        """Trace of the log joint, (chains, sweeps)."""
        return self.traces["log_joint"]


@dataclass(frozen=True)
class Averaged:
    """What all sampled structures say together, by which new users are followed (method (49)).

    Attributes:
        nodes: compositions of other structures than the chosen one, which a new user may have too.
        counts: transitions, on average over the structures; rows root, the chosen nodes, then `nodes`; columns nodes.
        cut: share of the pilot users' batches, on average, at compositions that were left out because they are rare.
    """

    nodes: tuple[Node, ...]
    counts: Array
    cut: float


@dataclass(frozen=True)
class LearntGraph:
    """What was learnt from pilot users, as data; immutable. `TrajectoryModel` is this with what can be done with it.

    Attributes:
        schema: how a table becomes users, scaling included.
        pool: the products on offer, with H0.
        priors: over hyperparameters.
        settings: of the fit, and of selection.
        users: names of the pilot users.
        structures: the chosen structure first, then the alternatives.
        nodes: the chosen structure's compositions, in order of first use.
        reward: the reward model, or a constant mean of everybody's own; None for neither.
        diagnostics: of the chains.
        provenance: package version, fingerprints of the users, quantiles of their columns, and the like.
        mean: what users vary around, or None for zero.
        pilot_effects: what was found of every pilot user, a row for each covariate (`effects.PILOT_ROW`); empty in
            models of before.
        echo: how alike neighbouring rows are in what is left of pilot users; None where they are not, or nobody asked.
        tails: how much heavier than a Normal's the tails of observations are: the variance of the log of their
            variance from row to row, beyond what is not known of the noise (method (53)); `LIGHT` for a Normal's.
        tails_interval: its 90 % interval; None where nobody learnt it, and in models of before.
        stretch: factor of the standard deviation of predictions after the first batch (method (74)).
        drawing: how outcomes are drawn in around what a user's rows say (method §8.7); None for never. The noise of
            groups is that of outcomes as they are.
        shape: how outcomes lie around a prediction, where that is no bell (method (76)); None for a bell.
        averaged: what all sampled structures say together; None where new users are followed by the chosen one.
    """

    schema: Schema
    pool: Pool
    priors: Priors
    settings: Settings
    users: tuple[str, ...]
    structures: tuple[Structure, ...]
    nodes: tuple[Node, ...]
    reward: Reward | None
    diagnostics: Diagnostics
    provenance: Mapping[str, Any]
    mean: PopulationMean | None = None
    pilot_effects: tuple[Mapping[str, Any], ...] = ()
    tails: float = 0.0
    averaged: Averaged | None = None
    tails_interval: tuple[float, float] | None = None
    stretch: float = 1.0
    drawing: Drawing | None = None
    shape: OutcomeShape | None = None
    echo: PilotEcho | None = None

    def reward_after(self, rows: int) -> Reward | None:
        """The reward model of a user of whom so many rows are known: fewer say less of the level (method (73))."""
        reward, mean = self.reward, self.mean
        if reward is None or mean is None or not mean.scatter or reward.constant_variance == 0.0:
            return reward
        covariance = reward.weight_covariance.copy()
        covariance[0, 0] += mean.scatter / max(rows, 1)
        return replace(reward, covariance=tuple(map(tuple, covariance)))

    def __repr__(self) -> str:
        kernels = [node.composition.text or NOTHING for node in self.nodes]
        return (
            f"{type(self).__name__} of {counted(len(self.users), 'pilot user')}: {self.schema.target} from "
            f"{shortened(self.covariates)}; {counted(len(kernels), 'kernel')}: {shortened(kernels)}"
        )

    @property
    def paths(self) -> Paths:
        """The chosen composition of every customer, as masks."""
        return self.structures[0].paths

    @cached_property
    def counts(self) -> Counts:
        """Transition counts of the chosen structure."""
        return Counts.of(self.paths)

    @cached_property
    def urn(self) -> Urn:
        """The prior over transitions."""
        return Urn(self.pool, alpha=self.settings.alpha, keep=self.settings.keep)

    @property
    def evidence(self) -> type[PathEvidence]:
        """How a composition is judged."""
        return EVIDENCES[self.settings.evidence]

    @property
    def scaler(self) -> Scaler:
        """How new users' rows are scaled: as the pilot group's were."""
        scaler = self.schema.scaler
        if scaler is None:
            raise DataError(
                "this model was learnt with scaling per user, so it cannot say how a new user's first rows are scaled; "
                "fit it with scaling='group' or 'none'"
            )
        return scaler

    @cached_property
    def pilot(self) -> PilotSummary:
        """What is kept of the pilot users' columns and rows, to compare new users with: ``new.check(pilot=…)``."""
        return PilotSummary.of(self.schema, self.users, self.provenance)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates of a new user's rows."""
        return self.schema.covariates

    @property
    def takes_action(self) -> bool:
        """Whether there is a reward model, so that updates and predictions need the action."""
        return self.reward is not None and self.reward.acts

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All transitions, root first, then in the order of the nodes."""
        order = [ROOT, *(node.mask for node in self.nodes)]
        edges = []
        for parent in order:
            row = self.counts.rows.get(parent, {})
            total = sum(row.values())
            for child, count in sorted(row.items(), key=lambda item: (-item[1], order.index(item[0]))):
                source = None if parent == ROOT else self.pool.composition(parent)
                edges.append(Edge(source, self.pool.composition(child), count, total))
        return tuple(edges)

    @cached_property
    def selectable(self) -> tuple[Node, ...]:
        """The nodes that a new user may be at: those of the graph and, on averaged structures, of the others."""
        return self.nodes if self.averaged is None else (*self.nodes, *self.averaged.nodes)

    @property
    def widening(self) -> float:
        """Variance of outcomes for each variance of what users are fitted to: 1 unless outcomes are drawn in."""
        return 1.0 if self.drawing is None else self.drawing.widening

    @cached_property
    def followed(self) -> tuple[Node, ...]:
        """`selectable` as users are fitted to them: with the noise of outcomes that are drawn in, if they are."""
        drawing = self.drawing
        if drawing is None:
            return self.selectable
        return tuple(
            replace(node, group=node.group.widened(1.0 / drawing.widening).alike(drawing.alike))
            for node in self.selectable
        )

    def of_outcomes(self, fitted: Hyperparameters) -> Hyperparameters:
        """A user's hyperparameters with the noise of outcomes as they are."""
        if self.drawing is None:
            return fitted
        *others, noise = fitted.unconstrained
        return Hyperparameters(fitted.composition, (*others, noise + float(np.log(self.widening))))

    @cached_property
    def transitions(self) -> Array:
        """p(next = node j | from i), rows root then `selectable`, columns these, each row summing to 1.

        The urn's probabilities (method (27)), where a transition never seen keeps its share α·H0, renormalised over the
        nodes of the graph: a new user is followed within it. Of averaged structures, counts are averages (method (49)).
        On constant paths nobody leaves a node (method (47)).
        """
        masks = tuple(node.mask for node in self.selectable)
        if self.averaged is None:
            tops, _ = self.urn.step_matrix(self.counts, masks)
        else:
            tops = self.urn.step_matrix(Counts(), masks)[0] + self.averaged.counts
        shares = tops / tops.sum(axis=1, keepdims=True)
        if self.settings.paths == "constant":
            shares[1:] = np.eye(len(masks))
        return shares

    def children(self, mask: int) -> tuple[int, ...]:
        """Masks that customers leaving a composition went to; of the root for `ROOT`."""
        return tuple(self.counts.rows.get(mask, {}))

    def node(self, composition: Composition) -> Node:
        """The node of a composition."""
        for node in self.selectable:
            if node.composition == composition:
                return node
        raise KeyError(composition.text)

    def table(self) -> list[tuple[str, tuple[Composition, ...]]]:
        """Each pilot user with its composition at every batch (the paper's appendix table)."""
        return [
            (name, tuple(self.pool.composition(mask) for mask in path))
            for name, path in zip(self.users, self.paths, strict=True)
        ]
