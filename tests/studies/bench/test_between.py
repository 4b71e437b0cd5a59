"""Methods side by side over random splits: who is in a split, what is kept, and what is computed from the steps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kerneltrail.data import Cohort, simulate
from kerneltrail.data.simulate import MixedTruth
from kerneltrail.errors import DataError, KerneltrailError
from kerneltrail.evaluation import Evaluation, Failure, Step, follow, over_users
from kerneltrail.studies.bench import KEYS, chosen, tables
from kerneltrail.studies.bench.between import BetweenBenchmark
from kerneltrail.studies.bench.between_sets import SIMULATED, MixedSet, RealSet, sets_in, true_method
from kerneltrail.studies.bench.over_splits import LATER
from kerneltrail.studies.experiments.real import design

SMALL = MixedSet("small", MixedTruth(noise=0.5), pilots=4, new=3, batches=(8, 8))
QUICK = (("largest", 1), ("sweeps", 16), ("chains", 2), ("check", 8))
TINY = BetweenBenchmark(splits=2, methods=("trajectory", "hgp", "mean", "final"), sets=(SMALL,), changes=QUICK)


def people(path):
    made = simulate.mixed(10, 1, 0, batches=(5, 5))
    return Cohort.from_users(made.train.raw, target="y")


STUDY = replace(design.FITBIT, name="people", load=people)


def test_simulated_sets_go_by_name_and_other_people_are_chosen_on():
    (mood, slopes) = BetweenBenchmark(simulated=("mood", "slopes"))._sets()
    assert (mood.name, slopes) == ("mood", SIMULATED[0])
    assert BetweenBenchmark()._sets() == SIMULATED
    first = {blind: next(iter(mood.splits(1, 0, blind))) for blind in ("choose", "report", None)}
    report = first["report"].pilots.raw[0]
    assert (report.y == first[None].pilots.raw[0].y).all()
    assert (report.y != first["choose"].pilots.raw[0].y).any()
    one, other = mood.splits(2, 0, "report")
    assert (one.pilots.raw[0].y != other.pilots.raw[0].y).any()
    assert one.truth is None


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    benchmark = replace(TINY, out=tmp_path_factory.mktemp("between"))
    ticks = []
    return benchmark, list(benchmark.run(0, ticks.append)), ticks


def test_rows_have_every_method_at_every_t(kept):
    benchmark, rows, ticks = kept
    assert ticks == ["small, split 0", "small, split 1"]
    assert benchmark.steps == 2
    methods = ("trajectory", "hgp", "mean", "final", "truth")
    assert [(row["t"], row["method"]) for row in rows] == [(t, m) for t in (0, 1, LATER) for m in methods]
    for row in rows:
        assert set(KEYS) < set(row)
        assert (row["case"], row["samples"], row["values"], row["failures"]) == ("small", 6, 6, 0)
        assert (row["difference"] == {}) == (row["method"] == "trajectory")
        assert 0.0 <= row["coverage50"] <= row["coverage90"] <= 1.0


def test_a_second_run_computes_only_what_is_missing(kept, monkeypatch):
    benchmark, rows, _ = kept
    monkeypatch.setattr("kerneltrail.studies.bench.over_splits.fit", lambda *a, **k: pytest.fail("fitted again"))
    monkeypatch.setattr("kerneltrail.methods.hgp.learn", lambda *a, **k: pytest.fail("learnt again"))
    again = list(benchmark.run(0))
    assert [row for row in again if row["method"] != "truth"] == [row for row in rows if row["method"] != "truth"]
    more = replace(benchmark, methods=("trajectory", "hgp", "linear"))
    assert {row["method"] for row in more.run(0)} == {"trajectory", "hgp", "linear", "truth"}


def test_tables_have_a_title_for_each_set(kept):
    rows = kept[1]
    shown = list(tables([*rows, *({**row, "case": "other"} for row in rows)]))
    assert [str(table.title).split(":")[0] for table in shown] == ["small", "other"]
    assert "trajectory minus this method" in str(shown[0].title)


def test_markdown_has_a_table_for_each_set(kept):
    text = BetweenBenchmark.markdown(kept[1])
    assert len(text) == 2
    assert text[0].startswith("small, 2 splits:")
    lines = text[1].splitlines()
    assert lines[0].startswith("| t | users | values | method | rmse |")
    assert len(lines) == 2 + len(kept[1])


def step(method, user, t, value, *, run="split 0"):
    numbers = dict.fromkeys(("rmse", "log_density", "coverage50", "coverage90", "length90"), value)
    facts = {"seconds": 0.0, "cpu_seconds": 0.25, "predict_seconds": 0.0, "composition": "", "products": 0}
    rest = {"hyperparameters": 1, "covariates": 0, "covariate_names": (), "change": 0, "changed": 0, "right": None}
    return Step(run, method, user, f"rows of {user}", t, 10 * t, 5, **numbers, **facts, **rest)


def test_differences_are_paired_over_users_and_splits_and_people_count_once():
    steps = [
        step("trajectory", "ann", 0, 9.0), step("hgp", "ann", 0, 9.0),
        step("trajectory", "ann", 1, 1.0), step("hgp", "ann", 1, 2.0),
        step("trajectory", "ann", 1, 3.0, run="split 1"), step("hgp", "ann", 1, 6.0, run="split 1"),
        step("trajectory", "bob", 1, 5.0), step("hgp", "bob", 1, 5.0),
        step("trajectory", "bob", 2, 4.0), step("hgp", "cat", 2, 7.0),
    ]  # fmt: skip
    failure = Failure("split 0", "hgp", "bob", 2, "predict", "ValueError", "no")
    rows = {(row["method"], row["t"]): row for row in TINY.rows_of(Evaluation(tuple(steps), (failure,), {}), "by hand")}
    at_one = rows["hgp", 1]
    assert (at_one["samples"], at_one["values"], at_one["seconds"], at_one["failures"]) == (2, 3, 0.25, 1)
    assert at_one["rmse"] == pytest.approx((2.0 + 6.0 + 5.0) / 3.0)
    expected = over_users([-1.0, -3.0, 0.0], ["ann", "ann", "bob"])
    assert at_one["difference"]["rmse"] == expected.to_json()
    assert rows["hgp", 2]["difference"] == {}  # nobody has both
    assert rows["hgp", LATER]["values"] == 4
    assert rows["hgp", LATER]["difference"]["rmse"]["mean"] == pytest.approx(-4.0 / 3.0)


def test_choosing_and_reporting_have_other_people_or_other_splits():
    def names(users, blind):
        return [set(split.pilots.names) | set(split.new.names) for split in users.splits(2, 0, blind)]

    apart = RealSet(STUDY, Path(__file__), apart=True)
    assert names(apart, "choose")[0].isdisjoint(names(apart, "report")[0])
    assert len(names(apart, None)[0]) == 10
    together = RealSet(STUDY, Path(__file__), 3)
    new = {blind: [split.new.names for split in together.splits(4, 0, blind)] for blind in (None, "choose", "report")}
    assert new[None] == new["report"] != new["choose"]
    assert all(len(each) == 3 for each in new[None])
    made = {b: next(iter(SMALL.splits(1, 0, b))).pilots.fingerprint for b in ("choose", "report")}
    assert made["choose"] != made["report"]


def test_splits_of_simulated_users_are_other_people_and_reproduce():
    once, again = ([split.new.fingerprint for split in SMALL.splits(3, 5, None)] for _ in range(2))
    assert once == again
    assert len(set(once)) == 3


def test_the_truth_is_the_regression_with_the_true_prior():
    truth = MixedTruth((2.0, 1.0), (1.0, 0.5), 0.25)
    made = simulate.mixed(3, 1, 0, truth=truth, batches=(4, 3))
    user = made.test.raw[0]
    prediction = follow(true_method(made.train, truth), user, catch=()).predictions[1]
    B, new = (np.column_stack([np.ones(b.rows), b.X]) for b in (user.batch(1), user.batch(2)))
    K = B @ np.diag(truth.between) @ B.T + truth.noise * np.eye(4)
    across = new @ np.diag(truth.between) @ B.T
    mean = new @ truth.weights + across @ np.linalg.solve(K, user.batch(1).y - B @ truth.weights)
    variance = np.diag(new @ np.diag(truth.between) @ new.T - across @ np.linalg.solve(K, across.T))
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(prediction.variance, variance, rtol=1e-9)
    assert prediction.noise == pytest.approx(truth.noise)


def test_the_truth_with_heavy_tails_has_them_and_is_not_misled_by_one_row():
    truth = MixedTruth((2.0, 1.0), (1.0, 0.5), 0.25, df=3.0)
    made = simulate.mixed(3, 1, 0, truth=truth, batches=(12, 3))
    user, method = made.test.raw[0], true_method(made.train, truth)
    first = user.batch(1)
    wild = first.y.copy()
    wild[4] += 40.0
    means = []
    for y in (first.y, wild):
        followed = method()
        followed.update(first.X, y)
        prediction = followed.predict(user.batch(2).X)
        means.append(prediction.mean)
        assert ((prediction.freedom >= 3.0) & (prediction.freedom < 6.0)).all()
    np.testing.assert_allclose(means[1], means[0], atol=0.3)
    # Nearly Normal noise is the regression in closed form.
    near = replace(truth, df=1e7)
    plain, student = (true_method(made.train, each)() for each in (replace(truth, df=np.inf), near))
    for followed in (plain, student):
        followed.update(first.X, first.y)
    np.testing.assert_allclose(student.predict(first.X).mean, plain.predict(first.X).mean, rtol=1e-5)
    np.testing.assert_allclose(student.predict(first.X).total, plain.predict(first.X).total, rtol=1e-5)


def test_files_are_told_by_their_columns(tmp_path):
    (tmp_path / "steps.csv").write_text("user,time,log_steps,steps_prev_hour\na,1,2,3\n")
    (tmp_path / "trial.csv").write_text("user,decision_index,jbsteps30pre,jbsteps30\na,1,2,3\n")
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    sets = {each.name: (each.new, each.apart) for each in sets_in([tmp_path])}
    assert sets == {"fitbit": (None, True), "heartsteps": (6, False)}
    with pytest.raises(DataError, match="both hold fitbit"):
        sets_in([tmp_path, tmp_path / "steps.csv"])
    with pytest.raises(DataError, match=r"other\.csv holds no users"):
        sets_in([tmp_path / "other.csv"])
    with pytest.raises(DataError, match="no file or folder"):
        sets_in([tmp_path / "nowhere"])


def test_sets_are_simulated_where_there_are_no_data():
    assert BetweenBenchmark().steps == 20 * len(SIMULATED)


def test_options_are_checked_before_anything_is_computed():
    assert chosen("between", changes={"splits": 3})[0].splits == 3
    with pytest.raises(KerneltrailError, match="bench map has no --splits"):
        chosen("map", changes={"splits": 3})
    for changes in ({"splits": 0}, {"blind": "both"}, {"methods": ("hpg",)}):
        with pytest.raises(KerneltrailError):
            chosen("between", changes=changes)
