"""Pilot groups so small that a whole fit takes a moment."""

from functools import cache

import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings, MapTable
from kerneltrail.trajectory.settings import Settings

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]")
LIN, PER, SE = 1, 2, 4
PRIORS = Priors.synthetic()
QUICK = MapSettings(starts=1, screen=4)


def pilot(number, ends=(3, 7), seed=0, *, action=False):
    """Even numbers follow a line, odd ones a wave."""
    rng = np.random.default_rng([seed, number])
    x = rng.uniform(-4.0, 4.0, ends[-1])
    f = 1.2 * x if number % 2 == 0 else 1.5 * np.sin(2.0 * x)
    given = rng.integers(0, 2, ends[-1]) if action else None
    return User(f"pilot {number}", ("x",), x[:, None], f + 0.3 * rng.standard_normal(ends[-1]), ends, action=given)


def pilots(count=3, ends=(3, 7), seed=0, *, action=False):
    return [pilot(number, ends, seed, action=action) for number in range(count)]


def cohort(count=3, ends=(3, 7), seed=0, *, action=False):
    return Cohort.from_users(pilots(count, ends, seed, action=action), target="y", scaling="none")


def table(count=3, ends=(3, 7), pool=POOL, **others):
    return MapTable(pilots(count, ends), pool, PRIORS, QUICK, **others)


def settings(**changes):
    """Small ones; what users share from each one's own fit, and Normal tails, unless `changes` say otherwise."""
    plain = {"evidence": "laplace", "sharing": "separate", "tails": "normal", "shape": "none"}
    return Settings(**{"chains": 2, "sweeps": 32, "check": 8, "largest": 2, "maps": QUICK, **plain, **changes})


@cache
def model(**changes):
    """A fitted model; the same object for the same settings."""
    return fit(cohort(), pool=POOL, settings=settings(**changes), workers=1)
