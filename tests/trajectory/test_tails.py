"""Tails of predictions: learnt from pilot users, and outcomes far out drawn in."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from kerneltrail.data import Cohort, User
from kerneltrail.errors import ModelFileError
from kerneltrail.gp import Prediction
from kerneltrail.gp.prediction import averaged, freedom_of
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Pool
from kerneltrail.report.group_words import group_description
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.graph import LIGHT
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.tails import (
    HEAVY,
    SCALES,
    Heaviness,
    Residuals,
    _densities,
    _residuals,
    alike,
    heaviness,
    stretch_of,
)

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


@cache
def learnt(freedom, tails="automatic", count=14):
    return fitted(people(count, freedom), tails)


def fitted(users, tails="automatic"):
    cohort = Cohort.from_users(users, target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", tails=tails, mean="population", largest=1, sweeps=16)
    return fit(cohort, pool=Pool.of("LIN[x]").with_empty(True), settings=settings, workers=1)


def of(z, known=0.0, share=1.0):
    """Residuals with as much known of each."""
    return Residuals(z, np.full(len(z), known), np.full(len(z), share))


@pytest.mark.parametrize("spread", [0.0, 0.15, 0.4])
def test_the_heaviness_of_residuals_is_found(spread):
    """Student-t residuals of 40,000 rows; the neighbouring values of the grid are within reach of chance."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal(40_000) * np.exp(0.5 * rng.normal(-0.5 * spread, np.sqrt(spread), 40_000))
    found = heaviness([of(z)])
    assert abs(found.spread - spread) <= 0.11
    assert found.interval[0] <= found.spread <= found.interval[1]
    assert np.isfinite(found.density)


def test_intervals_of_the_degrees_of_freedom_hold_the_truth():
    """60 sets of 1,000 rows: of 90 % intervals, fewer than 45 hold it by chance less than once in 1,000."""
    rng = np.random.default_rng(6)
    inside = []
    for _ in range(60):
        z = rng.standard_t(5.0, 1000) * np.sqrt(3.0 / 5.0)
        low, high = heaviness([of(1.1 * z)]).interval
        inside.append(freedom_of(high) <= 5.0 <= freedom_of(low))
    assert sum(inside) >= 45


def test_rows_of_a_normal_have_no_tails_in_their_interval():
    z = np.random.default_rng(8).standard_normal(5000)
    assert heaviness([of(z)]).interval[0] == 0.0
    assert heaviness([of(z)]).interval[1] < 0.1


def test_tails_of_the_noise_are_seen_through_a_function_that_is_not_known():
    """Half of the variance is a Normal's: the sum has lighter tails than its noise, which is what is learnt."""
    rng = np.random.default_rng(9)
    noise = rng.standard_t(5.0, 40_000) * np.sqrt(3.0 / 5.0)
    z = np.sqrt(0.5) * (noise + rng.standard_normal(40_000))
    blind, seen = heaviness([of(z)]).spread, heaviness([of(z, share=0.5)]).spread
    assert blind < 0.5 * seen
    assert float(freedom_of(seen)) == pytest.approx(5.0, abs=1.5)


def test_what_is_known_of_the_noise_is_not_counted_twice():
    rng = np.random.default_rng(4)
    spread = 0.3
    z = rng.standard_normal(40_000) * np.exp(0.5 * rng.normal(-0.5 * spread, np.sqrt(spread), 40_000))
    assert heaviness([of(z, spread)]).spread <= 0.05


@pytest.mark.parametrize("scale", [0.5, 0.8, 1.2])
def test_predictions_that_are_too_wide_or_narrow_have_no_tails(scale):
    rng = np.random.default_rng(5)
    first, later = scale * rng.standard_normal(2000), rng.standard_normal(8000)
    assert heaviness([of(first), of(later)]).spread <= 0.05


def test_outcomes_that_cannot_go_far_have_the_tails_of_a_normal():
    """However uncertain their noise is said to be: uniform residuals are lighter than any Student-t's."""
    z = np.random.default_rng(4).uniform(-np.sqrt(3.0), np.sqrt(3.0), 1000)
    found = heaviness([of(z, known=0.3)])
    assert (found.spread, found.interval) == (LIGHT, (LIGHT, 0.0))
    assert found.density > _densities([of(z, known=0.3)], 0.0)[1] / 1000
    prediction = averaged(np.ones(1), [Prediction(np.zeros(3), np.zeros(3), 1.0)], np.array([0.3]), found.spread)
    assert prediction.freedom.min() > 1e5


