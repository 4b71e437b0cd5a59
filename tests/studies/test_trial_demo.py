"""The demonstration of a trial: a day of three participants over a real server, replayed."""

from collections import Counter
from datetime import timedelta

import pytest

from kerneltrail.studies import trial_demo
from kerneltrail.studies.trial_demo import Size
from kerneltrail.trial.analysis.analysis import AnalysisSettings
from kerneltrail.trial.analysis.writing import analyse_folder
from kerneltrail.trial.folder import Folder

SMALL = Size(pilots=4, participants=3, pilot_days=8, days=2, sweeps=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demonstration")


def test_the_demonstration_runs_to_its_end_and_replays(folder):
    lines = []
    with trial_demo.demonstration(folder, size=SMALL, say=lines.append) as running:
        assert set(running.tokens) == {"app", "operator", "analyst", "monitor", "desk", "unblinded"}
        assert running.address.startswith("http://127.0.0.1:")
        running.run()
        verdict = running.verdict()
        versions = [each.version for each in running.trial.policies()]
        rungs = Counter(point.available for point in running.points)
        chain = running.trial.verify()
        with running.trial.reading() as state:
            people = list(state.participants.values())
    assert verdict.same
    assert verdict.equal == verdict.exact == 30 == sum(rungs.values())
    assert versions == ["1", "2", "3"]
    assert chain.sound
    assert [line.partition(":")[0] for line in lines] == ["2026-03-02", "2026-03-03"]
    assert "policy 3 serves" in lines[-1]
    assert len(people) == 3
    # Nobody's time is over at the end, or who is silent would need no call any more.
    assert all(person.enrolled["ends_on"] > running.points[-1].at.date().isoformat() for person in people)
    kept = "\n".join(path.name for path in folder.rglob("*"))
    assert kept.count("ledger.db") >= 1


def test_what_is_left_is_a_trials_folder_that_can_be_analysed(folder, tmp_path):
    study = Folder(folder / "run-1")
    assert (folder / "run-1" / "draw.key").stat().st_mode & 0o077 == 0
    opened = study.open()
    assert opened.replay("participant-01").same
    opened.close()
    with study.ledger() as ledger:
        analysis, lines = analyse_folder(study, ledger, tmp_path / "results", AnalysisSettings())
    assert analysis.flow.started == 3
    assert lines[-1].startswith("Open ")


def test_the_model_is_kept_for_the_next_run(folder, monkeypatch):
    monkeypatch.setattr(trial_demo, "fit", lambda *_, **__: pytest.fail("it was fitted again"))
    with trial_demo.demonstration(folder, size=SMALL) as running:
        assert running.client("monitor").timeout == 60.0
    assert {path.name for path in folder.glob("run-*")} == {"run-1", "run-2"}


def test_outcomes_answer_to_actions():
    first = trial_demo.points(SMALL, 0)[0]
    assert first.outcome(1) - first.outcome(0) == pytest.approx(first.effect)
    times = [point.at for point in trial_demo.points(SMALL, 0)]
    assert times == sorted(times)
    assert len(times) == 3 * 2 * 5


def test_who_needs_a_call_is_silent_early_enough_to_be_seen_within_a_minute():
    """A day passes in 12 seconds by default, and one who is silent for a day is listed: at the end of the third."""
    everybody = trial_demo.points(Size(pilots=2), 0)
    last = {}
    for point in everybody:
        last[point.participant] = point.at.date()
    assert {name for name, day in last.items() if day != max(last.values())} == {"participant-07"}
    assert last["participant-07"] == trial_demo.BEGIN.date() + timedelta(days=1)
    running = trial_demo.Demonstration("", {}, None, None, None, everybody, None)
    assert running.day_seconds(0.1) == 12
    assert 4 * running.day_seconds(0.1) < 60
