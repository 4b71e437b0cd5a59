"""What pilot users share, learnt jointly once the graph is chosen: the mean, how weights differ, groups of nodes.

The chains judge compositions under the stated priors. What is passed on to a new user is estimated afterwards, given
the chosen paths, by the likelihood of all pilot users together (method §8.6): first the linear weights that users share
and how far they differ in them, given everybody's kernel; then each node's group of hyperparameters, given those.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.engines import one_blas_thread
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Reward
from kerneltrail.gp.mixed import MixedModel, Sums, turned
from kerneltrail.gp.population import PopulationMean, effects_between, size_of
from kerneltrail.gp.shared_curve import with_curves
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Array, Composition, Hyperparameters
from kerneltrail.trajectory.drawing import drawn_rows
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.map_table import Fits, Group, MapSettings, MapTable, block_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.urn import last_use

ROUNDS = 2
"""How often weights and groups are learnt given each other."""

SEARCHES = 3
"""Searches for everybody's MAP in learning a group; each starts from the one before."""

STEPS = 200
"""Most steps of EM for one group; each is a few small matrices."""

MOST_ROWS = 1000
"""Newest rows of a pilot user from which linear weights are learnt given the kernel: a dense factor of them."""


@dataclass(frozen=True)
class Member:
    """A pilot user at one node: the rows up to the last batch there, and the hyperparameters found for them."""

    user: int
    batch: int
    theta: Array


@dataclass(frozen=True)
class Pilots:
    """Pilot users as what they share was learnt from them.

    Attributes:
        users: scaled and less the population mean, with outcomes drawn in where the model draws them in.
        fitted: for each the last kernel of the path with its hyperparameters.
    """

    users: tuple[User, ...]
    fitted: tuple[Hyperparameters, ...]


def what_all_share(lines: PopulationMean, users: Sequence[User], *, curves: bool) -> PopulationMean:
    """The mean as new users get it: with curves if they are asked for, and with how users differ around it.

    The chains have lines alone: a kernel is worth what it explains of somebody, whoever shares that. Covariates must be
    scaled to the pilot users' range, on which bumps lie.
    """
    mean = with_curves(lines, users) if curves else lines
    return replace(mean, between=effects_between(_centred(users, mean)))


def learn_together(model: TrajectoryModel, users: Sequence[User], table: MapTable) -> tuple[TrajectoryModel, Pilots]:
    """The model with what pilot users share learnt jointly, and the pilot users as they were read in the end.

    A model that draws outcomes in has what was learnt without; all is learnt anew around that, from outcomes drawn in.

    Args:
        model: with the graph, the population mean and the reward model of the chains.
        users: the pilot users, scaled.
        table: fits of them under the priors, where the searches start.
    """
    last = last_use(model.paths)
    members = {
        node.mask: [Member(m, t, table.get(m, node.mask).theta[t]) for m, t in last[node.mask].items()]
        for node in model.nodes
    }
    mean, reward = model.mean, model.reward
    drawing, seen = model.drawing, list(users)
    if drawing is not None:  # one user's noise is hardly known where tails are heavy: to begin with, the group's
        for node in model.nodes:
            noise = node.group.widened(1.0 / drawing.widening).mean[-1]
            members[node.mask] = [replace(each, theta=np.r_[each.theta[:-1], noise]) for each in members[node.mask]]
    centred = _centred(seen, mean)
    groups: dict[int, Group] = {}
    with one_blas_thread():
        for number in range(ROUNDS):
            fitted = _fitted(model, members)
            if drawing is not None:
                seen = _drawn(users, fitted, mean, reward, drawing)
                if mean is not None and number == 0:
                    mean = PopulationMean.train(seen, mean.reward)
                    if model.schema.scaling == "group":
                        mean = what_all_share(mean, seen, curves=model.settings.mean == "smooth")
                centred = _centred(seen, mean)
            if mean is not None and reward is not None:
                known = known_weights(mean, reward)
                mean, reward = known or learn_weights(centred, fitted, mean, reward)
                centred = _centred(seen, mean)
            for node in model.nodes:
                try:
                    groups[node.mask], thetas = learn_group(
                        node.composition, members[node.mask], centred, reward, model.priors, table.settings
                    )
                except (NumericalError, np.linalg.LinAlgError) as problem:  # a finished fit is worth more than a group
                    shown = node.composition or "noise alone"
                    warnings.warn(f"the group of {shown} could not be learnt jointly: {problem}", stacklevel=2)
                    groups[node.mask] = node.group
                    continue
                if drawing is not None:
                    groups[node.mask] = groups[node.mask].widened(drawing.widening)
                members[node.mask] = [
                    replace(each, theta=theta) for each, theta in zip(members[node.mask], thetas, strict=True)
                ]
            if (mean is None or reward is None or known is not None) and drawing is None:
                break
    nodes = tuple(replace(node, group=groups[node.mask]) for node in model.nodes)
    pilots = Pilots(tuple(centred), tuple(_fitted(model, members)))
    return replace(model, nodes=nodes, mean=mean, reward=reward), pilots


