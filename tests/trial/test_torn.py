"""A process that ends between two things that belong together: both are recorded, or neither and then both."""

import pytest

from kerneltrail.trial import updating
from kerneltrail.trial.core import Core

from .running import BEGIN, Time, asked, begun, incidents, walked


class Ended(BaseException):
    """What ends a process in the middle, as a test can have it."""


@pytest.fixture
def ends(monkeypatch):
    """Let a block end where an incident should be recorded."""

    def block(call, *given, **named):
        def end(*_, **__):
            raise Ended

        with monkeypatch.context() as patch:
            patch.setattr(Core, "incident", end)
            with pytest.raises(Ended):
                call(*given, **named)

    return block


def test_a_killed_update_is_never_without_its_incident(trial, ends):
    walked(trial)
    trial._core.working.discard(updating.begin(trial._core, "to be killed", None, ""))  # nobody is at it any more
    ends(trial.update, reason="next")
    assert trial.updated("1").state == "running"
    assert trial.update(reason="next").state == "done"
    assert trial.updated("1").state == "killed"
    assert len(incidents(trial, "update-killed")) == 1


def test_a_failed_update_is_never_without_its_incident(trial, ends, monkeypatch):
    walked(trial)

    def broken(*_):
        raise ArithmeticError("no")

    with monkeypatch.context() as patch:
        patch.setattr(updating, "learn", broken)
        ends(trial.update, reason="one")
    assert trial.update(reason="two").state == "done"
    assert trial.updated("1").state == "killed"
    assert len(incidents(trial, "update-killed")) == 1


def test_an_action_that_nobody_assigned_is_never_without_its_incident(trial, ends):
    answers = [trial.decide(asked(index=index)) for index in range(12)]
    name = next(each.value["decision_id"] for each in answers if not each.value["action"])
    facts = {"status": "seen", "at": BEGIN, "delivered_action": 1}
    ends(trial.deliver, name, **facts)
    assert trial.deliver(name, **facts).new
    assert trial.deliver(name, **facts).repeated
    assert len(incidents(trial, "delivered-otherwise")) == 1


def test_a_copy_that_was_broken_off_is_named_where_data_are_removed(trial, location, tmp_path, monkeypatch):
    walked(trial)
    folder = tmp_path / "copies"
    again = begun(location, Time(), backups=folder)

    def end(*_):
        raise Ended

    with monkeypatch.context() as patch:  # a kill leaves what was written so far, since nobody tidies up
        patch.setattr("pathlib.Path.replace", end)
        patch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
        with pytest.raises(Ended):
            again.update(reason="to be killed")
    (left,) = folder.iterdir()
    assert again.remove("p01", reason="asked").backups == (left,)
    again.close()