def test_noise_that_does_differ_keeps_its_tails():
    """100 sets of 1,000 rows whose noises differ as much as is said; a Normal is preferred in none."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        z = rng.standard_normal(1000) / np.sqrt(rng.gamma(4.0, 1.0 / 3.0, 1000))  # inverse-gamma of mean 1
        assert heaviness([of(z, known=polygamma(1, 4.0))]).spread >= 0.0


def test_a_model_of_light_tails_is_kept_and_says_nothing_of_outcomes_far_out():
    model = replace(learnt(None), tails=LIGHT, tails_interval=(LIGHT, 0.0))
    again = from_bytes(to_bytes(model))
    assert (again.tails, again.tails_interval) == (LIGHT, (LIGHT, 0.0))
    assert "further from its prediction" not in str(group_description(again))


def test_densities_are_those_of_the_student_at_every_scale():
    rng = np.random.default_rng(2)
    group = Residuals(rng.standard_normal(50), rng.uniform(0.0, 0.5, 50), rng.uniform(0.3, 1.0, 50))
    freedom = freedom_of(group.known + group.share**2 * 0.2)
    scale = np.sqrt((freedom - 2.0) / freedom)
    values = [stats.t.logpdf(group.z, freedom, scale=each * scale).sum() for each in SCALES]
    best, stated = _densities([group], 0.2)
    assert stated == pytest.approx(values[SCALES.index(1.0)], rel=1e-12)
    assert max(values) <= best <= max(values) + 0.1


def test_nobody_to_learn_from_is_a_normal():
    assert heaviness([of(np.empty(0))]) == Heaviness()
    assert stretch_of(of(np.empty(0)), 0.0) == (1.0, 0.0)


@pytest.mark.parametrize("freedom", [None, 5.0])
def test_predictions_that_are_too_narrow_are_stretched_and_no_others(freedom):
    rng = np.random.default_rng(7)
    z = rng.standard_normal(4000) if freedom is None else rng.standard_t(freedom, 4000) * np.sqrt(3.0 / 5.0)
    spread = 0.0 if freedom is None else float(polygamma(1, freedom / 2.0))
    factor, gain = stretch_of(of(1.2 * z), spread)
    assert factor == pytest.approx(1.2, abs=0.04)
    scale = np.sqrt(3.0 / 5.0)
    law = stats.norm() if freedom is None else stats.t(freedom, scale=scale)
    expected = (law.logpdf(1.2 * z / factor) - np.log(factor) - law.logpdf(1.2 * z)).sum()
    assert gain == pytest.approx(expected, rel=0.005)  # a parabola between scales
    assert stretch_of(of(0.8 * z), spread) == (1.0, 0.0)  # of pilot users, who are predicted by what they said
    assert stretch_of(of(1.2 * z[:10]), spread) == (1.0, 0.0)  # that may be chance


def test_later_predictions_are_as_much_wider_and_the_first_is_not():
    model, person = learnt(3.0, tails="student"), people(1, 3.0, seed=12)[0]
    wider = replace(model, stretch=1.5 * model.stretch)
    one, other = model.new_user(), wider.new_user()
    at = [[0.2], [0.7]]
    np.testing.assert_array_equal(other.predict(at).sd, one.predict(at).sd)
    for user in (one, other):
        user.update(person.batch(1).X, person.batch(1).y)
    np.testing.assert_array_equal(other.predict(at).mean, one.predict(at).mean)
    np.testing.assert_allclose(other.predict(at).sd, 1.5 * one.predict(at).sd)
    np.testing.assert_allclose(other.predict(at).freedom, one.predict(at).freedom)


def test_how_much_wider_predictions_are_is_in_files():
    model = replace(learnt(3.0, tails="student"), stretch=1.25)
    assert from_bytes(to_bytes(model)).stretch == 1.25
    assert fingerprint(model) != fingerprint(replace(model, stretch=1.0))
    with pytest.raises(ModelFileError, match="narrower"):
        from_bytes(to_bytes(replace(model, stretch=0.5)))


def changing(count, seed=0):
    """People who lie elsewhere in every batch, which no covariate tells."""
    rng, users = np.random.default_rng(seed), []
    for m in range(count):
        y = 2.0 * rng.standard_normal() + np.repeat(rng.standard_normal(4), 10) + 0.7 * rng.standard_normal(40)
        users.append(User(f"user {m}", ("x",), rng.uniform(0.0, 1.0, (40, 1)), y, (10, 20, 30, 40)))
    return users


def test_intervals_of_people_who_change_from_batch_to_batch_hold_their_share():
    """60 people in three later batches each: by chance a share of 90 % would be off by 6 points once in 200."""
    model = fitted(changing(20), tails="student")
    assert model.stretch > 1.1
    held = {1.0: [], model.stretch: []}
    for stretch, shares in held.items():
        for person in changing(60, seed=1):
            user = replace(model, stretch=stretch).new_user()
            for t in range(1, 5):
                batch = person.batch(t)
                low, high = user.predict(batch.X).interval(0.9)
                if t > 1:
                    shares.append(np.mean((low <= batch.y) & (batch.y <= high)))
                user.update(batch.X, batch.y)
    assert np.mean(held[model.stretch]) > np.mean(held[1.0]) + 0.02
    assert 0.84 <= np.mean(held[model.stretch]) <= 0.96


def test_heavy_tails_are_learnt_and_normal_ones_are_not_made_up():
    normal, heavy = learnt(None), learnt(3.0)
    assert normal.tails <= 0.1
    assert normal.drawing is None
    assert heavy.tails >= HEAVY
    user, rows = heavy.new_user(), people(1, 3.0, seed=12)[0]
    before = user.predict([[0.5]]).freedom[0]
    user.update(rows.X, rows.y)
    assert user.predict([[0.5]]).freedom[0] < min(12.0, before)  # what is not known of the function is Normal


def test_the_interval_is_in_files_and_decides_nothing():
    model = learnt(3.0, tails="student")
    low, high = model.tails_interval
    assert low <= model.tails <= high
    again = from_bytes(to_bytes(model))
    assert again.tails_interval == model.tails_interval
    assert fingerprint(replace(model, tails_interval=None)) == fingerprint(model)
    assert from_bytes(to_bytes(replace(model, tails_interval=None))).tails_interval is None


def test_users_hardly_differ_in_their_noise_where_they_are_alike():
    model = replace(learnt(None), drawing=Drawing(4.0))
    narrow = alike(model)
    assert narrow.nodes == model.nodes  # what is said of users is what was learnt
    for before, after in zip(model.followed, narrow.followed, strict=True):
        assert after.group.variance[-1] == pytest.approx(0.1 * before.group.variance[-1])
        np.testing.assert_array_equal(after.group.variance[:-1], before.group.variance[:-1])
        np.testing.assert_array_equal(after.group.mean, before.group.mean)


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


def test_robust_is_taken_if_asked_for():
    assert learnt(3.0, tails="robust").drawing is not None
    assert learnt(3.0, tails="student").drawing is None


def test_the_density_by_which_models_are_compared_is_that_of_the_rows():
    """In the target's units, so that predictions which are too wide do not look better than they are."""
    users = people(6, 3.0, seed=16)
    model = learnt(3.0, tails="student")
    residuals, error, width = _residuals(replace(model, tails=0.0), users)
    found = heaviness(residuals)
    judged, squares = [], []
    for user in users:
        followed = replace(model, tails=found.spread, stretch=1.0).new_user()
        for t in range(1, user.batches + 1):
            batch = user.batch(t)
            ahead = followed.predict(batch.X)
            judged.append(ahead.log_density(batch.y))
            squares.append((batch.y - ahead.mean) ** 2)
            followed.update(batch.X, batch.y)
    assert found.density - width == pytest.approx(np.mean(judged), abs=1e-6)
    assert error == pytest.approx(np.mean(squares))


def skewed(count, seed=0, rows=40):
    """People whose noise is far out on one side only."""
    rng = np.random.default_rng(seed)
    users = []
    for m, person in enumerate(people(count, seed=seed, rows=rows)):
        noise = np.exp(1.2 * rng.standard_normal(rows))
        y = 2.0 * rng.standard_normal() + noise
        users.append(User(f"user {m}", ("x",), person.X, y, person.ends))
    return users


def test_outcomes_far_out_on_one_side_are_not_drawn_in(monkeypatch):
    """They would be predicted by something like a median: with a higher density, and not in the mean."""
    assert fitted(skewed(14)).drawing is None
    monkeypatch.setattr("kerneltrail.trajectory.tails.LOSS", np.inf)
    assert fitted(skewed(14)).drawing is not None