def _fitted(model: TrajectoryModel, members: Mapping[int, Sequence[Member]]) -> list[Hyperparameters]:
    """Every pilot user's last kernel with the hyperparameters found so far."""
    latest = {(mask, each.user): each.theta for mask, some in members.items() for each in some}
    return [
        Hyperparameters(model.pool.composition(path[-1]), tuple(latest[path[-1], m]))
        for m, path in enumerate(model.paths)
    ]


def _centred(users: Sequence[User], mean: PopulationMean | None) -> list[User]:
    return list(users) if mean is None else [mean.levelled(user) for user in users]


def _drawn(
    users: Sequence[User],
    fitted: Sequence[Hyperparameters],
    mean: PopulationMean | None,
    reward: Reward | None,
    drawing: Drawing,
) -> list[User]:
    """Scaled pilot users with outcomes drawn in around what each one's rows say."""
    drawn = []
    for user, centred, kernel in zip(users, _centred(users, mean), fitted, strict=True):
        near = drawn_rows(centred, centred.y, [(1.0, kernel)], block_of(user, reward), drawing)
        drawn.append(user.with_y(user.y + (near.y - centred.y)))
    return drawn


def known_weights(mean: PopulationMean, reward: Reward) -> tuple[PopulationMean, Reward] | None:
    """The mean, and the reward model's prior as it was learnt with it (method (75)); None where it was not."""
    known = mean.own_of(reward)
    return None if known is None else (_without_slopes(mean), known)


def learn_weights(
    users: Sequence[User], fitted: Sequence[Hyperparameters], mean: PopulationMean, reward: Reward
) -> tuple[PopulationMean, Reward]:
    """The population mean and the reward model's prior, given every pilot user's kernel (method (35), (51)).

    Args:
        users: the pilot users, scaled and less the mean.
        fitted: each one's kernel with its hyperparameters.
        mean: what users vary around so far. Its weights are moved, shrunk to where they are: weights that were chosen
            by leaving users out predict new users better than shared weights of the mixed model do.
        reward: its constant and its advantage; slopes of all covariates are added to them.
    """
    model, turn, slopes = weights_between(users, fitted, reward)
    covariance = turn @ model.covariance @ turn.T
    learnt = replace(slopes, covariance=tuple(map(tuple, 0.5 * (covariance + covariance.T))))
    return _without_slopes(mean.moved(slopes, turn @ model.mean)), learnt


def _without_slopes(mean: PopulationMean) -> PopulationMean:
    """Slopes in which users differ are the reward model's from now on; of curves it has none."""
    if mean.between is None:
        return mean
    return replace(mean, between=np.column_stack([np.zeros(len(mean.between)), mean.between[:, 1]]))


def weights_between(
    users: Sequence[User], fitted: Sequence[Hyperparameters], reward: Reward
) -> tuple[MixedModel, Array, Reward]:
    """How far users differ in linear weights, given every pilot user's kernel, with intervals (method (35), (50)).

    Beside it, the features that it is of, by their weights in the given ones, and the reward model whose features those
    are, slopes among them.
    """
    covariates = users[0].covariates
    slopes = replace(reward, slopes=covariates, variances=None, covariance=None)
    rows = np.concatenate([user.X for user in users])
    q = len(slopes.names)
    turn = turned(rows, q, q - len(covariates), constant=slopes.constant_variance > 0)
    blocks = [
        _sums(user, hyperparameters, slopes.design(user.X, covariates, user.assignment) @ turn)
        for user, hyperparameters in zip(users, fitted, strict=True)
    ]
    shared = np.array([-1 if name == "constant" else 0 for name in slopes.names])
    model = MixedModel.fit(Sums.joined(blocks), shared=shared, noise=1.0, scale=size_of(users))
    return model, turn, slopes


