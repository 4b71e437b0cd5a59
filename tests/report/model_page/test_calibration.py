"""Coverage of intervals and the words that are chosen by it, from users made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.evaluation.intervals import exact_share
from kerneltrail.gp import Prediction
from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.report.figures import NARROW
from kerneltrail.report.model_page import follow_users
from kerneltrail.report.model_page.calibration import _figure, calibration, coverages, curve, places, verdicts
from report.spacing import room_above_titles
from trajectory.small import rewarded_model, rows


@pytest.fixture(scope="module")
def followed():
    model = rewarded_model()
    return follow_users(model, [rows(f"u{i}", n=8 + 4 * (i % 2), seed=20 + i) for i in range(4)])


def with_errors(one, *errors):
    """The user with these places errors from the second batch on."""
    later = tuple(
        replace(one.ahead[0], prediction=Prediction(np.zeros(len(z)), np.ones(len(z)), 0.0), y=z) for z in errors
    )
    return replace(one, ahead=(one.ahead[0], *later), sure=(1.0,) * (1 + len(errors)))


def said_of(users):
    """The verdicts on users."""
    return verdicts(users, places(users))


def people(followed, errors):
    """A user with each of these places errors."""
    return [with_errors(followed[0], z) for z in errors]


def test_coverage_is_counted_row_by_row(followed):
    found = coverages(followed)
    assert [own.users for own in found] == [4, 4, 2]
    for t, own in enumerate(found):
        inside, errors, logs = [], [], []
        for one in followed:
            if t < len(one.ahead):
                ahead = one.ahead[t]
                for mean, sd, y in zip(ahead.mean, ahead.prediction.sd, ahead.y, strict=True):
                    inside.append(mean - 1.6448536 * sd <= y <= mean + 1.6448536 * sd)
                    errors.append((y - mean) ** 2)
                    logs.append(-((y - mean) ** 2) / (2 * sd**2) - np.log(sd * np.sqrt(2 * np.pi)))
        assert own.rows == len(inside)
        assert own.ninety == pytest.approx(np.mean(inside))
        assert own.rmse == pytest.approx(np.sqrt(np.mean(errors)))
        assert own.log_density == pytest.approx(np.mean(logs))
    assert [len(place) for place in places(followed)] == [4, 8, 4, 8]


@pytest.mark.parametrize(
    ("times", "said"),
    [(0.5, "the intervals are too wide"), (1.0, "as promised, as far as 600 rows of 6 users can tell"),
     (2.0, "the intervals are too narrow")],
)  # fmt: skip
def test_words_are_chosen_by_whether_the_interval_over_users_holds_what_was_promised(followed, times, said):
    # Good predictions are called otherwise once in 20 times, so the seed is fixed.
    rng = np.random.default_rng(0)
    errors = [times * rng.standard_normal(100) for _ in range(6)]
    ninety, half, balance = said_of(people(followed, errors))
    assert said in ninety
    assert said in half
    assert "no sign that predictions are too high or too low" in balance
    section = calibration(people(followed, errors))
    assert section.blocks[1].items[:3] == [ninety, half, balance]
    assert "600 rows of 6 users" in section.blocks[0].text


def test_users_who_differ_make_the_same_share_less_sure(followed):
    """95 % inside for each of six users is too much; all rows of five and seven in ten of the sixth's may be chance."""
    z = np.linspace(-1.6, 1.6, 200)  # all inside the 90 % interval
    alike, unlike = (
        [np.concatenate([z[: 200 - out], [9.0] * out]) for out in outside]
        for outside in ((10,) * 6, (0, 0, 0, 0, 0, 60))
    )
    for errors in (alike, unlike):
        assert "95 % of the rows" in said_of(people(followed, errors))[0]
    assert "too wide" in said_of(people(followed, alike))[0]
    assert "as promised, as far as 1,200 rows of 6 users can tell" in said_of(people(followed, unlike))[0]


def test_a_small_deviation_that_is_sure_is_a_little_one(followed):
    z = np.concatenate([np.linspace(-1.6, 1.6, 920), np.full(80, 5.0)])
    assert "the intervals are a little too wide" in said_of(people(followed, [z] * 10))[0]


def test_predictions_that_are_too_high_are_called_so(followed):
    rng = np.random.default_rng(1)
    low = [rng.standard_normal(100) - 0.6 for _ in range(5)]
    assert "predictions tend to be too high" in said_of(people(followed, low))[2]


