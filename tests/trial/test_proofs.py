"""Proofs that are asked for while decisions are made: in a process of their own, or here in short turns."""

import os
import sys
from functools import partial

import pytest

from kerneltrail.engines.turns import TURN
from kerneltrail.errors import TrialError
from kerneltrail.trial import proofs, rerun
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.ledger import Ledger

from .running import begun, broken, enrol, models, walked
from .study import DRAWS


def opened(location):
    return Trial.open(Ledger(location, "walks", patience=30), key=DRAWS.key, models=models())


def without_models(location):
    """A trial whose replay is refused."""
    trial = opened(location)
    trial.prove = refused
    return trial


def refused(kind):
    raise TrialError(f"no {kind} today")


@pytest.fixture
def location(tmp_path):
    where = tmp_path / "proofs.db"
    trial = begun(where, warm=False)
    enrol(trial, "p01")
    walked(trial)
    trial.close()
    return where


def served(location, again):
    return Trial.open(Ledger(location, "walks", patience=30), key=DRAWS.key, models=models(), again=again)


def test_a_served_trial_is_replayed_and_verified_in_a_process_of_its_own(location, monkeypatch):
    trial = served(location, partial(opened, location))
    monkeypatch.setattr(rerun, "replay", broken)  # here, and not there
    monkeypatch.setattr(proofs, "verify", broken)
    good, words = trial.prove("replay")
    assert good
    assert words == "equal: all 4 decisions of walks come out as recorded, 4 to the last bit"
    good, words = trial.prove("verify")
    assert good
    assert words.startswith("the ledger of walks is sound")
    trial.close()


def test_what_the_process_cannot_do_is_said(location):
    trial = served(location, partial(os._exit, 3))
    with pytest.raises(TrialError, match="its process ended with the code 3"):
        trial.prove("replay")
    trial.close()
    trial = served(location, partial(without_models, location))
    with pytest.raises(TrialError, match="no verify today"):
        trial.prove("verify")
    trial.close()


def test_where_there_is_no_other_process_threads_take_short_turns(location, monkeypatch):
    trial, inner, turns = served(location, None), rerun.replay, []
    monkeypatch.setattr(rerun, "replay", lambda *a: turns.append(sys.getswitchinterval()) or inner(*a))
    assert trial.prove("replay")[0]
    assert turns == [pytest.approx(TURN)]
    trial.close()
