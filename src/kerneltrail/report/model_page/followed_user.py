"""A user followed for the page: after every batch the kernel, the fit, its parts with bands, and the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kerneltrail.data import Scaler, User
from kerneltrail.evaluation.follow import BAD_ROWS, follow, left_out
from kerneltrail.evaluation.harness import FOLLOWING
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Composition
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.progress import Progress, Tell
from kerneltrail.report.description import describe_by_schema
from kerneltrail.report.figures import Curve
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.node_fit import NodePosterior
from kerneltrail.trajectory.user_state import SelectionStep

Array = NDArray[np.float64]

POINTS = 70
"""Points at which curves are drawn."""


@dataclass(frozen=True)
class PartView:
    """One part of a fit against its covariate, in data units.

    Attributes:
        title: the product, or what an action adds.
        covariate: the axis.
        curve: mean and standard deviation of the part.
        x, y: rows seen: the part plus what no part explains; none for an action's advantage.
        others: covariates of the product that are held at their medians.
        share: of the variance over the rows seen, or None for an action's advantage.
    """

    title: str
    covariate: str
    curve: Curve
    x: Array
    y: Array
    others: tuple[str, ...] = ()
    share: float | None = None


@dataclass(frozen=True)
class StepView:
    """A user after one batch.

    Attributes:
        rows: seen so far.
        composition: the pilot user's on its path, or what is selected for a new one.
        probabilities: of the model's nodes, in their order.
        words: what the composition says, the part that matters most first.
        fit: over the covariate, or over the rows seen in their order where there are several.
        parts: of the fit.
    """

    rows: int
    composition: Composition
    probabilities: tuple[float, ...]
    words: tuple[str, ...]
    fit: Curve
    parts: tuple[PartView, ...]


@dataclass(frozen=True)
class Ahead:
    """A batch predicted before it was seen: mean and standard deviation of its observations, and what they were."""

    seen: int
    mean: Array
    sd: Array
    y: Array

    @property
    def z(self) -> Array:
        """Standardised errors."""
        return (self.y - self.mean) / self.sd


@dataclass(frozen=True)
class UserView:
    """A user with what the page shows of every batch. Make one with `follow_users`.

    Attributes:
        user: in data units.
        pilot: whether the model was learnt from this user, whose path is then the learnt one.
        by_row: whether fits run over rows in their order rather than over the only covariate.
        steps: one for each batch; none where only predictions were asked for.
        ahead: one for each batch: what was predicted of it from those before.
        sure: probability of the composition selected, after each batch.
    """

    user: User
    pilot: bool
    by_row: bool
    steps: tuple[StepView, ...]
    ahead: tuple[Ahead, ...]
    sure: tuple[float, ...]


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
        detailed: of so many users fits and parts are kept to be drawn; of the others only predictions.
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

    def look(state: NewUser, step: SelectionStep) -> None:
        sure.append(step.probabilities[step.composition])
        if detailed:
            shown = step.composition if path is None else model.pool.composition(path[step.batch - 1])
            steps.append(_step(state, user.upto(step.batch), shown, by_row=by_row, averaged=path is None))
        tell(step.batch)

    followed = follow(method, user, catch=() if leave_out is None else BAD_ROWS, after_update=look)
    if followed.failures and leave_out is not None:
        leave_out(left_out(user, followed.failures[0]))
        return None
    ahead = [
        Ahead(step.rows, prediction.mean, np.sqrt(prediction.total), user.batch(step.t + 1).y)
        for step, prediction in zip(followed.steps, followed.predictions, strict=False)
        if prediction is not None
    ]
    return UserView(user, path is not None, by_row, tuple(steps), tuple(ahead), tuple(sure))


def _pilot_path(model: TrajectoryModel, user: User) -> tuple[int, ...] | None:
    """The learnt path of a pilot user; None for anybody else, also one of the same name with other rows."""
    known = dict(zip(model.users, model.paths, strict=True)).get(user.name)
    if known is None or len(known) != user.batches:
        return None
    return None if model.pilot.has_rows_of(user) is False else known  # older files do not say


def _step(state: NewUser, seen: User, composition: Composition, *, by_row: bool, averaged: bool) -> StepView:
    model, view = state.model, state.node_posterior(composition)
    scaler = model.scaler
    shares, parts = _parts(model, scaler, seen, view)
    words = describe_by_schema(view.fit.hyperparameters, model.schema, scaler, shares)
    at = seen.X if by_row else _grid(seen.X[:, 0])[:, None]
    action = seen.action if by_row else None
    if averaged:
        prediction = state.predict(at, action=action)
        mean, variance, total = prediction.mean, prediction.variance, prediction.total
    else:
        X = scaler.transform(at)
        prediction = view.predict(X, _design(model, X, action))
        mean = scaler.inverse_target(prediction.mean + _shared(model, X, action))
        variance, total = scaler.inverse_variance(prediction.variance), scaler.inverse_variance(prediction.total)
    x = np.arange(1.0, seen.rows + 1.0) if by_row else at[:, 0]
    return StepView(
        seen.rows,
        composition,
        tuple(state.probabilities[node.composition] for node in model.nodes),
        tuple(sentence.text for sentence in words),
        Curve(x, mean, np.sqrt(variance), np.sqrt(total)),
        parts,
    )


def _design(model: LearntGraph, X: Array, action: Array | None) -> Array | None:
    return None if model.reward is None else model.reward.design(X, model.covariates, action)


def _shared(model: LearntGraph, X: Array, action: Array | None) -> Array:
    """What all users vary around, at scaled rows: the population mean where the model has one, else 0."""
    return np.zeros(len(X)) if model.mean is None else model.mean.at(X, action)


def _grid(x: Array) -> Array:
    margin = 0.04 * (x.max() - x.min())
    return np.linspace(x.min() - margin, x.max() + margin, POINTS)


def _parts(
    model: LearntGraph, scaler: Scaler, seen: User, view: NodePosterior
) -> tuple[list[float], tuple[PartView, ...]]:
    """Shares of the products in the composition's order, and every part against its first covariate."""
    posterior, reward = view.posterior, model.reward
    X = scaler.transform(seen.X)
    design = _design(model, X, seen.action)
    here = posterior.components(X, linear=design)
    level = _shared(model, X, seen.action)
    rest = scaler.transform_target(seen.y) - level - np.sum([part.mean for part in here], axis=0)
    noise = float(view.fit.hyperparameters.values_array[-1])
    sizes = [float(np.var(part.mean)) for part in here]
    shares = [size / (sum(sizes) + noise) for size in sizes]
    views = []
    for p, product in enumerate(view.fit.node.composition):
        name, *others = dict.fromkeys(product.covariates)
        at, x = _along(X, seen, name)
        blank = None if design is None else np.zeros((POINTS, design.shape[1]))
        part = posterior.components(at, linear=blank)[p]
        curve = Curve(x, scaler.scale * part.mean, scaler.scale * np.sqrt(part.variance))
        dots = scaler.scale * (here[p].mean + rest)
        column = seen.X[:, seen.column_index(name)]
        views.append(PartView(str(product), name, curve, column, dots, tuple(others), shares[p]))
    views.sort(key=lambda part: -(part.share or 0.0))
    if reward is not None and reward.acts:
        name = reward.features[0] if reward.features else seen.covariates[0]
        at, x = _along(X, seen, name)
        gain, variance = posterior.advantage(at, reward)
        if model.mean is not None:
            gain = gain + model.mean.advantage(at)
        curve = Curve(x, scaler.scale * gain, scaler.scale * np.sqrt(variance))
        none = np.empty(0)
        title = f"what {model.schema.action or 'the action'} adds"
        views.append(PartView(title, name, curve, none, none, tuple(reward.features[1:])))
    return shares[: len(view.fit.node.composition)], tuple(views)


def _along(X: Array, seen: User, name: str) -> tuple[Array, Array]:
    """Scaled rows that vary in one covariate over the user's range, others at their medians; and its data values."""
    column = seen.column_index(name)
    at = np.tile(np.median(X, axis=0), (POINTS, 1))
    at[:, column] = np.linspace(X[:, column].min(), X[:, column].max(), POINTS)
    raw = seen.X[:, column]
    return at, np.linspace(raw.min(), raw.max(), POINTS)
