"""Trials run anew: with the trial's own draws nothing changes; with others, outcomes follow the null alone."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import numpy as np
import pytest

from kerneltrail.errors import NumericalError, TrialError
from kerneltrail.trial.analysis.draws import NewDraws, RecordedDraws
from kerneltrail.trial.analysis.personal import recorded
from kerneltrail.trial.analysis.record import read_record
from kerneltrail.trial.analysis.resampling import _Anew, ground_of, resampled
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.folder import MODELS
from kerneltrail.trial.models import Models
from kerneltrail.trial.rows import rows_of
from kerneltrail.trial.states import followed
from kerneltrail.trial.versions import Versions

from ..running import BEGIN, Time, asked, enrol
from ..study import DRAWS, centred_model
from .study import agreement, begun_in, read


@pytest.fixture(scope="module")
def ground(state, models):
    return ground_of(state, models, 0.5, 3)


def test_with_the_trials_own_draws_every_decision_comes_out_as_recorded(ground, record):
    assert resampled(ground, 0, DRAWS) == recorded(record)


def test_with_new_draws_decisions_differ_and_a_number_gives_the_same_trial_again(ground, record):
    people = {name: ground.state.participants[name] for name in ("p01", "p03")}
    few = replace(ground, state=replace(ground.state, participants=people))
    one, again, other = resampled(few, 1), resampled(few, 1), resampled(few, 2)
    before = [each for each in recorded(record) if each.participant in people]
    assert one == again
    assert [(each.participant, each.context) for each in one] == [(each.participant, each.context) for each in before]
    assert one != other
    assert one != before


def test_outcomes_move_by_the_effect_where_the_action_is_another(ground, state):
    """And a state is a new user with the new rows, followed batch by batch."""
    versions, name = Versions(state), "p01"
    person = state.participants[name]
    anew = _Anew(ground, versions, person, 5, None)
    anew.run()
    changed = 0
    for key, decision in person.decisions.items():
        before, after = decision.payload, anew.person.decisions[key].payload
        number = NewDraws.of(3, 5, DRAWS.commitment).number("walks", name, before["kind"], before["index"])
        if before["available"]:
            assert after["action"] == int(number < float.fromhex(after["probability"]))
        else:
            assert after == before
        changed += after["action"] != before["action"]
        for outcome in person.outcomes.values():
            if outcome.decision == key and outcome.value is not None:
                moved = 0.5 * (after["action"] - before["action"])
                assert anew.person.outcomes[outcome.key].value == outcome.value + moved
    assert changed > 2
    last = versions.active
    batches = versions.batches(last.version, name)
    naive = followed(centred_model(), name, rows_of(anew.person, batches))
    state_ = anew._state(last, centred_model())
    row = np.array([[9.0, 120.0]])
    assert naive.advantage(row).mean == state_.advantage(row).mean


def test_under_a_large_effect_the_policy_acts_more_often(state, models):
    """The null is in the outcomes: acting that adds 3 is found out by the policy, acting that costs 3 is too."""
    few = replace(state, participants={name: state.participants[name] for name in ("p08", "p09")})
    means = [
        np.mean([each.advantage for each in resampled(ground_of(few, models, effect, 0), 0)[-8:]])
        for effect in (-3.0, 3.0)
    ]
    assert means[0] < 0 < means[1]


def test_what_did_not_arrive_does_not_arrive_again(ground, state):
    people, kept = [each for each in state.participants.values() if _lost(each)], 0
    for person, number in product(people, range(2)):
        anew = _Anew(ground, Versions(state), person, number, None)
        anew.run()
        for key, several in anew.person.deliveries.items():
            before, after = (each.decisions[key].payload for each in (person, anew.person))
            sent = before["action"] and after["action"]
            lost = [each for each in person.deliveries.get(key, ()) if each.action == 0]
            assert [each for each in several if each.action == 0] == (lost if sent else [])
            kept += bool(sent and lost)
    assert kept


def test_reports_that_correct_or_say_little_leave_the_dose_as_it_was(tmp_path):
    """With the trial's own draws: a message that was lost and then arrived, and one that failed without an action."""
    burden, time = {"delta": 0.1, "per_dose": 0.3}, Time(BEGIN)
    trial = begun_in(tmp_path / "walks", agreement(burden=burden), time)
    enrol(trial, "p01")
    reports = iter(3 * [[("not_delivered", 0), ("delivered", 1)], [("failed", None)], [("seen", None)]])
    for index in range(24):
        time.now = BEGIN + timedelta(hours=12 * index)
        answer = trial.decide(asked(index=index, at=time.now, hour=9.0)).value
        for status, action in next(reports, ()) if answer["action"] else ():
            trial.deliver(answer["decision_id"], status=status, at=time.now, delivered_action=action)
    state, protocol = trial.snapshot(), trial.protocol
    trial.close()
    ground = ground_of(state, Models(tmp_path / "walks" / MODELS), 0.5, 3)
    followed = resampled(ground, 0, DRAWS)
    assert followed == recorded(read_record(state, protocol))
    assert len({each.probability for each in followed}) > 5


def _lost(person):
    return [each for several in person.deliveries.values() for each in several if each.action == 0]


def test_a_state_that_cannot_be_computed_is_answered_for_by_the_prior(ground, state, monkeypatch):
    def broken(*_):
        raise NumericalError("broken")

    monkeypatch.setattr(_Anew, "_state", broken)
    anew = _Anew(ground, Versions(state), state.participants["p01"], 1, None)
    assert anew.run() == []  # nothing of it was the participant's own policy
    assert all(each.payload is not None for each in anew.person.decisions.values())


def test_a_pooled_policy_is_refused_in_words(state, models):
    frozen = state.protocols[0]
    stated = {**frozen.payload["protocol"], "pooling": "pooled"}
    pooled = replace(state, protocols=[replace(frozen, payload={**frozen.payload, "protocol": stated})])
    with pytest.raises(TrialError, match=r"depend on the draws of all others.* no valid p value, so none is given"):
        ground_of(pooled, models, 0.0, 0)


def test_draws_from_a_record(ended):
    state, protocol = read(ended)
    draws = RecordedDraws.of(state, protocol.draw.commitment)
    assert draws.commitment == DRAWS.commitment
    assert "key" not in repr(draws)
    for person in state.participants.values():
        for decision in person.decisions.values():
            record = decision.payload
            if record is not None and record["available"]:
                names = ("walks", record["participant"], record["kind"], record["index"])
                assert draws.number(*names) == DRAWS.number(*names)
                assert str(draws.decision_id(*names, None)) == record["decision_id"]
    with pytest.raises(ValueError, match="the record has no decision walk 99 of participant p01"):
        draws.number("walks", "p01", "walk", 99)


def test_new_draws_are_uniform_and_differ_between_trials():
    """Kolmogorov–Smirnov of 2000 numbers: a false alarm in a thousand, with a fixed seed."""
    numbers = [NewDraws.of(1, trial, "x").number("t", "p", "k", index) for trial in range(20) for index in range(100)]
    apart = np.abs(np.sort(numbers) - (np.arange(2000) + 0.5) / 2000).max()
    assert apart < 1.95 / np.sqrt(2000)
    assert len(set(numbers)) == 2000
    assert isinstance(NewDraws.of(0, 0, agreement().draw.commitment), Draws)
