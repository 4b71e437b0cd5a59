"""`kerneltrail trial analyse` and `rerun`, as people call them."""

import shutil

import pytest

from cli.invoke import refused, run, table
from trial.analysis.study import finished


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("analysed") / "walks").path


def test_analyse_writes_a_page_and_a_package_that_runs_again(folder, tmp_path):
    out, zip = tmp_path / "out", tmp_path / "walks.zip"
    done = run("trial", "analyse", folder, "--out", out, "--moderator", "steps", "--package", zip, "--publish-key")
    assert done.exit_code == 0, done.output
    assert "acting changed mood by" in " ".join(done.output.split())
    assert {row["moderator"] for row in table(out / "tables" / "moderators.csv")} == {"steps"}
    again = run("trial", "rerun", zip)
    assert again.exit_code == 0, again.output
    words = " ".join(again.output.split())
    assert "All 10 tables have equal numbers." in words
    assert "The draws were computed from the key." in words
    assert "The key of the draws is public now: stop the trial's servers" in " ".join(done.output.split())


def test_a_difference_is_an_exit_code(folder, tmp_path, monkeypatch):
    zip = tmp_path / "walks.zip"
    monkeypatch.setattr("kerneltrail.trial.analysis.writing.analysis_page", lambda *_: "<p>A page.</p>")
    assert run("trial", "analyse", folder, "--out", tmp_path / "out", "--package", zip).exit_code == 0
    monkeypatch.setattr("kerneltrail.trial.analysis.repetition.compare_tables", lambda *_: {"effects": "it is another"})
    done = run("trial", "rerun", zip)
    assert done.exit_code == 1
    assert "The table effects differs: it is another." in done.output


def test_what_cannot_be_is_refused_in_a_sentence(folder, tmp_path):
    out = tmp_path / "out"
    refused(run("trial", "analyse", folder, "--out", out, "--moderator", "hours"), "'hours' is no covariate")
    refused(run("trial", "analyse", folder, "--out", out, "--publish-key"), "--package")
    refused(run("trial", "rerun", tmp_path / "none.zip"), "there is no file")
    refused(run("trial", "analyse", tmp_path / "nowhere", "--out", out), "protocol.yaml")
    assert run("trial", "rerun", tmp_path / "none.zip", "--head", "x").exit_code == 2
    copy = tmp_path / "empty"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("ledger.db*"))
    refused(run("trial", "analyse", copy, "--out", out), "has no ledger of the trial walks yet")
    assert not out.exists()
