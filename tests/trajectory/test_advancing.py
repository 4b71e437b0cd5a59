"""Kernels on covariates that move on: kept only where they predict what comes next (method (78))."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.errors import ModelFileError
from kerneltrail.kernels import Pool, parse
from kerneltrail.report.group_words import group_description
from kerneltrail.report.model_text import advancing_text
from kerneltrail.trajectory.advancing import LEAST, MOST_SAID, advancing, followed, without, worth_of
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.graph import Worth
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.sampler.chains import ChainTarget
from kerneltrail.trajectory.sampler.urn import Urn

from . import tiny

ENDS = (24, 48, 72, 96)


def steps(rho, rng, rows=ENDS[-1]):
    """Values that are alike from row to row, of variance 1."""
    values = [rng.standard_normal()]
    for _ in range(rows - 1):
        values.append(rho * values[-1] + np.sqrt(1.0 - rho**2) * rng.standard_normal())
    return np.array(values)


def people(kind, count=8, seed=0):
    """A batch a day. What users are like changes as *noise* that lasts some rows, or as *drift* that lasts for days."""
    users = []
    for m in range(count):
        rng = np.random.default_rng([seed, m])
        day = np.arange(ENDS[-1]) // 24
        noise = steps(0.6, rng) if kind == "noise" else 2.0 * steps(0.98, rng) + 0.4 * rng.standard_normal(ENDS[-1])
        hour = rng.uniform(8.0, 20.0, ENDS[-1])
        y = 2.0 * rng.standard_normal() + 0.1 * hour + noise
        users.append(User(f"user {m}", ("day", "hour"), np.column_stack([day, hour]), y, ENDS))
    return users


def learnt_from(users, workers=1, **changes):
    cohort = Cohort.from_users(users, target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", mean="smooth", largest=1, **changes)
    return fit(cohort, pool=Pool.of("SE[day]", "SE[hour]").with_empty(True), settings=settings, workers=workers)


@cache
def learnt(kind, advancing="judged", count=8):
    return learnt_from(people(kind, count), advancing=advancing)


def reads(model):
    return {name for node in model.nodes for name in node.composition.covariates}


def moving_up(rows, ends):
    """By plain loops over users: most batches that change begin where those before ended, and end beyond."""
    beyond = batches = up = down = users = several = 0
    for values, each in zip(rows, ends, strict=True):
        users += any(v != values[each[0] - 1] for v in values[each[0] :])
        several += len(each) > 1
        for start, end in pairwise(each):
            before, new = [float(v) for v in values[:start]], [float(v) for v in values[start:end]]
            beyond += all(v >= max(before) for v in new) and any(v > max(before) for v in new)
            batches += any(v != before[-1] for v in new)
        for one, following in pairwise(values):
            up += following > one
            down += following < one
    ordered = beyond > batches / 2 and up >= 0.95 * (up + down) and users > several / 2
    return max(len(set(values)) for values in rows) > 2 and ordered


@pytest.mark.parametrize("seed", range(30))
def test_a_covariate_moves_on_where_plain_loops_say_so(seed):
    rng = np.random.default_rng(seed)
    ends = [tuple(np.cumsum(rng.integers(1, 5, rng.integers(2, 7))).tolist()) for _ in range(3)]
    by_user = [
        {
            "counter": np.arange(each[-1]) // 2,
            "back": -np.arange(each[-1]),
            "random": rng.standard_normal(each[-1]),
            "phase": np.arange(each[-1]) >= each[-1] // 2,
            "constant": np.ones(each[-1]),
            "slow": np.round(np.arange(each[-1]) / 3.0 + 0.2 * rng.standard_normal(each[-1])),
            "both ways": np.arange(each[-1]) * (-1.0) ** number,
        }
        for number, each in enumerate(ends)
    ]
    users = [
        User(f"user {m}", tuple(columns), np.column_stack(list(columns.values())), np.zeros(each[-1]), each)
        for m, (columns, each) in enumerate(zip(by_user, ends, strict=True))
    ]
    expected = set()
    for name in by_user[0]:
        rows = [columns[name] for columns in by_user]
        if moving_up(rows, ends) or moving_up([-1.0 * values for values in rows], ends):
            expected.add(name)
    assert advancing(users) == expected
    assert "random" not in expected


@pytest.mark.parametrize("ends", [(1, 2), (1, 2, 3), (1, 2, 3, 4, 5), (5, 20)])
def test_what_is_random_does_not_move_on_however_few_rows_there_are(ends):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        users = []
        for m in range(5):
            X = np.column_stack([rng.standard_normal(ends[-1]), rng.random(ends[-1]) < 0.04])
            users.append(User(f"user {m}", ("sleep", "ill"), X, np.zeros(ends[-1]), ends))
        assert advancing(users) == set()


def test_a_weight_that_few_measure_now_and_then_does_not_move_on():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        users = []
        for m in range(10):
            weight = np.repeat(80.0 + rng.standard_normal(3), 8) if m < 2 else np.full(24, 70.0 + m)
            users.append(User(f"user {m}", ("weight",), weight[:, None], np.zeros(24), (8, 16, 24)))
        assert advancing(users) == set()


def test_days_move_on_and_what_comes_back_does_not():
    rows = np.arange(80)
    columns = {
        "day": rows // 5, "day of the month": 20 + rows // 5 - 28 * (rows >= 45), "weekday": rows // 5 % 7,
        "hour": 8 + 3 * (rows % 5),
    }  # fmt: skip
    user = User("Ann", tuple(columns), np.column_stack(list(columns.values())), np.zeros(80), tuple(range(10, 81, 10)))
    assert advancing([user]) == {"day"}
    assert advancing([user.with_ends((80,))]) == set()


@pytest.mark.parametrize("size", [2, 5, 8, 10, 12, 24])
def test_a_day_moves_on_however_many_batches_it_has(size):
    day, week = np.arange(240) // 10, np.arange(240) // 70
    user = User("Ann", ("day", "week"), np.column_stack([day, week]), np.zeros(240), tuple(range(size, 241, size)))
    assert advancing([user]) == {"day", "week"}


def test_what_goes_back_where_a_batch_begins_does_not_move_on():
    """Minutes of a session, of which each begins below the end of the one before and ends beyond."""
    minutes = np.concatenate([np.arange(30.0) + 20.0 * number for number in range(6)])
    user = User("Ann", ("minutes",), minutes[:, None], np.zeros(180), tuple(range(30, 181, 30)))
    assert np.mean(np.diff(minutes) > 0.0) > 0.95
    assert advancing([user]) == set()


def test_what_else_is_in_a_composition_stays():
    pool = Pool.of("SE[day] + SE[hour] + SE[day]*PER[hour] + PER[hour] + LIN[day]*LIN[hour]")

    def left(text):
        return pool.composition(without(pool, pool.mask(parse(text)), {"day"})).text

    assert left("SE[day] + SE[hour]") == "SE[hour]"
    assert left("SE[day]*PER[hour] + SE[hour]") == "PER[hour] + SE[hour]"
    assert left("SE[day]*PER[hour] + PER[hour]") == "PER[hour]"
    assert left("LIN[day]*LIN[hour] + SE[hour]") == "SE[hour]"  # LIN[hour] is not in the pool
    assert left("SE[day]") == ""
    assert left("SE[hour] + PER[hour]") == "PER[hour] + SE[hour]"


def shocks(count=8, seed=1):
    """Everybody has a rhythm over the hour of one's own; days differ by chance in the first batch, not later."""
    users = []
    for m in range(count):
        rng = np.random.default_rng([seed, m])
        day = np.arange(16 * 24) // 24
        shock = np.where(np.arange(16) < 12, 1.2 * rng.standard_normal(16), 0.0)
        hour = rng.uniform(0.0, 24.0, len(day))
        y = 1.5 * np.sin(np.pi * hour / 6.0 + rng.uniform(0.0, 2.0 * np.pi)) + shock[day]
        y = y + 0.8 * rng.standard_normal(len(day))
        users.append(User(f"user {m}", ("day", "hour"), np.column_stack([day, hour]), y, (288, 336, 384)))
    return users


