"""Which copies of the ledger are kept: a rule, and that it is applied after each copy."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.keeping import USUAL, Keeping
from kerneltrail.trial.ledger.copies import restore

from .running import begun, enrol, walked

MONDAY = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


def copies(*hours):
    return [Path(f"ledger-{MONDAY + timedelta(hours=each):%Y%m%dT%H%M%S}-before-update-{each}.db") for each in hours]


def kept(rule, every):
    gone = rule.superfluous(reversed(every))
    assert gone == [path for path in every if path in gone]  # oldest first
    return [path for path in every if path not in gone]


def test_the_last_copies_are_kept_and_the_newest_of_each_day_and_week():
    every = copies(0, 1, 2, 24, 25, 48, 168, 169, 336, 337, 338)
    assert kept(Keeping(2, 0, 0), every) == copies(337, 338)
    assert kept(Keeping(1, 3, 0), every) == copies(48, 169, 338)
    assert kept(Keeping(1, 4, 0), every) == copies(25, 48, 169, 338)
    assert kept(Keeping(1, 0, 3), every) == copies(48, 169, 338)  # weeks begin on Monday
    assert kept(Keeping(1, 0, 2), every) == copies(169, 338)
    assert kept(Keeping(3, 5, 3), every) == copies(2, 25, 48, 169, 336, 337, 338)
    assert kept(Keeping(None, 0, 0), every) == every
    assert kept(Keeping(1, 0, 0), []) == []


def test_a_daily_copy_of_a_year_comes_to_few_files():
    every = copies(*range(0, 24 * 365, 24))
    left = kept(Keeping(), every)
    assert left[-14:] == every[-14:]
    assert len(left) == 14 + 26 - 3  # three of the weeks end within the last fourteen days


def test_what_is_no_copy_before_an_update_is_never_deleted(tmp_path):
    names = ["ledger-20260302T030000-by-hand.db", "ledger.db", "ledger-x-before-update-1.db", "notes.txt"]
    for name in (*names, *map(str, copies(0, 1, 2))):
        (tmp_path / name).write_text("")
    assert [path.name for path in Keeping(1, 0, 0).thin(tmp_path)] == list(map(str, copies(0, 1)))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, *map(str, copies(2))])


@pytest.mark.parametrize("text", ["", "1,2", "1,2,3,4", "1,2,x", "0,1,1", "-1,2,3"])
def test_a_rule_that_cannot_be_is_refused(text):
    with pytest.raises(DataError, match="cop"):
        Keeping.of(text)


def test_a_rule_is_read_from_a_text():
    assert Keeping.of("3, 2,1") == Keeping(3, 2, 1)
    assert Keeping.of(USUAL) == Keeping()
    assert Keeping.of("all").last is None


def test_copies_are_thinned_after_each_update_and_the_newest_can_be_restored(location, time, tmp_path):
    folder = tmp_path / "copies"
    trial = begun(location, time, backups=folder, keep=Keeping(2, 0, 0))
    enrol(trial, "p01")
    by_hand = trial.backup()
    for number in range(4):
        walked(trial, indices=[number])
        time.go(minutes=1)
        assert trial.update(reason="test").state == "done"
    left = sorted(folder.iterdir())
    assert [path.stem.rpartition("-")[2] for path in left if path != by_hand] == ["3", "4"]
    assert by_hand in left
    (verdict,) = restore(left[-1], tmp_path / "restored.db")
    assert verdict.sound
    trial.close()
