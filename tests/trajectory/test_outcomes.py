"""Which outcomes there are, learnt with a model: of users with many zeros, and of users whose outcomes are a bell."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.errors import ModelFileError
from kerneltrail.evaluation.predicted import PREDICTED, ends_of, predicted_columns
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.kernels import Pool
from kerneltrail.report.group_words import group_description
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes

from . import tiny

FLOOR = -0.7


def people(count, seed=0, rows=40, zeros=True):
    """Straight lines with noise; what is below 2 was nothing at all, so a third of the rows are `FLOOR`."""
    rng = np.random.default_rng(seed)
    users = []
    for m in range(count):
        x = rng.uniform(0.0, 1.0, rows)
        y = 2.5 + 0.5 * rng.standard_normal() + x + 2.0 * rng.standard_normal(rows)
        y = np.where(y < 2.0, FLOOR, y) if zeros else y
        users.append(User(f"user {m}", ("x",), x[:, None], y, tuple(range(10, rows + 1, 10))))
    return users


@cache
def learnt(zeros=True, shape="automatic", tails="automatic"):
    cohort = Cohort.from_users(people(14, zeros=zeros), target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", shape=shape, tails=tails, mean="population", largest=1, sweeps=16)
    return fit(cohort, pool=Pool.of("LIN[x]").with_empty(True), settings=settings, workers=1)


def following(model, users):
    """Density, and shares inside 90 % intervals, of users' batches, each predicted from those before."""
    density, inside, lowest = [], [], []
    for user in users:
        followed = model.new_user()
        for t in range(1, user.batches + 1):
            batch = user.batch(t)
            ahead = followed.predict(batch.X)
            low, high = ahead.interval(0.9)
            density.append(ahead.log_density(batch.y))
            inside.append((low <= batch.y) & (batch.y <= high))
            lowest.append(low)
            followed.update(batch.X, batch.y)
    return float(np.mean(density)), float(np.mean(inside)), float(np.min(lowest))


def test_zeros_are_learnt_and_predicted():
    model, plain = learnt(), learnt(shape="none")
    assert model.shape is not None
    assert model.shape.floor == FLOOR
    assert plain.shape is None
    new = people(20, seed=1)
    density, inside, lowest = following(model, new)
    before, _, below = following(plain, new)
    assert density > before + 0.3
    assert 0.86 <= inside <= 0.95
    assert below < FLOOR - 0.5
    assert lowest == FLOOR


def test_means_effects_and_selection_do_not_depend_on_it():
    one, other = (model.new_user() for model in (learnt(), learnt(shape="none")))
    batch = people(1, seed=2)[0].batch(1)
    assert one.update(batch.X, batch.y).probabilities == other.update(batch.X, batch.y).probabilities
    np.testing.assert_array_equal(one.predict(batch.X).mean, other.predict(batch.X).mean)
    np.testing.assert_array_equal(one.predict(batch.X).sd, other.predict(batch.X).sd)
    assert [effect.size for effect in one.effects()] == [effect.size for effect in other.effects()]


@pytest.mark.parametrize("tails", ["automatic", "normal"])
def test_outcomes_around_a_line_are_a_bell(tails):
    """The seed is fixed; of simulated cohorts like this one, fewer than one in a hundred have a shape."""
    assert learnt(zeros=False, tails=tails).shape is None


def test_zeros_are_learnt_with_normal_tails_too():
    model = learnt(tails="normal")
    assert model.shape is not None
    assert model.new_user().predict([[0.5]]).freedom is None


def test_it_is_said_in_words():
    (said,) = [each.text for each in group_description(learnt()) if "bell curve" in each.text]
    assert "around what is predicted: in many rows it is exactly the lowest, −0.7. Intervals" in said
    assert not [each for each in group_description(learnt(zeros=False)) if "bell curve" in each.text]
    for shape, words in (
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (None,) * 3), "around what is predicted. Intervals"),
        (OutcomeShape((1.5, 2.5), (0.0, 1.0, 0.0), (1.0, 2.0, 3.0)), "it has 3 values only, from 1 to 3."),
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (None, None, 9.0)), "exactly the highest, 9."),
    ):
        assert any(words in each.text for each in group_description(replace(learnt(), shape=shape)))


def test_a_file_keeps_it():
    model = learnt()
    again = from_bytes(to_bytes(model))
    assert again.shape == model.shape
    assert fingerprint(again) == fingerprint(model)
    assert fingerprint(replace(model, shape=None)) != fingerprint(model)
    assert from_bytes(to_bytes(replace(model, shape=None))).shape is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (OutcomeShape((0.0, 1.0), (0.0, 1.0), (None,) * 3), "ascending edges and a weight"),
        (OutcomeShape((1.0, 0.0), (0.0, 1.0, 0.0), (None,) * 3), "ascending edges and a weight"),
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (None,) * 2), "ascending edges and a weight"),
        (OutcomeShape((), (0.0,), (None,)), "ascending edges and a weight"),
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (None,) * 3, 0.5), "narrower"),
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (None,) * 3, 1.0, 0.0), "narrower"),
        (OutcomeShape((0.0, 1.0), (0.0, 1.0, 0.0), (0.5, None, None)), "not in its stretch"),
    ],
)
def test_a_shape_that_is_none_is_refused(wrong, said):
    with pytest.raises(ModelFileError, match=said):
        from_bytes(to_bytes(replace(learnt(), shape=wrong)))


def test_tables_of_predictions_give_the_probability_of_zero():
    user = people(1, seed=3)[0]
    prediction = learnt().new_user().predict(user.batch(1).X)
    columns = predicted_columns(prediction)
    assert tuple(columns) == (*PREDICTED, "chance_lowest")
    draws = prediction.draws(4000, np.random.default_rng(0))
    np.testing.assert_allclose(columns["chance_lowest"], np.mean(draws == FLOOR, axis=0), atol=0.04)
    assert tuple(predicted_columns(learnt(shape="none").new_user().predict(user.batch(1).X))) == PREDICTED
    rating = OutcomeShape((1.5,), (0.0, 0.0), (1.0, 2.0))
    assert ends_of(rating) == ("chance_lowest", "chance_highest")
    both = predicted_columns(replace(prediction, shape=rating))
    np.testing.assert_allclose(both["chance_lowest"] + both["chance_highest"], 1.0)
