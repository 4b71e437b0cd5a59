"""Files appear whole or not at all."""

import os

import pytest

from kerneltrail.errors import DataError
from kerneltrail.store.atomic import check_writable, write


def test_folders_are_made_and_nothing_is_left_beside(tmp_path):
    goal = write(tmp_path / "a" / "b.txt", "µ")
    assert goal.read_text(encoding="utf-8") == "µ"
    assert write(goal, b"\x00").read_bytes() == b"\x00"
    assert [path.name for path in goal.parent.iterdir()] == ["b.txt"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    goal = write(tmp_path / "a.txt", "old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(DataError, match=r"a\.txt cannot be written: No space left"):
        write(goal, "new")
    assert goal.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_path_is_tried_before_the_work(tmp_path):
    check_writable(tmp_path / "deep" / "rows.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataError, match="it is a folder"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"rows\.json cannot be written"):
        check_writable(tmp_path / "file" / "rows.json")


def test_a_check_leaves_no_folders_behind(tmp_path):
    (tmp_path / "there").mkdir()
    check_writable(tmp_path / "there" / "deep" / "deeper" / "rows.json")
    check_writable(tmp_path / "there" / "rows.json")
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_file_and_folder_are_on_the_disk_before_it_is_said(tmp_path, monkeypatch):
    """A rename that survives a power cut while the content does not would be an empty file."""
    order = []
    synced, renamed = os.fsync, type(tmp_path).replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("sync"), synced(handle)))
    monkeypatch.setattr(type(tmp_path), "replace", lambda self, goal: (order.append("rename"), renamed(self, goal)))
    write(tmp_path / "a.txt", "a")
    assert order == ["sync", "rename", "sync"]


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"a\.txt cannot be written: No space left"):
        write(tmp_path / "a.txt", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    assert write(tmp_path / ("a" * 255), "x").read_text() == "x"
