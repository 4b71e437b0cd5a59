"""Protocols: inferred from a model, written and read back, hashed, and refused by key."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import ConfigError, DataError
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trial.allocation import Limits, SmoothLogistic, SmoothProbit
from kerneltrail.trial.protocol import Protocol, noise_sd, read_protocol
from kerneltrail.trial.protocol_text import commented_text
from trajectory.small import small_model

from .study import DRAWS, centred_model, model, protocol, stored


def test_all_that_a_model_knows_is_inferred():
    agreed = Protocol.from_model(model(), trial="walks", commitment=DRAWS.commitment)
    assert agreed.model.fingerprint == fingerprint(model())
    assert agreed.reward.features == ["hour"]
    assert (agreed.reward.outcome, agreed.reward.coding) == ("mood", "plain")
    assert list(agreed.covariates) == ["hour", "steps"]
    assert agreed.covariates["hour"].unit == "hours"
    assert (agreed.covariates["hour"].low, agreed.covariates["hour"].high) == (0.0, 24.0)
    low, high = model().scaler.low[1], model().scaler.high[1]
    assert 0.0 <= agreed.covariates["steps"].low < low
    assert agreed.covariates["steps"].high == pytest.approx(high + 0.5 * (high - low), rel=1e-2)
    assert agreed.fallback.ladder == ["policy", "last_good", "group_prior", "fixed"]
    assert agreed.rule == SmoothProbit(slope=10.0 / noise_sd(model()), per="target unit")
    agreed.check_model(model())


def test_the_noise_is_that_of_a_new_users_outcomes():
    """What the nodes' groups say of the noise, averaged by the graph's first step, in the target's units."""
    here = model()
    noise = [np.exp(node.group.mean[-1]) for node in here.nodes]
    expected = np.sqrt(here.transitions[0] @ np.array(noise)) * here.scaler.scale
    assert noise_sd(here) == pytest.approx(expected, rel=1e-9)


def test_levels_are_inferred_and_must_be_the_models():
    leveled = replace(model(), schema=replace(model().schema, levels={"hour": ("home", "work")}))
    agreed = Protocol.from_model(leveled, trial="walks", commitment=DRAWS.commitment)
    assert agreed.covariates["hour"].levels == ["home", "work"]
    assert agreed.covariates["hour"].low is None
    agreed.check_model(leveled)
    turned = replace(leveled, schema=replace(leveled.schema, levels={"hour": ("work", "home")}))
    with pytest.raises(ConfigError, match=r"covariates.hour.levels is \['home', 'work'\]; in the model it is"):
        agreed.check_model(turned)


ODD = {
    "title": 'Walks: "early" & late, 50 % — ü 😀 \\n #1',
    "decisions": {"yes": {"times": ["00:00", "23:59"]}, "walk home": {}, "12": {}},
    "availability": ["no", "null", "1.5", "a: b"],
    "burden": {"delta": 1e-7, "per_dose": 0.015, "decay": 0.9},
    "updates": {"weekly": "Sunday 23:30"},
    "pooling": "pooled",
    "deadline_ms": 250,
    "fallback": {"ladder": ["policy", "fixed"], "fixed": 0.3},
}


@pytest.mark.parametrize("changes", [{}, ODD, {"updates": {"every": 20}}, {"updates": {"by_hand": True}}])
@pytest.mark.parametrize("allocation", ["default", "oralytics", "fixed", "epsilon-mix", "clipped-thompson"])
def test_the_commented_text_reads_back_as_the_same_protocol(changes, allocation):
    agreed = protocol(allocation=allocation, **changes)
    again = Protocol.parse(commented_text(agreed))
    assert again == agreed
    assert again.hash == agreed.hash
    assert again.rule == agreed.rule


def test_every_key_of_the_text_is_explained():
    lines = commented_text(protocol()).splitlines()
    for key in Protocol.model_fields:
        (at,) = [i for i, line in enumerate(lines) if line.startswith(f"{key}:")]
        assert lines[at - 1].startswith("# ")
    assert max(map(len, lines)) <= 120
    assert "coding is plain" in "".join(lines)
    assert "coding is plain" not in commented_text(protocol(centred_model()))


