"""Where there is no PostgreSQL: a skip with a reason, a failure in CI."""

import importlib

import pytest

from trial import postgres


@pytest.fixture
def nowhere(monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.delenv(postgres.VARIABLE, raising=False)
    monkeypatch.setattr(importlib, "import_module", absent)


@pytest.mark.parametrize("value", ["", "false", "0"])
def test_elsewhere_the_test_is_skipped_and_says_why(nowhere, monkeypatch, value):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match="no PostgreSQL to test with"), postgres.server():
        pass


@pytest.mark.parametrize("value", ["true", "1"])
def test_in_ci_the_test_fails(nowhere, monkeypatch, value):
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.fail.Exception, match="must not go untested"), postgres.server():
        pass


def test_where_one_is_named_it_is_used(nowhere, monkeypatch):
    monkeypatch.setenv(postgres.VARIABLE, "postgresql://ann@host/tests")
    with postgres.server() as address:
        assert address == "postgresql://ann@host/tests"
