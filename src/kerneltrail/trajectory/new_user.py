"""Selection for a new user (SPEC §7; paper, Algorithm 1): a walk on the learnt graph, batch by batch, not retrained.

`greedy` takes, of the current composition and its children, the one with the largest evidence: a wrong turn is for
ever.
`filter` keeps probabilities over all nodes, can come back, says how sure it is, and averages predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerneltrail.data import Scaler, User
from kerneltrail.data.arrays import real_numbers
from kerneltrail.errors import DataError, TrajectoryError
from kerneltrail.gp import LinearBlock, Prediction
from kerneltrail.gp.posterior import rows_of
from kerneltrail.kernels import Composition, Hyperparameters
from kerneltrail.trajectory.advantage import Advantage, mixed
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.node_fit import Judge, View
from kerneltrail.trajectory.sampler.urn import ROOT
from kerneltrail.trajectory.settings import Memory, Selection

if TYPE_CHECKING:
    from kerneltrail.trajectory.model import TrajectoryModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """What happened at one batch.

    Attributes:
        batch: its number, from 1.
        rows: rows seen up to and including it.
        composition: the composition selected.
        log_evidence: of every candidate, on all rows seen.
        probabilities: of every node, after this batch.
    """

    batch: int
    rows: int
    composition: Composition
    log_evidence: Mapping[Composition, float]
    probabilities: Mapping[Composition, float]


@dataclass(frozen=True)
class UserState:
    """All there is to know of a followed user but for the model: what a file keeps.

    Attributes:
        name: of the user.
        selection, memory, refine: how the user is followed.
        rows, batches: seen so far.
        history: what happened at each batch.
        judges: one per node of the model, in its order.
        kept: the rows that some judge still needs, scaled and less the population mean; None where sums have replaced
            them all.
        prior: probabilities of the nodes before the newest batch's evidence.
        weights: probabilities of the nodes.
        current: index of the selected node, None before any batch.
    """

    name: str
    selection: Selection
    memory: Memory
    refine: int
    rows: int
    batches: int
    history: tuple[Step, ...]
    judges: tuple[Judge, ...]
    kept: User | None
    prior: Array
    weights: Array
    current: int | None


class NewUser:
    """Somebody followed online. `update` with each batch; ask for `composition`, `probabilities`, `predict`.

    Covariates and targets are in data units throughout. The only mutable object of the package; `copy` is independent.
    """

    def __init__(self, model: TrajectoryModel, name: str, selection: Selection, memory: Memory, refine: int) -> None:
        self.model = model
        self.name = name
        self.selection = selection
        self.memory = memory
        self.refine = refine
        self.rows = 0
        self.batches = 0
        self.history: tuple[Step, ...] = ()
        self._scaler: Scaler = model.scaler
        empirical = model.settings.evidence == "empirical"
        self._judges = tuple(Judge.start(node, empirical=empirical) for node in model.nodes)
        self._kept: User | None = None
        self._prior = model.transitions[0]
        self._weights = self._prior
        self._current: int | None = None
        self._views: tuple[View, ...] | None = None

    @classmethod
    def start(cls, model: TrajectoryModel, name: str, **changes: Any) -> NewUser:
        """A user without rows, followed as the model's settings say unless `changes` do."""
        for change in changes:
            if change not in ("selection", "memory", "refine"):
                raise TrajectoryError(f"{change!r} cannot be changed for a new user; selection, memory and refine can")
        settings = replace(model.settings, **changes)
        return cls(model, name, settings.selection, settings.memory, settings.refine)

    def copy(self) -> NewUser:
        """An independent copy; all parts are immutable, so it is cheap."""
        other = NewUser.__new__(NewUser)
        other.__dict__.update(self.__dict__)
        return other

    @property
    def state(self) -> UserState:
        """The user without the model; `resume` is the way back."""
        return UserState(
            self.name, self.selection, self.memory, self.refine, self.rows, self.batches, self.history,
            self._judges, self._kept, self._prior, self._weights, self._current,
        )  # fmt: skip

    @classmethod
    def resume(cls, model: TrajectoryModel, state: UserState) -> NewUser:
        """The user of a state, followed on the same model: as if never stopped."""
        user = cls(model, state.name, state.selection, state.memory, state.refine)
        user.rows, user.batches, user.history = state.rows, state.batches, state.history
        user._judges, user._kept = state.judges, state.kept
        user._prior, user._weights, user._current = state.prior, state.weights, state.current
        return user

    def update(self, X: ArrayLike, y: ArrayLike, *, action: ArrayLike | None = None) -> Step:
        """One batch more: X (b, d) in the order of the model's covariates, y (b,), with actions for a reward model."""
        batch = self._batch(X, y, action)
        before = self._kept
        grown = batch if before is None else before.extend(batch)
        rows = self.rows + batch.rows
        frozen = any(judge.online is not None for judge in self._judges)
        linear = self._design(batch)
        candidates = self._candidates()
        judges = list(self._judges)
        block = block_of(grown, self.model.reward) if not frozen or before is not None else None
        for i, judge in enumerate(judges):
            if judge.online is not None:
                judges[i] = judge.follow(batch.X, batch.y, linear)
            elif i in candidates or self.rows + batch.rows > self.refine:
                judges[i] = judge.refine(grown, block)
        if rows > self.refine and not frozen:
            judges = [judge.freeze(grown, block) for judge in judges]
        self._judges = tuple(judges)
        # Rows are kept only as long as some judge needs them.
        self._kept = None if all(judge.online is not None for judge in judges) else grown
        self.rows, self.batches, self._views = rows, self.batches + 1, None
        self._decide(candidates)
        step = Step(
            self.batches,
            self.rows,
            self.composition,
            {self.model.nodes[i].composition: self._judges[i].log_evidence for i in candidates},
            self.probabilities,
        )
        self.history = (*self.history, step)
        return step

    def _candidates(self) -> tuple[int, ...]:
        """Indices of the nodes that may be selected next."""
        if self.selection == "filter":
            return tuple(range(len(self.model.nodes)))
        # Algorithm 1: the children of the current composition and itself; at a node without children, stay.
        here = ROOT if self._current is None else self.model.nodes[self._current].mask
        allowed = set(self.model.children(here)) | {here}
        return tuple(i for i, node in enumerate(self.model.nodes) if node.mask in allowed)

    def _decide(self, candidates: tuple[int, ...]) -> None:
        log = np.array([self._judges[i].log_evidence for i in candidates])
        if self.selection == "greedy":
            self._current = candidates[int(np.argmax(log))]
            self._weights = np.eye(len(self.model.nodes))[self._current]
            return
        step = self.model.transitions[1:]
        # SPEC §7: forward filtering. The cumulative sets overlap, so with memory "newest" only the newest one speaks,
        # and what went before enters by the graph alone.
        if self.batches > 1:
            self._prior = (self._prior if self.memory == "newest" else self._weights) @ step
        with np.errstate(divide="ignore"):
            total = np.log(self._prior) + log
        weights = np.exp(total - total.max())
        self._weights = weights / weights.sum()
        self._current = int(np.argmax(self._weights))

    @property
    def composition(self) -> Composition:
        """The composition selected; the empty one before any batch."""
        return Composition() if self._current is None else self.model.nodes[self._current].composition

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """The user's hyperparameters under the selected composition, in scaled units; None before any batch."""
        return None if self._current is None else self._judges[self._current].hyperparameters

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """How probable each node is, most probable first."""
        pairs = zip((node.composition for node in self.model.nodes), self._weights.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))

    def predict(self, X: ArrayLike, *, action: ArrayLike | None = None) -> Prediction:
        """Mean and variance in the target's units, averaged over nodes by their probability."""
        scaled = self._scaler.transform(_numbers(X, 2))
        reward = self.model.reward
        linear = None
        if reward is not None:
            if action is None and reward.acts:
                raise DataError("this model has a reward model: predict needs action=")
            linear = reward.design(scaled, self.model.covariates, None if action is None else _numbers(action, 1))
        weights, views = self._counted()
        parts = [view.predict(scaled, linear) for view in views]
        mean, variance = mixed(weights, np.array([p.mean for p in parts]), np.array([p.variance for p in parts]))
        noise = float(weights @ [p.noise for p in parts]) / float(weights.sum())
        if self.model.mean is not None:
            mean = mean + self.model.mean.at(scaled, None if action is None else _numbers(action, 1))
        return Prediction(
            self._scaler.inverse_target(mean),
            self._scaler.inverse_variance(variance),
            float(self._scaler.inverse_variance(np.array([noise]))[0]),
        )

    def advantage(self, X: ArrayLike) -> Advantage:
        """What acting adds at each row of X, in the target's units, averaged over nodes by their probability."""
        reward = self.model.reward
        if reward is None or not reward.acts:
            raise DataError("this model has no reward model, so it knows of no advantage; fit it with an action column")
        scaled = rows_of(self._scaler.transform(_numbers(X, 2)), self.model.covariates)
        weights, views = self._counted()
        parts = [view.posterior.advantage(scaled, reward) for view in views]
        mean, variance = mixed(weights, np.array([p[0] for p in parts]), np.array([p[1] for p in parts]))
        if self.model.mean is not None:
            mean = mean + self.model.mean.advantage(scaled)
        return Advantage(self._scaler.scale * mean, self._scaler.inverse_variance(variance))

    def _counted(self) -> tuple[Array, list[View]]:
        """The nodes that can be seen in an average, with their probabilities."""
        seen = self._weights >= 1e-4
        return self._weights[seen], [view for view, counts in zip(self._seen(), seen, strict=True) if counts]

    def _seen(self) -> tuple[View, ...]:
        if self._views is None:
            block: LinearBlock | None = None
            if self.model.reward is not None:
                rows = self._kept
                block = (
                    block_of(rows, self.model.reward)
                    if rows is not None
                    else self.model.reward.block(np.zeros((0, len(self.model.covariates))), self.model.covariates, [])
                )
            self._views = tuple(View(judge, self._kept, block, self.model.covariates) for judge in self._judges)
        return self._views

    def view(self, composition: Composition | None = None) -> View:
        """A node's view of the user (the selected one unless one is named): its posterior, parts, advantage."""
        wanted = self.composition if composition is None else composition
        for node, view in zip(self.model.nodes, self._seen(), strict=True):
            if node.composition == wanted:
                return view
        raise DataError(f"{wanted or 'nothing'} is not a node of this model")

    def _batch(self, X: ArrayLike, y: ArrayLike, action: ArrayLike | None) -> User:
        rows, target = _numbers(X, 2), _numbers(y, 1)
        if self.model.takes_action and action is None:
            raise DataError(f"user {self.name!r}: this model has a reward model, so update needs action=")
        user = User(
            self.name,
            self.model.covariates,
            rows,
            target,
            (len(target),),
            action=None if action is None else _numbers(action, 1),
        )
        scaled = self._scaler.apply(user)
        return scaled if self.model.mean is None else self.model.mean.centred(scaled)

    def _design(self, batch: User) -> Array | None:
        block = block_of(batch, self.model.reward)
        return None if block is None else block.features


def _numbers(values: ArrayLike, dimensions: int) -> Array:
    return np.array(real_numbers(values, "rows"), ndmin=dimensions)