def test_the_hash_is_of_canonical_json_and_of_nothing_else():
    agreed = protocol()
    assert agreed.hash == hashlib.sha256(agreed.canonical()).hexdigest()
    assert json.loads(agreed.canonical()) == agreed.to_json()
    assert b'"burden":{"decay":0.95,"delta":0,"per_dose":0},"covariates":{"hour":{"arrives":' in agreed.canonical()
    values = agreed.to_json()
    turned = Protocol.from_json(dict(reversed(values.items())))
    assert turned.hash == agreed.hash
    del values["pooling"], values["limits"], values["allocation"]["parameters"]["odds_against"]
    values["allocation"]["parameters"]["slope"] = 10  # a whole number
    assert Protocol.from_json(values).hash == agreed.hash
    for change in ({"deadline_ms": 501}, {"title": "other"}, {"limits": {"lower": 0.2, "upper": 0.80001}}):
        assert protocol(**change).hash != agreed.hash


def test_toml_and_yaml_files_say_the_same(tmp_path):
    agreed = protocol(updates={"every": 20})
    yaml, toml = tmp_path / "walks.yaml", tmp_path / "walks.toml"
    yaml.write_text(commented_text(agreed), encoding="utf-8")

    def written(prefix, values):
        lines, tables = [], []
        for key, value in values.items():
            if isinstance(value, dict):
                tables += [f"[{prefix}{key}]", *written(f"{prefix}{key}.", value)]
            elif value is not None:
                lines.append(f"{key} = {json.dumps(value)}")
        return lines + tables

    toml.write_text("\n".join(written("", agreed.to_json())), encoding="utf-8")
    assert read_protocol(yaml).hash == read_protocol(toml).hash == agreed.hash
    toml.write_text("title = 3", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"walks.toml: title must be a text, got 3"):
        read_protocol(toml)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": ...}, "the file lacks the key 'title'"),
        ({"titel": "x"}, "unknown key 'titel' at the top; did you mean 'title'"),
        ({"trial": "a\x1fb"}, "trial: must be a text on one line"),
        ({"trial": ""}, "trial: must not be empty"),
        ({"model__fingerprint": ...}, "model lacks the key 'fingerprint'"),
        ({"covariates__hour__lwo": 1.0}, "unknown key 'lwo' in covariates.hour; did you mean 'low'"),
        ({"covariates__hour__low": 99.0}, "covariates.hour: low must not be above high, got 99 and"),
        ({"covariates__hour__low": float("nan")}, "covariates.hour.low: "),
        ({"covariates__hour__levels": ["a", "b"]}, "covariates.hour: has levels, so low and high mean nothing"),
        ({"covariates__hour__missing": "guess"}, "covariates.hour.missing must be 'refuse', 'last_seen' or"),
        ({"covariates__hour__field": "steps"}, "two of them arrive in the context's field 'steps'"),
        ({"covariates": {}}, "covariates, decisions and availability must each have"),
        ({"reward__features": ["huor"]}, "reward.features names 'huor', which is no covariate; did you mean 'hour'"),
        ({"decisions__walk__times": ["17:30", "09:00"]}, "decisions.walk: times must be in order"),
        ({"decisions__walk__times": ["9:00"]}, r"decisions.walk.times\[item 1\]: a time is written as"),
        ({"decisions__walk__times": [750]}, r"decisions.walk.times\[item 1\]: a time is written in quotes"),
        ({"availability": ["a", "a"]}, "availability: a reason stands twice"),
        ({"allocation__rule": "smooth"}, "allocation: no allocation is called 'smooth'"),
        ({"allocation__parameters": {"slop": 3.0}}, "allocation: the rule smooth-probit has no parameter 'slop'"),
        ({"allocation__parameters": {"slope": "10"}}, "allocation: a parameter of the rule smooth-probit is a text"),
        ({"allocation__parameters": {"slope": True}}, "allocation: parameters.slope must be a number"),
        ({"allocation__parameters": {"slope": -1.0}}, "allocation: slope of the rule smooth-probit must be above 0"),
        ({"allocation__noise_sd": 0.0}, "allocation.noise_sd: Input should be greater than 0"),
        ({"limits__lower": 0.0}, "limits: the limits of a probability must be 0 < lower"),
        ({"burden__decay": 1.0}, "burden.decay: Input should be less than 1"),
        ({"updates": {}}, "updates: must be one of every: 20"),
        ({"updates": {"every": 3, "daily": "03:00"}}, "updates: must be one of every: 20"),
        ({"updates": {"weekly": "Montag 03:00"}}, "updates.weekly: a weekly time is written as"),
        ({"pooling": "group"}, "pooling must be 'participant' or 'pooled', got 'group'"),
        ({"deadline_ms": 0.5}, "deadline_ms must be a whole number, got 0.5"),
        ({"fallback__ladder": ["policy"]}, "fallback: ladder must begin with policy and end with fixed"),
        ({"fallback__ladder": ["policy", "policy", "fixed"]}, "fallback: ladder names a rung twice"),
        ({"fallback__fixed": 0.9}, "fallback.fixed must lie within the limits 0.2 and 0.8, got 0.9"),
        ({"draw__commitment": "abc"}, "draw.commitment: must be a SHA-256 in 64 hexadecimal digits"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_key(changes, message):
    with pytest.raises(ConfigError, match=message):
        Protocol.from_json(stored(**changes))


def test_a_fixed_rule_must_lie_within_the_limits_of_the_protocol():
    values = stored(allocation__rule="fixed", allocation__parameters={"p": 0.9})
    with pytest.raises(ConfigError, match=r"allocation: p of the rule fixed must lie within the limits 0.2 and 0.8"):
        Protocol.from_json(values)
    values["limits"] = {"lower": 0.1, "upper": 0.95}
    assert Protocol.from_json(values).rule.p == 0.9


def test_a_rule_with_its_own_limits_brings_them_along():
    rule = SmoothLogistic(limits=Limits(0.1, 0.7), slope=4.0)
    agreed = protocol(allocation=rule)
    assert (agreed.limits.lower, agreed.limits.upper) == (0.1, 0.7)
    assert agreed.rule == rule.in_units(noise_sd(model()))


def test_a_model_that_does_not_fit_is_refused_in_a_sentence():
    agreed = protocol()
    with pytest.raises(ConfigError, match="has no reward model, so it cannot say what acting adds"):
        agreed.check_model(small_model())
    with pytest.raises(ConfigError, match="has no reward model"):
        Protocol.from_model(small_model(), trial="walks", commitment=DRAWS.commitment)
    other = replace(model(), reward=replace(model().reward, advantage_variance=0.4))
    with pytest.raises(ConfigError, match="the protocol was written for another model"):
        agreed.check_model(other)
    featureless = replace(model(), reward=replace(model().reward, features=()))
    with pytest.raises(ConfigError, match=r"reward.features is \['hour'\] with intercept True; the model's advantage"):
        agreed.check_model(featureless)
    values = stored(covariates__steps=...)
    with pytest.raises(ConfigError, match="the protocol's covariates are hour; those of the model are hour, steps"):
        Protocol.from_json(values).check_model(model())
    with pytest.raises(ConfigError, match=r"allocation.noise_sd is 3; the model's is"):
        Protocol.from_json(stored(allocation__noise_sd=3.0)).check_model(model())


def test_a_model_that_cannot_scale_new_users_is_refused():
    with pytest.raises(DataError, match="scaling per user"):
        Protocol.from_model(
            replace(model(), schema=replace(model().schema, scaler=None)), trial="w", commitment=DRAWS.commitment
        )


def test_a_copy_with_other_values_has_another_hash():
    before = protocol()
    assert before.hash == protocol().hash
    changed = before.model_copy(update={"deadline_ms": 700})
    assert changed.hash != before.hash
    assert changed.model_copy(update={"deadline_ms": before.deadline_ms}).hash == before.hash
    with pytest.raises(ConfigError):
        before.model_copy(update={"deadline_ms": 0})


def test_a_covariate_that_is_called_hour_has_the_hours_of_a_day_without_a_unit():
    plain = replace(model(), schema=replace(model().schema, units={}))
    hour = protocol(plain).covariates["hour"]
    assert (hour.unit, hour.low, hour.high) == ("", 0.0, 24.0)
    steps = protocol(plain).covariates["steps"]
    assert (steps.low, steps.high) != (0.0, 24.0)
