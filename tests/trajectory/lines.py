"""Users whose target is a straight line in one of two covariates, on levels of their own."""

from functools import cache

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Pool
from kerneltrail.trajectory.fit import fit
from trajectory.tiny import settings


def person(name, slope, seed, n=60):
    """3 + slope·x and noise of 0.5; the other covariate, hour, does nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(2.0, 6.0, n), rng.uniform(0.0, 24.0, n)])
    return User(name, ("x", "hour"), X, 3.0 + slope * X[:, 0] + 0.5 * rng.standard_normal(n), [n // 2, n])


@cache
def lines(mean="none"):
    """A model learnt from four of them, three of whom rise."""
    pilots = [person(f"pilot {i}", slope, i) for i, slope in enumerate((0.8, -0.6, 1.1, 0.5))]
    cohort = Cohort.from_users(pilots, target="y", target_scaling="standard")
    return fit(cohort, pool=Pool.of("LIN[x]", "SE[hour]"), settings=settings(mean=mean), workers=1)


def after(model, rows, name="ann", **changes):
    """A new user who has seen all of the rows."""
    user = model.new_user(name, **changes)
    for t in range(1, rows.batches + 1):
        user.update(rows.batch(t).X, rows.batch(t).y)
    return user
