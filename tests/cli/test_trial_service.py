"""`kerneltrail trial serve`, `demo` and `openapi`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kerneltrail.cli.app import app
from kerneltrail.trial.analysis.writing import note_publication
from kerneltrail.trial.client import Client
from kerneltrail.trial.folder import make_folder
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.service import openapi
from trial.study import centred_model

SOURCE = Path(__file__).parents[2] / "src"


def started(*words):
    return subprocess.Popen(
        [sys.executable, "-c", "from kerneltrail.cli.app import main; main()", "trial", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1", "COLUMNS": "500"},
    )


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "pilot.trail"
    centred_model().save(model)
    make_folder(tmp_path / "walks", model, trial="walks")
    return tmp_path / "walks"


def run(*words):
    return CliRunner().invoke(app, ["trial", *map(str, words)])


def test_a_trial_is_served_until_somebody_stops_it(folder):
    assert run("freeze", "--folder", folder).exit_code == 0
    token = run("key", "create", "--folder", folder, "--scope", "app").stdout.split()[0]
    process = started("serve", "--folder", folder, "--port", "0")
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        client = Client(address, "walks", token)
        end = time.monotonic() + 120
        while not client.ready():
            assert time.monotonic() < end
            time.sleep(0.05)
        client.enrol("p01", timezone="UTC", starts_on=date(2026, 3, 1))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    assert out.strip() == "Stopped."
    assert "PUT /participants/{participant} 201" in err
    assert token not in err
    assert "Traceback" not in err


def test_a_trial_whose_key_everybody_may_have_is_not_served(folder, tmp_path):
    assert run("freeze", "--folder", folder).exit_code == 0
    ledger = Ledger(folder / "ledger.db", "walks")
    note_publication(ledger, Path("walks.zip"), datetime(2026, 5, 1, tzinfo=UTC))
    ledger.close()
    refused = run("serve", "--folder", folder)
    assert refused.exit_code == 2
    words = " ".join(refused.stderr.split())
    assert "the key of the draws was published in walks.zip on 2026-05-01" in words
    assert "begin a trial with a key of its own in another folder (`kerneltrail trial init`)" in words
    other = tmp_path / "example"
    other.mkdir()
    (other / "draw.key").write_text(bytes(range(32)).hex())
    make_folder(other, tmp_path / "pilot.trail", trial="walks")
    assert run("freeze", "--folder", other).exit_code == 0
    refused = run("serve", "--folder", other)
    assert refused.exit_code == 2
    assert "is one of the examples, which everybody has" in " ".join(refused.stderr.split())


def test_what_is_not_frozen_or_cannot_listen_is_a_sentence(folder):
    refused = run("serve", "--folder", folder)
    assert refused.exit_code == 2
    assert "freeze" in refused.stderr
    assert run("freeze", "--folder", folder).exit_code == 0
    refused = run("serve", "--folder", folder, "--host", "203.0.113.7", "--port", "1")
    assert refused.exit_code == 2
    assert "nothing can listen at 203.0.113.7" in refused.stderr


def test_the_description_is_written(tmp_path):
    assert run("openapi", "--out", tmp_path / "api.json").exit_code == 0
    assert json.loads((tmp_path / "api.json").read_text(encoding="utf-8")) == openapi()


@pytest.mark.slow
def test_the_demonstration_ends_with_the_replay_s_verdict_and_on_ctrl_c(tmp_path):
    done = started("demo", "--once", "--days", "1", "--out", tmp_path)
    out, err = done.communicate(timeout=500)
    assert done.returncode == 0, err
    assert "equal: all 100 decisions of demo come out as recorded" in out
    tokens = re.findall(r"kt_[0-9a-f]+_\S+", out)
    assert len(tokens) == 6
    assert "/desk and log in with the key after `desk:` above." in out
    assert out.index("  desk: kt_") < out.index("after `desk:` above")
    assert not any(token in err for token in tokens)
    assert "Ctrl-C" not in out
    live = started("demo", "--out", tmp_path, "--pause", "0.5")
    try:
        while "log in" not in live.stdout.readline():
            pass
        assert live.stdout.readline().startswith("Days pass in about 52 seconds each; participant lists fill")
        time.sleep(1.0)
        live.send_signal(signal.SIGINT)
        out, err = live.communicate(timeout=120)
    finally:
        live.kill()
        live.wait()
    assert live.returncode == 0, err
    assert out.endswith("Stopped.\n")
    assert "Traceback" not in err
