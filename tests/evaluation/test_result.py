"""Averages and paired differences by hand, and evaluations as files."""

import csv
import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evaluation.toys import Toy, everything, user
from kerneltrail.errors import DataError
from kerneltrail.evaluation import METRICS, Evaluation, follow, load_evaluation, merged, over_users
from kerneltrail.kernels import parse
from kerneltrail.studies.evaluation_markdown import markdown


def small(run="", people=("ann", "bob", "eve"), seeds=(0, 0, 0)):
    truth = parse("LIN[x]")
    steps = []
    for label, noise in (("one", 1.0), ("two", 4.0)):
        for name, seed in zip(people, seeds, strict=True):
            who = user(name, batches=(3, 2) if name == "eve" else (3, 2, 4), seed=seed)
            followed = follow(Toy(noise=noise), who, truth=truth)
            steps += [replace(step, run=run, method=label) for step in followed.steps]
    return Evaluation(tuple(steps), (), {"runs": [{"run": run}]})


def pick(rows, **wanted):
    (row,) = [r for r in rows if all(getattr(r, name) == value for name, value in wanted.items())]
    return row


def test_averages_are_over_the_users_who_have_a_value():
    found = small()
    rows = found.summary()
    own = [s.rmse for s in found.at("one", 2) if s.user != "eve"]  # eve has no third batch
    row = pick(rows, method="one", t=2, metric="rmse")
    assert (row.mean, row.users, row.values) == (pytest.approx(np.mean(own)), 2, 2)
    assert pick(rows, method="one", t=2, metric="right").mean == 1.0
    assert pick(rows, method="one", t=2, metric="right").users == 3
    assert pick(rows, method="one", t=3, metric="right").mean == 0.0
    assert not [r for r in rows if r.t == 3 and r.metric == "rmse"]
    assert {r.metric for r in rows} == set(METRICS)


def test_intervals_of_averages_are_bootstrap_intervals():
    found = small()
    values = [s.log_density for s in found.at("two", 1)]
    expected = over_users(values)
    row = pick(found.summary(), method="two", t=1, metric="log_density")
    assert (row.mean, row.low, row.high) == pytest.approx((expected.mean, expected.low, expected.high))


def test_differences_are_of_the_same_users():
    found = small()
    row = pick(found.paired("two"), second="one", t=2, metric="log_density")
    values = {(s.method, s.user): s.log_density for s in found.steps if s.t == 2 and s.user != "eve"}
    differences = [values["two", name] - values["one", name] for name in ("ann", "bob")]
    assert row.first == "two"
    assert row.mean == pytest.approx(np.mean(differences))
    assert (row.low, row.high) == pytest.approx((min(differences), max(differences)))
    assert row.users == 2
    same = [r for r in found.paired() if r.metric in ("rmse", "products")]
    assert len(same) == 3 + 4
    assert all(r.mean == r.low == r.high == 0.0 for r in same)


def test_a_user_missing_under_one_method_is_left_out():
    whole = small()
    less = Evaluation(tuple(s for s in whole.steps if (s.method, s.user) != ("two", "bob")))
    assert pick(less.paired("one"), t=1, metric="rmse").users == 2  # eve's last prediction, and ann's


def test_an_unknown_method_is_refused():
    with pytest.raises(DataError, match="no method 'tow' was evaluated; did you mean 'two'"):
        small().paired("tow")


def test_one_person_in_two_runs_is_one_user():
    same = merged([small("a"), small("b")])
    row = pick(same.summary(), method="one", t=1, metric="rmse")
    assert (row.users, row.values) == (3, 6)
    alone = pick(small().summary(), method="one", t=1, metric="rmse")
    assert (row.mean, row.low, row.high) == pytest.approx((alone.mean, alone.low, alone.high))
    others = merged([small("a"), small("b", seeds=(1, 1, 1))])
    assert pick(others.summary(), method="one", t=1, metric="rmse").users == 6
    assert same.runs == ("a", "b")
    assert [run["run"] for run in same.about["runs"]] == ["a", "b"]


def test_runs_to_be_joined_need_labels():
    with pytest.raises(DataError, match="run label each"):
        merged([small("a"), small("a")])


def test_a_draw_of_persons_is_the_mean_of_all_their_values():
    """Of three persons one has four values: 27 equally likely draws, each the mean of all values in it.

    The 20 % and 80 % points lie in the middle of an atom of that distribution. A mean of persons' means has others.
    """
    whose = {"a": [0.0, 0.0, 0.0, 0.0], "b": [10.0], "c": [20.0]}
    draws = sorted(
        float(np.mean([value for person in drawn for value in whose[person]])) for drawn in product(whose, repeat=3)
    )
    values = [value for own in whose.values() for value in own]
    found = over_users(values, [person for person, own in whose.items() for _ in own], level=0.6)
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx((draws[5], draws[21]))
    assert draws[4:6] == pytest.approx([20 / 9] * 2)