@pytest.mark.slow
def test_moving_kernels_are_not_credited_with_what_stands_beside_them():
    """All candidates read the day, most of them the hour too: without the day the hour stays."""
    users = shocks()
    cohort = Cohort.from_users(users, target="y", scaling="group", target_scaling="standard")

    def made(pool, advancing):
        settings = tiny.settings(sharing="joint", mean="smooth", largest=2, advancing=advancing)
        return fit(cohort, pool=pool.with_empty(True), settings=settings, workers=1)

    both, hours = Pool.of("SE[day] + SE[hour]"), Pool.of("SE[hour]")
    kept, judged, alone = made(both, "kept"), made(both, "judged"), made(hours, "kept")
    assert "day" in reads(kept)
    assert reads(judged) == reads(alone) == {"hour"}
    fair = worth_of(("day",), followed(kept, users), followed(alone, users))
    worth = judged.diagnostics.advancing
    assert (worth.gain, worth.error) == pytest.approx((fair.gain, fair.error), abs=1e-6)
    assert not worth.clear


def test_the_worth_is_a_mean_over_users_with_its_standard_error():
    """Of the batches that both graphs predicted: somebody may not be followed to the end on one of them."""
    kept = {("a", 2): [-1.0, -1.0], ("a", 3): [-1.3], ("b", 2): [-1.2], ("b", 3): [-9.0], ("c", 2): [-0.7]}
    left_out = {("a", 2): [-1.1, -1.2], ("a", 3): [-1.3], ("b", 2): [-1.25], ("c", 2): [-0.9], ("d", 2): [-1.0]}
    kept, left_out = ({key: np.array(rows) for key, rows in each.items()} for each in (kept, left_out))
    worth = worth_of(("day",), kept, left_out)
    gains = [(0.1 + 0.2 + 0.0) / 3, 0.05, 0.2]
    mean = sum(gains) / 3
    assert worth.users == 3
    assert worth.gain == pytest.approx(mean)
    assert worth.error == pytest.approx((sum((gain - mean) ** 2 for gain in gains) / (3 * 2)) ** 0.5)
    assert worth.clear
    assert not worth_of(("day",), left_out, kept).clear
    assert not worth_of(("day",), kept, kept).clear  # of two that predict alike, the one that carries less forward
    assert worth_of(("day",), {key: rows for key, rows in kept.items() if key[0] != "a"}, left_out) is None