def test_where_observations_fell_is_judged_by_all_tenths(followed):
    rng = np.random.default_rng(2)
    good = [rng.standard_normal(200) for _ in range(6)]
    assert "as they should be, as far as 1,200 rows" in calibration(people(followed, good)).blocks[1].items[-1]
    # A tenth of the rows sits where nothing is expected.
    odd = [np.concatenate([rng.standard_normal(180), np.full(40, 0.4)]) for _ in range(6)]
    said = calibration(people(followed, odd)).blocks[1].items[-1]
    assert "not spread" in said
    assert "into tenth 7 of 10" in said


def test_one_user_s_rows_are_taken_for_independent_and_the_page_says_so(followed):
    section = calibration([with_errors(followed[0], np.linspace(-2.0, 2.0, 40))])
    assert "which they hardly are" in section.blocks[2].caption
    assert "40 rows of 1 user can tell" in section.blocks[1].items[0]


def zeros(followed, size=200):
    """Users whose outcomes are often 0, as predicted, in batches of which some have heavy tails."""
    shape, rng = OutcomeShape((0.5,), (0.0, 0.0), (0.0, None)), np.random.default_rng(5)
    users = []
    for i in range(6):
        later = []
        for freedom in (None, np.full(size, 5.0)):
            mean = rng.normal(1.0, 0.3, size)
            prediction = Prediction(mean, np.full(size, 0.8), 0.2, freedom=freedom).shaped(shape if i else None)
            y = shape.draws(prediction.bell, 1, rng)[0]
            later.append(replace(followed[0].ahead[0], prediction=prediction, y=y))
        users.append(replace(followed[0], ahead=(followed[0].ahead[0], *later), sure=(1.0,) * 3))
    return users


def test_the_curve_counts_the_intervals_of_which_the_words_tell(followed):
    for users in (followed, zeros(followed)):
        later = [ahead for one in users for ahead in one.ahead[1:]]
        for level, (promised, inside) in curve(users).items():
            assert inside == pytest.approx(np.mean(np.concatenate([ahead.inside(level) for ahead in later])))
            held = np.concatenate([ahead.prediction.held(level) for ahead in later])
            assert promised == pytest.approx(np.mean(held))
    said = said_of(users)
    for level, words in ((0.9, said[0]), (0.5, said[1])):
        assert words.startswith(f"{100 * curve(users)[level][1]:.0f} % of the rows")


def test_the_caption_says_why_the_curve_begins_where_it_does(followed):
    assert "one and the same outcome" in calibration(zeros(followed)).blocks[2].caption
    assert "one and the same outcome" not in calibration(followed).blocks[2].caption


def test_on_a_telephone_the_panels_stand_apart(followed):
    figure = _figure(curve(followed), [exact_share(1, 10)] * 10, NARROW)
    assert room_above_titles(figure) >= 0.2


def test_nobody_with_a_second_batch_is_no_section(followed):
    assert calibration([replace(one, ahead=one.ahead[:1]) for one in followed]) is None


def test_rows_with_one_outcome_are_spread_over_its_probability_however_small_batches_are(followed):
    """Zeros that are as many as predicted look as they should, batch by batch of one row too."""
    shape = OutcomeShape((0.5,), (0.0, 0.0), (0.0, None))
    rng = np.random.default_rng(3)
    prediction = Prediction(np.array([1.0]), np.array([1.0]), 0.0).shaped(shape)
    for one in (1, 25):
        users = []
        for _ in range(6):
            y = shape.draws(prediction.bell, 200, rng)[:, 0]
            parts = tuple(
                replace(
                    followed[0].ahead[0],
                    prediction=Prediction(np.ones(one), np.ones(one), 0.0).shaped(shape),
                    y=y[i : i + one],
                )
                for i in range(0, 200, one)
            )
            users.append(replace(followed[0], ahead=(followed[0].ahead[0], *parts), sure=(1.0,) * (1 + len(parts))))
        said = calibration(users).blocks[1].items
        assert "spread over their predicted distribution as they should be" in said[-1]
        assert "as promised" in said[0]


def test_intervals_that_hold_more_than_their_level_are_not_called_too_wide(followed):
    """Of a 0 and 1, an interval of 90 % holds both."""
    shape = OutcomeShape((0.5,), (0.0, 0.0), (0.0, 1.0))
    rng = np.random.default_rng(4)
    users = []
    for _ in range(6):
        prediction = Prediction(np.full(200, 0.5), np.full(200, 0.25), 0.0).shaped(shape)
        later = replace(followed[0].ahead[0], prediction=prediction, y=rng.integers(0, 2, 200).astype(float))
        users.append(replace(followed[0], ahead=(followed[0].ahead[0], later), sure=(1.0, 1.0)))
    ninety, half, _ = said_of(users)
    assert "100 % of the rows fell inside their 90 % interval, which should hold 100 %" in ninety
    assert "as promised" in ninety
    assert "as promised" in half
