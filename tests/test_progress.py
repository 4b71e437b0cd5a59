"""Progress: stages that are counted, estimates of what is left, bars on a terminal, lines elsewhere."""

import io
import math
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from rich.console import Console

from kerneltrail import progress as module
from kerneltrail.progress import Progress, ProgressDisplay, reporting, show_progress


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hurried(monkeypatch):
    for name, seconds in (("FIRST", 0.05), ("EVERY", 0.05), ("SELDOM", 0.05)):
        monkeypatch.setattr(module, name, seconds)


def drawn(display, width=100):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(display.bars())
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


class TestEstimate:
    def test_for_steady_work_it_is_finite_exact_and_decreasing(self, clock):
        display = ProgressDisplay("walking", clock=clock)
        heard = []
        for done in range(61):
            display.show(Progress("walking", done, 60))
            for _ in range(4):  # it is asked between steps too
                heard.append((clock.now, display._current.left(clock.now)))
                clock.now += 0.5
        assert all(left is None for _, left in heard[:8])  # before two steps are done nothing is known
        known = heard[8:]
        assert all(math.isfinite(left) for _, left in known)
        assert all(after <= before for (_, before), (_, after) in pairwise(known))
        assert all(left == pytest.approx(max(220.0 - now, 0.0)) for now, left in known)

    def test_it_follows_a_pace_that_changes(self, clock):
        display = ProgressDisplay("walking", clock=clock)
        for done in range(101):  # ten seconds a step, then one
            display.show(Progress("walking", done, 200))
            clock.now += 10.0 if done < 20 else 1.0
        assert display._current.left(clock.now) < 300.0  # by the pace of all steps 380

    def test_a_long_step_does_not_lead_below_the_steps_after_it(self, clock):
        display = ProgressDisplay("walking", clock=clock)
        for done in range(4):
            display.show(Progress("walking", done, 10))
            clock.now += 2.0
        clock.now += 60.0
        assert display._current.left(clock.now) == pytest.approx(12.0)

    def test_what_starting_takes_is_not_the_pace(self, clock):
        display = ProgressDisplay("walking", clock=clock)
        display.show(Progress("walking", 0, 40))
        clock.now += 30.0
        for done in range(1, 4):
            display.show(Progress("walking", done, 40))
            clock.now += 2.0
        assert display._current.left(clock.now - 2.0) == pytest.approx(74.0)

    def test_it_begins_with_the_count_and_anew_where_the_count_falls(self, clock):
        display = ProgressDisplay("fitting", clock=clock)
        clock.now += 60.0  # compiling, say
        for total in (40, 1000):
            for done in range(11):
                display.show(Progress("fitting", done, total))
                clock.now += 1.0
            assert display._current.left(clock.now - 1.0) == pytest.approx(total - 10)

    def test_a_fit_that_goes_on_is_judged_by_what_it_does_now(self, clock):
        display = ProgressDisplay("sampling", clock=clock)
        for done in (900, 925, 950):
            clock.now += 5.0
            display.show(Progress("sampling", done, 1000))
        assert display._current.left(clock.now) == pytest.approx(10.0)

    def test_what_is_done_needs_no_time(self, clock):
        display = ProgressDisplay("fitting", clock=clock)
        display.show(Progress("fitting", 0, 0))
        assert display._current.left(clock.now) == 0.0

    def test_in_words(self, clock):
        display = ProgressDisplay("reading pilot.csv", "fitting candidates", clock=clock)
        assert display.line() == "    0 s  stage 1 of 2: reading pilot.csv"
        clock.now += 2.0
        for done in (0, 60, 120):
            display.show(Progress("fitting candidates", done, 846, "level 1 of 4", "at least"))
            clock.now += 5.0
        clock.now -= 5.0
        expected = "stage 2 of 2: fitting candidates 120/846+, at least 60 s left: level 1 of 4"
        assert display.line() == f"   12 s  {expected}"


