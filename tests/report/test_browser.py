"""Where there is no Chromium: a skip with a reason, a failure in CI, and an installation where that may be."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from report import browser

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)


@pytest.mark.parametrize("value", ["", "false", "0"])
def test_elsewhere_the_test_is_skipped_and_says_why(nowhere, monkeypatch, value):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match="no Chromium on the PATH"):
        browser.needed()


@pytest.mark.parametrize("value", ["true", "1"])
def test_in_ci_the_test_fails(nowhere, monkeypatch, value):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match="must not go untested"):
        browser.needed()


def test_where_there_is_one_it_is_used(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/chrome" if name == "google-chrome" else None)
    assert browser.needed() == "/opt/chrome"


class TestMake:
    """`make browser`, with nothing on the PATH but what a test puts there."""

    @pytest.fixture
    def run(self, tmp_path):
        make = shutil.which("make")
        if make is None:
            pytest.skip("no make on the PATH")
        os.symlink(shutil.which("env"), tmp_path / "env")

        def run(**programs):
            for name, body in programs.items():
                path = tmp_path / name.replace("_", "-")
                path.write_text(f"#!/bin/sh\n{body}\n")
                path.chmod(0o755)
            done = subprocess.run(
                [make, "--no-print-directory", "browser"], cwd=ROOT, env={"PATH": str(tmp_path)}, text=True,
                capture_output=True, timeout=60,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            log = tmp_path / "asked"
            return done.stdout, log.read_text().splitlines() if log.exists() else []

        self.log = f'echo "$@" >> {tmp_path / "asked"}'
        return run

    def test_root_installs_by_apt(self, run):
        said, asked = run(id="echo 0", apt_get=self.log)
        assert [words.split()[-1] for words in asked] == ["update", "chromium-driver"]
        assert "install -y --no-install-recommends chromium chromium-driver" in asked[1]
        assert "installing" in said

    def test_another_user_needs_sudo_that_asks_nothing(self, run):
        assert run(id="echo 1000", apt_get=self.log, sudo="exit 1") == ("", [])
        _, asked = run(id="echo 1000", apt_get=self.log, sudo='shift; exec "$@"', true="exit 0")
        assert len(asked) == 2

    def test_nothing_is_done_where_there_is_a_browser_or_no_apt(self, run):
        assert run(id="echo 0") == ("", [])
        assert run(id="echo 0", apt_get=self.log, google_chrome="") == ("", [])

    def test_an_installation_that_fails_stops_nothing(self, run):
        said, _ = run(id="echo 0", apt_get="exit 100")
        assert "could not be installed" in said
