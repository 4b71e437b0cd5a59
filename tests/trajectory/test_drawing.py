"""Outcomes drawn in: beside the Student-t's posterior by brute force, batch by batch, in files."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import ModelFileError
from kerneltrail.gp import Posterior, Reward
from kerneltrail.gp.student import Drawing
from kerneltrail.kernels import Composition, Hyperparameters
from kerneltrail.trajectory.drawing import drawn_rows
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.new_user import NewUser

from .test_tails import learnt, people

T3 = Drawing(3.0)


def alone(noise):
    """Noise alone, of so much variance."""
    return Hyperparameters(Composition(), (float(np.log(noise)),))


def level_by_brute_force(y, prior, scale, freedom):
    """Mean and standard deviation of a level with a Normal prior, given rows of a Student-t, on a grid."""
    grid = np.linspace(-6.0, 6.0, 4001)
    log = -0.5 * grid**2 / prior
    log -= 0.5 * (freedom + 1.0) * np.log1p(((y[:, None] - grid) / scale) ** 2 / freedom).sum(axis=0)
    p = np.exp(log - log.max())
    p /= p.sum()
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


def level(user, noise, reward):
    """The same given Normal rows."""
    posterior = Posterior.fit(user, alone(noise), block=block_of(user, reward))
    found = posterior.predict([[0.0]], linear=np.ones((1, 1)))
    return float(found.mean[0]), float(np.sqrt(found.variance[0]))


def test_a_level_is_that_of_the_student_t_nearly():
    """300 users of 12 rows. Normal rows are off by 0.3 of the posterior's standard deviation and more; drawn in, by a
    third of that, and as sure of it as they ought to be."""
    rng, prior, scale = np.random.default_rng(1), 1.0, 0.8
    reward, noise = Reward.constant(prior), T3.variance * scale**2
    off, plain, sure = [], [], []
    for _ in range(300):
        y = rng.standard_normal() + scale * rng.standard_t(3.0, 12)
        user = User("u", ("x",), np.zeros((12, 1)), y, (12,))
        mean, sd = level_by_brute_force(y, prior, scale, 3.0)
        drawn = drawn_rows(user, y, [(1.0, alone(noise))], block_of(user, reward), T3)
        near = level(drawn, noise, reward)
        off.append((near[0] - mean) / sd)
        plain.append((level(user, 3.0 * scale**2, reward)[0] - mean) / sd)
        sure.append(near[1] / sd)
    assert np.sqrt(np.mean(np.square(plain))) > 0.5
    assert np.sqrt(np.mean(np.square(off))) < 0.4 * np.sqrt(np.mean(np.square(plain)))
    assert np.mean(sure) == pytest.approx(1.0, abs=0.1)


def test_in_the_end_the_function_satisfies_its_equation():
    """Prior pull and ψ of the residuals cancel, once outcomes have settled: the M-estimator's equation."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1.0, 1.0, 30)
    y = 0.5 + 2.0 * x + rng.standard_t(3.0, 30)
    user = User("u", ("x",), x[:, None], y, (30,))
    reward = replace(Reward.constant(1.0), slopes=("x",), covariance=((1.0, 0.0), (0.0, 2.0)))
    noise, block = 1.6, block_of(user, reward)
    for _ in range(3):
        user = drawn_rows(user, y, [(1.0, alone(noise))], block, T3)
    posterior = Posterior.fit(user, alone(noise), block=block)
    weights, _ = posterior.weights()
    pull = weights / np.diag(reward.weight_covariance)
    residual = T3.drawn(y - block.features @ weights, noise)
    np.testing.assert_allclose(block.features.T @ residual / noise, pull, atol=1e-3)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_the_function_at_rows_with_other_targets(size):
    """By the factor and, where the noise is lost beside a wide prior, by weights: as if it had been fitted to them."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((15, 1)), rng.standard_normal((2, 15))
    reward = replace(Reward.constant(size**2), slopes=("x",), covariance=((size**2, 0.0), (0.0, size**2)))
    user = User("u", ("x",), X, y[0], (15,))
    block = block_of(user, reward)
    posterior = Posterior.fit(user, alone(1e-3), block=block)
    other = Posterior.fit(user.with_y(y[1]), alone(1e-3), block=block)
    expected = other.predict(X, linear=block.features).mean
    np.testing.assert_allclose(posterior.smoothed(y[1]), expected, atol=1e-5)


def test_no_kernel_that_can_be_computed_leaves_rows_as_they_are():
    user = people(1)[0]
    assert drawn_rows(user, user.y, [], None, T3) is user


@pytest.fixture(scope="module")
def heavy():
    return learnt(3.0, tails="robust")


def outlier(user, t, row, by=60.0):
    """A batch in which one outcome is far out."""
    batch = user.batch(t)
    y = batch.y.copy()
    y[row] += by
    return batch.with_y(y)


def test_a_row_far_out_hardly_moves_the_function_even_in_the_first_batch(heavy):
    person = people(1, 3.0, seed=10)[0]
    plain = replace(heavy, drawing=None)
    moved = {}
    for name, model in (("drawn", heavy), ("plain", plain)):
        with_it, without = model.new_user(), model.new_user()
        first = outlier(person, 1, 3)
        with_it.update(first.X, first.y)
        without.update(person.batch(1).X, person.batch(1).y)
        moved[name] = abs(float(with_it.predict([[0.5]]).mean[0] - without.predict([[0.5]]).mean[0]))
    assert moved["drawn"] < 0.25 * moved["plain"]


def test_a_row_that_is_borne_out_by_later_ones_is_given_back(heavy):
    """Two rows far above everybody: alone they are drawn in, among others as high they are not."""
    person = people(1, seed=11)[0]
    X, y = person.X, person.y + 6.0
    user = heavy.new_user()
    user.update(X[:2], y[:2])
    gaps = [np.abs(user.state.kept.y[:2] - user.state.outcomes[:2]).mean()]
    for start in (2, 10, 20, 30):
        user.update(X[start : start + 8], y[start : start + 8])
        gaps.append(np.abs(user.state.kept.y[:2] - user.state.outcomes[:2]).mean())
    assert gaps[-1] < 0.5 * gaps[0]
    assert float(user.predict(X).mean.mean()) == pytest.approx(float(y.mean()), abs=0.7)


def test_outcomes_are_kept_as_they_are_and_in_files(heavy):
    person = people(1, 3.0, seed=12)[0]
    user = heavy.new_user()
    for t in (1, 2):
        user.update(person.batch(t).X, person.batch(t).y)
    scaled = heavy.scaler.apply(person.with_ends((20, 40)).batch(1))
    np.testing.assert_array_equal(user.state.outcomes, heavy.mean.centred(scaled).y)
    again = NewUser.from_bytes(user.to_bytes(), heavy)
    for each in (user, again):
        each.update(person.batch(3).X, person.batch(3).y)
    np.testing.assert_array_equal(again.state.kept.y, user.state.kept.y)
    np.testing.assert_array_equal(again.predict(person.X).mean, user.predict(person.X).mean)


def test_past_the_rows_that_are_kept_a_batch_is_drawn_in_once(heavy):
    person = people(1, 3.0, seed=13)[0]
    user = heavy.new_user(refine=15)
    for t in (1, 2):
        user.update(person.batch(t).X, person.batch(t).y)
    assert (user.state.kept, user.state.outcomes) == (None, None)
    before = float(user.predict([[0.5]]).mean[0])
    third = outlier(person, 3, 0)
    user.update(third.X, third.y)
    assert abs(float(user.predict([[0.5]]).mean[0]) - before) < 1.5
    again = NewUser.from_bytes(user.to_bytes(), heavy)
    np.testing.assert_array_equal(again.predict([[0.5]]).mean, user.predict([[0.5]]).mean)


def test_of_very_many_rows_that_are_kept_the_newest_alone_are_drawn_in(heavy, monkeypatch):
    monkeypatch.setattr("kerneltrail.trajectory.intake.MOST_ROWS", 15)
    person = people(1, 3.0, seed=13)[0]
    user = heavy.new_user()
    for t in (1, 2):
        user.update(person.batch(t).X, person.batch(t).y)
    before = user.state.kept.y
    third = outlier(person, 3, 0)
    user.update(third.X, third.y)
    np.testing.assert_array_equal(user.state.kept.y[:20], before)
    assert user.state.outcomes[20] - user.state.kept.y[20] > 10.0
    assert len(user.state.outcomes) == 30


def test_predictions_are_of_outcomes_as_they_are(heavy):
    """The truth is noise of variance 1; the group's is known to some 20 %."""
    ahead = heavy.new_user().predict([[0.5]])
    assert ahead.noise == pytest.approx(1.0, rel=0.5)
    node, fit = heavy.selectable[0], heavy.new_user().state.fits[0]
    assert node.group.mean[-1] - fit.node.group.mean[-1] == pytest.approx(np.log(heavy.drawing.widening))
    person = people(1, 3.0, seed=14)[0]
    user = heavy.new_user()
    user.update(person.X, person.y)
    shown = user.hyperparameters.unconstrained[-1] - user.state.fits[user.state.current].theta[-1]
    assert shown == pytest.approx(np.log(heavy.widening))


