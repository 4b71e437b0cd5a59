"""Weighted and centred least squares, against loops, statsmodels, R's numbers and a sum done by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.errors import DataError
from kerneltrail.trial.analysis.wcls import excursion_effects, wcls

from .mimic import mimic


def drawn(seed=0, people=12, times=9, effect=0.4):
    """Rows of a small trial: the policy, the outcome and the gaps depend on x."""
    rng = np.random.default_rng(seed)
    n = people * times
    id, x, z = np.repeat(np.arange(people), times), rng.normal(size=n), rng.normal(size=n)
    chance = 0.2 + 0.6 / (1 + np.exp(-2 * x))
    open_ = (rng.random(n) < 0.8).astype(float)
    a = (rng.random(n) < chance) * open_
    y = rng.normal(size=people)[id] + np.sin(2 * x) + effect * a * (1 + 0.5 * x) + rng.normal(size=n)
    return {"id": id, "outcome": y, "treatment": a, "rand_prob": chance, "availability": open_, "x": x, "z": z}


def by_loops(rows, moderators, controls, numerator, correction):
    """The estimating equation, row by row, and every participant's block of the hat matrix."""
    keep = [i for i in range(len(rows["id"])) if rows["availability"][i] == 1 and not np.isnan(rows["outcome"][i])]
    design, weights, y, who = [], [], [], []
    for i in keep:
        a, p = rows["treatment"][i], rows["rand_prob"][i]
        g = [1.0] + [rows[name][i] for name in controls]
        f = [1.0] + [rows[name][i] for name in moderators]
        design.append(g + [(a - numerator) * each for each in f])
        weights.append((numerator / p) ** a * ((1 - numerator) / (1 - p)) ** (1 - a))
        y.append(rows["outcome"][i])
        who.append(rows["id"][i])
    D, W, y = np.array(design), np.diag(weights), np.array(y)
    bread = np.linalg.inv(D.T @ W @ D)
    theta = bread @ D.T @ W @ y
    meat = np.zeros_like(bread)
    for person in sorted(set(who)):
        own = [row for row, each in enumerate(who) if each == person]
        Di, Wi, r = D[own], W[np.ix_(own, own)], y[own] - D[own] @ theta
        if correction:
            r = np.linalg.solve(np.eye(len(own)) - Di @ bread @ Di.T @ Wi, r)
        u = Di.T @ Wi @ r
        meat += np.outer(u, u)
    q = 1 + len(controls)
    return theta[q:], (bread @ meat @ bread)[q:, q:]


@pytest.mark.parametrize("correction", [True, False])
@pytest.mark.parametrize(("moderators", "controls"), [((), ()), (("x",), ("x", "z")), ((), ("z",))])
def test_it_is_the_estimating_equation_by_loops(moderators, controls, correction):
    rows = drawn(3)
    rows["outcome"][[4, 50]] = np.nan
    found = wcls(rows, moderators, controls, numerator=0.35, correction=correction)
    estimates, covariance = by_loops(rows, moderators, controls, 0.35, correction)
    np.testing.assert_allclose(found.estimates, estimates, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9)


def test_it_is_what_statsmodels_makes_of_the_same_weights():
    import statsmodels.api as sm

    rows = {name: column[drawn(5)["availability"] == 1] for name, column in drawn(5).items()}
    share, p, a = 0.5, rows["rand_prob"], rows["treatment"]
    weights = np.where(a == 1, share / p, (1 - share) / (1 - p))
    design = np.column_stack([np.ones(len(a)), rows["x"], a - share, (a - share) * rows["x"]])
    fitted = sm.GEE(rows["outcome"], design, groups=rows["id"], weights=weights).fit(cov_type="robust")
    found = wcls(rows, ["x"], numerator=share, correction=False)
    np.testing.assert_allclose(found.estimates, fitted.params[2:], rtol=1e-8)
    np.testing.assert_allclose(found.covariance, fitted.cov_params()[2:, 2:], rtol=1e-7)


