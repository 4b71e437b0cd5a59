"""Progress: bars on a terminal, lines elsewhere, from the first second."""

import time

import pytest

from kerneltrail.cli import terminal
from kerneltrail.cli.terminal import progress


@pytest.fixture
def hurried(monkeypatch):
    for name, seconds in (("FIRST", 0.05), ("EVERY", 0.05), ("SELDOM", 0.05)):
        monkeypatch.setattr(terminal, name, seconds)


def test_bars_are_drawn_on_a_terminal_only(monkeypatch, capsys):
    for forced in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", forced)
        with progress() as display:
            display.update("chains", 1, 2, "log joint -12.3")
            next_user = display.counter("users [x]", 2)
            next_user("ann [x]")
            next_user("bob")
        captured = capsys.readouterr()
        assert captured.out == ""
        assert ("log joint" in captured.err and "bob" in captured.err) == bool(forced)


def test_bars_that_are_kept_stay(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress(keep=True) as display:
        display.update("model [x]", 3, 10, "fitting")
        display.update("model [x]", 1, 1, "2.0 s, kept from an earlier run")
    drawn = capsys.readouterr().err
    assert "kept from an earlier run" in drawn
    assert not drawn.endswith("\x1b[2K")  # the last lines are not wiped


def test_the_bar_is_there_before_the_first_step(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("reading pilot.csv"):
        pass
    assert "reading pilot.csv" in capsys.readouterr().err


def test_lines_come_while_one_step_takes_long(capsys, hurried):
    with progress("reading") as display:
        time.sleep(0.12)
        display.update("users", 3, 8, "ann")
        time.sleep(0.12)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert "0 s  reading" in lines[0]
    assert "0 s  users 3/8: ann" in lines[-1]
    assert "\x1b" not in captured.err


def test_quick_work_says_nothing(capsys):
    with progress() as display:
        display.update("users", 1, 2)
    assert capsys.readouterr().err == ""


def test_a_closed_standard_error_does_not_end_the_work(monkeypatch, hurried):
    class Closed:
        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

        def isatty(self):
            return False

    monkeypatch.setattr("sys.stderr", Closed())
    with progress():
        time.sleep(0.12)
