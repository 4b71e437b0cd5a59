"""A service on a small trial, called without a network."""

import warnings

import pytest

from kerneltrail.trial.service import CallLimits, create_app

from ..running import Time, agreed, begun, enrol
from .calls import Caller

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette would rather have httpx2, which few have yet
    from starlette.testclient import TestClient


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def trial(tmp_path, time):
    """On SQLite; a test that asks for `location` too has both databases."""
    opened = begun(tmp_path / "service.db", time, protocol=agreed(), warm=False)
    enrol(opened, "p01", "p02")
    yield opened
    opened.close()


@pytest.fixture
def call(trial, time):
    yield from served(trial, time)


@pytest.fixture
def both(location, time):
    """A caller of a service, once on SQLite and once on PostgreSQL."""
    opened = begun(location, time, protocol=agreed(), warm=False)
    enrol(opened, "p01", "p02")
    yield from served(opened, time)
    opened.close()


def served(trial, time, **options):
    limits = options.pop("limits", CallLimits(rate=10_000.0, burst=10_000, refusals=10_000.0))
    app = create_app(trial, name="walks", limits=limits, clock=time, interval=0, threads=2, **options)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Caller(client, trial)
