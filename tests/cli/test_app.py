"""The command line as a whole: its help, and how whatever goes wrong ends in a sentence and an exit code."""

import errno
import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

from cli.invoke import run
from kerneltrail.cli.app import COMMANDS

MAIN = "from kerneltrail.cli.app import main; main()"
WAITING = f"""
import kerneltrail.studies.demo as demo, time
def run(out, **given):
    print("there", flush=True)
    time.sleep(60)
demo.run = run
{MAIN}
"""


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"kerneltrail {version('kerneltrail')}\n")


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("bench", "demo", "describe"))
    assert all(command.__name__ in result.stdout for command in COMMANDS)


def test_the_library_is_imported_only_when_needed():
    code = "import sys, kerneltrail.cli.app; print(*sorted({'numpy','numba','scipy','matplotlib'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_an_error_is_a_message_on_stderr_and_exit_code_2():
    result = run("describe", "LIN[x] + PR[hour]")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean PER?" in result.stderr
    assert "\n             ^" in result.stderr  # the caret still stands under the character
    assert "Traceback" not in result.stderr


def failing(monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("kerneltrail.studies.demo.run", fail)


def test_an_interrupt_is_exit_code_130(monkeypatch, tmp_path):
    failing(monkeypatch, KeyboardInterrupt)
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "Stopped.\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "page.html"),
            1,
            "page.html cannot be read or written: No sp",
        ),
        (OSError(errno.EIO, "Input/output error"), 1, "A file cannot be read or written: Input/output error"),
        (MemoryError(), 1, "not enough memory"),
        (ZeroDivisionError("nothing to divide by"), 70, "made a mistake: ZeroDivisionError: nothing to divide by"),
    ],
)
def test_what_the_machine_cannot_do_is_a_sentence(monkeypatch, tmp_path, error, code, sentence):
    failing(monkeypatch, error)
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == code
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_traceback_is_there_for_those_who_ask(monkeypatch, tmp_path):
    failing(monkeypatch, ZeroDivisionError("nothing to divide by"))
    assert isinstance(run("--traceback", "demo", "--out", tmp_path).exception, ZeroDivisionError)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_stop_it_with_a_word(tmp_path, sent, code):
    words = [sys.executable, "-c", WAITING, "demo", "--out", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        os.kill(process.pid, sent)
        _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert said.splitlines()[-1] == "Stopped."
    assert "Traceback" not in said


def test_a_reader_that_has_had_enough_is_no_error():
    words = [sys.executable, "-c", MAIN, "describe", " + ".join(f"SE[x{i}]" for i in range(12))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
