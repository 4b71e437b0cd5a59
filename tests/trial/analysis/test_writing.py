"""From a folder to files: what is written, and the note in the ledger of a trial that still runs."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from kerneltrail.errors import DataError, TrialError
from kerneltrail.trial.alarms import PUBLISHED, alerts
from kerneltrail.trial.analysis import writing
from kerneltrail.trial.analysis.analysis import AnalysisSettings, is_live
from kerneltrail.trial.analysis.fidelity import fidelity_of
from kerneltrail.trial.analysis.record import read_record
from kerneltrail.trial.analysis.repetition import repeat
from kerneltrail.trial.analysis.writing import analyse_folder, note_publication
from kerneltrail.trial.ledger import verify

from ..running import BEGIN, enrol, walked
from .study import LAST, read


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pages are drawn elsewhere."""
    monkeypatch.setattr(
        writing, "analysis_page", lambda analysis, title, running: f"<h1>{title}, running {running}</h1>"
    )


def notes(folder):
    return read(folder)[0].looks


def test_everything_is_written_and_an_ended_trial_gets_no_note(copied, tmp_path):
    with copied.ledger() as ledger:
        analysis, lines = analyse_folder(copied, ledger, tmp_path / "out", AnalysisSettings())
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {
        "analysis.html", "settings.json", "tables.md", "tables.tex",
        *(f"tables/{table.name}.csv" for table in analysis.tables()),
    }  # fmt: skip
    assert notes(copied) == []
    assert "running None" in (tmp_path / "out" / "analysis.html").read_text()
    assert lines[0].startswith("Open ")
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["level"] == 0.95
    assert (tmp_path / "out" / "tables.tex").read_text().count(r"\begin{table}") == len(analysis.tables())


def test_on_a_running_trial_it_is_noted_and_the_numbers_stay_the_same(copied, tmp_path):
    trial = copied.open()
    trial.enrol("p10", timezone="Europe/Zurich", starts_on=BEGIN.date(), ends_on=date(2100, 1, 1))
    trial.close()
    with copied.ledger() as ledger:
        options = {"now": BEGIN, "by": "A. Analyst"}
        first, lines = analyse_folder(copied, ledger, tmp_path / "one", AnalysisSettings(), **options)
        second, _ = analyse_folder(copied, ledger, tmp_path / "two", AnalysisSettings(), **options)
        assert verify(ledger).sound
        with pytest.raises(TrialError, match="with the key of the draws everybody could compute the draws to come"):
            analyse_folder(copied, ledger, tmp_path / "three", AnalysisSettings(), draws=copied.draws(), **options)
    assert first.flow.ongoing == 1
    assert "None, running 20" in (tmp_path / "one" / "analysis.html").read_text()
    assert "noted in its ledger" in lines[0]
    assert [(each.by, each.payload["what"]) for each in notes(copied)] == [("A. Analyst", "analysis")] * 2
    assert [table.csv() for table in first.tables()] == [table.csv() for table in second.tables()]


def test_a_package_of_a_running_trial_has_what_was_analysed_and_repeats_itself(copied, tmp_path):
    """Somebody walks on, and gives an outcome, while the page is drawn."""
    trial = copied.open()
    enrol(trial, "p10", ends_on=date(2100, 1, 1))
    walked(trial, "p10", range(2))

    def go_on(now):
        if now.stage == writing.DRAWING:
            walked(trial, "p10", range(2, 6))

    zipped = tmp_path / "walks.zip"
    with copied.ledger() as ledger:
        options = {"package": zipped, "tell": go_on, "now": BEGIN}
        analysis, _ = analyse_folder(copied, ledger, tmp_path / "out", AnalysisSettings(), **options)
        repeated = repeat(zipped)
        assert repeated.entries == analysis.record.state.sequence < ledger.head().sequence
    trial.close()
    assert repeated.same, repeated.lines()


def test_no_package_is_written_if_data_were_removed_meanwhile(copied, tmp_path):
    trial = copied.open()

    def remove(now):
        if now.stage == writing.DRAWING:
            trial.remove("p06", reason="asked for by letter")

    zipped = tmp_path / "walks.zip"
    with copied.ledger() as ledger, pytest.raises(TrialError, match="removed from the ledger while it was analysed"):
        analyse_folder(copied, ledger, tmp_path / "out", AnalysisSettings(), package=zipped, tell=remove)
    trial.close()
    assert not zipped.exists()


def test_on_somebodys_last_day_the_trial_still_runs(record):
    early = replace(record, until=BEGIN)
    assert is_live(early, datetime(LAST.year, LAST.month, LAST.day, 22, tzinfo=UTC))
    assert not is_live(early, datetime(LAST.year, LAST.month, LAST.day, 23, 30, tzinfo=UTC))  # past midnight in Zurich


def test_that_the_key_of_the_draws_is_public_is_recorded_once_and_alerted(copied):
    state, protocol = read(copied)
    assert not [each for each in alerts(state, protocol, BEGIN) if each.kind == PUBLISHED]
    with copied.ledger() as ledger:
        for _ in range(2):
            assert "stop the trial's servers" in note_publication(ledger, Path("walks.zip"), BEGIN)
        assert verify(ledger).sound
    state, _ = read(copied)
    first = alerts(state, protocol, BEGIN)[0]
    assert (first.kind, first.severity) == (PUBLISHED, "error")
    assert "the key of the draws was published in walks.zip on 2026-03-01" in first.words
    assert fidelity_of(read_record(state, protocol)).incidents == {(PUBLISHED, "error"): 1}


def test_a_wrong_name_is_refused_before_anything_is_noted(copied, tmp_path):
    before = read(copied)[0].sequence
    with copied.ledger() as ledger:
        for settings in (
            AnalysisSettings(moderators=("hours",)),
            AnalysisSettings(controls=("step",)),
            AnalysisSettings(kind="rest"),
        ):
            with pytest.raises(DataError):
                analyse_folder(copied, ledger, tmp_path / "out", settings, now=BEGIN)
    assert read(copied)[0].sequence == before
    assert not (tmp_path / "out").exists()
