"""A trajectory model made by hand: no fits, no chains, every field filled with something that is not its default."""

from dataclasses import replace

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PopulationMean
from kerneltrail.kernels import Pool, Priors, log_normal, parse
from kerneltrail.trajectory.graph import Averaged, Diagnostics, Node
from kerneltrail.trajectory.map_table import MapSettings, group_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.settings import Settings

COVARIATES = ("hour", "steps")


def rows(name, n=12, seed=0, *, size=4, low=0.0, high=24.0, covariates=COVARIATES):
    """A user in data units, with actions."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(low, high, n), rng.uniform(0, 500, n)])
    y = np.sin(X[:, 0] / 4.0) + 0.002 * X[:, 1] + 0.1 * rng.standard_normal(n)
    ends = [*range(size, n, size), n]
    columns = [COVARIATES.index(covariate) for covariate in covariates]
    return User(name, covariates, X[:, columns], y, ends, action=rng.integers(0, 2, n))


def small_model(*, reward=None, allow_empty=False, settings=None, scaling="group", covariates=COVARIATES):
    """Three users on three compositions, and one alternative structure."""
    cohort = Cohort.from_users(
        [rows(f"pilot {i}", seed=i, covariates=covariates) for i in range(3)],
        target="mood",
        scaling=scaling,
        target_scaling="standard",
        units={"hour": "hours"},
    )
    pool = Pool.atoms(COVARIATES, probability=0.1 + 1e-17) | Pool.of("PER[hour]*SE[steps]", probability=1 / 3)
    pool = pool.with_empty(allow_empty)
    priors = Priors.heartsteps().override("lengthscale", "hour", log_normal(-0.7, scale=0.3))
    settings = settings or Settings(
        evidence="laplace",
        sharing="separate",
        walk="once",
        tails="normal",
        shape="none",
        advancing="kept",
        negligible=0.0,
        alpha=0.7,
        keep=0.9,
        refine=100,
        seed=7,
        options={"plate": {"steps": 3}},
        maps=MapSettings(starts=1, screen=4),
    )
    settings = settings.resolved(False)  # as every model has them
    texts = ["SE[hour]", "SE[hour] + LIN[steps]", "LIN[steps] + PER[hour]*SE[steps]"]
    a, b, c = (pool.mask(parse(text)) for text in texts)
    paths = ((a, b, b), (a, a, b), (a, c, c))
    other = ((a, a, a), (a, a, b), (0 if allow_empty else a, c, c))
    rng = np.random.default_rng(3)
    nodes = []
    for mask in (a, b, c):
        composition = pool.composition(mask)
        thetas = priors.sample(composition, 3, rng)
        users = tuple(name for name, path in zip(cohort.names, paths, strict=True) if mask in path)
        nodes.append(Node(mask, composition, thetas, group_of(composition, list(thetas), priors), users))
    return TrajectoryModel(
        cohort.schema,
        pool,
        priors,
        settings,
        cohort.names,
        (Structure(paths, -12.3456789, 3, 5, 4), Structure(other, -13.1, 3, 4, 1)),
        tuple(nodes),
        reward,
        Diagnostics(
            6,
            {"log_joint": 1.01, "edges": float("nan")},
            {"log_joint": 11.5, "edges": 12.0},
            {"seat": 0.25},
            {"log_joint": rng.standard_normal((2, 6)), "edges": np.ones((2, 6))},
            {"fits": 0.5, "chains": 0.25},
        ),
        {"version": "0.1.0", "users": {user.name: user.fingerprint for user in cohort.users}},
    )


def rewarded_model():
    """The same with a reward model."""
    return small_model(reward=Reward(("hour",), advantage_variance=0.3, constant_variance=2.0))


def mean_model():
    """With a reward model whose spread was learnt, around a population mean."""
    model = small_model(reward=Reward(("hour",), variances=(0.5, 0.25, 0.125)), settings=Settings(mean="population"))
    weights = np.array([0.5, -1.25, 0.75, 0.3, -0.2])
    mean = PopulationMean(weights, COVARIATES, Reward(("hour",)), 0.1)
    return replace(model, mean=mean)


def averaged_model():
    """The small model with one node more than its graph has."""
    plain = small_model(settings=Settings(structure="averaged"))
    spare = next(m for m in plain.pool.masks(1) if m not in {node.mask for node in plain.nodes})
    composition = plain.pool.composition(spare)
    mean, variance = plain.priors.moments(composition)
    group = replace(plain.nodes[0].group, composition=composition, mean=mean, variance=variance, users=1)
    extra = replace(plain.nodes[0], mask=spare, composition=composition, thetas=mean[None], group=group)
    counts = np.array([[2.0, 0.5, 0, 0.5], [1, 1.5, 0.25, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0.25, 0, 0.75]])
    return replace(plain, averaged=Averaged((extra,), counts, 0.0125))


X_NEXT = np.array([[3.0, 100.0], [20.0, 600.0], [23.9, 5.0]])
"""Rows to predict, some outside the pilots' range, but not so far that it would be told."""


def follow(user, person, batches=None):
    steps = []
    for t in batches or range(1, person.batches + 1):
        batch = person.batch(t)
        steps.append(user.update(batch.X, batch.y, action=batch.action))
    return steps