def test_one_row_does_not_decide():
    """It says at most so much, and where there is no number for it, nothing more."""
    kept, left_out = ({(f"user {m}", 2): np.full(70, value) for m in range(8)} for value in (-1.0, -1.2))
    plain = worth_of(("day",), kept, left_out)
    far = worth_of(("day",), {**kept, ("user 0", 2): np.r_[np.full(69, -1.0), LEAST]}, left_out)
    assert plain.clear
    assert far.clear
    assert plain.gain - far.gain == pytest.approx((MOST_SAID + 0.2) / 70 / 8)


def test_first_batches_do_not_judge():
    model, users = learnt("noise"), people("noise")
    found = followed(model, users)
    assert {t for _, t in found} == {2, 3, 4}
    assert {user for user, _ in found} == {user.name for user in users}
    for user in users[:2]:
        new = model.new_user(user.name)
        for t in range(1, 5):
            batch = user.batch(t)
            if t > 1:
                np.testing.assert_allclose(found[user.name, t], new.predict(batch.X).bell.log_density(batch.y))
            new.update(batch.X, batch.y)
    far = users[0].with_y(np.r_[users[0].y[:-1], 1e9])  # as good as impossible, but a number
    assert found[users[0].name, 4].min() > LEAST
    assert followed(model, [far])[far.name, 4].min() == LEAST


def test_noise_that_lasts_some_rows_is_not_carried_forward():
    """A kernel for it suits the rows that are there, and not clearly the next ones."""
    assert "day" in reads(learnt("noise", "kept"))
    model = learnt("noise")
    assert "day" not in reads(model)
    assert model.diagnostics.advancing.covariates == ("day",)
    worth = model.diagnostics.advancing
    assert not worth.clear
    assert worth == worth_of(("day",), *(followed(each, people("noise")) for each in (learnt("noise", "kept"), model)))


def test_a_drift_that_lasts_for_days_is_carried_forward():
    model, kept = learnt("drift"), learnt("drift", "kept")
    assert model.diagnostics.advancing.clear
    assert model.paths == kept.paths
    assert "day" in reads(model)
    assert kept.diagnostics.advancing is None
    assert replace(model.diagnostics, advancing=None, seconds={}, traces={}) == replace(
        kept.diagnostics, seconds={}, traces={}
    )


def test_where_no_kernel_reads_it_nothing_is_judged():
    users = [
        User(
            u.name,
            u.covariates,
            u.X,
            np.sin(u.X[:, 1] / 2.0) + 0.1 * np.random.default_rng(0).standard_normal(96),
            u.ends,
        )
        for u in people("noise")
    ]
    model = learnt_from(users)
    assert reads(model) == {"hour"}
    assert model.diagnostics.advancing is None


