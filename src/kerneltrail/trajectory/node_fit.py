"""One node of the graph fitted to a new user's rows: its hyperparameters for them, its evidence, its predictions.

Up to a number of rows the hyperparameters follow the data (MAP under the node's group, warm-started). Past it they are
kept, the rows are replaced by their sums, and an update costs the same however many rows have been seen. A search that
would take longer than an update may is left out, and sums that would be too long are replaced by the newest rows
(method §7.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.errors import KernelError, NumericalError
from kerneltrail.gp import LinearBlock, Prediction, Reward
from kerneltrail.gp.numerics import LEAST_CURVATURE, LOG_2PI
from kerneltrail.kernels import Array, Hyperparameters, layout_of
from kerneltrail.trajectory.evidence.base import TOLERANCE, PathEvidence
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.map_table import block_of

LONGEST = 256
"""Most features of a node: the sums that are kept of a user are as many numbers, squared, for each node."""

FEATURES = ((TOLERANCE, 128), (1e-2, 192), (1.0, LONGEST), (10.0, LONGEST), (100.0, LONGEST))
"""Error allowed in a log evidence of `HORIZON` rows, and most features of a frozen node. A product over two covariates
needs hundreds: less exactly there, but as many after ten thousand rows as after a hundred."""

MARGIN = 0.25
"""Share of the rows' range by which features hold beyond it, so that widening is rare."""

FEW_ROWS = 160
"""Up to so many rows their covariance is factorised as quickly as features of them are summed."""

LOOSEST = 10.0
"""Largest error, as in `FEATURES`, with which sums stand in for rows that are kept: a thousandth of a prediction's
standard deviation."""

WIDENING = 5e6
"""Most features of a box that is widened, to the third power and times covariates: some 20 ms."""

BUDGET = 60e6
"""Nanoseconds that the searches of one update may take together, all nodes alike. They are nominal: by the formulas
below, not by a clock, so that the same rows give the same answer on every machine."""

EVALUATIONS = 45
"""Evidences with gradient that a search takes, as a rule."""


FAR, REFLECTED = 1e5, 8.0
"""Scaled values beyond which squares of them round the noise away; reflections are used then, which take so many times
as long."""


def dense_cost(rows: int) -> float:
    """Nominal nanoseconds of an evidence with its gradient by the rows' covariance."""
    return 0.15 * rows**3 + 20.0 * rows**2 + 1.5e5


def feature_cost(rows: int, rank: int) -> float:
    """Nominal nanoseconds of an evidence with its gradient by so many features."""
    return 0.25 * rows * rank**2 + 0.3 * rank**3 + 4e4