def test_the_correction_is_that_of_statsmodels_where_weights_are_equal():
    """With weights that differ within a participant, statsmodels has no corrected errors."""
    import statsmodels.api as sm

    rows = drawn(6)
    rows["rand_prob"] = np.full(len(rows["id"]), 0.5)
    rows = {name: column[rows["availability"] == 1] for name, column in rows.items()}
    design = np.column_stack([np.ones(len(rows["id"])), rows["z"], rows["treatment"] - 0.5])
    fitted = sm.GEE(rows["outcome"], design, groups=rows["id"]).fit(cov_type="bias_reduced")
    found = wcls(rows, controls=["z"], numerator=0.5)
    assert found.standard_errors[0] == pytest.approx(fitted.bse[2], rel=1e-8)


def test_a_sum_done_by_hand():
    """Two rows each of three participants, π = p̃ = ½: the effect is the difference of means, the rest by hand.

    Differences within the participants are 2, 4 and 3, so the effect is 3, and the mean of all rows is 3.
    Residuals are ∓½, ±½ and 0 (they have levels 3, 3 and 3), scores of the effect are ½(r₁ - r₀) = -½, ½ and 0, and
    S = 6/4, S - S_i = 4/4: with the correction the variance is (½)² + (½)² = ½, without it (½·⅔)²·2 = 2/9.
    """
    rows = {
        "id": ["a", "a", "b", "b", "c", "c"],
        "treatment": [1, 0, 1, 0, 1, 0],
        "outcome": [4.0, 2.0, 5.0, 1.0, 4.5, 1.5],
        "rand_prob": [0.5] * 6,
    }
    found = wcls(rows)
    assert found.numerator == 0.5
    assert found["acting"].value == pytest.approx(3.0)
    assert found.controls["(intercept)"] == pytest.approx(3.0)
    assert found.covariance[0, 0] == pytest.approx(0.5)
    assert wcls(rows, correction=False).covariance[0, 0] == pytest.approx(2 / 9)
    assert (found.n, found.rows, found.degrees) == (3, 6, 1)
    # With one degree of freedom t is Cauchy's: its 97.5 % point is tan(0.475 π).
    assert found["acting"].upper == pytest.approx(3.0 + np.sqrt(0.5) * np.tan(0.475 * np.pi))
    assert found["acting"].p_value == pytest.approx(1 - 2 * np.arctan(3.0 / np.sqrt(0.5)) / np.pi)


@pytest.mark.parametrize(
    ("moderators", "controls", "options", "estimates", "errors", "degrees"),
    [
        ((), (), {"rand_prob": 0.6, "numerator": 0.6}, [0.158169870264215], [0.064142778147441], 35),
        (
            ("before",),
            ("lag", "indoors"),
            {"rand_prob": 0.6, "numerator": 0.5},
            [0.130592777782647, 0.0134556365251973],
            [0.0750587012807783, 0.0293661952729293],
            31,
        ),
        (
            ("indoors",),
            ("before",),
            {"numerator": 0.5},
            [0.106014713870972, 0.132504541599981],
            [0.0686923368538035, 0.148258117388771],
            32,
        ),
    ],
)
def test_it_gives_what_MRTAnalysis_gives_on_its_example(moderators, controls, options, estimates, errors, degrees):
    """Values of MRTAnalysis 0.4.1 under R, to 14 digits, on a table that is made anew here from R's seed."""
    found = wcls(mimic(), moderators, controls, **options)
    np.testing.assert_allclose(found.estimates, estimates, rtol=1e-11)
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-11)
    assert (found.degrees, found.n, found.rows, found.unavailable) == (degrees, 37, 6254, 1516)


def test_it_gives_the_coefficients_that_MRTAnalysis_tests_itself_by():
    found = wcls(mimic(), controls=["before"], rand_prob=0.6, numerator=0.6)
    assert [*found.controls.values(), *found.estimates] == pytest.approx([2.0115176, 0.3395683, 0.1574444], abs=1e-7)
    assert found.standard_errors[0] == pytest.approx(0.0622, abs=5e-5)


