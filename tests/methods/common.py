"""A training cohort so small that every method is learnt in a moment, and each method with little effort."""

from functools import cache

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.methods import build, methods
from kerneltrail.methods.candidate_fits import CandidateSearch
from kerneltrail.methods.cks import Effort, SearchSettings
from kerneltrail.trajectory.map_table import MapSettings

COVARIATES = ("hour", "steps")
POOL = Pool.of("LIN[steps]", "SE[hour]")
REWARD = Reward(("hour",))
QUICK = MapSettings(starts=1, screen=4)
CKS_SEARCH = SearchSettings(depth=0, refits=1, first=Effort(draws=4, kept=1), second=Effort(draws=4, kept=1))

OPTIONS = {
    "trajectory": {"changes": {"chains": 2, "sweeps": 16, "check": 8, "largest": 2, "maps": QUICK}},
    "union": {"changes": {"chains": 2, "sweeps": 16, "check": 8, "largest": 2, "maps": QUICK}},
    "flat": {"changes": {"chains": 2, "sweeps": 16, "check": 8, "largest": 2, "maps": QUICK}},
    "se-ard": {"starts": 1, "screen": 4},
    "pooled": {"starts": 1, "screen": 2},
    "pooled-mean": {"starts": 1, "screen": 2},
    "final": {"search": CandidateSearch(2, 1, QUICK)},
    "stratified": {"search": CandidateSearch(2, 1, QUICK)},
    "memoryless": {"search": CandidateSearch(2, 1, QUICK)},
    "cks": {"search": CKS_SEARCH},
    "shrinkage": {"pairs": 2, "iterations": 20},
}

ALL = methods()
REWARDED = tuple(name for name in ALL if name != "mean")


def rows(n, seed=0, *, shift=0.0, scale=1.0):
    """(X, y, action) in data units: hours and steps, a smooth function of the one and a line in the other."""
    rng = np.random.default_rng([7, seed, n])
    X = np.column_stack([rng.uniform(6.0, 22.0, n), rng.uniform(0.0, 500.0, n)])
    action = rng.integers(0, 2, n).astype(float)
    f = np.sin(X[:, 0] / 3.0) + 0.004 * X[:, 1] + 0.5 * action
    return X, shift + scale * (f + 0.3 * rng.standard_normal(n)), action


def training(order=(0, 1)):
    users = []
    for m in range(3):
        X, y, action = rows(9, seed=100 + m)
        names = [COVARIATES[i] for i in order]
        users.append(User(f"pilot {m}", names, X[:, list(order)], y, (4, 9), action=action))
    return Cohort.from_users(users, scaling="group", target_scaling="standard")


@cache
def method(name, *, reward=False, order=(0, 1), seed=0):
    shared = {"pool": POOL, "reward": REWARD if reward else None}
    return build(name, training(order), {**shared, **OPTIONS.get(name, {})}, seed=seed)