@dataclass(frozen=True)
class NodeFit:
    """One node fitted to one user; immutable.

    Attributes:
        node: the composition with its group.
        theta, log_evidence, precision: as of `NodeEstimate`, when it was last refined; the evidence follows all rows.
        refined: number of rows it was last refined with.
        online: sums that have replaced the rows, or None while they are kept.
        limited: whether less was done at the last batch than would have been without a limit on its work.
    """

    node: Node
    theta: Array
    log_evidence: float = 0.0
    precision: Array | None = None
    refined: int = 0
    online: gp.OnlineState | None = None
    limited: bool = False

    @classmethod
    def start(cls, node: Node) -> NodeFit:
        """Before any row."""
        return cls(node, node.group.mean)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The user's hyperparameters under this node."""
        return Hyperparameters(self.node.composition, tuple(self.theta))

    def refine(
        self, rows: User, block: LinearBlock | None, evidence: type[PathEvidence], budget: float = np.inf
    ) -> NodeFit:
        """All rows seen so far judged by an evidence, with the hyperparameters adapted to them.

        Where a search would take more than the budget, in nominal nanoseconds, they are kept: those of the batch
        before, or the group's mean.
        """
        if EVALUATIONS * dense_cost(rows.rows) > budget and EVALUATIONS * self._cost(rows) > budget:
            return self._kept(rows, block)
        theta, log_evidence, precision = evidence.estimate(self.node, rows, block, self.theta)
        return replace(
            self, theta=theta, log_evidence=log_evidence, precision=precision, refined=rows.rows, limited=False
        )

    def _kept(self, rows: User, block: LinearBlock | None) -> NodeFit:
        """All rows judged at the hyperparameters that are there."""
        fit = self
        if self.precision is None:  # no batch has said anything yet: the group's own curvature
            fit = replace(self, precision=np.diag(1.0 / self.node.group.variance), refined=rows.rows)
        value = fit._likelihood(rows, block) + fit._occam(rows.rows)
        return replace(fit, log_evidence=value, limited=True)

    def _likelihood(self, rows: User, block: LinearBlock | None) -> float:
        composition = self.node.composition
        return float(gp.log_evidence(rows, composition, self.theta[None], tol=TOLERANCE, block=block)[0, -1])

    def _cost(self, rows: User) -> float:
        """Nominal nanoseconds of one evidence with gradient; for lengths a standard deviation shorter than they are.

        A search tries those too, and on a wide range they take many more features.
        """
        short = np.array([slot.spec.unit == "length" for slot in layout_of(self.node.composition).slots])
        theta = self.theta - np.where(short, np.sqrt(self.node.group.variance), 0.0)
        low, high = rows.X.min(axis=0), rows.X.max(axis=0)
        hyperparameters = Hyperparameters(self.node.composition, tuple(theta))
        basis = gp.regression.Basis(hyperparameters, rows.covariates, tuple(low), tuple(high), TOLERANCE)
        try:
            factor = REFLECTED if np.abs(rows.X).max() > FAR else 1.0
            return min(dense_cost(rows.rows), factor * feature_cost(rows.rows, basis.rank))
        except KernelError:  # an atom without a series
            return dense_cost(rows.rows)

    def freeze(self, rows: User, block: LinearBlock | None) -> NodeFit:
        """Replace the rows by their sums; where the kernel has no feature form of reasonable length, by the newest."""
        widest = int((WIDENING / max(len(rows.covariates), 1)) ** (1 / 3))
        online = self.sums(rows, block, FEATURES, widest)
        return replace(self, limited=True) if online is None else replace(self, online=online)

    def sums(
        self, rows: User, block: LinearBlock | None, lengths: Sequence[tuple[float, int]], widest: int
    ) -> gp.OnlineState | None:
        """What sums of the rows say, by features; None where the kernel needs too many.

        Args:
            rows, block: the rows.
            lengths: errors allowed and most features, as `FEATURES`; the first that can be kept is.
            widest: most features to which the sums may be widened, for rows outside their box.
        """
        low, high = np.minimum(rows.X.min(axis=0), 0.0), np.maximum(rows.X.max(axis=0), 1.0)
        margin = MARGIN * (high - low)
        box, hyperparameters = (tuple((low - margin).tolist()), tuple((high + margin).tolist())), self.hyperparameters
        for tol, most in lengths:
            basis = gp.regression.Basis(hyperparameters, rows.covariates, *box, tol)
            try:
                if basis.rank <= most:
                    return gp.OnlineState.of_rows(basis, rows, block, widest)
            except KernelError:  # an atom without a series
                return None
        return None

    def follow(self, X: Array, y: Array, linear: Array | None) -> NodeFit:
        """More rows, with the hyperparameters kept.

        Raises:
            KernelError: where the rows are so far outside that there would be too many features.
        """
        assert self.online is not None  # only frozen fits follow
        online = self.online.update(X, y, linear=linear)
        if self.precision is not None:
            value = online.log_evidence + self._occam(online.rows)
        else:  # of an average over hyperparameters only the best are kept: they judge the new rows
            value = self.log_evidence + online.log_evidence - self.online.log_evidence
        after = replace(self, online=online, log_evidence=value, limited=False)
        if self.precision is not None:
            vars(after)["_spectrum"] = self._spectrum  # the curvature is the same
        return after

    def follow_newest(
        self, recent: User, batch: User, blocks: tuple[LinearBlock | None, LinearBlock | None]
    ) -> NodeFit:
        """More rows, given the newest ones before them alone, with the hyperparameters kept.

        `blocks` are the linear blocks of the newest rows, and of those with the batch.
        """
        before, after = blocks
        gain = self._likelihood(recent.extend(batch), after) - self._likelihood(recent, before)
        return replace(self, online=None, log_evidence=self.log_evidence + gain, limited=True)

    def _occam(self, rows: int) -> float:
        """Laplace's factor at a kept θ (method (30)): the data's share of the curvature grows with the rows."""
        mean, variance = self.node.group.mean, self.node.group.variance
        k = len(mean)
        logdet = float(np.log(np.maximum(self._curvatures(rows), LEAST_CURVATURE)).sum())
        w = (self.theta - mean) / np.sqrt(variance)
        log_prior = -0.5 * float(w @ w) - 0.5 * k * LOG_2PI  # the prior's and the Gaussian's scales cancel
        return log_prior + 0.5 * k * LOG_2PI - 0.5 * logdet

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the curvature of the log posterior, relative to the group's, when refined."""
        assert self.precision is not None
        scale = np.sqrt(self.node.group.variance)
        values, vectors = np.linalg.eigh(self.precision * np.multiply.outer(scale, scale))
        return values, vectors

    def _curvatures(self, rows: int) -> Array:
        """The eigenvalues after so many rows: what is more than the group's 1 grows with them."""
        return 1.0 + (rows / max(self.refined, 1)) * (self._spectrum[0] - 1.0)

    def noise_spread(self, rows: int) -> float:
        """Variance of the log of the noise's variance after so many rows: what is not known of it (method (53))."""
        between = float(self.node.group.variance[-1])
        if self.precision is None:  # no curvature is known: that of a noise alone with so many rows
            return between / (1.0 + 0.5 * rows * between)
        loads = self._spectrum[1][-1] ** 2
        return between * float((loads / np.maximum(self._curvatures(rows), 1.0)).sum())


