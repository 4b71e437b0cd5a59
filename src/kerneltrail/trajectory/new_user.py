"""Selection for a new user (method §7; paper, Algorithm 1): a walk on the learnt graph, batch by batch, not retrained.

`greedy` takes, of the current composition and its children, the one with the largest evidence, wrong turns for ever.
`filter` keeps probabilities over all nodes, can come back, says how sure it is, and averages predictions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kerneltrail.data import User
from kerneltrail.data.assignment import Assignment
from kerneltrail.data.frames import UNNAMED
from kerneltrail.errors import DataError, ModelFileError
from kerneltrail.gp import LinearBlock, Prediction
from kerneltrail.gp.prediction import averaged, rows_of
from kerneltrail.kernels import Array, Composition, Hyperparameters
from kerneltrail.kernels.phrases import brief_chance, counted
from kerneltrail.store.atomic import write
from kerneltrail.trajectory.advantage import Advantage
from kerneltrail.trajectory.batch import covariate_rows, read_ahead, read_batch
from kerneltrail.trajectory.effect_search import effects_of
from kerneltrail.trajectory.effects import Effects
from kerneltrail.trajectory.filtering import filtered
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.intake import taken_in, warn_of_old_rows
from kerneltrail.trajectory.kernel_posterior import KernelPosterior
from kerneltrail.trajectory.lateness import newest
from kerneltrail.trajectory.level import posteriors, with_level
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.node_fit import BUDGET, NodeFit, NodePosterior, followed
from kerneltrail.trajectory.sampler.urn import ROOT
from kerneltrail.trajectory.settings import Memory, Selection
from kerneltrail.trajectory.treatment import TreatmentEffect, treatment_effect
from kerneltrail.trajectory.user_state import RECENT, SelectionStep, UserState
from kerneltrail.views import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NewUser:
    """Somebody followed online. `update` with each batch; ask for `composition`, `probabilities`, `predict`.

    Covariates and targets are in data units throughout. Unlike the values of this package a user changes; `copy` is
    independent.
    An update replaces the immutable state as its last act: one that fails changes nothing, and answers given while
    another thread updates are those before it or those after it. Updates from several threads come one after the other.
    """

    def __init__(self, model: LearntGraph, state: UserState) -> None:
        self.model = model
        self._scaler = model.scaler  # refuses a model that cannot scale a new user's rows
        self._state = state
        self._posteriors: tuple[UserState, tuple[NodePosterior, ...]] | None = None  # with the state they are of
        self._lock = threading.Lock()

    @classmethod
    def start(cls, model: LearntGraph, name: object, **changes: Any) -> NewUser:
        """A user without rows, followed as the model's settings say unless `changes` do."""
        settings = model.settings.of_user(changes)
        fits = tuple(map(NodeFit.start, model.followed))
        state = UserState.start(name, settings, fits, model.transitions[0])
        return cls(model, state)

    @classmethod
    def resume(cls, model: LearntGraph, state: UserState) -> NewUser:
        """The user of a state, followed on the same model: as if never stopped."""
        return cls(model, state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the user in one file, which `TrajectoryModel.load_user` reads back bit for bit.

        Raises:
            ModelFileError: if it cannot be written; what stood there before is untouched then.
        """
        write(path, self.to_bytes(), error=ModelFileError)

    def to_bytes(self) -> bytes:
        """The user as the bytes of a file."""
        return self.state.to_bytes(self.model)

    @classmethod
    def from_bytes(cls, data: bytes, model: LearntGraph, shown: str = "the user") -> NewUser:
        """The user of a file's bytes, followed further on the same model; `shown` is what messages call the file."""
        return cls.resume(model, UserState.from_bytes(data, model, shown))

    def copy(self) -> NewUser:
        """An independent copy; all parts are immutable, so it is cheap."""
        other = NewUser(self.model, self._state)
        other._posteriors = self._posteriors
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return NewUser, (self.model, self._state)  # a lock does not travel

    def __repr__(self) -> str:
        state = self._state
        if not state.history:
            return f"NewUser {state.name!r}: no rows yet"
        rows, batches = counted(state.rows, "row"), counted(state.batches, "batch", "batches")
        kernel, probability = state.history[-1].selected
        # Greedy selection gives its choice all the probability, which says nothing of how sure it is.
        sure = "greedy" if state.selection == "greedy" else brief_chance(probability)
        return f"NewUser {state.name!r}: {rows} in {batches}, {kernel} ({sure})"

    def _repr_html_(self) -> str:
        return show("user.html", self)

    def plot(self, *, width: float = 9.0) -> Figure:
        """The user's effects as a Matplotlib figure: a panel for each covariate, with 90 % bands, in data units."""
        return show("user.figure", self, width=width)

    @property
    def state(self) -> UserState:
        """The user without the model; `resume` is the way back."""
        return self._state

    @property
    def name(self) -> str:
        """Of the user."""
        return self._state.name

    def take_name(self, name: str) -> None:
        """Name somebody who was given no name; others keep theirs."""
        with self._lock:
            if self._state.name == UNNAMED:
                self._state = replace(self._state, name=name)

    @property
    def selection(self) -> Selection:
        """How the next composition is selected."""
        return self._state.selection

    @property
    def memory(self) -> Memory:
        """For the filter, whether only the newest cumulative set speaks or all of them."""
        return self._state.memory

    @property
    def refine(self) -> int:
        """Rows up to which hyperparameters are refined."""
        return self._state.refine

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        return self._state.rows

    @property
    def batches(self) -> int:
        """Number of batches seen."""
        return self._state.batches

    @property
    def history(self) -> tuple[SelectionStep, ...]:
        """What happened at the last batches, at most `RECENT` of them."""
        return self._state.history

    @property
    def limited(self) -> tuple[Composition, ...]:
        """Nodes for which less was done at the last batch than would have been without a limit on its work."""
        return tuple(fit.node.composition for fit in self._state.fits if fit.limited)

    @property
    def selected(self) -> Mapping[Composition, int]:
        """After how many batches each node was the selected one."""
        return {node.composition: n for node, n in zip(self.model.selectable, self._state.selected, strict=True)}

    @property
    def composition(self) -> Composition:
        """The composition selected; the empty one before any batch."""
        current = self._state.current
        return Composition() if current is None else self.model.selectable[current].composition

    @property
    def hyperparameters(self) -> Hyperparameters | None:
        """The user's hyperparameters under the selected composition, in scaled units; None before any batch."""
        state = self._state
        return None if state.current is None else self.model.of_outcomes(state.fits[state.current].hyperparameters)

    @property
    def probabilities(self) -> Mapping[Composition, float]:
        """How probable each node is, most probable first."""
        return self._ranked(self._state.weights)

    def _ranked(self, weights: Array) -> dict[Composition, float]:
        pairs = zip((node.composition for node in self.model.selectable), weights.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: -pair[1]))

    def update(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        action: Assignment | ArrayLike | None = None,
        probability: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> SelectionStep:
        """One batch more, in data units.

        Args:
            X: a frame or a dict of columns, matched by the covariates' names; further columns are left aside. Or an
                array (b, d) in the order of the model's covariates.
            y: outcomes, (b,); if None, the frame's column of the target.
            action: 0 or 1 for each row, for a reward model; if None, the frame's column of the action.
            probability: with which the action was drawn, and `available`, 0 where nobody could act; if None, the
                frame's columns of the model's schema, if it has them.
        """
        batch, times = read_batch(self.model, self.name, X, y, (action, probability, available))
        with self._lock:
            warn_of_old_rows(self.model, self._state, batch, times)
            state = self._after(self._state, batch)
            self._state = state if times is None else replace(state, latest=newest(times, state.latest))
            return state.history[-1]

    def _after(self, state: UserState, batch: User) -> UserState:
        """The state after one batch more."""
        batch, grown, recent, outcomes, level = taken_in(self.model, state, batch, self._ahead)
        rows, batches = state.rows + batch.rows, state.batches + 1
        candidates = self._candidates(state)
        fits = self._refitted(state, batch, grown, candidates)
        prior, weights, current = self._decide(state, fits, candidates)
        nodes = self.model.selectable
        step = SelectionStep(
            batches,
            rows,
            nodes[current].composition,
            {nodes[i].composition: fits[i].log_evidence for i in candidates},
            self._ranked(weights),
        )
        return replace(
            state,
            name=batch.name,
            rows=rows,
            batches=batches,
            history=(*state.history, step)[-RECENT:],
            fits=fits,
            kept=None if rows > state.refine else grown,  # only as long as hyperparameters are refined
            outcomes=None if rows > state.refine else outcomes,
            prior=prior,
            weights=weights,
            current=current,
            first=state.first or step,
            recent=recent,
            selected=tuple(n + (i == current) for i, n in enumerate(state.selected)),
            level=level,
        )

    def _refitted(self, state: UserState, batch: User, grown: User, candidates: tuple[int, ...]) -> tuple[NodeFit, ...]:
        """The nodes fitted to one batch more; `grown` are the rows kept with those of the batch."""
        model, enough = self.model, state.rows + batch.rows > state.refine
        if state.rows > state.refine:
            return followed(state.fits, batch, state.recent, model.reward)
        block, budget = block_of(grown, model.reward_after(grown.rows)), BUDGET / max(len(state.fits), 1)
        fits = list(state.fits)
        for i, fit in enumerate(fits):
            if i in candidates or enough:
                fits[i] = fit.refine(grown, block, model.evidence, budget)
        return tuple(fit.freeze(grown, block) if enough else fit for fit in fits)

    def _candidates(self, state: UserState) -> tuple[int, ...]:
        """Indices of the nodes that may be selected next."""
        nodes = self.model.selectable
        if state.selection == "filter":
            return tuple(range(len(nodes)))
        # method (26), Algorithm 1: the current composition and its children; at a node without children, stay.
        here = ROOT if state.current is None else nodes[state.current].mask
        return tuple(i for i, node in enumerate(nodes) if node.mask in {here, *self.model.children(here)})

    def _decide(
        self, state: UserState, fits: tuple[NodeFit, ...], candidates: tuple[int, ...]
    ) -> tuple[Array, Array, int]:
        """The nodes' probabilities before and after the newest batch's evidence, and the index of the selected one."""
        log = np.array([fits[i].log_evidence for i in candidates])
        if state.selection == "greedy":
            current = candidates[int(np.argmax(log))]
            return state.prior, np.eye(len(fits))[current], current
        prior, weights = filtered(state, self.model.transitions, log)
        return prior, weights, int(np.argmax(weights))

    def predict(
        self, X: Any, *, action: Assignment | ArrayLike | None = None, probability: ArrayLike | None = None
    ) -> Prediction:
        """Mean and variance in the target's units, averaged over nodes by their probability at the next batch.

        X, and with a reward model the action and its probability, are given as for `update`; rows of somebody else are
        refused, unless neither a name nor a row of the user is known.
        """
        state, given = self._state, (action, probability, None)
        fresh = state.name == UNNAMED and not state.rows
        named, scaled, assignment = read_ahead(self.model, state.name, X, given, fresh=fresh)
        prediction = self._ahead(state, scaled, assignment)
        return Prediction(
            self._scaler.inverse_target(prediction.mean + state.shared(self.model, scaled, assignment)),
            self._scaler.inverse_variance(prediction.variance),
            float(self._scaler.inverse_variance(np.array([prediction.noise]))[0]),
            None if named is None else named.given,
            prediction.freedom,
        ).shaped(self.model.shape)

    def _ahead(self, state: UserState, scaled: Array, assignment: Assignment | None) -> Prediction:
        """The prediction at scaled rows, scaled and less the population mean."""
        reward = self.model.reward
        linear = None if reward is None else reward.design(scaled, self.model.covariates, assignment)
        weights, posteriors = self._counted(state, ahead=True)
        parts = [posterior.predict(scaled, linear) for posterior in posteriors]
        if self.model.drawing is not None:  # what fits read varies less than outcomes do
            parts = [replace(part, noise=part.noise * self.model.widening) for part in parts]
        if self.model.settings.tails == "normal":
            return averaged(weights, parts)
        if state.rows and (wider := self.model.stretch**2) != 1.0:
            parts = [replace(each, variance=wider * each.variance, noise=wider * each.noise) for each in parts]
        spreads = np.array([posterior.fit.noise_spread(state.rows) for posterior in posteriors])
        return averaged(weights, parts, spreads, self.model.tails)

    def advantage(self, X: Any) -> Advantage:
        """What acting adds at each row of X, in the target's units; nodes are averaged as for `predict`."""
        reward = self.model.reward
        if reward is None or not reward.acts:
            raise DataError("this model has no reward model, so it knows of no advantage; fit it with an action column")
        scaled = rows_of(self._scaler.transform(covariate_rows(self.model, X)[1]), self.model.covariates)
        weights, posteriors = self._counted(ahead=True)
        parts = [posterior.advantage(scaled, reward) for posterior in posteriors]
        shared = 0.0 if self.model.mean is None else self.model.mean.advantage(scaled)
        scale = self._scaler.scale
        means = scale * (np.array([mean for mean, _ in parts]) + shared)
        return Advantage(weights, means, self._scaler.inverse_variance(np.array([variance for _, variance in parts])))

    def decide(self, context: Mapping[str, Any], **options: Any) -> Any:
        """What an allocation rule decides in a context, with its probability; as `kerneltrail.trial.decide_for`."""
        return show("user.decision", self, context=context, **options)

    def effects(self) -> Effects:
        """What was found of the user: the effect of every covariate in data units, with its uncertainty."""
        state, model, kernels = self._state, self.model, self._kernels()
        if state.recent is not None:
            rows = state.recent if state.kept is None else state.kept
            model = with_level(self.model, rows)
            if model is not self.model:
                fitted = [kernel.posterior.hyperparameters for kernel in kernels]
                kernels = posteriors(model, rows, fitted, [kernel.weight for kernel in kernels])
        return effects_of(model, kernels, state.recent, state.rows, drawn=state.drawn)

    def treatment(self) -> TreatmentEffect:
        """What acting adds for the user: on average over the newest contexts, and along each feature."""
        state = self._state
        if not self.model.takes_action:
            raise DataError("this model has no reward model, so it knows of no advantage; fit it with an action column")
        if state.recent is None:
            raise DataError(f"no rows of {self.name} have been seen yet, so there are no contexts to average over")
        return treatment_effect(self.model, self._kernels(ahead=True), state.recent, state.rows)

    def _kernels(self, *, ahead: bool = False) -> list[KernelPosterior]:
        return [KernelPosterior(float(w), each.posterior) for w, each in zip(*self._counted(ahead=ahead), strict=True)]

    def node_posterior(self, composition: Composition | None = None) -> NodePosterior:
        """What a node (the selected one unless one is named) predicts from: its posterior, parts, advantage."""
        wanted = self.composition if composition is None else composition
        for node, posterior in zip(self.model.selectable, self._all_posteriors(self._state), strict=True):
            if node.composition == wanted:
                return posterior
        raise DataError(f"{wanted or 'nothing'} is not a node of this model")

    def _counted(self, state: UserState | None = None, *, ahead: bool = False) -> tuple[Array, list[NodePosterior]]:
        """The nodes that can be seen in an average, with their probabilities: now, or `ahead`, at the next batch."""
        state = self._state if state is None else state
        weights = state.weights
        if ahead and state.batches and state.selection == "filter":
            weights = weights @ self.model.transitions[1:]  # method (48); before any batch they are the next one's
        counts = weights >= 1e-4
        return weights[counts], list(compress(self._all_posteriors(state), counts))

    def _all_posteriors(self, state: UserState) -> tuple[NodePosterior, ...]:
        cached = self._posteriors
        if cached is None or cached[0] is not state:
            covariates, reward = self.model.covariates, self.model.reward_after(state.rows)
            block: LinearBlock | None = None
            seen = state.kept if state.kept is not None else state.recent
            if seen is not None:
                block = block_of(seen, reward)
            elif reward is not None:
                block = reward.block(np.zeros((0, len(covariates))), covariates, [])
            cached = state, tuple(NodePosterior(fit, seen, block, covariates) for fit in state.fits)
            self._posteriors = cached
        return cached[1]
