"""A trial that has lived, and somebody who looks at it."""

import warnings

import pytest

from kerneltrail.trial.service import CallLimits, create_app

from .living import Visitor, lived

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette would rather have httpx2, which few have yet
    from starlette.testclient import TestClient

LIMITS = CallLimits(rate=10_000.0, burst=10_000, refusals=10_000.0)


@pytest.fixture(scope="package")
def life(tmp_path_factory):
    """The trial and its clock; tests may add to it, and take nothing away."""
    trial, time = lived(tmp_path_factory.mktemp("desk") / "desk.db")
    yield trial, time
    trial.close()


@pytest.fixture(scope="package")
def state(life):
    return life[0].snapshot()


@pytest.fixture
def app(life):
    trial, time = life
    return create_app(trial, name="walks", limits=LIMITS, clock=time, interval=0, threads=2)


@pytest.fixture
def visitor(app, life):
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Visitor(client, life[0])


@pytest.fixture
def team(visitor):
    """Somebody who has logged in with all scopes but unblinded."""
    assert visitor.log_in("operator", "analyst", "monitor").status_code == 303
    return visitor
