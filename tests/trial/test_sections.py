"""Which outcome is better: allocations mirror, hashes of before stay, and what people are told turns round with it."""

import numpy as np
import pytest

from kerneltrail.errors import ConfigError
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.trial.allocation import ALLOCATIONS
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.protocol_text import commented_text
from kerneltrail.trial.sections import OutcomeSection

from .study import protocol, stored

MIXTURES = [
    ([1.0], [0.3], [0.04]),
    ([0.5, 0.5], [1.0, -0.1], [0.01, 0.01]),
    ([0.2, 0.3, 0.5], [-2.0, 0.05, 0.4], [4.0, 1e-4, 0.0]),
]
OLD = """
title: Walks
trial: walks
model: {file: pilot.trail, fingerprint: f}
reward: {action: message, outcome: mood, unit: "", features: [hour], intercept: true, coding: plain}
covariates: {hour: {unit: hours, low: 0, high: 24}}
decisions: {walk: {times: ["09:00"]}}
allocation: {rule: clipped-thompson, noise_sd: 0.5}
updates: {daily: "03:00"}
draw: {commitment: "0000000000000000000000000000000000000000000000000000000000000000"}
"""
HASH = "290793f628136870db338145610cd76750751f63d28e447694dd1d18bf0dfb72"
"""Of that protocol, by the code of before there was a key `better`."""


def mixture(weights, means, variances):
    return NormalMixture(weights, np.array(means)[:, None], np.array(variances)[:, None])


@pytest.mark.parametrize("name", list(ALLOCATIONS))
@pytest.mark.parametrize("delta", [0.0, 0.15])
def test_probabilities_mirror_exactly(name, delta):
    higher, lower = protocol(allocation=name), protocol(allocation=name, better="lower")
    assert higher.rule == lower.rule
    for weights, means, variances in MIXTURES:
        advantage, turned = mixture(weights, means, variances), mixture(weights, np.negative(means), variances)
        assert lower.allocate(lower.rule, advantage, delta) == higher.allocate(higher.rule, turned, delta)
        assert higher.allocate(higher.rule, advantage, delta) == higher.rule.allocate(advantage, delta)
    if name != "fixed":
        raised = mixture([1.0], [0.5], [0.04])
        chances = [each.allocate(each.rule, raised, delta).probability for each in (higher, lower)]
        assert chances[0] > chances[1]


def test_a_protocol_of_before_keeps_its_hash():
    old = Protocol.parse(OLD)
    assert old.reward.better == "higher"
    assert old.hash == HASH
    assert b"better" not in old.canonical()
    for values in (old.to_json(), old.model_dump(mode="json")):
        assert "better" not in values["reward"]
        assert Protocol.from_json(values).hash == HASH
    stated = Protocol.parse(OLD.replace("outcome: mood", "outcome: mood, better: higher"))
    assert stated == old
    assert stated.hash == HASH


def test_a_lower_outcome_that_is_better_is_kept_and_has_another_hash():
    lower = Protocol.parse(OLD.replace("outcome: mood", "outcome: mood, better: lower"))
    assert lower.hash != HASH
    assert lower.to_json()["reward"]["better"] == "lower"
    assert b'"better":"lower"' in lower.canonical()
    assert Protocol.from_json(lower.to_json()) == lower
    assert lower.model_copy(update={"title": "Other"}).reward.better == "lower"


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_text_states_which_is_better_and_reads_back(better):
    agreed = protocol(better=better)
    text = commented_text(agreed)
    assert f'\n  better: "{better}"\n' in text
    assert "a higher value of mood counts as better" in text
    assert Protocol.parse(text) == agreed
    assert Protocol.parse(text).hash == agreed.hash


@pytest.mark.parametrize("word", ["less", "Lower", True, None])
def test_another_word_is_refused_by_key(word):
    with pytest.raises(ConfigError, match=r"reward.better must be 'higher' or 'lower', got"):
        Protocol.from_json(stored(reward__better=word))


def test_the_quarter_who_fare_worst_lies_on_the_other_side():
    values = [1.0, 2.0, 3.0, 4.0, 10.0]
    mood, stress = (OutcomeSection(action="a", outcome="b", better=each) for each in ("higher", "lower"))
    assert (mood.worst.of(values), mood.worst.side, mood.worst.name) == (2.0, "below", "25th percentile")
    assert (stress.worst.of(values), stress.worst.side, stress.worst.name) == (4.0, "above", "75th percentile")
    assert stress.direction == "a lower value of b counts as better"
