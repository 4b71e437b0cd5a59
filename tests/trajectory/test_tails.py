"""Tails of predictions: learnt from pilot users, and outcomes far out drawn in."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.kernels import Pool
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.tails import CLIP, HEAVY, heaviness

from . import tiny


def people(count, freedom=None, seed=0, rows=40):
    """Straight lines with Normal noise, or a Student-t's of as much variance."""
    rng = np.random.default_rng(seed)
    users = []
    for m in range(count):
        x = rng.uniform(0.0, 1.0, rows)
        noise = rng.standard_normal(rows)
        if freedom is not None:
            noise = rng.standard_t(freedom, rows) * np.sqrt((freedom - 2.0) / freedom)
        y = rng.standard_normal() + (1.0 + 0.5 * rng.standard_normal()) * x + noise
        users.append(User(f"user {m}", ("x",), x[:, None], y, tuple(range(10, rows + 1, 10))))
    return users


def learnt(freedom, tails="automatic", count=14):
    cohort = Cohort.from_users(people(count, freedom), target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", tails=tails, mean="population", largest=1, sweeps=16)
    return fit(cohort, pool=Pool.of("LIN[x]").with_empty(True), settings=settings, workers=1)


@pytest.mark.parametrize("spread", [0.0, 0.15, 0.4])
def test_the_heaviness_of_residuals_is_found(spread):
    """Student-t residuals of 40,000 rows; the neighbouring values of the grid are within reach of chance."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal(40_000) * np.exp(0.5 * rng.normal(-0.5 * spread, np.sqrt(spread), 40_000))
    tails, density = heaviness((z, np.zeros(len(z))))
    assert abs(tails - spread) <= 0.11
    assert np.isfinite(density)


def test_what_is_known_of_the_noise_is_not_counted_twice():
    rng = np.random.default_rng(4)
    spread = 0.3
    z = rng.standard_normal(40_000) * np.exp(0.5 * rng.normal(-0.5 * spread, np.sqrt(spread), 40_000))
    assert heaviness((z, np.full(len(z), spread)))[0] <= 0.05


def test_nobody_to_learn_from_is_a_normal():
    assert heaviness((np.empty(0), np.empty(0))) == (0.0, 0.0)


def test_heavy_tails_are_learnt_and_normal_ones_are_not_made_up():
    normal, heavy = learnt(None), learnt(3.0)
    assert normal.tails <= 0.1
    assert normal.clip is None
    assert heavy.tails >= HEAVY
    ahead = heavy.new_user().predict([[0.5]])
    assert ahead.freedom[0] < 12.0


def test_normal_tails_can_be_had():
    assert learnt(3.0, tails="normal").new_user().predict([[0.5]]).freedom is None


def test_the_noise_is_known_better_with_rows():
    model, rows = learnt(None), people(1, seed=9)[0]
    user, spreads = model.new_user(), []
    for t in range(1, 5):
        spreads.append(user.state.fits[0].noise_spread(user.rows))
        user.update(rows.batch(t).X, rows.batch(t).y)
    assert spreads[0] == model.nodes[0].group.variance[-1]
    assert (np.diff(spreads) < 0.0).all()


def test_outcomes_far_out_are_drawn_in():
    model = replace(learnt(None), clip=CLIP)
    plain = replace(model, clip=None)
    rows = people(1, seed=10)[0].batch(1)
    wild = rows.y.copy()
    wild[3] += 60.0
    after = {}
    for name, kind in (("drawn", model), ("plain", plain)):
        for label, y in (("clean", rows.y), ("wild", wild)):
            user = kind.new_user()
            user.update(rows.X, y)
            after[name, label] = float(user.predict([[0.5]]).mean[0])
    moved = {name: abs(after[name, "wild"] - after[name, "clean"]) for name in ("drawn", "plain")}
    assert moved["drawn"] < 0.5 * moved["plain"]
    assert after["drawn", "clean"] == pytest.approx(after["plain", "clean"], abs=0.2)
    ahead = model.new_user().predict(rows.X)
    user = model.new_user()
    user.update(rows.X, wild)
    kept = model.scaler.inverse_target(user.state.kept.y + model.mean.at(user.state.kept.X, None))
    assert kept[3] == pytest.approx(float((ahead.mean + CLIP * ahead.sd)[3]))
    np.testing.assert_allclose(np.delete(kept, 3), np.delete(rows.y, 3), atol=1e-9)


def test_robust_is_taken_if_asked_for():
    assert learnt(3.0, tails="robust").clip == CLIP
    assert learnt(3.0, tails="student").clip is None
