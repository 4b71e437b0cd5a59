"""What is kept and handed out: no secret of a key, no key of the draws, nothing of somebody whose data were removed."""

import logging

import pytest

from kerneltrail.trial.export import FORMATS, TABLES

from ..running import begun, enrol
from ..study import DRAWS
from .calls import PERSON, SCOPES, outcome
from .conftest import served


@pytest.fixture
def lived(location, time, tmp_path, caplog):
    """A trial that was called in every way, with a copy: the caller, and where all is kept."""
    caplog.set_level(logging.DEBUG)
    trial = begun(location, time, warm=False, backups=tmp_path / "copies")
    enrol(trial, "p01")
    for call in served(trial, time):
        for scope in SCOPES:
            call.token(scope)
        call("PUT", "participants/p02", {**PERSON, "attributes": {"diagnosis": "melancholic"}})
        for person in ("p01", "p02"):
            decision = call.decide(person, steps=117.25).json()
            call("POST", "outcomes", {"items": [outcome(decision, 4711.5 if person == "p02" else 1.0)]})
        call.decide("p01", steps=118.25)  # a conflict, which is an incident
        trial.update(reason="test")
        yield call
    trial.close()


def kept(trial, folder):
    """Everything that is on the disk: the ledger entry by entry, its file, and copies."""
    entries = b"".join((each.content or b"") + (each.response or b"") for each in trial._core.ledger.entries())
    return entries + b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def handed_out(call):
    """Everything that the service hands out."""
    paths = [f"export/{table}.{format}" for table in TABLES for format in FORMATS if format != "parquet"]
    paths += ["participants/p01", "participants/p02", "policies", "incidents", "metrics", "/v1/openapi.json", "nothing"]
    found = b""
    for path in paths:
        for scope in SCOPES:
            found += call("GET", path, scope=scope).content
    return found


def test_no_secret_is_kept_or_handed_out(lived, tmp_path, caplog):
    everything = kept(lived.trial, tmp_path) + handed_out(lived) + caplog.text.encode()
    assert DRAWS.commitment.encode() in everything  # that is published
    for secret in (DRAWS.key, DRAWS.key.hex().encode()):
        assert secret not in everything
    for scope in SCOPES:
        assert lived.token(scope).split("_", 2)[2].encode() not in everything
        assert lived.token(scope).split("_")[1].encode() in everything  # by its id a key can be revoked


def test_what_was_removed_is_nowhere_but_in_copies_that_are_named(lived, tmp_path):
    words = (b"melancholic", b"4711.5")
    assert all(word in kept(lived.trial, tmp_path) for word in words)
    done = lived.trial.remove("p02", reason="asked")
    assert done.overwritten
    for path in done.backups:
        path.unlink()
    everything = kept(lived.trial, tmp_path) + handed_out(lived)
    assert not any(word in everything for word in words)
