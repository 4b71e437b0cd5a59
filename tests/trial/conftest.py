"""The same tests on SQLite and on PostgreSQL: each has a database of its own, or a schema of its own."""

import uuid
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from kerneltrail.trial.ledger import Ledger
from trial import postgres
from trial.running import Time, begun, enrol


@pytest.fixture(scope="session")
def postgres_url():
    with postgres.server() as address:
        yield make_url(address).set(drivername="postgresql+psycopg")


@pytest.fixture
def schemas(postgres_url):
    """A function that makes an empty schema and returns its address."""
    engine = create_engine(postgres_url)
    names = []

    def make():
        names.append(f"test_{uuid.uuid4().hex}")
        with engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {names[-1]}"))
        options = {"options": f"-csearch_path={names[-1]}"}
        return postgres_url.update_query_dict(options).render_as_string(hide_password=False)

    yield make
    with engine.begin() as connection:
        for name in names:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture
def postgresql(schemas):
    """The address of an empty schema."""
    return schemas()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path):
    """Where a ledger may lie: a path or an address."""
    return tmp_path / "ledger.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture
def clock():
    """A clock that goes on by a second whenever it is asked."""
    ticks = count()
    return lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))


@pytest.fixture
def ledger(location, clock):
    with Ledger(location, "walking", clock=clock) as opened:
        yield opened


@pytest.fixture
def time():
    """A clock that stands until a test sets it."""
    return Time()


@pytest.fixture
def trial(location, time):
    """A trial of two participants."""
    opened = begun(location, time)
    enrol(opened, "p01", "p02")
    yield opened
    opened.close()
