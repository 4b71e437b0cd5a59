"""Decisions: each step against what is computed by hand, and every refusal by field."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from kerneltrail.errors import DataError, DecisionError
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.answer import assigned
from kerneltrail.trial.decision import Policy, decide, decide_fixed
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.past import Past, slot_of
from kerneltrail.trial.replay import compare
from trajectory.small import rows

from .study import DRAWS, HERE, NINE, centred_model, followed, model, policy, protocol, request

ANSWER = {
    "decision_id", "trial", "participant", "kind", "index", "action", "probability", "probability_of_action",
    "available", "reasons", "rung", "rung_reason", "policy_version", "model_id", "composition", "advantage", "clipped",
    "imputed", "expires_at", "words",
}  # fmt: skip


def made(agreed=None, state=..., past=None, **changes):
    agreed = agreed or protocol()
    state = followed() if state is ... else state
    return decide(agreed, policy(agreed), state, request(**changes), draws=DRAWS, past=past)


def test_a_decision_is_advantage_allocation_and_draw():
    decision = made()
    advantage = followed().advantage([[9.0, 120.0]])
    chance = protocol().rule.allocate(advantage).probability
    number = DRAWS.number("walks", "p01", "walk", 3)
    assert decision.probability == chance
    assert decision.number == number
    assert decision.action == int(number < chance)
    assert decision.probability_of_action == (chance if decision.action else 1 - chance)
    assert decision.advantage.mean == pytest.approx(float(advantage.mean[0]))
    assert decision.advantage.sd == pytest.approx(float(advantage.sd[0]))
    assert (decision.rung, decision.policy_version, decision.model_id) == ("policy", "1", policy().model_id)
    assert decision.composition == followed().composition.text
    assert decision.protocol_hash == protocol().hash
    assert decision == made()


def test_the_share_of_actions_is_the_probability():
    """2,000 decisions for one participant at one context; a false alarm for one key in 10,000."""
    agreed, by = protocol(), policy()
    actions = [decide(agreed, by, None, request(index=i), draws=DRAWS).action for i in range(2000)]
    chance = decide(agreed, by, None, request(), draws=DRAWS).probability
    z = (sum(actions) - 2000 * chance) / np.sqrt(2000 * chance * (1 - chance))
    assert abs(z) < 3.89


def test_a_state_alone_and_nothing_at_all_are_users_too():
    assert made(state=followed().state) == made()
    fresh = made(state=None)
    assert fresh.advantage == made(state=model().new_user("somebody")).advantage
    assert fresh.composition is None
    assert "somebody like the pilot users" in fresh.words


def test_a_decision_rests_on_one_state_though_another_thread_updates():
    class Updated(NewUser):
        def advantage(self, X):
            person = rows("p01", 8, seed=6)
            self.update(person.X, person.y, action=person.action)
            return super().advantage(X)

    assert made(state=Updated(model(), followed().state)) == made()
    assert made().rows == 12


def test_a_user_of_another_model_is_refused():
    stranger = centred_model().new_user("p01")
    with pytest.raises(DataError, match="p01 was followed on another model than that of policy 1"):
        made(state=stranger)


def test_who_is_unavailable_gets_no_action_and_a_reason():
    decision = made(available=False, reasons=("driving", "asleep"), context={})
    assert (decision.action, decision.probability, decision.probability_of_action) == (0, 0.0, 1.0)
    assert (decision.rung, decision.number, decision.advantage) == ("unavailable", None, None)
    assert decision.words == "Action: no, because nobody could act (driving and asleep)."
    fixed = decide_fixed(protocol(), request(available=False, reasons=("asleep",)), draws=DRAWS, rung_reason="x")
    assert fixed.probability == 0.0


def test_the_answer_has_its_fields_and_the_record_is_json_that_gives_back_every_bit():
    decision = made(expires_at=NINE + timedelta(minutes=30), past=Past(dose=1.3))
    assert set(decision.answer()) == ANSWER
    record = json.loads(json.dumps(decision.record(), allow_nan=False))
    assert record == decision.record()
    assert float.fromhex(record["probability"]) == decision.probability
    assert float.fromhex(record["draw"]) == decision.number
    assert float.fromhex(record["raw"]) == decision.raw
    parts = {name: tuple(map(float.fromhex, values)) for name, values in record["advantage_parts"].items()}
    assert (parts["weights"], parts["means"], parts["variances"]) == (
        decision.advantage.weights, decision.advantage.means, decision.advantage.variances,
    )  # fmt: skip
    assert record["expires_at"] == "2026-03-02T09:30:00+01:00"


def test_burden_raises_what_the_advantage_must_exceed():
    agreed = protocol(burden={"delta": 0.1, "per_dose": 0.2, "decay": 0.95})
    rested, weary = (made(agreed, past=Past(dose=dose)) for dose in (0.0, 4.0))
    assert (rested.threshold, weary.threshold) == (pytest.approx(0.1), pytest.approx(0.9))
    assert weary.probability < rested.probability
    assert weary.probability == agreed.rule.allocate(weary.advantage.mixture, 0.1 + 0.2 * 4.0).probability


def test_where_a_lower_outcome_is_better_messages_go_to_whom_they_lower_it_for():
    """Of one participant acting raised the outcome, of the other it lowered it; what is recorded says so."""
    person = rows("p01", 12, seed=5)
    chances = {}
    for effect in (2.0, -2.0):
        user = model().new_user("p01")
        user.update(person.X, person.y + effect * person.action, action=person.action)
        higher, lower = (made(protocol(better=each), user) for each in ("higher", "lower"))
        assert lower.advantage == higher.advantage
        assert np.sign(lower.advantage.mean) == np.sign(effect)
        assert (lower.probability < higher.probability) == (effect > 0.0)
        assert ("expected to change mood by +" in lower.words) == (effect > 0.0)
        chances[effect] = lower.probability
    assert chances[-2.0] > 0.6 > 0.4 > chances[2.0]


def test_burden_is_what_the_benefit_must_exceed_where_a_lower_outcome_is_better():
    agreed = protocol(better="lower", burden={"delta": 0.1, "per_dose": 0.2, "decay": 0.95})
    rested, weary = (made(agreed, past=Past(dose=dose)) for dose in (0.0, 4.0))
    assert (rested.threshold, weary.threshold) == (pytest.approx(0.1), pytest.approx(0.9))
    assert weary.probability < rested.probability


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"participant": ""}, "participant must be a text"),
        ({"participant": "a\x1fb"}, "participant must be a text"),
        ({"kind": "wakl"}, "kind 'wakl' is not in the protocol; did you mean 'walk'"),
        ({"index": -1}, "index must be a whole number from 0 on, got -1"),
        ({"index": 1.5}, "index must be a whole number"),
        ({"decided_at": datetime(2026, 3, 2, 9)}, "decided_at must be a time with its time zone"),
        ({"decided_at": "2026-03-02"}, "decided_at must be a time with its time zone"),
        ({"expires_at": datetime(2026, 3, 2, 9)}, "expires_at must be a time with its time zone"),
        ({"expires_at": NINE}, "expires_at must come after decided_at"),
        ({"available": 1}, "available must be true or false"),
        ({"available": False}, "reasons must say why nobody can act: asleep, driving"),
        ({"reasons": ("asleep",)}, "reasons are for being unavailable, but available is true"),
        ({"available": False, "reasons": ("tired",)}, "reasons names 'tired'; the protocol has asleep"),
        ({"available": False, "reasons": "asleep"}, "reasons must be a list"),
        ({"context": [1, 2]}, "context must hold fields with values"),
        ({"context": {**HERE, "huor": 1}}, "context has an unknown field 'huor'; did you mean 'hour'"),
        ({"context": {"hour": 9.0}}, "context.steps is missing, and the protocol says to refuse that"),
        ({"context": {**HERE, "steps": None}}, "context.steps is missing"),
        ({"context": {**HERE, "hour": float("nan")}}, "context.hour must be a finite number of at most 1e.50, got nan"),
        ({"context": {**HERE, "hour": float("inf")}}, "context.hour must be a finite number"),
        ({"context": {**HERE, "hour": 10**400}}, "context.hour must be a finite number"),
        ({"context": {**HERE, "hour": "9"}}, "context.hour must be a number, got '9'"),
        ({"context": {**HERE, "hour": True}}, "context.hour must be a number, got True"),
        ({"context": {**HERE, "hour": -5}}, "context.hour must be at least 0 hours, got -5"),
        ({"context": {**HERE, "hour": 99}}, "context.hour must be at most"),
        ({"available": False, "reasons": ("asleep",), "context": {"x": 1}}, "context has an unknown field 'x'"),
    ],
)
def test_a_request_is_refused_by_field(changes, message):
    with pytest.raises(DecisionError, match=message):
        made(**changes)


def test_another_key_than_the_protocols_is_refused():
    with pytest.raises(DecisionError, match="not the one that the protocol is committed to"):
        decide(protocol(), policy(), None, request(), draws=Draws(bytes(32)))


def test_numbers_of_numpy_are_numbers():
    decision = made(context={"hour": np.int64(9), "steps": np.float64(120.0)})
    assert decision.advantage == made().advantage
    json.dumps(decision.record())


def test_levels_arrive_by_name():
    leveled = replace(model(), schema=replace(model().schema, levels={"hour": ("home", "work", "3")}))
    agreed = protocol(leveled)
    by = Policy.of(agreed, leveled)
    for value, code in (("home", 0.0), ("work", 1.0), ("3", 2.0), (3, 2.0), (3.0, 2.0)):
        decision = decide(agreed, by, None, request(context={"hour": value, "steps": 1}), draws=DRAWS)
        assert decision.arrived["hour"] == code
    for value in ("hme", 1, True):
        with pytest.raises(DecisionError, match=r"context.hour must be one of home, work, 3, got"):
            decide(agreed, by, None, request(context={"hour": value, "steps": 1}), draws=DRAWS)


def test_fields_have_names_of_their_own_and_the_dose_counts_itself():
    hour, steps = {"field": "local_hour", "low": 0.0, "high": 24.0}, {"field": "steps", "arrives": "dose"}
    agreed = protocol(covariates={"hour": hour, "steps": steps})
    decision = made(agreed, context={"local_hour": 9.0}, past=Past(dose=120.0))
    assert decision.advantage == made().advantage
    with pytest.raises(DecisionError, match="unknown field 'steps'"):
        made(agreed, context={"local_hour": 9.0, "steps": 3.0})


def test_a_missing_value_is_filled_in_as_agreed():
    agreed = protocol(covariates={"hour": {"missing": "last_seen"}, "steps": {"missing": "slot_mean"}})
    past = Past()
    for steps, at in ((100.0, NINE), (140.0, NINE), (900.0, NINE.replace(hour=18))):
        decision = made(agreed, context={"hour": 9.0, "steps": steps}, decided_at=at, past=past)
        slot = "walk 09:00" if at == NINE else "walk 17:30"
        past = past.after(agreed, slot, decision.arrived, sent=bool(decision.action))
    filled = made(agreed, context={}, past=past)
    assert [(each.covariate, each.rule, each.value) for each in filled.imputed] == [
        ("hour", "last_seen", 9.0), ("steps", "slot_mean", 120.0),
    ]  # fmt: skip
    assert filled.advantage == made(agreed, context=HERE, past=past).advantage
    assert filled.answer()["imputed"] == ["hour", "steps"]
    assert filled.arrived == {}
    assert filled.words.endswith("Missing and filled in: hour and steps.")
    with pytest.raises(DataError, match="hour is missing and was never seen before"):
        made(agreed, context={"steps": 1.0})
    with pytest.raises(DataError, match="steps is missing and was never seen at 'walk 09:00'"):
        made(agreed, context={"hour": 1.0})


def test_a_value_that_no_pilot_user_had_is_noted():
    assert made().beyond == ()
    assert made(context={**HERE, "steps": 700.0}).beyond == ("steps",)


def test_words_say_what_and_why():
    labelled = protocol(
        reward={"action": "message", "outcome": "log steps", "unit": "log steps", "features": ["hour"]},
        allocation="clipped-thompson", limits={"lower": 0.45, "upper": 0.5}, fallback={"fixed": 0.5},
    )  # fmt: skip
    text = made(labelled).words
    assert text.startswith(("Message: yes, by chance (probability of yes 0.", "Message: no, by chance (probability"))
    assert "its lower limit): in this context it is expected to change log steps by −0.0" in text
    assert "for this participant (90 % interval −0." in text
    assert "log steps log steps" not in text


def test_rows_of_decisions_are_learnt_from_with_their_own_probability():
    """A policy's, a fixed and an unavailable decision, as a followed user's rows, against the centred block by hand."""
    agreed = protocol(centred_model(), fallback={"fixed": 0.35})
    by = Policy.of(agreed, centred_model())
    rng = np.random.default_rng(8)
    contexts = [{"hour": float(h), "steps": float(s)} for h, s in zip(rng.uniform(0, 24, 9), rng.uniform(0, 500, 9),
                                                                      strict=True)]  # fmt: skip
    made_here = []
    for i, context in enumerate(contexts):
        asked = request(index=i, context=context)
        if i % 3 == 0:
            made_here.append(decide(agreed, by, None, asked, draws=DRAWS))
        elif i % 3 == 1:
            made_here.append(decide_fixed(agreed, asked, draws=DRAWS, rung_reason="deadline"))
        else:
            away = replace(asked, available=False, reasons=("asleep",))
            made_here.append(decide(agreed, by, None, away, draws=DRAWS))
    assignment = assigned(made_here)
    assert assignment.probability[1::3].tolist() == [0.35] * 3
    assert assignment.available[2::3].tolist() == [0.0] * 3
    y = rng.standard_normal(9)
    X = np.array([[c["hour"], c["steps"]] for c in contexts])
    user = centred_model().new_user("p01")
    user.update(X, y, action=assignment)
    scaled = centred_model().scaler.transform(X)[:, 0]
    could = assignment.available
    part = [(assignment.action - assignment.probability) * could, assignment.probability * could]
    expected = np.column_stack([np.ones(9), part[0], part[0] * scaled, part[1], part[1] * scaled])
    np.testing.assert_allclose(user.node_posterior().block.features, expected)
    # Whatever stands in a row at which nobody could act, it is the same to the advantage.
    other = centred_model().new_user("p01")
    action, probability = assignment.action.copy(), assignment.probability.copy()
    action[2::3], probability[2::3] = 1.0, 0.77
    with pytest.warns(UserWarning, match="action 1 although the user was not available, in row 3"):
        other.update(X, y, action=action, probability=probability, available=could)
    np.testing.assert_array_equal(other.advantage(X).means, user.advantage(X).means)


def test_a_replay_says_equal_or_what_differs():
    decision = made()
    record = json.loads(json.dumps(decision.record()))
    assert compare(record, decision).exact
    shifted = replace(decision, probability=decision.probability + 1e-12, words="other")
    again = compare(record, shifted)
    assert (again.exact, again.equal, again.close_call) == (False, True, False)
    moved = compare(record, replace(decision, probability=decision.probability + 1e-6))
    assert moved.difference.startswith("probability was '0x1.")
    assert not compare(record, replace(decision, action=1 - decision.action)).equal
    assert not compare(record, replace(decision, number=np.nextafter(decision.number, 1.0))).equal
    assert not compare({**record, "more": 1}, decision).equal
    assert compare(record, replace(decision, number=decision.probability)).close_call


def test_a_slot_is_the_nearest_time_on_the_participants_clock():
    agreed = protocol()
    clock = {"09:00": "walk 09:00", "13:14": "walk 09:00", "13:16": "walk 17:30", "01:16": "walk 09:00",
             "01:14": "walk 17:30"}  # fmt: skip
    for text, slot in clock.items():
        at = datetime(2026, 3, 2, int(text[:2]), int(text[3:]), tzinfo=UTC)
        assert slot_of(agreed, "walk", at) == slot
    assert slot_of(agreed, "rest", NINE) == "rest"
