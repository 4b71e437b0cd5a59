"""`kerneltrail trial simulate`, from the command line."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.trial.folder import make_folder
from kerneltrail.trial.simulator import pilot
from kerneltrail.trial.simulator.people.participant import AVAILABLE
from kerneltrail.trial.simulator.policies import OURS, POLICIES
from trial.study import centred_model

RUNNER = CliRunner()


def called(*words):
    return RUNNER.invoke(app, ["trial", "simulate", *map(str, words)])


@pytest.fixture
def quick(monkeypatch):
    """Pilot studies of a few people."""
    monkeypatch.setattr(pilot, "PilotSize", partial(pilot.PilotSize, users=4, days=6, sweeps=8))


@pytest.mark.usefixtures("quick")
def test_a_study_without_a_protocol_and_then_again_from_what_is_kept(tmp_path, monkeypatch):
    words = ("--people", "brushing", "--participants", 3, "--days", 4, "--seeds", 2, "--workers", 1, "--out", tmp_path)
    first = called(*words, "--policy", "ours", "--policy", "fixed")
    assert first.exit_code == 0, first.output
    assert "Open" in first.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert {line["policy"] for line in results["designs"]} == {"ours", "fixed"}
    monkeypatch.setattr(pilot, "pilot_model", lambda *_, **__: pytest.fail("learnt again"))
    again = called(*words, "--policy", "ours", "--policy", "fixed")
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "results.json").read_text()) == results


def test_a_trials_folder_is_simulated_with_people_drawn_from_its_model(tmp_path):
    centred_model().save(tmp_path / "pilot.trail")
    make_folder(tmp_path / "walks", tmp_path / "pilot.trail", trial="walks")
    words = (
        "--participants",
        3,
        "--days",
        3,
        "--seeds",
        1,
        "--workers",
        1,
        "--drive",
        "conduct",
        "--out",
        tmp_path / "out",
    )
    answer = called(tmp_path / "walks", *words, "--policy", "ours", "--policy", "oracle")
    assert answer.exit_code == 0, answer.output
    assert not (tmp_path / "walks" / "ledger.db").exists()  # nothing is written into the trial's own ledger
    assert "1 replayed with every decision" in (tmp_path / "out" / "index.html").read_text()
    refused = called(tmp_path / "walks", *words, "--people", "pilot")
    assert "name their table with --pilot" in " ".join((refused.output + refused.stderr).split())


def test_the_help_names_every_policy_and_the_share_that_is_assumed():
    text = " ".join(called("--help").stdout.replace("│", " ").split())
    assert f"Policies to compare: {OURS} (the trial's own), {', '.join(POLICIES)};" in text
    assert f"somebody can act at {AVAILABLE:.0%}".replace("%", " %") in text
    assert "model:available=0.9" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "none"), "expected a number such as 20"),
        (("--grid", "slpe=5"), "did you mean 'slope'"),
        (("--people", "brushin"), "did you mean 'brushing'"),
        (("--people", "brushing", "--trouble", "usal"), "did you mean 'usual'"),
        (("--people", "model"), "name a protocol"),
        (("--people", "brushing", "--policy", "fixd"), "did you mean 'fixed'"),
        (("--people", "brushing", "--policy", "our"), "did you mean 'ours'"),
        (("--people", "brushing", "--policy", "zzz"), "there are ours, heartsteps"),
        (("--people", "heartsteps:available=80"), "above 0 and up to 1, got 80"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_what_cannot_be_simulated_is_refused_in_a_sentence(words, said, tmp_path):
    answer = called("--out", tmp_path, "--workers", 1, *words)
    assert answer.exit_code != 0
    assert said in " ".join((answer.output + answer.stderr).split()).replace("│ ", "").replace("│", "")
    assert "Traceback" not in answer.output