def test_two_pilot_users_judge_nothing():
    model = learnt("noise", count=2)
    assert model.diagnostics.advancing is None
    assert model.paths == learnt("noise", "kept", count=2).paths


def test_a_pool_of_such_kernels_alone_stays():
    cohort = Cohort.from_users(people("noise"), target="y", scaling="group", target_scaling="standard")
    settings = tiny.settings(sharing="joint", mean="smooth", largest=1)
    model = fit(cohort, pool=Pool.of("SE[day]"), settings=settings, workers=1)
    assert reads(model) == {"day"}
    assert model.diagnostics.advancing is None


def test_without_a_mean_there_is_nothing_to_fall_back_on():
    users = [user.with_y(user.y - user.y.mean()) for user in people("noise")]
    cohort = Cohort.from_users(users, target="y", scaling="group", target_scaling="none")
    pool = Pool.of("SE[day]", "SE[hour]").with_empty(True)
    model = fit(cohort, pool=pool, settings=tiny.settings(largest=1), workers=1)
    assert model.mean is None
    assert "day" in reads(model)
    assert model.diagnostics.advancing is None


@pytest.mark.parametrize(
    "changes",
    [{"paths": "constant"}, {"structure": "averaged"}, {"evidence": "sampled"}, {"evidence": "group"}, {"workers": 2}],
    ids=str,
)
def test_it_is_judged_whatever_else_is_set(changes):
    model = learnt_from(people("noise"), **changes)
    assert model.diagnostics.advancing is not None
    assert not model.diagnostics.advancing.clear
    assert not any("day" in node.composition.covariates for node in model.selectable)


def test_restricted_chains_have_the_same_evidences_and_go_on_from_paths_that_they_may_have():
    table = tiny.table()
    table.compute([(user, mask) for user in range(3) for mask in (1, 2, 4)])
    begin = {0: (1, 1), 1: (4, 4)}
    target = ChainTarget(table, Urn(tiny.POOL, alpha=1.0), tiny.settings(), (1, 2, 4), begin)
    restricted = target.restricted((2, 4))
    assert restricted.begin == {1: (4, 4)}
    for user in range(3):
        assert np.isneginf(restricted.evidence.log_evidence(user, 1)).all()
        for mask in (2, 4):
            np.testing.assert_array_equal(
                restricted.evidence.log_evidence(user, mask), target.evidence.log_evidence(user, mask)
            )


def test_a_file_keeps_what_it_was_worth():
    model = learnt("noise")
    assert from_bytes(to_bytes(model)).diagnostics.advancing == model.diagnostics.advancing
    for wrong in (
        Worth(("day",), "much", 0.1, 8), Worth(("day",), float("nan"), 0.1, 8), Worth(("day",), 0.1, -0.1, 8),
        Worth(("night",), 0.1, 0.1, 8), Worth((), 0.1, 0.1, 8), Worth(("day",), 0.1, 0.1, -8),
    ):  # fmt: skip
        with pytest.raises(ModelFileError):
            from_bytes(to_bytes(replace(model, diagnostics=replace(model.diagnostics, advancing=wrong))))


def test_words_say_what_became_of_them():
    left, kept = learnt("noise"), learnt("drift")
    assert advancing_text(left).startswith("Kernels that read day were left out: day moves on from batch to batch, so")
    assert "Kernels that read day were kept" in advancing_text(kept)
    assert advancing_text(learnt("noise", "kept")) == ""
    two = replace(left.diagnostics, advancing=Worth(("day", "hour"), -0.02, 0.01, 8))
    assert "day and hour move on" in (text := advancing_text(replace(left, diagnostics=two)))
    assert "8 pilot users are predicted worse, by 0.02 nats a row (standard error 0.01). They are kept" in text
    same = replace(left.diagnostics, advancing=Worth(("day",), 0.0002, 0.01, 8))
    assert "are predicted as well as without (standard error 0.01)" in advancing_text(replace(left, diagnostics=same))
    said = [str(sentence) for sentence in group_description(left)]
    common = "Over day, people are predicted to follow what they have in common"
    assert any(each.startswith(f"{common} and a steady rise or fall of their own. How") for each in said)
    assert not [sentence for sentence in group_description(kept) if "carried forward" in str(sentence)]
    apart = replace(left, reward=replace(left.reward, slopes=(), covariance=None, variances=None))
    assert any(str(each).startswith(f"{common}. How somebody departs") for each in group_description(apart))
