"""Batches taken in: levels of which covariates say something, batch by batch, past the rows that are kept, in files."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.errors import ModelFileError
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Pool
from kerneltrail.store import container
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.new_user import NewUser

from . import tiny


def person(number, centre, rows=40, seed=0, ends=None):
    """Somebody whose x lies around a centre: who lies higher in x has a higher level, but y falls as x rises."""
    rng = np.random.default_rng([seed, number])
    x = centre + 0.15 * rng.standard_normal(rows)
    y = 4.0 * centre - 2.0 * (x - centre) + 0.3 * rng.standard_normal(rows)
    return User(f"user {number}", ("x",), x[:, None], y, ends or (rows // 2, rows))


@cache
def learnt():
    users = [person(m, centre) for m, centre in enumerate(np.linspace(0.0, 1.0, 14))]
    cohort = Cohort.from_users(users, target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", tails="student", mean="smooth", largest=1, sweeps=16)
    return fit(cohort, pool=Pool.of("LIN[x]").with_empty(True), settings=settings, workers=1)


def followed(user, batches, model=None):
    state = (model or learnt()).new_user()
    for t in range(1, batches + 1):
        state.update(user.batch(t).X, user.batch(t).y)
    return state


def slope(user, x=0.5):
    low, high = user.predict([[x - 0.1], [x + 0.1]]).mean
    return (high - low) / 0.2


def test_before_any_row_a_covariate_says_where_a_user_lies_and_then_what_changes():
    """Between people the slope is 4 (about 3.3 for single rows, which scatter), within one it is -2."""
    user = learnt().new_user()
    assert slope(user) == pytest.approx(3.3, abs=0.6)
    np.testing.assert_allclose(user.predict([[0.2], [0.8]]).mean, [0.8, 3.2], atol=0.6)
    assert slope(followed(person(50, 0.5), 1)) == pytest.approx(-2.0, abs=0.5)


def test_a_first_row_is_read_beside_what_its_covariate_says():
    """One row at x = 0.9: a level there is as expected, so nothing is learnt of it; as far below it is learnt."""
    model = learnt()
    expected = float(model.new_user().predict([[0.9]]).mean[0])
    as_expected, below = model.new_user(), model.new_user()
    as_expected.update([[0.9]], [expected])
    below.update([[0.9]], [expected - 3.0])
    assert as_expected.predict([[0.9]]).mean[0] == pytest.approx(expected, abs=0.05)
    assert below.predict([[0.9]]).mean[0] < expected - 0.5


def test_rows_say_the_same_in_one_batch_and_in_several():
    whole, parts = person(51, 0.7, ends=(40,)), person(51, 0.7, ends=(7, 20, 40))
    one, other = followed(whole, 1), followed(parts, 3)
    assert one.state.level == pytest.approx(other.state.level, rel=1e-12)
    np.testing.assert_allclose(one.state.kept.y, other.state.kept.y, atol=1e-12)
    model, mean = learnt(), learnt().mean
    scaled = model.scaler.transform(whole.X)
    level = mean.level_at(scaled).mean()
    assert level != 0.0
    assert one.state.level == pytest.approx(level)
    np.testing.assert_allclose(one.state.kept.y, model.scaler.transform_target(whole.y) - mean.at(scaled, None) - level)


def test_past_the_rows_that_are_kept_the_level_stays():
    rows = person(52, 0.3, rows=120, ends=(30, 60, 90, 120))
    user = NewUser.resume(learnt(), replace(learnt().new_user().state, refine=50))
    levels = []
    for t in range(1, 5):
        user.update(rows.batch(t).X, rows.batch(t).y)
        levels.append(user.state.level)
    assert levels[0] != levels[1]
    assert levels[1] == levels[2] == levels[3]
    # Sums in place of rows say what the rows do.
    kept = followed(rows, 4)
    x = np.linspace(0.0, 0.6, 5)[:, None]
    np.testing.assert_allclose(user.predict(x).mean, kept.predict(x).mean, atol=0.1)


def test_the_level_is_in_files():
    model, rows = learnt(), person(53, 0.8)
    user = followed(rows, 1)
    again = NewUser.from_bytes(user.to_bytes(), from_bytes(to_bytes(model)))
    assert again.state.level == user.state.level
    for each in (user, again):
        each.update(rows.batch(2).X, rows.batch(2).y)
    np.testing.assert_array_equal(again.predict([[0.4]]).mean, user.predict([[0.4]]).mean)
    content, arrays = container.unpack(user.to_bytes(), "user", "it")
    content["level"] = "high"
    with pytest.raises(ModelFileError, match="level"):
        NewUser.from_bytes(container.pack("user", content, arrays), model)


def test_what_is_said_of_one_persons_effect_is_the_change_within():
    rows = person(54, 0.5)
    effect = followed(rows, 2).effects()["x"]
    assert effect.change.mean < 0.0


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_intervals_are_as_wide_as_the_level_is_unknown(rows):
    """90 % intervals of 100 people's later rows hold 82 to 97 %; of one person all rows are off together, so that a
    share is known to some 2 points. What few rows say of a level scatters by ten times what levels vary by besides."""
    model, rng, inside = learnt(), np.random.default_rng(9), []
    for number in range(100):
        someone, user = person(1000 + number, rng.uniform(0.0, 1.0), rows=20), model.new_user()
        if rows:
            user.update(someone.X[:rows], someone.y[:rows])
        low, high = user.predict(someone.X[5:]).interval(0.9)
        inside.append(np.mean((low <= someone.y[5:]) & (someone.y[5:] <= high)))
    assert 0.82 <= np.mean(inside) <= 0.97


def test_a_batch_is_drawn_in_by_what_fits_say_however_wide_predictions_are(monkeypatch):
    """Past the rows that are drawn in anew; a wider prediction is for who reads it."""
    monkeypatch.setattr("kerneltrail.trajectory.intake.MOST_ROWS", 15)
    rows = person(55, 0.5, ends=(20, 40))
    rows = rows.with_y(rows.y + np.where(np.arange(40) == 30, 8.0, 0.0))  # one is far out
    models = [replace(learnt(), drawing=Drawing(4.0), stretch=stretch) for stretch in (1.0, 1.5)]
    kept = [followed(rows, 2, model).state.kept.y for model in models]
    assert kept[0][30] < learnt().scaler.transform_target(rows.y)[30] - learnt().mean.at(rows.X[30:31], None)[0] - 1.0
    np.testing.assert_allclose(kept[0], kept[1], atol=0.02)
