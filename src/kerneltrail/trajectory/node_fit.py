"""One node of the graph fitted to a new user's rows: its hyperparameters for them, its evidence, its predictions.

Up to a number of rows the hyperparameters follow the data (MAP under the node's group, warm-started). Past it they are
kept, the rows are replaced by their sums, and an update costs the same however many rows have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.errors import KernelError
from kerneltrail.gp import LinearBlock, Prediction
from kerneltrail.gp.numerics import LEAST_CURVATURE, LOG_2PI
from kerneltrail.kernels import Array, Hyperparameters
from kerneltrail.trajectory.evidence.base import TOLERANCE, PathEvidence
from kerneltrail.trajectory.graph import Node

FEATURES = ((TOLERANCE, 400), (1e-2, 1500))
"""Error allowed and most features of a frozen node. A product over two covariates needs hundreds: less exactly there,
and an update of some ten milliseconds, but as many after ten thousand rows as after a hundred."""


@dataclass(frozen=True)
class NodeFit:
    """One node fitted to one user; immutable.

    Attributes:
        node: the composition with its group.
        theta, log_evidence, precision: as of `NodeEstimate`, when it was last refined; the evidence follows all rows.
        refined: number of rows it was last refined with.
        online: sums that have replaced the rows, or None while they are kept.
    """

    node: Node
    theta: Array
    log_evidence: float = 0.0
    precision: Array | None = None
    refined: int = 0
    online: gp.OnlineState | None = None

    @classmethod
    def start(cls, node: Node) -> NodeFit:
        """Before any row."""
        return cls(node, node.group.mean)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The user's hyperparameters under this node."""
        return Hyperparameters(self.node.composition, tuple(self.theta))

    def refine(self, rows: User, block: LinearBlock | None, evidence: type[PathEvidence]) -> NodeFit:
        """All rows seen so far judged by an evidence, with the hyperparameters adapted to them."""
        theta, log_evidence, precision = evidence.estimate(self.node, rows, block, self.theta)
        return replace(self, theta=theta, log_evidence=log_evidence, precision=precision, refined=rows.rows)

    def freeze(self, rows: User, block: LinearBlock | None) -> NodeFit:
        """Replace the rows by their sums; unchanged where the kernel has no feature form of reasonable length."""
        for tol, rank in FEATURES:
            try:
                state = gp.OnlineState.start(
                    self.hyperparameters,
                    rows.covariates,
                    low=np.minimum(rows.X.min(axis=0), 0.0),
                    high=np.maximum(rows.X.max(axis=0), 1.0),
                    linear=None if block is None else block.covariance,
                    tol=tol,
                    max_rank=rank,
                )
            except KernelError:
                continue
            room = replace(state, max_rank=FEATURES[-1][1])  # for rows outside the box
            linear = None if block is None else block.features
            return replace(self, online=room.update(rows.X, rows.y, linear=linear))
        return self

    def follow(self, X: Array, y: Array, linear: Array | None) -> NodeFit:
        """More rows, with the hyperparameters kept."""
        assert self.online is not None  # only frozen fits follow
        online = self.online.update(X, y, linear=linear)
        if self.precision is not None:
            value = online.log_evidence + self._occam(online.rows)
        else:  # of an average over hyperparameters only the best are kept: they judge the new rows
            value = self.log_evidence + online.log_evidence - self.online.log_evidence
        return replace(self, online=online, log_evidence=value)

    def _occam(self, rows: int) -> float:
        """Laplace's factor at a kept θ (method (30)): the data's share of the curvature grows with the rows."""
        assert self.precision is not None
        mean, variance = self.node.group.mean, self.node.group.variance
        k = len(mean)
        scale = np.sqrt(variance)
        whitened = self.precision * np.multiply.outer(scale, scale)
        grown = np.eye(k) + (rows / max(self.refined, 1)) * (whitened - np.eye(k))
        logdet = float(np.log(np.maximum(np.linalg.eigvalsh(grown), LEAST_CURVATURE)).sum())
        w = (self.theta - mean) / scale
        log_prior = -0.5 * float(w @ w) - 0.5 * k * LOG_2PI  # the prior's and the Gaussian's scales cancel
        return log_prior + 0.5 * k * LOG_2PI - 0.5 * logdet


@dataclass(frozen=True)
class NodePosterior:
    """A node fit with the rows it predicts from.

    Attributes:
        fit: the node's.
        rows: all that were seen, scaled; None where sums have replaced them, or there are none.
        block: the linear block of a reward model, or None.
        covariates: columns of X.
    """

    fit: NodeFit
    rows: User | None
    block: LinearBlock | None
    covariates: tuple[str, ...]

    @cached_property
    def posterior(self) -> gp.Posterior | gp.OnlineState:
        """What predictions come from."""
        if self.fit.online is not None:
            return self.fit.online
        if self.rows is None:
            block = self.block
            return gp.prior_only(
                self.fit.hyperparameters, self.covariates, block=None if block is None else block.rows(0)
            )
        return gp.Posterior.fit(self.rows, self.fit.hyperparameters, block=self.block)

    def predict(self, X: Array, linear: Array | None) -> Prediction:
        """Mean and variance at rows of X."""
        return self.posterior.predict(X, linear=linear)