def _sums(user: User, hyperparameters: Hyperparameters, features: Array) -> Sums:
    """One user's sums with S the covariance of a kernel and its noise, from the newest rows."""
    first = max(user.rows - MOST_ROWS, 0)
    rows = user.with_ends((first, user.rows)).batch(2) if first else user
    inner = gp.Posterior.fit(rows, hyperparameters).inner(np.column_stack([features[first:], rows.y]))
    return Sums(inner[None, :-1, :-1], inner[None, :-1, -1], inner[None, -1, -1], np.array([float(rows.rows)]))


def learn_group(
    composition: Composition,
    members: Sequence[Member],
    users: Sequence[User],
    reward: Reward | None,
    prior: gp.map.Prior,
    settings: MapSettings,
) -> tuple[Group, list[Array]]:
    """The group of a node by the likelihood of its pilot users together, hyperparameters integrated out (method (52)).

    Each user's integral is Laplace's around the MAP under the group of the step before; the MAPs are returned too.
    """
    mean0, variance0 = prior.moments(composition)
    group = Group(composition, mean0, variance0, 0)
    thetas = [member.theta for member in members]
    for _ in range(SEARCHES):
        results = []
        for member, theta in zip(members, thetas, strict=True):
            user = users[member.user]
            results.append(
                gp.find_map(
                    user,
                    composition,
                    group,
                    rng=np.random.default_rng(0),
                    batch=member.batch + 1,
                    starts=0,
                    warm=[theta],
                    block=block_of(user, reward),
                    tol=settings.tol,
                    accuracy=settings.accuracy,
                )
            )
        thetas = [result.hyperparameters.vector for result in results]
        quadratic = likelihoods(Fits.of(results), group.mean, group.variance)
        group = maximise_group(composition, quadratic, mean0, variance0)
    return group, thetas


def likelihoods(fits: Fits, mean: Array, variance: Array) -> Quadratic:
    """Log likelihoods as quadratics around MAPs under N(mean, variance), flat where they curve upwards."""
    scale = np.sqrt(variance)
    values, vectors = np.linalg.eigh(fits.precision * np.multiply.outer(scale, scale))
    curvature = np.einsum("tij,tj,tkj->tik", vectors, np.maximum(values - 1.0, 0.0), vectors)
    return Quadratic(
        fits.log_likelihood, fits.theta, (fits.theta - mean) / variance, curvature / np.multiply.outer(scale, scale)
    )


TYPICAL = 1.0 / 8.0
"""How far users differ in a hyperparameter as a rule, in the prior's variances: it is of what may be, not of users."""


def maximise_group(composition: Composition, users: Quadratic, mean0: Array, variance0: Array) -> Group:
    """EM for N(μ, V) from the quadratics of M users, one row each (method (52)).

    μ ~ N(μ₀, V₀), and a typical variance counts as one user's: few users who are alike must not end at none.
    """
    M = len(users.centre)
    typical = TYPICAL * variance0
    mean, variance = mean0.copy(), typical.copy()
    for _ in range(STEPS):
        covariances = np.linalg.inv(users.curvature + np.diag(1.0 / variance))
        pull = users.gradient + (mean - users.centre) / variance
        centres = users.centre + (covariances @ pull[..., None])[..., 0]
        last = mean, variance
        mean = (mean0 / variance0 + centres.sum(axis=0) / variance) / (1.0 / variance0 + M / variance)
        squares = ((centres - mean) ** 2 + np.diagonal(covariances, axis1=1, axis2=2)).sum(axis=0)
        variance = np.minimum((typical + squares) / (M + 1), variance0)
        change = np.abs(mean - last[0]) / np.sqrt(variance0) + np.abs(np.log(variance / last[1]))
        if change.max() < 1e-4:
            break
    # A new user is off by what is not known of μ too.
    sharp = np.linalg.inv(users.curvature + np.diag(1.0 / variance)).sum(axis=0)
    information = np.diag(M / variance + 1.0 / variance0) - sharp / np.multiply.outer(variance, variance)
    unknown = np.diagonal(np.linalg.inv(information))
    return Group(composition, mean, np.minimum(variance + unknown, variance0), M)
