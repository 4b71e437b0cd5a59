"""The ladder: whatever fails, somebody answers, randomised with a known probability within the limits, and says why."""

import numpy as np
import pytest

from kerneltrail.errors import DataError, DecisionError
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.decision import decide
from kerneltrail.trial.ladder import decide_by_ladder
from kerneltrail.trial.past import Past

from .study import DRAWS, HERE, followed, model, policy, protocol, request


def fails(problem):
    def source():
        raise problem

    return source


def good():
    return policy(), followed()


def fresh():
    return policy(), None


def answered(sources, agreed=None, **options):
    return decide_by_ladder(agreed or protocol(), options.pop("asked", request()), sources, draws=DRAWS, **options)


def test_the_policy_answers_where_it_can():
    decision = answered({"policy": good})
    assert decision == decide(protocol(), policy(), followed(), request(), draws=DRAWS)
    assert decision.rung_reason == ""


def test_each_rung_answers_when_those_above_it_fail():
    broken = fails(RuntimeError("database is locked"))
    down = {"policy": broken, "last_good": good, "group_prior": fresh}
    second = answered(down)
    assert (second.rung, second.rung_reason) == ("last_good", "policy: RuntimeError: database is locked")
    third = answered({**down, "last_good": fails(TimeoutError())})
    assert third.rung == "group_prior"
    assert third.rung_reason.endswith("last_good: no answer within 500 ms")
    assert third.advantage == decide(protocol(), policy(), None, request(), draws=DRAWS).advantage
    last = answered({"policy": broken, "last_good": broken, "group_prior": fails(DataError("no such model"))})
    assert (last.rung, last.probability, last.advantage, last.policy_version) == ("fixed", 0.5, None, None)
    assert last.rung_reason.endswith("; group_prior: no such model")
    nothing = answered({})
    assert nothing.rung_reason == "policy: there is none; last_good: there is none; group_prior: there is none"
    # One draw, whichever rung answers.
    assert len({each.number for each in (second, third, last, nothing)}) == 1
    for each in (second, third, last, nothing):
        assert 0.2 <= each.probability <= 0.8
        assert each.action == int(each.number < each.probability)
        assert each.rung_reason in each.words


def test_past_the_deadline_the_fixed_probability_answers():
    asked = []
    late = answered({"policy": lambda: asked.append(1) or good(), "group_prior": fresh}, in_time=lambda: False)
    assert (late.rung, asked) == ("fixed", [])
    assert late.rung_reason == "the deadline of 500 ms had passed before policy"
    left = iter([True, False])
    after = answered({"policy": fails(ValueError("x")), "last_good": good}, in_time=lambda: next(left))
    assert after.rung == "fixed"
    assert after.rung_reason.endswith("the deadline of 500 ms had passed before last_good")


def test_the_protocols_ladder_is_the_one_that_counts():
    agreed = protocol(fallback={"ladder": ["policy", "fixed"], "fixed": 0.3})
    decision = answered({"policy": fails(KeyError("p01")), "last_good": good}, agreed)
    assert (decision.rung, decision.probability) == ("fixed", 0.3)


def test_a_request_that_must_be_refused_is_refused_on_every_rung():
    for bad in ({"hour": np.nan, "steps": 1.0}, {**HERE, "more": 1.0}, {"hour": 9.0}):
        with pytest.raises(DecisionError, match="context"):
            answered({}, asked=request(context=bad))


def test_who_is_unavailable_needs_no_rung():
    decision = answered({"policy": fails(RuntimeError())}, asked=request(available=False, reasons=("asleep",)))
    assert (decision.rung, decision.probability, decision.rung_reason) == ("unavailable", 0.0, "")


def test_a_missing_value_that_nothing_can_stand_in_for_ends_at_the_fixed_probability():
    agreed = protocol(covariates={"hour": {}, "steps": {"missing": "last_seen"}})
    asked = request(context={"hour": 9.0})
    by = policy(agreed)
    sources = {"policy": lambda: (by, followed()), "group_prior": lambda: (by, None)}
    decision = answered(sources, agreed, asked=asked)
    assert decision.rung == "fixed"
    assert "steps is missing and was never seen before" in decision.rung_reason
    seen = answered(sources, agreed, asked=asked, past=Past(seen={"steps": 120.0}))
    assert seen.rung == "policy"


def test_an_advantage_that_is_not_finite_does_not_decide():
    class Broken(NewUser):
        def advantage(self, X):
            return NormalMixture([1.0], [[np.nan]], [[1.0]])

    decision = answered({"policy": lambda: (policy(), Broken(model(), followed().state)), "group_prior": fresh})
    assert decision.rung == "group_prior"
    assert decision.rung_reason.startswith("policy: the mean of the advantage under kernel 1 of 1 is nan")


def test_a_state_that_is_none_does_not_decide():
    decision = answered({"policy": lambda: (policy(), object())})
    assert decision.rung == "fixed"
    assert decision.rung_reason.startswith("policy: AttributeError")
