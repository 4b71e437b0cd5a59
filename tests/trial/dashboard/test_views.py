"""What the pages are made of: facts, rows, groups of outcomes, foresight, kernels over time, outcomes by action."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from kerneltrail.gp.outcome_shape import OutcomeShape
from kerneltrail.kernels import NOTHING, parse
from kerneltrail.report.terms import chance
from kerneltrail.trial.alarms import WAIT
from kerneltrail.trial.dashboard import by_action, cohort, descriptions, outcomes, people, person
from kerneltrail.trial.dashboard.contact import contact_of
from kerneltrail.trial.dashboard.drawing import (
    Advantages,
    Chances,
    Shares,
    draw_advantages,
    draw_chances,
    draw_shares,
)
from kerneltrail.trial.dashboard.foresight import Foreseen, Foresight, foresee, interval
from kerneltrail.trial.dashboard.today import today
from kerneltrail.trial.decided import points_of, present, updates_at
from kerneltrail.trial.export import table
from kerneltrail.trial.ratio import ratio
from kerneltrail.trial.rows import arrays, rows_of
from kerneltrail.trial.versions import Versions
from trajectory.small import mean_model

from ..running import agreed
from ..study import centred_model
from ..test_ratio import point
from .living import LONG, NASTY


@pytest.fixture(scope="module")
def points(state):
    return points_of(state.participants["p01"])


@pytest.fixture(scope="module")
def view(life, state, points):
    trial, time = life
    foreseen = {each.sequence: Foreseen(1.0, 0.1, 0.5) for each in points}
    return person.PersonView("p01", "Europe/Zurich", trial.protocol, points, updates_at(state), foreseen, time.now)


def test_facts_are_those_of_the_export(state, points):
    rows = [row for row in table(state, "decisions")[1] if row["participant"] == "p01"]
    assert len(points) == len(rows) == 12
    for each, row in zip(points, rows, strict=True):
        assert (each.action, each.probability, each.available) == (row["action"], row["probability"], row["available"])
        assert (each.delivered, each.outcome) == (row["delivered_action"], row["outcome"])
        assert each.at.isoformat() == row["decided_at"]
        assert each.lost == (row["action"] == 1 and row["delivered_action"] == 0)


def test_headline_numbers(life, state, points):
    trial, time = life
    row = people.row_of(state.participants["p01"], trial.protocol, time.now)
    able = [each for each in points if each.available]
    due = [each for each in able if each.at <= time.now - WAIT]
    assert row.decisions == 12
    assert row.available == pytest.approx(len(able) / 12)
    assert row.sent == pytest.approx(np.mean([each.action for each in able]))
    assert row.probability == pytest.approx(np.mean([each.probability for each in able]))
    assert (row.missing, row.due) == (sum(each.outcome is None for each in due), len(due))
    assert row.policy == 1.0
    assert people.row_of(state.participants["p03"], trial.protocol, time.now) == people.PersonRow("p03", "removed")


def test_rows_are_sorted_and_searched(life, state):
    trial, time = life
    names = [row.id for row in people.listed(state, trial.protocol, time.now)]
    assert names == sorted(names)
    assert NASTY in names
    by_call = people.listed(state, trial.protocol, time.now, sort="last")
    assert [row.id for row in by_call][:3] == [LONG, "p03", "p02"]  # of the first two nothing is known
    up = [row.decisions for row in people.listed(state, trial.protocol, time.now, sort="decisions")]
    down = [row.decisions for row in people.listed(state, trial.protocol, time.now, sort="decisions", down=True)]
    assert up == down[::-1] == sorted(up)
    assert people.listed(state, trial.protocol, time.now, sort="call")[1].id == "p02"
    assert [row.id for row in people.listed(state, trial.protocol, time.now, search="P04")] == ["p04"]
    assert [row.id for row in people.listed(state, trial.protocol, time.now, search="paused")] == ["p04"]
    assert people.listed(state, trial.protocol, time.now, search="nobody") == []


def test_the_interval_of_a_mean_is_no_wider_than_of_one_and_holds_shared_doubt():
    one = Foreseen(2.0, 0.3, 0.6, 1.6)
    mean, low, high = interval([one])
    assert (mean, high - mean) == (2.0, pytest.approx(1.6 * np.sqrt(0.9)))
    assert mean - low == pytest.approx(high - mean)
    many = interval([one] * 50)
    assert many[2] - many[0] == pytest.approx(1.6 * np.sqrt(0.3 + 0.6 / 50))


def test_foresight_is_what_the_model_said_before_and_goes_on(state):
    versions, model, known = Versions(state), centred_model(), state.participants["p01"]
    batches = versions.batches(versions.active.version, "p01")
    rows = rows_of(known, batches)
    assert len(batches) == 2
    user, expected = model.new_user("p01"), {}
    for batch in rows:
        X, y, assignment = arrays(batch, model.covariates)
        both = [user.predict(X, action=replace(assignment, action=np.full(len(y), a))) for a in (0.0, 1.0)]
        for i, row in enumerate(batch):
            chance = row.probability if row.available else 0.0
            expected[row.decision] = (1 - chance) * both[0].mean[i] + chance * both[1].mean[i]
        user.update(X, y, action=assignment)
    foresight = Foresight()
    first = foresight.of(model, "m", "p01", batches[:1], rows[:1], ())
    assert set(first) == {row.decision for row in rows[0]}
    whole = foresight.of(model, "m", "p01", batches, rows, ())
    anew = Foresight().of(model, "m", "p01", batches, rows, ())
    assert whole == anew
    assert {key: each.mean for key, each in whole.items()} == pytest.approx(expected)
    newest = [replace(rows[0][0], decision=999)]
    assert foresight.of(model, "m", "p01", batches, rows, newest)[999] == foresee(user, newest)[999]
    foresight.forget(["p01"])
    assert foresight._known == {}


def test_a_prediction_does_not_know_the_draw(state):
    model, known = centred_model(), state.participants["p01"]
    versions = Versions(state)
    batch = rows_of(known, versions.batches(versions.active.version, "p01"))[0]
    flipped = [replace(row, action=1.0 - row.action) for row in batch]
    user = model.new_user("p01")
    assert foresee(user, batch) == foresee(user, flipped)


def test_one_outcome_has_the_interval_of_its_shape_and_several_have_that_of_their_mean(state):
    shape = OutcomeShape((0.5, 1.0), (3.0, 0.0, -4.0), (0.2, None, None))
    model, known, versions = replace(centred_model(), shape=shape), state.participants["p01"], Versions(state)
    batch = rows_of(known, versions.batches(versions.active.version, "p01"))[0]
    shaped, plain = (foresee(each.new_user("p01"), batch) for each in (model, replace(model, shape=None)))
    several = list(shaped.values())
    for each in several:
        assert each.ends[0] >= 0.2
        assert each.least == 0.2
        assert each.most == np.inf
        assert interval([each])[1:] == each.ends
    several[0] = replace(several[0], mean=-9.0)
    assert interval(several)[1] == 0.2  # no mean of outcomes is below all of them
    assert {key: (each.doubt, each.reach) for key, each in shaped.items()} == {
        key: (each.doubt, pytest.approx(each.reach)) for key, each in plain.items()
    }


def test_descriptions_are_those_of_the_policy_that_serves(life, state):
    trial, _ = life
    versions, model, users = Versions(state), centred_model(), trial.everybody(state)
    naive = []
    for version in ("2", "3"):  # the first knows nobody
        kernels = []
        for known in present(state):
            user = model.new_user(known.id)
            for batch in rows_of(known, versions.batches(version, known.id)):
                X, y, assignment = arrays(batch, model.covariates)
                user.update(X, y, action=assignment)
            if user.batches:
                kernels.append(user.composition.text or NOTHING)
        naive.append((version, Counter(kernels)))
    assert sum(naive[-1][1].values()) == len(users) == 4
    found = descriptions.frequencies(state, users)
    assert [(version.version, counts) for version, counts in found] == naive
    name = naive[-1][1].most_common(1)[0][0]
    shown = descriptions.descriptions_section(state, users, {name: "a line"}, "UTC", ()).blocks[0].text
    assert shown.startswith("Of those whose outcomes policy 3, which serves, knows: ")
    assert f"a line: {naive[-1][1][name]} of 4" in shown
    none = descriptions.descriptions_section(state, dict.fromkeys(users), {}, "UTC", ()).blocks[0].text
    assert none == "Policy 3 knows 4 participants; their descriptions are not at hand now."
    nobody = descriptions.descriptions_section(state, {}, {}, "UTC", ()).blocks[0].text
    assert nobody == "Policy 3, which serves, knows no outcomes of participants yet."


def test_having_no_kernel_is_said_in_words():
    model = mean_model()
    node = model.nodes[0]
    nothing, noise = parse(""), node.group.mean[-1:]
    group = replace(node.group, composition=nothing, mean=noise, variance=node.group.variance[-1:])
    empty = replace(node, mask=0, composition=nothing, thetas=node.thetas[:, -1:], group=group)
    words = descriptions.nouns(replace(model, nodes=(empty, *model.nodes[1:])))
    assert words[NOTHING] == "what users share, with no pattern of their own"
    assert set(words) == {NOTHING, *(each.composition.text for each in model.nodes[1:])}


def test_messages_a_day_are_over_days_of_participants(life, state):
    trial, time = life
    points = cohort.all_points([points_of(each) for each in present(state)])
    view = cohort.CohortView(state, trial.protocol, points, updates_at(state), "UTC", time.now)
    pairs = {(each.participant, each.at.date()) for each in points}
    sent = sum(each.action for each in points)
    words = cohort._doses(view).blocks[0].text
    assert f"it is {sent / len(pairs):.2f} a day for each participant: {sent} messages on {len(pairs)} days" in words
    # Two people on the first day, one on the next: 2 messages on 3 days, though the means of days are 0 and 2.
    first, second = (replace(point(0.5, 0), participant=name) for name in ("a", "b"))
    later = replace(point(0.5, 1), at=first.at + timedelta(days=1), participant="a")
    words = cohort._doses(replace(view, points=[first, second, later, replace(later, sequence=9)])).blocks[0].text
    assert "the last day, 2 messages were sent among 1 participant with a decision: 2.00 each" in words
    assert "Over 2 days it is 0.67 a day for each participant: 2 messages on 3 days of participants." in words


def test_how_participants_fare_is_the_mean_of_their_means(life, state):
    trial, time = life
    everybody = [points_of(each) for each in present(state)]
    now = time.now + timedelta(days=3)  # when all days are settled
    view = cohort.CohortView(state, trial.protocol, cohort.all_points(everybody), updates_at(state), "UTC", now)
    means = [
        np.mean([each.outcome for group in groups for each in group])
        for points in everybody
        if (groups := outcomes.grouped(points, now))
    ]
    assert len(means) == 3
    words = cohort._outcomes(view).blocks[0].text
    assert f"Over {len(means)} participants it is {np.mean(means):.1f} " in words
    assert f"a quarter of them lie below {np.quantile(means, 0.25):.1f}" in words


def lowered(protocol):
    return protocol.model_copy(update={"reward": {**protocol.to_json()["reward"], "better": "lower"}})


def test_where_a_lower_outcome_is_better_those_who_fare_worst_lie_above(life, state):
    trial, time = life
    everybody = [points_of(each) for each in present(state)]
    now = time.now + timedelta(days=3)
    means = [mean for each in everybody if (mean := outcomes.settled_mean(each, now)) is not None]
    rest = (cohort.all_points(everybody), updates_at(state), "UTC", now)
    words = cohort._outcomes(cohort.CohortView(state, lowered(trial.protocol), *rest)).blocks[0].text
    assert f"a quarter of them lie above {np.quantile(means, 0.75):.1f}" in words


def test_how_sure_it_was_is_of_what_is_better(view, points):
    last = next(each for each in reversed(points) if each.advantage is not None)
    record = {**last.record, "threshold": (0.25).hex()}
    stress = replace(view, protocol=lowered(view.protocol))
    (mood,), (lower,) = (person._sureness(each, replace(last, record=record)) for each in (view, stress))
    outcome = view.protocol.reward.outcome
    assert f"raised {outcome} by more than 0.25" in mood
    assert mood.endswith(f"was {chance(float(last.advantage.above(0.25)[0]))}.")
    assert f"lowered {outcome} by more than 0.25" in lower
    assert lower.endswith(f"was {chance(1.0 - float(last.advantage.above(-0.25)[0]))}.")
    for each, better in ((view, "higher"), (stress, "lower")):
        caption = person.advantage_section(each).blocks[-1].caption
        assert caption.endswith(f"It is what sets the probability: a {better} value of {outcome} counts as better.")


def test_how_participants_fare_does_not_move_with_an_outcome(life, state):
    trial, time = life
    points = cohort.all_points([points_of(each) for each in present(state)])
    view = cohort.CohortView(state, trial.protocol, points, updates_at(state), "UTC", time.now)
    shown = cohort._outcomes(view).blocks[0].text
    assert "participants it is" in shown
    for i, each in enumerate(points):
        if each.settles_at > time.now:
            changed = [*points[:i], replace(each, outcome=900.0, settled=900.0), *points[i + 1 :]]
            assert cohort._outcomes(replace(view, points=changed)).blocks[0].text == shown
        else:  # corrected, or come, after it was settled
            changed = [*points[:i], replace(each, outcome=900.0), *points[i + 1 :]]
            assert cohort._outcomes(replace(view, points=changed)).blocks[0].text == shown


def test_a_weighted_mean_is_that_of_a_loop(points):
    known = [each for each in points if each.available and each.outcome is not None]
    for action in (0, 1):
        top = bottom = 0.0
        for each in known:
            if each.action == action:
                weight = 1.0 / (each.probability if action else 1.0 - each.probability)
                top, bottom = top + weight * each.outcome, bottom + weight
        assert by_action.weighted_mean(known, action) == pytest.approx(top / bottom)
    assert by_action.difference([each for each in known if each.action]) is None


def test_the_difference_finds_what_acting_adds_where_probabilities_follow_the_context():
    """Messages go where outcomes are low anyway: the plain difference is wrong, the weighted one is not.

    Its standard error over 60 participants is 0.03, so the test fails by chance once in 10^6 seeds.
    """
    rng = np.random.default_rng(4)
    everybody = []
    for _ in range(60):
        low = rng.random(100) < 0.5
        chance = np.where(low, 0.75, 0.25)
        action = (rng.random(100) < chance).astype(int)
        y = 2.0 * ~low + 0.5 * action + 0.3 * rng.standard_normal(100)
        columns = zip(chance, action, y, strict=True)
        everybody.append([replace(point(p, int(a)), outcome=float(value)) for p, a, value in columns])
    gains = [by_action.difference(points) for points in everybody]
    assert np.mean(gains) == pytest.approx(0.5, abs=0.15)
    every = [each for points in everybody for each in points]
    plain = np.mean([e.outcome for e in every if e.action]) - np.mean([e.outcome for e in every if not e.action])
    assert plain < 0
    section = by_action.by_action_section(everybody, "steps", "steps a day")
    assert "95 % interval" in section.blocks[0].text


def test_who_needs_a_call_is_the_same_on_every_page(life, state):
    trial, time = life
    known = state.participants["p02"]
    assert contact_of(known, points_of(known), trial.protocol, time.now).urgency == "today"
    known = state.participants["p01"]
    assert contact_of(known, points_of(known), trial.protocol, time.now) is None


def test_why_no_call_was_due(life, state):
    trial, time = life
    assert any(section.times for section in trial.protocol.decisions.values())
    before = time.now - timedelta(days=400)
    calls = {heading: words for heading, _, words in today(state, trial.protocol, before, True).numbers}
    assert calls["Calls of apps, 24 hours"] == "none was due in these 24 hours"
    free = agreed(decisions={"walk": {}})
    calls = {heading: words for heading, _, words in today(state, free, before, True).numbers}
    assert calls["Calls of apps, 24 hours"] == "the protocol names no times at which decisions are due"


def test_a_probability_near_a_limit_is_not_written_as_the_limit(view, points):
    lower, upper = view.protocol.limits.lower, view.protocol.limits.upper
    near = [replace(each, probability=upper - 0.0007 * (i % 2 + 1), clipped=None) for i, each in enumerate(points)]
    words = person.decisions_section(replace(view, points=near)).blocks[0].text
    assert f"between {upper - 0.0014:.4f} and {upper - 0.0007:.4f}" in words
    limits = f"The limits that the protocol sets for it are {lower:g} and {upper:g}"
    assert f"{limits}; it never stood at either." in words
    able = next(i for i, each in enumerate(near) if each.available)
    near[able] = replace(near[able], probability=upper, clipped="upper")
    words = person.decisions_section(replace(view, points=near)).blocks[0].text
    assert words.endswith(f"{limits}; it stood at one of these 1 time.")


@pytest.mark.parametrize("at", [(20514.42093,), (20514.42093, 20514.42094), (20514.2, 20514.6)])
def test_a_time_axis_spans_at_least_a_day(at):
    shares = tuple(0.5 for _ in at)
    marks = tuple("sent" for _ in at)
    for figure in (
        draw_shares(Shares((("a line", at, shares),), (), "share"), width=5.0),
        draw_shares(Shares((("a line", at, shares),), at[:1], "share"), width=5.0),
        draw_chances(Chances(at, shares, tuple(False for _ in at), marks, (0.2, 0.8), ()), width=5.0),
        draw_advantages(Advantages(at, shares, shares, shares, (), "gain"), width=5.0),
    ):
        for ax in figure.axes:
            start, end = ax.get_xlim()
            assert end - start == pytest.approx(1.0)
            assert start < min(at) <= max(at) < end
            assert 2 <= len([tick for tick in ax.get_xticks() if start <= tick <= end]) <= 7
    longer = draw_shares(Shares((("a line", (1.0, 3.5), (0.1, 0.2)),), (), "share"), width=5.0).axes[0].get_xlim()
    assert longer == pytest.approx((0.95, 3.55))


def test_a_number_of_messages_that_chance_makes_seldom_is_put_beside_what_calls_for_an_alarm():
    inside, outside = ratio([0.5] * 100, 52), ratio([0.5] * 100, 62)
    assert cohort.ratio_words(inside, []).endswith("by more than chance makes.")
    assert "no version of the policy is so far off" in cohort.ratio_words(outside, [])
    assert "by more than chance makes" not in cohort.ratio_words(outside, [])
    assert "More than chance makes: policy 2." in cohort.ratio_words(outside, ["policy 2"])