class TestStages:
    def test_they_are_counted_and_one_that_was_not_planned_too(self, clock):
        display = ProgressDisplay("reading", "fitting", clock=clock)
        assert "stage 1 of 2: reading" in display.line()
        display.show(Progress("fitting", 1, 2))
        assert "stage 2 of 2: fitting 1/2" in display.line()
        display.plan("drawing", "fitting")
        assert "stage 2 of 3: fitting 1/2" in display.line()
        display.show(Progress("tidying"))
        assert "stage 4 of 4: tidying" in display.line()

    def test_a_single_one_has_no_number(self, clock):
        assert ProgressDisplay("reading", clock=clock).line() == "    0 s  reading"
        assert ProgressDisplay(clock=clock).line() == "    0 s  starting"

    def test_each_has_a_bar_its_time_and_what_is_left(self, clock):
        display = ProgressDisplay("reading [x]", "fitting", "sampling", clock=clock)
        clock.now += 61.0
        for done in (0, 20, 40):
            display.show(Progress("fitting", done, 80, "level 1 of 4", "at least"))
            clock.now += 5.0
        rows = drawn(display)
        assert len(rows) == 3  # of what has not begun there is none
        assert rows[0].startswith("stage 1 of 3: reading [x] ━━━━")
        assert rows[0].endswith("1:01")
        assert rows[1].startswith("stage 2 of 3: fitting")
        assert rows[1].endswith("40/80+ 0:15, at least 10 s left")
        assert rows[2] == "  level 1 of 4"
        display.show(Progress("sampling", 1, 2))
        display.end()
        rows = drawn(display)
        assert rows[1].endswith("40/80+ 0:15")  # what has ended has nothing left
        assert rows[2].endswith("1/2    0:00")

    def test_a_narrow_terminal_loses_the_bar_first(self, clock):
        display = ProgressDisplay("reading", "fitting candidates", clock=clock)
        for done in (0, 60, 120):
            display.show(Progress("fitting candidates", done, 846, bound="at least"))
            clock.now += 6.0
        row = drawn(display, 80)[1]
        assert row.startswith("stage 2 of 2: fitting candidates ")
        assert row.endswith("━╸            120/846+ 0:18, at least 72 s left")

    def test_of_many_the_newest_are_shown(self, clock):
        display = ProgressDisplay(clock=clock)
        for number in range(40):
            display.show(Progress(f"part {number}", said="at it"))
        rows = drawn(display)
        assert len(rows) == module.ROWS + 1
        assert rows[-2].startswith("stage 40: part 39")  # nobody said of how many

    def test_a_counter_names_the_steps(self, clock):
        display = ProgressDisplay("measuring", clock=clock)
        next_step = display.counter("measuring", 3)
        next_step("one")
        assert display.line().endswith("measuring 0/3: one")
        clock.now += 3.0
        next_step("two")
        clock.now += 3.0
        next_step("three")
        assert display.line().endswith("measuring 2/3, about 3 s left: three")


class TestWhere:
    def test_bars_are_drawn_on_a_terminal_only(self, monkeypatch, capsys):
        for forced in ("", "1"):
            monkeypatch.setenv("FORCE_COLOR", forced)
            with show_progress("sampling", "users [x]") as display:
                display.show(Progress("users [x]", 1, 2, "ann [x]"))
            captured = capsys.readouterr()
            assert captured.out == ""
            assert ("users [x]" in captured.err and "ann [x]" in captured.err) == bool(forced)

    def test_bars_that_are_kept_stay(self, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        with show_progress(keep=True) as display:
            display.show(Progress("model [x]", 3, 10, "fitting"))
            display.show(Progress("model [x]", 1, 1, "2.0 s, kept from an earlier run"))
        written = capsys.readouterr().err
        assert "kept from an earlier run" in written
        assert not written.endswith("\x1b[2K")  # the last lines are not wiped

    def test_what_is_printed_in_a_pause_stands_whole(self, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        with show_progress("reading", "walking") as display:
            display.show(Progress("walking", 1, 2, "on and on"))
            with display.pause():
                before = capsys.readouterr().err
                print("8 users")
                assert capsys.readouterr() == ("8 users\n", "")
            after = capsys.readouterr().err
        assert before.endswith("\x1b[2K")  # wiped before the words
        assert "stage 2 of 2: walking" in after  # and there again after them
        assert "\x1b[1A" not in after.partition("walking")[0]  # below them, not over them

    def test_lines_come_while_one_step_takes_long(self, capsys, hurried):
        with show_progress("reading", "users") as display:
            time.sleep(0.12)
            display.show(Progress("users", 3, 8, "ann"))
            time.sleep(0.12)
        captured = capsys.readouterr()
        assert captured.out == ""
        lines = captured.err.splitlines()
        assert "0 s  stage 1 of 2: reading" in lines[0]
        assert "0 s  stage 2 of 2: users 3/8: ann" in lines[-1]
        assert "\x1b" not in captured.err

    def test_the_first_line_comes_within_the_first_second(self):
        assert module.FIRST < 1.0
        code = (
            "from kerneltrail.progress import show_progress\nimport time\nwith show_progress('walking'): time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
            first = process.stderr.readline()
            process.kill()
        assert first == "    1 s  walking\n"

    def test_quick_work_says_nothing(self, capsys):
        with show_progress() as display:
            display.show(Progress("users", 1, 2))
        assert capsys.readouterr().err == ""

    def test_a_closed_standard_error_does_not_end_the_work(self, monkeypatch, hurried):
        class Closed:
            def write(self, text):
                raise BrokenPipeError

            def flush(self):
                raise BrokenPipeError

            def isatty(self):
                return False

        monkeypatch.setattr("sys.stderr", Closed())
        with show_progress():
            time.sleep(0.12)

    def test_it_is_lines_where_there_is_no_rich(self, monkeypatch, capsys, hurried):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setitem(sys.modules, "rich.console", None)
        with show_progress("walking"):
            time.sleep(0.12)
        assert capsys.readouterr().err.startswith("    0 s  walking\n")


class TestReporting:
    def test_a_function_hears_it_all_and_nobody_hears_nothing(self, capsys):
        heard = []
        for progress in (heard.append, None, False):
            with reporting(progress, "walking") as tell:
                tell(Progress("walking", 1, 2))
        assert heard == [Progress("walking", 1, 2)]
        assert capsys.readouterr().err == ""

    def test_true_is_the_display(self, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        with reporting(True, "walking", "resting") as tell:
            tell(Progress("walking", 1, 2))
        assert "stage 1 of 2: walking" in capsys.readouterr().err