def test_intervals_and_p_values_are_those_of_MRTAnalysis():
    rows = mimic()
    found = wcls(rows, ["day"], ["lag", "before"], rand_prob=0.5, availability=None, numerator=0.5)
    assert found.intervals.ravel() == pytest.approx([0.37187918, 0.7726669, -0.03004471, -0.0119313], abs=5e-8)
    assert found.p_values == pytest.approx([2.024579e-06, 4.698739e-05], rel=1e-6)


@given(
    seed=st.integers(0, 50),
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
    unit=st.floats(1e-3, 1e3),
)
@settings(max_examples=40, deadline=None)
def test_units_and_order_do_not_matter(seed, shift, scale, unit):
    rows = drawn(seed)
    before = wcls(rows, ["x"], ["z"])
    rng = np.random.default_rng(seed + 1)
    order, names = rng.permutation(len(rows["id"])), rng.permutation(1000)
    other = {name: column[order] for name, column in rows.items()}
    other["outcome"] = shift + scale * other["outcome"]
    other["x"] = unit * other["x"]
    other["id"] = np.array([f"p{names[each]}" for each in other["id"]])
    after = wcls(other, ["x"], ["z"])
    back = np.array([1.0, unit]) / scale
    # The shift is up to 1e3 beside a scale down to 1e-3: six digits of sixteen are lost in the outcomes themselves.
    np.testing.assert_allclose(after.estimates * back, before.estimates, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(after.standard_errors * back, before.standard_errors, rtol=1e-6, atol=1e-8)


def test_rows_at_which_nobody_could_act_do_not_matter():
    rows = drawn(1)
    shut = rows["availability"] == 0
    other = {name: column.copy() for name, column in rows.items()}
    other["outcome"][shut], other["rand_prob"][shut], other["x"][shut] = np.nan, 0.0, np.nan
    one, two = wcls(rows, ["x"]), wcls(other, ["x"])
    np.testing.assert_array_equal(one.estimates, two.estimates)
    np.testing.assert_array_equal(one.covariance, two.covariance)
    assert two.missing == {}
    assert two.unavailable == shut.sum() > 0


def test_it_is_right_where_the_outcome_without_acting_is_modelled_wrongly():
    """The baseline is sin(2x) and the policy depends on x. 300 trials: 95 % intervals hold the truth, 0.4, as promised.

    False alarm: the number of misses is binomial(300, 0.05); outside 4 … 28 with a probability below 0.002.
    """
    misses = 0
    for seed in range(300):
        rows = drawn(1000 + seed, people=25, times=20, effect=0.4)
        rows["outcome"] = rows["outcome"] - 0.4 * rows["treatment"] * 0.5 * rows["x"]  # the same effect at every x
        each = wcls(rows)["acting"]
        misses += not each.lower <= 0.4 <= each.upper
    assert 4 <= misses <= 28


def test_what_is_missing_is_left_out_counted_and_said():
    rows = drawn(2)
    open_ = np.flatnonzero(rows["availability"])
    rows["outcome"][open_[:3]] = np.nan
    rows["z"][open_[3]] = np.nan
    found = wcls(rows, controls=["z"])
    assert found.missing == {"outcome": 3, "z": 1}
    assert found.rows == len(open_) - 4
    assert found.words()[-1].startswith("Left out: 3 rows without an outcome, 1 row without 'z' and")


def test_the_effect_at_a_value_of_a_moderator_is_the_one_with_the_moderator_moved():
    rows = drawn(4)
    found = wcls(rows, ["x"]).at(x=1.5)
    moved = wcls({**rows, "x": rows["x"] - 1.5}, ["x"])["acting"]
    assert found.value == pytest.approx(moved.value)
    assert found.standard_error == pytest.approx(moved.standard_error)
    assert found.p_value == pytest.approx(moved.p_value)


def test_words_frames_and_files():
    found = wcls(mimic(), ["day"], ["before"], rand_prob=0.6)
    words = found.words("log steps")
    assert words[0].startswith("Where day is 0, acting changed log steps by 0.65 (95 % interval 0.43 to 0.87;")
    assert "Per unit of day the effect of acting changes by −0.02" in words[1]
    assert words[2] == "37 participants, 6254 decisions with an outcome."
    lines = found.to_csv().splitlines()
    assert lines[0] == "name,estimate,standard_error,lower,upper,p_value"
    assert float(lines[2].split(",")[1]) == found.estimates[1]
    assert list(found.to_frame()["name"]) == ["acting", "day"]
    unclear = wcls(mimic(), ["indoors"], ["before"], rand_prob=0.6).words()
    assert "The data do not tell whether it is above or below 0." in unclear[1]


def test_a_frame_is_read_as_a_dict_is():
    pandas = pytest.importorskip("pandas")
    rows = drawn(7)
    frame = pandas.DataFrame({**rows, "id": [f"p{each}" for each in rows["id"]]})
    np.testing.assert_array_equal(wcls(frame, ["x"]).estimates, wcls(rows, ["x"]).estimates)


def change(**columns):
    rows = drawn(8)
    for name, values in columns.items():
        rows[name] = values(rows) if callable(values) else values
    return rows


@pytest.mark.parametrize(
    ("rows", "moderators", "problem"),
    [
        (change(rand_prob=lambda r: np.where(np.arange(108) == 7, 1.0, r["rand_prob"])), (), r"row 8 \(participant 0"),
        (change(rand_prob=lambda r: 0.0 * r["rand_prob"]), (), "must lie between 0 and 1"),
        (change(id=np.zeros(108, dtype=int)), (), "all rows are of one participant, 0"),
        (change(id=np.repeat([0, 1], 54)), ("x",), "2 participants cannot tell 4 coefficients"),
        (change(w=lambda r: 2 * r["x"] - 1), ("x", "w"), r"'w' is a sum of the columns before it \(\(intercept\), x\)"),
        (change(w=lambda r: 1.0 * (r["id"] == 3)), ("w",), "without participant 3 the coefficients"),
        (change(treatment=lambda r: 0 * r["treatment"]), (), "have treatment 0: there is nothing to compare"),
        (change(treatment=lambda r: 2 * r["treatment"]), (), "neither 0 nor 1"),
        (change(treatment=np.ones(108)), (), "was treated although nobody could act"),
        (change(outcome=np.full(108, np.nan)), (), "no row is left"),
        (change(availability=np.full(108, 0.5)), (), "availability is 1 or 0; in row 1 it is 0.5"),
        (change(), ("hour",), "no column 'hour'"),
        (change(x=lambda r: np.where(np.arange(108) == 2, np.inf, r["x"])), ("x",), "'x' is infinite in row 3"),
        (np.zeros((3, 4)), (), "an array has no names"),
        ({"id": ["a", None], "outcome": [1, 2], "treatment": [0, 1], "rand_prob": [0.5, 0.5]}, (), "missing in row 2"),
    ],
)
def test_what_cannot_be_estimated_is_refused_by_name(rows, moderators, problem):
    with pytest.raises(DataError, match=problem):
        wcls(rows, moderators)


def test_numbers_that_are_no_probability_or_level_are_refused():
    with pytest.raises(DataError, match="numerator"):
        wcls(drawn(), numerator=1.0)
    with pytest.raises(DataError, match="level"):
        wcls(drawn(), level=95)
    with pytest.raises(DataError, match="there is no effect 'X'"):
        wcls(drawn(), ["x"]).at(X=1.0)


def test_arrays_give_the_same_as_columns():
    rows = drawn(9)
    names = ("id", "outcome", "treatment", "rand_prob", "availability")
    found = excursion_effects(*(rows[name] for name in names), moderators={"x": rows["x"]}, controls={"x": rows["x"]})
    np.testing.assert_array_equal(found.estimates, wcls(rows, ["x"]).estimates)


def test_a_numerator_by_moderator_is_a_column():
    rows = drawn(10)
    rows["by_x"] = np.where(rows["x"] > 0, 0.6, 0.4)
    found = wcls(rows, ["x"], numerator="by_x")
    assert found.numerator is None
    assert np.isfinite(found.standard_errors).all()
