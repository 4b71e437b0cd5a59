"""The loop that follows a user against plain arithmetic, and what it does when something raises."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from evaluation.toys import Toy, ToyUser, user
from kerneltrail.evaluation import Step, follow, rmse, scores
from kerneltrail.evaluation.follow import left_out
from kerneltrail.gp import Prediction
from kerneltrail.kernels import parse
from kerneltrail.methods.protocol import Method


def test_every_batch_is_predicted_from_the_rows_before_it():
    ann = user()
    followed = follow(Toy(), ann)
    assert not followed.failures
    assert [(s.t, s.rows, s.predicted) for s in followed.steps] == [(0, 0, 3), (1, 3, 2), (2, 5, 4), (3, 9, 0)]
    for t, (low, high) in enumerate([(0, 3), (3, 5), (5, 9)]):
        step, y = followed.steps[t], ann.y[low:high]
        mean = ann.y[:low].mean() if low else 0.0
        assert step.rmse == pytest.approx(math.sqrt(np.mean((y - mean) ** 2)))
        assert step.log_density == pytest.approx(norm.logpdf(y, mean, 1.0).mean())
        for percent in (50, 90):
            edge = norm.ppf(0.5 + percent / 200)
            assert getattr(step, f"coverage{percent}") == np.mean(np.abs(y - mean) <= edge)
        assert step.predict_seconds >= 0.0


def test_the_state_after_the_last_batch_is_a_step_without_prediction():
    last = follow(Toy(), user()).steps[-1]
    assert (last.composition, last.products, last.hyperparameters, last.covariates) == ("LIN[x] + SE[x]", 2, 5, 1)
    assert last.covariate_names == ("x",)
    assert last.seconds >= 0.0
    assert all(math.isnan(v) for v in (last.rmse, last.log_density, last.coverage50, last.predict_seconds))
    assert last.change is None


def test_a_method_that_says_how_many_hyperparameters_its_kernel_has_is_believed():
    toy = Toy()
    counted = type("Counted", (ToyUser,), {"hyperparameter_count": 4})
    steps = follow(type("Method", (Toy,), {"__call__": lambda self, name="new": counted(toy, name)})(), user()).steps
    assert [(s.composition, s.hyperparameters) for s in steps][-1] == ("LIN[x] + SE[x]", 4)


def test_changes_are_counted_from_one_batch_to_the_next_but_not_from_before_any_row():
    steps = follow(Toy(texts=("", "LIN[x]", "LIN[x]", "SE[x] + LIN[x]*SE[x]")), user()).steps
    assert [(s.change, s.changed) for s in steps] == [(None, None), (0, 0), (3, 1), (None, None)]


def test_there_is_no_time_for_an_update_before_any():
    first = follow(Toy(), user()).steps[0]
    assert math.isnan(first.seconds)
    assert math.isnan(first.cpu_seconds)


def test_one_batch_and_no_batch():
    assert [(s.t, s.predicted) for s in follow(Toy(), user(batches=(4,))).steps] == [(0, 4), (1, 0)]
    assert [(s.t, s.predicted) for s in follow(Toy(), user().upto(0)).steps] == [(0, 0)]


def test_actions_are_passed_to_methods_that_take_them():
    assert not follow(Toy(action=True), user(action=True)).failures
    assert not follow(Toy(action=False), user(action=True)).failures


def test_a_failing_update_leaves_the_user_there():
    followed = follow(Toy(fail=("update", 1, "ann")), user())
    assert [s.t for s in followed.steps] == [0, 1]
    (failure,) = followed.failures
    assert (failure.user, failure.t, failure.stage, failure.type) == ("ann", 1, "update", "RuntimeError")
    assert failure.message == "no update for ann"


@pytest.mark.parametrize(("stage", "kind"), [("predict", "RuntimeError"), ("finite", "NumericalError")])
def test_a_failing_prediction_is_missing_and_the_user_goes_on(stage, kind):
    followed = follow(Toy(fail=(stage, 1, "ann")), user())
    assert [s.t for s in followed.steps] == [0, 1, 2, 3]
    assert math.isnan(followed.steps[1].rmse)
    assert followed.steps[2].rmse > 0.0
    assert [(f.t, f.stage, f.type) for f in followed.failures] == [(1, "predict", kind)]


def test_a_method_that_cannot_begin_is_a_failure():
    def begin(name):
        raise OSError("nobody")

    toy = Toy()
    followed = follow(type("Dead", (), {"__call__": lambda self, name: begin(name), "takes_action": False})(), user())
    assert followed.steps == ()
    assert followed.failures[0].type == "OSError"
    assert isinstance(toy, Method)


def test_functions_are_called_around_every_update():
    seen = []
    followed = follow(
        Toy(),
        user(),
        before_update=lambda state, batch: seen.append(("before", state.batches, batch.rows)),
        after_update=lambda state, outcome: seen.append(("after", state.batches, outcome)),
    )
    assert seen == [
        ("before", 0, 3), ("after", 1, None), ("before", 1, 2), ("after", 2, None), ("before", 2, 4),
        ("after", 3, None),
    ]  # fmt: skip
    assert [len(prediction.mean) for prediction in followed.predictions] == [3, 2, 4]
    for step, prediction, t in zip(followed.steps, followed.predictions, (1, 2, 3), strict=False):
        assert step.rmse == rmse(prediction.mean, user().batch(t).y)


def test_only_what_is_to_be_caught_is_recorded():
    for catch in ((), (ValueError,)):
        with pytest.raises(RuntimeError, match="no update for ann"):
            follow(Toy(fail=("update", 1, "ann")), user(), catch=catch)
    followed = follow(Toy(fail=("update", 1, "ann")), user(), catch=(RuntimeError,))
    (failure,) = followed.failures
    assert left_out(user(), failure) == (
        "user 'ann' is left out, for rows 4 to 5 (batch 2): RuntimeError: no update for ann"
    )

    def look(state, outcome):
        raise ZeroDivisionError("looked too closely")

    assert [f.type for f in follow(Toy(), user(), after_update=look).failures] == ["ZeroDivisionError"]


def test_a_known_truth_is_judged_at_every_step():
    steps = follow(Toy(), user(), truth=parse("LIN[x]")).steps
    assert [step.right for step in steps] == [False, True, True, False]
    assert [step.truth_probability for step in steps] == [0.0, 0.75, 0.75, 0.0]
    wrong, right = 0.75**2 + 0.25**2 + 1.0, 2 * 0.25**2
    assert [step.brier for step in steps] == pytest.approx([wrong, right, right, wrong])
    assert all(step.probability == 0.75 for step in steps)
    unknown = follow(Toy(), user()).steps[1]
    assert (unknown.right, math.isnan(unknown.brier), unknown.probability) == (None, True, 0.75)


def test_a_method_without_probabilities_is_not_judged_by_them():
    silent = type("Silent", (ToyUser,), {"probabilities": {}})

    method = type("Method", (Toy,), {"__call__": lambda self, name="new": silent(Toy(), name)})()
    step = follow(method, user(), truth=parse("LIN[x]")).steps[1]
    assert step.right
    assert all(math.isnan(value) for value in (step.probability, step.truth_probability, step.brier))


def test_coverage_is_that_of_the_normal():
    """Of 20,000 Normal draws, 50 % and 90 % within ± 1.1 % and 0.7 % (three standard errors: alarms in 0.5 %)."""
    y = 3.0 + 2.0 * np.random.default_rng(5).standard_normal(20_000)
    found = scores(Prediction(np.full(20_000, 3.0), np.full(20_000, 1.0), 3.0), y)
    assert found["coverage50"] == pytest.approx(0.5, abs=0.011)
    assert found["length90"] == pytest.approx(2.0 * 1.6448536 * 2.0)
    assert found["coverage90"] == pytest.approx(0.9, abs=0.007)
    heavy = Prediction(np.full(20_000, 3.0), np.full(20_000, 1.0), 3.0, freedom=np.full(20_000, 4.0))
    t = 3.0 + np.sqrt(2.0) * np.random.default_rng(6).standard_t(4.0, 20_000)
    assert scores(heavy, t)["coverage90"] == pytest.approx(0.9, abs=0.007)


def test_steps_are_plain_values_and_back():
    for step in follow(Toy(), user()).steps:
        again = Step.from_json(step.to_json())
        assert repr(again) == repr(step)  # NaN is not equal to itself