def test_a_person_is_resampled_with_all_values():
    """Two persons: draws are (a, a), (a, b) or (b, b), and the ends of a 90 % interval the outer two."""
    found = over_users([1.0, 3.0, 10.0], ["a", "a", "b"])
    assert (found.mean, found.low, found.high) == (pytest.approx(14 / 3), 2.0, 10.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("result") / "deep" / "er"
    everything().save(folder)
    return folder


class TestFiles:
    def test_it_reads_back(self, folder):
        again = load_evaluation(folder)
        assert repr(again.steps) == repr(everything().steps)
        assert again.failures == everything().failures
        assert again.about == json.loads(json.dumps(everything().about))
        assert repr(again.summary()) == repr(everything().summary())

    def test_what_older_files_do_not_know_is_missing(self, folder, tmp_path):
        """Files of version 0.1.0 have no probabilities."""
        stored = json.loads((folder / "evaluation.json").read_text())
        for step in stored["steps"]:
            for name in ("probability", "truth_probability", "brier"):
                del step[name]
        (tmp_path / "evaluation.json").write_text(json.dumps(stored))
        again = load_evaluation(tmp_path)
        assert all(math.isnan(step.probability) and math.isnan(step.brier) for step in again.steps)
        nothing = dict.fromkeys(("probability", "truth_probability", "brier"), math.nan)
        assert repr(again.steps) == repr(tuple(replace(step, **nothing) for step in everything().steps))

    def test_tables_are_tidy(self, folder):
        with (folder / "steps.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(everything().steps)
        first = rows[0]
        assert (first["method"], first["user"], first["t"], first["seconds"]) == ("trajectory", "ann", "0", "")
        assert {row["covariate_names"] for row in rows} <= {"", "hour", "steps", "hour;steps"}
        with (folder / "paired.csv").open(newline="") as file:
            pairs = list(csv.DictReader(file))
        assert {row["first"] for row in pairs} == {"trajectory"}
        assert {row["second"] for row in pairs} == set(everything().methods) - {"trajectory"}
        assert (folder / "failures.csv").read_text().startswith("run,method,user,t,stage,type,message")
        assert (folder / "summary.csv").exists()

    def test_the_parquet_table_has_the_same_rows(self, folder):
        table = pytest.importorskip("pyarrow.parquet").read_table(folder / "steps.parquet").to_pylist()
        for row, step in zip(table, everything().steps, strict=True):
            assert (row["method"], row["user"], row["t"], row["right"]) == (step.method, step.user, step.t, step.right)
            assert row["rmse"] == step.rmse or math.isnan(step.rmse)
            assert tuple(row["covariate_names"]) == step.covariate_names

    def test_what_is_no_evaluation_is_refused(self, tmp_path):
        with pytest.raises(DataError, match=r"evaluation\.json cannot be read"):
            load_evaluation(tmp_path)
        (tmp_path / "evaluation.json").write_text("[]")
        with pytest.raises(DataError, match="is not an evaluation"):
            load_evaluation(tmp_path)
        (tmp_path / "evaluation.json").write_text('{"schema": 9}')
        with pytest.raises(DataError, match="schema 9; this version reads 1"):
            load_evaluation(tmp_path)


class TestMarkdown:
    def test_every_metric_and_difference_has_a_table(self):
        text = markdown(small(), against="one")
        for title in ("RMSE of the next", "inside 90 %", "kernel is the true one", "Hyperparameters", "changes with"):
            assert f"{title}" in text
        assert "**one minus each: RMSE of the next batch**" in text
        assert "**one minus each: mean log predictive density of the next batch**" in text
        assert text.startswith(
            "**RMSE of the next batch: batches seen at which one**\n\n| against | wins | ties | loses |"
        )
        row = next(line for line in text.splitlines() if line.startswith("| two | ") and "[" in line)
        average = pick(small().summary(), method="two", t=0, metric="rmse")
        assert f"| two | {average.mean:.2f} [{average.low:.2f}, {average.high:.2f}] |" in row

    def test_differences_away_from_zero_are_bold(self):
        """A larger noise makes errors of this size less likely: every user's density is lower by about ½·log 4."""
        text = markdown(small(), against="one").split("one minus each: mean log")[1].splitlines()[4]
        assert text.count("**+") == 3
