"""`user.decide` in a notebook: a trial's decision without a trial."""

import subprocess
import sys

import pytest

from kerneltrail.errors import ConfigError, DataError, DecisionError
from kerneltrail.trial import decide_for
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.notebook import KEY
from trajectory.small import mean_model, small_model

from .study import HERE, NINE, followed


def test_a_user_decides_as_the_function_does():
    user = followed()
    decision = user.decide(HERE, at=NINE)
    assert decision == decide_for(user, HERE, at=NINE)
    assert decision.number == Draws(KEY).number("notebook", "p01", "decision", 12)
    assert decision.policy_version == "notebook"
    other = user.decide(HERE, allocation="heartsteps-v2", delta=0.2, key=bytes(16), index=3, at=NINE)
    helps = float(user.advantage([[9.0, 120.0]]).above(0.2)[0])
    assert other.probability == pytest.approx(min(0.8, 0.2 + max(helps - 0.5, 0.0) * 1.6))
    assert other.number == Draws(bytes(16)).number("notebook", "p01", "decision", 3)
    assert user.decide(HERE).decided_at.utcoffset() is not None


def test_a_lower_outcome_may_be_better():
    user = followed()
    gain = user.advantage([[9.0, 120.0]])
    rules = {"allocation": "clipped-thompson", "at": NINE}
    raised = float(gain.above(0.05)[0])
    lowered = 1.0 - float(gain.above(-0.05)[0])
    assert user.decide(HERE, delta=0.05, **rules).probability == pytest.approx(min(max(raised, 0.2), 0.8))
    decision = user.decide(HERE, delta=0.05, better="lower", **rules)
    assert decision.probability == pytest.approx(min(max(lowered, 0.2), 0.8))
    assert decision.advantage == user.decide(HERE, **rules).advantage
    with pytest.raises(ConfigError, match=r"reward.better must be 'higher' or 'lower', got 'less'"):
        user.decide(HERE, better="less")


def test_a_population_mean_is_part_of_the_advantage():
    user = mean_model().new_user("p01")
    decision = user.decide(HERE, at=NINE)
    assert decision.advantage.mean == pytest.approx(float(user.advantage([[9.0, 120.0]]).mean[0]))


def test_what_cannot_be_decided_is_refused():
    with pytest.raises(ConfigError, match="has no reward model"):
        small_model().new_user("p01").decide(HERE)
    with pytest.raises(DecisionError, match=r"context.steps is missing"):
        followed().decide({"hour": 9.0})
    with pytest.raises(DataError, match="no allocation is called 'smoth'"):
        followed().decide(HERE, allocation="smoth")


def test_nothing_loads_the_trial_before_it_is_asked_for():
    code = "import sys, kerneltrail as kt; kt.fit; kt.load; print([m for m in sys.modules if 'kerneltrail.trial' in m])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
    light = "import sys, kerneltrail.trial; print([m for m in ('numpy', 'scipy', 'pydantic') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", light], text=True).strip() == "[]"