def followed(fits: tuple[NodeFit, ...], batch: User, recent: User | None, reward: Reward | None) -> tuple[NodeFit, ...]:
    """The nodes after one batch more, past the rows up to which hyperparameters are refined.

    A node whose sums cannot hold the batch, or that has none, is judged given the newest rows before it.
    """
    linear = None if reward is None else reward.design(batch.X, batch.covariates, batch.assignment)
    after = []
    for fit in fits:
        if fit.online is not None:
            try:
                after.append(fit.follow(batch.X, batch.y, linear))
                continue
            except KernelError:
                if recent is None:  # a user of a file of before, of whom there are sums alone
                    raise
        assert recent is not None  # where there are no sums there are rows
        blocks = block_of(recent, reward), block_of(recent.extend(batch), reward)
        after.append(fit.follow_newest(recent, batch, blocks))
    return tuple(after)


@dataclass(frozen=True)
class NodePosterior:
    """A node fit with the rows it predicts from.

    Attributes:
        fit: the node's.
        rows: all that were seen, scaled, or the newest where sums have replaced them; None before any.
        block: the linear block of a reward model, or None.
        covariates: columns of X.
    """

    fit: NodeFit
    rows: User | None
    block: LinearBlock | None
    covariates: tuple[str, ...]

    @property
    def posterior(self) -> gp.Posterior | gp.OnlineState:
        """The node given all that is kept of the user: the rows themselves where they are. Not cached: it is large."""
        return self._quick if self.fit.online is not None or self.rows is None else self._exact()

    def _exact(self) -> gp.Posterior:
        assert self.rows is not None  # only asked for where there are rows
        return gp.Posterior.fit(self.rows, self.fit.hyperparameters, block=self.block)

    @cached_property
    def _quick(self) -> gp.Posterior | gp.OnlineState:
        """What predictions come from: sums over rows, also over rows that are kept, where features are few."""
        if self.fit.online is not None:
            return self.fit.online
        if self.rows is None:
            block = None if self.block is None else self.block.rows(0)
            return gp.prior_only(self.fit.hyperparameters, self.covariates, block=block)
        if self.rows.rows > FEW_ROWS:
            lengths = [(tol, min(most, self.rows.rows // 2)) for tol, most in FEATURES if tol <= LOOSEST]
            sums = self.fit.sums(self.rows, self.block, lengths, 0)  # outside the box the rows are asked
            if sums is not None:
                with suppress(NumericalError):  # where sums round the noise away
                    _ = sums.log_evidence
                    return sums
        return self._exact()

    def predict(self, X: Array, linear: Array | None) -> Prediction:
        """Mean and variance at rows of X."""
        try:
            return self._quick.predict(X, linear=linear)
        except KernelError:  # so far outside the box of the sums that there would be too many features
            if self.rows is None:
                raise
            return self._exact().predict(X, linear=linear)

    def advantage(self, X: Array, reward: Reward) -> tuple[Array, Array]:
        """Mean and variance of what acting adds at rows of X."""
        return self._quick.advantage(X, reward)