def test_the_model_is_kept_in_files_and_refused_if_crafted(heavy):
    again = from_bytes(to_bytes(heavy))
    assert again.drawing == heavy.drawing
    assert fingerprint(again) == fingerprint(heavy)
    assert fingerprint(replace(heavy, drawing=None)) != fingerprint(heavy)
    with pytest.raises(ModelFileError, match="not a number above 2"):
        from_bytes(to_bytes(replace(heavy, drawing=Drawing(1.5))))
    narrow = replace(heavy, drawing=replace(heavy.drawing, alike=0.5))
    assert from_bytes(to_bytes(narrow)).drawing == narrow.drawing
    assert fingerprint(narrow) != fingerprint(replace(heavy, drawing=replace(heavy.drawing, alike=1.0)))
    with pytest.raises(ModelFileError, match="share of the variance of noises between users"):
        from_bytes(to_bytes(replace(heavy, drawing=replace(heavy.drawing, alike=1.5))))


def test_normal_rows_are_read_as_they_are():
    model, person = learnt(None), people(1, seed=15)[0]
    assert model.drawing is None
    assert model.followed is model.selectable
    user = model.new_user()
    user.update(person.X, person.y)
    assert user.state.outcomes is None


def test_what_is_left_of_a_row_is_of_the_outcome_as_it_is(heavy):
    """Not as it was drawn in: people see these rows beside the curves."""
    user = heavy.new_user()
    first = outlier(people(1, 3.0, seed=10)[0], 1, 3)
    user.update(first.X, first.y)
    rest = user.effects().rest
    fitted = first.y - rest
    assert rest[3] > 40.0
    others = np.delete(np.arange(first.rows), 3)
    slope, _ = np.polyfit(first.X[others, 0], fitted[others], 1)
    assert np.ptp(fitted) < 10.0  # the function, which the row far out hardly moves
    assert abs(slope) < 5.0
    assert np.abs(user.state.drawn).max() > 10.0
    assert replace(heavy, drawing=None).new_user().state.drawn is None
