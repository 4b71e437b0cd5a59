"""`kerneltrail evaluate`: tables, figures and words, from a table of users or a simulation."""

import csv
import json

import pytest

from cli.invoke import COLUMNS, refused, run, table
from kerneltrail.cli.evaluation_tables import _some
from kerneltrail.data import simulate
from kerneltrail.evaluation import load_evaluation

QUICK = "settings: {largest: 1, chains: 2, sweeps: 24, check: 8, maps: {starts: 1, screen: 4}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    simulate.paper(6, 1, seed=0, batches=(4, 5, 3)).train.write_csv(folder / "users.csv")
    (folder / "quick.yaml").write_text(QUICK)
    return folder


def evaluate(folder, *more, out="out", data="users.csv"):
    return run(
        "evaluate", folder / data, *COLUMNS, "--scaling", "none", "--workers", 1, "--out", folder / out, *more
    )  # fmt: skip


class TestTable:
    @pytest.fixture(scope="class")
    @staticmethod
    def result(folder):
        return evaluate(
            folder, "--config", folder / "quick.yaml", "--methods", "trajectory,mean,se-ard", "--test",
            "train-01,train-06",
        )  # fmt: skip

    def test_it_prints_every_metric_the_differences_and_where_the_files_are(self, folder, result):
        assert result.exit_code == 0, result.output
        for said in ("RMSE of the next batch", "log predictive density", "Processor time", "trajectory minus each"):
            assert said in result.stdout
        assert "true one" not in result.stdout  # the truth of a table is not known
        assert "6 users; y from x" in result.stdout
        assert "Only 2 test users: an interval over so few" in " ".join(result.stdout.split())
        assert str(folder / "out") in result.stdout
        assert "…" not in result.stdout
        assert "\x1b" not in result.stderr  # lines at most, no bar, where nobody watches

    def test_the_files_are_there(self, folder, result):
        names = {path.name for path in (folder / "out").iterdir()}
        assert names >= {
            "steps.csv", "summary.csv", "paired.csv", "failures.csv", "evaluation.json", "rmse.png", "log_density.png",
            "cpu_seconds.png", "rmse_difference.png", "log_density_difference.png", "pieces",
        }  # fmt: skip
        steps = table(folder / "out" / "steps.csv")
        assert {row["user"] for row in steps} == {"train-01", "train-06"}
        assert {row["method"] for row in steps} == {"trajectory", "mean", "se-ard"}

    def test_the_configuration_reaches_the_trajectory_model(self, folder, result):
        (about,) = load_evaluation(folder / "out").about["runs"]
        assert about["methods"]["trajectory"]["settings"]["settings"]["Settings"]["sweeps"] == 24
        assert about["train"]["users"] == ["train-02", "train-03", "train-04", "train-05"]


def test_the_stages_of_all_runs_are_counted(folder, heard):
    assert evaluate(folder, "--methods", "mean", "--runs", 2, out="counted").exit_code == 0
    assert heard.titles == [
        "stage 1 of 6: reading users.csv",
        "stage 2 of 6: run 1 of 2: building methods",
        "stage 3 of 6: run 1 of 2: following users",
        "stage 4 of 6: run 2 of 2: building methods",
        "stage 5 of 6: run 2 of 2: following users",
        "stage 6 of 6: drawing and writing",
    ]


def test_the_probability_of_an_action_is_a_column_too(folder):
    lines = (folder / "users.csv").read_text().splitlines()
    more = [f"{line},{number % 2},0.5" for number, line in enumerate(lines[1:])]
    (folder / "acted.csv").write_text("\n".join([f"{lines[0]},sent,chance", *more]))
    (folder / "reward.yaml").write_text(f"{QUICK}\nreward: {{}}")
    acted = ("--action", "sent", "--probability", "chance", "--covariates", "x", "--config", folder / "reward.yaml")
    result = evaluate(folder, "--methods", "mean", *acted, data="acted.csv", out="acted")
    assert result.exit_code == 0, result.output
    assert "trajectory: What sent adds is learnt from sent less its probability (centred coding)" in result.stdout


