"""A user followed for the page: after every batch the effects, what acting adds, the kernel, the fit and its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import User
from kerneltrail.evaluation.baselines import simple_predictions
from kerneltrail.evaluation.follow import BAD_ROWS, follow, left_out
from kerneltrail.evaluation.harness import FOLLOWING
from kerneltrail.gp import Prediction, one_blas_thread
from kerneltrail.kernels import Composition
from kerneltrail.kernels.phrases import counted
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.progress import Progress, Tell
from kerneltrail.report.description import describe_by_schema, noun_of
from kerneltrail.report.explanation import besides_shared, best_description
from kerneltrail.report.figures import Curve
from kerneltrail.report.model_page.parts import POINTS, PartView, design_of, parts_of
from kerneltrail.trajectory.effects import Effects
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.node_fit import NodePosterior
from kerneltrail.trajectory.treatment import TreatmentEffect
from kerneltrail.trajectory.user_state import SelectionStep

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Findings:
    """What was found of a user, averaged over kernels by their probability.

    Attributes:
        effects: of all covariates.
        treatment: what acting adds; None without an action.
    """

    effects: Effects
    treatment: TreatmentEffect | None


@dataclass(frozen=True)
class StepView:
    """A user after one batch.

    Attributes:
        rows: seen so far.
        composition: the pilot user's on its path, or what is selected for a new one.
        probabilities: of the nodes that a new user may be at, in the order of the model.
        lead: what describes the user best, and how sure that is.
        words: what the composition says, the part that matters most first.
        fit: over the covariate, or over the rows seen in their order where there are several.
        parts: of the fit.
        findings: effects, and what acting adds.
    """

    rows: int
    composition: Composition
    probabilities: tuple[float, ...]
    lead: str
    words: tuple[str, ...]
    fit: Curve
    parts: tuple[PartView, ...]
    findings: Findings


@dataclass(frozen=True)
class Ahead:
    """A batch predicted before it was seen.

    Attributes:
        seen: rows before it.
        prediction: of its observations.
        y: what they were.
        simple: means that simple rules predict, by name (`simple_predictions`).
    """

    seen: int
    prediction: Prediction
    y: Array
    simple: Mapping[str, Array] = field(default_factory=dict)

    @property
    def mean(self) -> Array:
        """Predicted means."""
        return self.prediction.mean

    def inside(self, level: float) -> NDArray[np.bool_]:
        """Which observations lie inside their predicted interval of that level."""
        low, high = self.prediction.interval(level)
        return np.asarray((low <= self.y) & (self.y <= high))

    @property
    def below(self) -> tuple[Array, Array]:
        """Predicted probability of less than what was observed, and of that or less."""
        return self.prediction.below(self.y)


@dataclass(frozen=True)
class UserView:
    """A user with what the page shows of every batch. Make one with `follow_users`.

    Attributes:
        user: in data units.
        pilot: whether the model was learnt from this user, whose path is then the learnt one.
        by_row: whether fits run over rows in their order rather than over the only covariate.
        steps: one for each batch; none where only what was found last and predictions were asked for.
        ahead: one for each batch: what was predicted of it from those before.
        sure: probability of the composition selected, after each batch.
        findings: after the last batch; None for a user without rows.
    """

    user: User
    pilot: bool
    by_row: bool
    steps: tuple[StepView, ...]
    ahead: tuple[Ahead, ...]
    sure: tuple[float, ...]
    findings: Findings | None = None


def caution(users: Sequence[UserView]) -> str:
    """What has to be said where the model was learnt from some of the users by whom it is judged."""
    pilots = sum(one.pilot for one in users)
    if not pilots:
        return ""
    who = "All of these users" if pilots == len(users) else f"{pilots} of these {len(users)} users"
    return f" {who} taught the model, so this flatters it: new users are the real test."


def follow_users(
    model: TrajectoryModel,
    users: Iterable[User],
    *,
    detailed: int = 24,
    progress: Tell = lambda now: None,
    leave_out: Callable[[str], None] | None = None,
) -> tuple[UserView, ...]:
    """Follow users batch by batch on a learnt graph.

    A user with the name, the number of batches and the rows of a pilot user is taken for that one, and shown on the
    learnt path. A model file that does not hold a digest of the rows is asked for name and number of batches alone.

    Args:
        model: the graph.
        users: in data units, as a cohort's `raw`.
        detailed: of so many users all batches are kept to be drawn; of the others predictions, and what was found last.
        progress: called after every batch.
        leave_out: hears why a user whose rows cannot be followed is left out; if None, such a user stops everything.
    """
    views: list[UserView] = []
    everybody = tuple(users)
    total, before = sum(user.batches for user in everybody), 0
    with one_blas_thread():
        for user in everybody:

            def tell(batch: int, user: User = user, before: int = before) -> None:
                progress(Progress(FOLLOWING, before + batch, total, f"{user.name}, batch {batch} of {user.batches}"))

            view = _follow(model, user, tell, detailed=len(views) < detailed, leave_out=leave_out)
            views += [] if view is None else [view]
            before += user.batches
    return tuple(views)


def _follow(
    model: TrajectoryModel,
    user: User,
    tell: Callable[[int], None],
    *,
    detailed: bool,
    leave_out: Callable[[str], None] | None,
) -> UserView | None:
    path = _pilot_path(model, user)
    # On a pilot user's path any node may be asked for, so all of them have to see the rows.
    method = TrajectoryMethod(model, {} if path is None else {"selection": "filter"})
    by_row = len(user.covariates) > 1 or model.takes_action
    steps: list[StepView] = []
    sure: list[float] = []
    found: list[Findings] = []

    def look(state: NewUser, step: SelectionStep) -> None:
        sure.append(step.probabilities[step.composition])
        tell(step.batch)
        if not detailed and step.batch < user.batches:
            return
        found.append(Findings(state.effects(), state.treatment() if model.takes_action else None))
        if detailed:
            shown = step.composition if path is None else model.pool.composition(path[step.batch - 1])
            seen = user.upto(step.batch)
            steps.append(_step(state, seen, shown, found[-1], by_row=by_row, averaged=path is None))

    followed = follow(method, user, catch=() if leave_out is None else BAD_ROWS, after_update=look)
    if followed.failures and leave_out is not None:
        leave_out(left_out(user, followed.failures[0]))
        return None
    simple = simple_predictions(user, _population(model, user))
    ahead = [
        Ahead(step.rows, prediction, user.batch(step.t + 1).y, simple[step.t])
        for step, prediction in zip(followed.steps, followed.predictions, strict=False)
        if prediction is not None
    ]
    last = found[-1] if found else None
    return UserView(user, path is not None, by_row, tuple(steps), tuple(ahead), tuple(sure), last)


def _population(model: TrajectoryModel, user: User) -> Array | None:
    """What users share at a user's rows, in data units, whatever the user's level; None for a model without it."""
    if model.mean is None:
        return None
    return model.scaler.inverse_target(model.mean.at(model.scaler.transform(user.X), user.assignment))


def _pilot_path(model: TrajectoryModel, user: User) -> tuple[int, ...] | None:
    """The learnt path of a pilot user; None for anybody else, also one of the same name with other rows."""
    known = dict(zip(model.users, model.paths, strict=True)).get(user.name)
    if known is None or len(known) != user.batches:
        return None
    return None if model.pilot.has_rows_of(user) is False else known  # older files do not say


def _step(
    state: NewUser, seen: User, composition: Composition, findings: Findings, *, by_row: bool, averaged: bool
) -> StepView:
    model, view = state.model, state.node_posterior(composition)
    scaler = model.scaler
    shares, parts = parts_of(
        model, scaler, seen, view, state.state.shared(model, scaler.transform(seen.X), seen.assignment)
    )
    fitted = model.of_outcomes(view.fit.hyperparameters)
    words = describe_by_schema(fitted, model.schema, scaler, shares, shared=model.mean is not None)
    at = seen.X if by_row else _grid(seen.X[:, 0])[:, None]
    assignment = seen.assignment if model.takes_action else None
    if averaged:
        prediction = state.predict(at, action=assignment if by_row else None)
    else:
        X = scaler.transform(at)
        acted = assignment if by_row else None
        scaled = view.predict(X, design_of(model, X, acted))
        prediction = Prediction(
            scaler.inverse_target(scaled.mean + state.state.shared(model, X, acted)),
            scaler.inverse_variance(scaled.variance),
            float(scaler.inverse_variance(np.array(scaled.noise * model.widening))),
        ).shaped(model.shape)
    x = np.arange(1.0, seen.rows + 1.0) if by_row else at[:, 0]
    return StepView(
        seen.rows,
        composition,
        tuple(state.probabilities[node.composition] for node in model.selectable),
        best_description(state) if averaged else _learnt(state, view),
        tuple(sentence.text for sentence in words),
        Curve(x, prediction.mean, np.sqrt(prediction.variance), prediction.interval(0.9)),
        parts,
        findings,
    )


def _learnt(state: NewUser, view: NodePosterior) -> str:
    """What describes a pilot user best, which was learnt with all of them together."""
    model = state.model
    noun = noun_of(view.fit.hyperparameters, model.schema, model.scaler, shared=model.mean is not None)
    rows, beside = counted(state.rows, "row"), besides_shared(model, view.fit.node.composition)
    return f"After {rows}, user {state.name} is described best by {noun}{beside}; learnt from all pilot users together."


def _grid(x: Array) -> Array:
    margin = 0.04 * (x.max() - x.min())
    return np.linspace(x.min() - margin, x.max() + margin, POINTS)
