"""Did it personalise? Measures by hand, p values by counting, a trial that did, and computations that go on."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import TrialError
from kerneltrail.progress import Progress
from kerneltrail.trial.analysis import personal
from kerneltrail.trial.analysis.personal import Measure, judged, measured, measures_of, personalisation
from kerneltrail.trial.analysis.resampling import Followed


def made(name, values, z=None):
    z = range(len(values)) if z is None else z
    return [Followed(name, p, 2 * p, {"hour": float(at)}) for p, at in zip(values, z, strict=True)]


def test_measures_by_hand():
    """Second halves: a has .2 .4 .6 .8 over 4 5 6 7, b has .5 four times, c has too few."""
    followed = made("a", [0, 0, 0, 0, 0.2, 0.4, 0.6, 0.8]) + made("b", [0.9] * 4 + [0.5] * 4) + made("c", [0.1] * 6)
    measures = measures_of(["hour"])
    values = dict(zip([(m.quantity, m.feature, m.spread) for m in measures], measured(followed, measures), strict=True))
    assert values["probability", None, True] == pytest.approx(0.0, abs=1e-15)  # both mean 0.5
    assert values["probability", "hour", False] == pytest.approx(0.1)  # slopes 0.2 and 0
    assert values["probability", "hour", True] == pytest.approx(0.2 / np.sqrt(2))
    assert values["advantage", "hour", False] == pytest.approx(0.2)
    assert np.isnan(measured(made("a", [0.5] * 8), measures[:1])[0])  # nobody to differ from


def test_a_feature_that_does_not_vary_has_no_slope():
    followed = made("a", [0.1, 0.9] * 4, [3] * 8) + made("b", [0.1, 0.9] * 4) + made("c", [0.2, 0.8] * 4)
    both = measured(followed, [Measure("probability", "hour", spread=False)])
    without = measured(followed[8:], [Measure("probability", "hour", spread=False)])
    assert both == without


def test_p_values_are_shares_with_their_intervals():
    measures = [Measure("probability"), Measure("probability", "hour", spread=False)]
    null = np.column_stack([np.arange(99.0), np.arange(99.0)])
    found = judged(measures, [95.0, 96.5], null, 0.3, 7)
    larger, either = found.statistics
    assert larger.p_value == pytest.approx((1 + 4) / 100)  # 95, 96, 97, 98: a tie counts
    assert (larger.low, larger.high) == pytest.approx((0.01112, 0.1002), abs=1e-4)  # Clopper and Pearson of 4 of 99
    assert either.p_value == pytest.approx(2 * (1 + 2) / 100)
    assert (found.resamples, found.effect, found.seed) == (99, 0.3, 7)
    assert judged(measures[:1], [-1.0], null[:, :1], 0.0, 0).statistics[0].p_value == 1.0
    assert "few simulated trials do not tell" in found.words()[1]
    sure = judged(measures, [1e3, 0.0], np.column_stack([np.arange(200.0)] * 2), 0.0, 0)
    assert "more differently than chance explains: p 0.00498" in sure.words()[1]
    chance = judged(measures, [20.0, 0.0], null, 0.0, 0)
    assert "can come by chance alone; these data do not tell" in chance.words()[1]


def test_a_p_value_above_the_bar_is_no_proof_of_the_null():
    """p of 0.07, from so many simulated trials that its interval leaves 0.05 out."""
    null = np.arange(2000.0)[:, None]
    words = judged([Measure("probability")], [2000.0 - 140.0], null, 0.1, 0).words()[1]
    assert "p 0.0705" in words
    assert words.startswith("Differences of this size can come by chance alone; these data do not tell")


@pytest.mark.parametrize("observed", [1.0, 1e3])
def test_with_few_simulated_trials_there_is_no_verdict(observed):
    few = judged([Measure("probability")], [observed], np.arange(9.0)[:, None], 0.0, 0)
    assert "p cannot go below 1/(1 + 9) = 0.1" in few.words()[1]
    assert not any("chance" in line for line in few.words())
    enough = judged([Measure("probability")], [observed], np.arange(19.0)[:, None], 0.0, 0)
    assert "cannot go below" not in " ".join(enough.words())


def test_a_simulated_trial_that_cannot_be_measured_makes_p_larger():
    null = np.array([[0.0], [1.0], [np.nan]])
    assert judged([Measure("probability")], [2.0], null, 0.0, 0).statistics[0].p_value == pytest.approx(2 / 4)
    slopes = judged([Measure("probability", "hour", spread=False)], [2.0], null, 0.0, 0).statistics[0]
    assert slopes.p_value == 1.0


def test_the_measure_that_decides_is_the_first():
    first = measures_of(["hour"])[0]
    assert (first.quantity, first.feature, first.tail) == ("probability", None, "larger")


def test_a_stopped_computation_goes_on_and_comes_to_the_same(record, models, tmp_path, monkeypatch):
    told = []
    one = personalisation(record, models, 0.5, resamples=2, seed=1, folder=tmp_path / "kept", tell=told.append)
    assert told[-1] == Progress(personal.STAGE, 2, 2)
    monkeypatch.setattr(personal, "resampled", lambda *_: pytest.fail("it was computed before"))
    assert personalisation(record, models, 0.5, resamples=2, seed=1, folder=tmp_path / "kept") == one
    with pytest.raises(pytest.fail.Exception):  # another effect is another computation
        personalisation(record, models, 0.4, resamples=2, seed=1, folder=tmp_path / "kept")


def test_a_trial_that_is_too_short_says_so_before_anything_is_simulated(record, models, monkeypatch):
    """Three days: nobody has four decisions in the second half of theirs."""
    monkeypatch.setattr(personal, "resampled", lambda *_: pytest.fail("a trial was simulated"))
    short = replace(record, points=tuple(point for point in record.points if point.day < 3))
    with pytest.raises(TrialError, match=r"^0 participants have 4 decisions of the policy or more in the second half"):
        personalisation(short, models, 0.5, resamples=2)
    one = replace(record, points=tuple(point for point in record.points if point.participant == "p01"))
    with pytest.raises(TrialError, match=r"^1 participant has 4 decisions"):
        personalisation(one, models, 0.5, resamples=2)


def test_values_of_the_trial_are_those_of_the_record(record, models):
    found = personalisation(record, models, 0.5, resamples=1)
    halves = {}
    for point in sorted(record.points, key=lambda point: point.at):
        if point.available and point.rung == "policy":
            halves.setdefault(point.participant, []).append(point.probability)
    means = [np.mean(each[len(each) // 2 :]) for each in halves.values() if len(each) - len(each) // 2 >= 4]
    assert found.statistics[0].observed == pytest.approx(np.std(means, ddof=1))