def test_runs_are_random_splits_of_a_stated_share(folder):
    result = evaluate(folder, "--methods", "mean", "--runs", 3, "--test-share", 0.5, "--seed", 1, out="splits")
    assert result.exit_code == 0, result.output
    found = load_evaluation(folder / "splits")
    assert found.runs == ("split 1", "split 2", "split 3")
    tested = [tuple(run["test"]) for run in found.about["runs"]]
    assert all(len(names) == 3 for names in tested)
    assert len(set(tested)) > 1


def test_a_simulation_knows_the_truth(folder):
    out = folder / "simulated"
    result = run(
        "evaluate", "simulated:distinct", "--methods", "mean,se-ard", "--test-users", 2, "--runs", 2, "--seed", 5,
        "--workers", 1, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "true one" in result.stdout
    found = load_evaluation(out)
    assert found.runs == ("seed 5", "seed 6")
    assert {(s.user, s.right) for s in found.steps if s.method == "se-ard"} == {("test-01", False), ("test-02", True)}
    priors = found.about["runs"][0]["methods"]["se-ard"]["settings"]["priors"]
    assert "10.0" in json.dumps(priors)  # locations in the middle of 0…20


def test_a_method_that_fails_is_named_and_the_others_go_on(folder, monkeypatch):
    def broken(*given, **more):
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr("kerneltrail.methods.trajectory.fit", broken)
    result = evaluate(folder, "--methods", "trajectory,mean", out="failing")
    assert result.exit_code == 0
    assert "trajectory: build failed with ZeroDivisionError: nothing to divide by" in result.stdout
    with (folder / "failing" / "failures.csv").open(newline="") as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["trajectory"]
    result = evaluate(folder, "--methods", "trajectory", out="failing")
    assert result.exit_code == 1  # nothing was measured


class TestRefused:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--methods", "shrinkag"), "no method is called 'shrinkag'; did you mean 'shrinkage'?"),
            (("--methods", ","), "name at least one method"),
            (("--target", "yy"), "has no column 'yy'; did you mean 'y'?"),
            (("--test", "train-1"), "there is no user 'train-1'; did you mean 'train-01'?"),
            (("--test", "train-01", "--test-share", 0.5), "name the test users, or have them drawn"),
            (("--test-users", 6), "1 to 5 test users, got 6"),
            (("--test-share", 0), "it lies above 0 and below 1, got 0"),
            (("--test-share", 1), "it lies above 0 and below 1, got 1"),
            (("--batch-size", 4), "in one way"),
        ],
    )
    def test_in_clear_words(self, folder, words, said):
        result = evaluate(folder, *(("--methods", "mean") if "--methods" not in words else ()), *words, out="no")
        assert result.exit_code == 2, result.output
        assert said in " ".join(result.stderr.split()).replace(" │ │ ", " ")
        assert "Traceback" not in result.output

    def test_a_folder_that_cannot_be_written(self, folder):
        (folder / "file").write_text("")
        refused(evaluate(folder, out="file/deeper"), "cannot be written")

    def test_a_simulation_that_there_is_not(self, folder):
        refused(run("evaluate", "simulated:similr", "--out", folder / "no"), "did you mean 'similar'?")
        result = run("evaluate", "simulated:similar", "--test", "a", "--out", folder / "no")
        assert result.exit_code == 2
        assert "a simulation has test users" in " ".join(result.stderr.split())

    def test_a_simulation_described_as_a_table(self, folder):
        words = ("evaluate", "simulated:paper", "--user", "u", "--missing", "drop", "--out", folder / "no")
        refused(run(*words), "--user, --missing: they describe a table, and a simulation has none")
        assert not (folder / "no").exists()

    def test_a_table_without_columns_named(self, folder):
        result = run("evaluate", folder / "users.csv", "--out", folder / "no")
        assert result.exit_code == 2
        assert "--user, --order, --target" in result.stderr


def test_few_batches_are_shown_of_many():
    assert _some(range(7)) == list(range(7))
    assert _some(range(30)) == [0, 1, 2, 3, 12, 20, 29]
