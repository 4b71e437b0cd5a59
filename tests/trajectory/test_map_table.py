"""Fits depend on content alone: not on who asks, when, in which order or in which process."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.gp import Reward, find_map_path
from kerneltrail.trajectory.map_table import Fits, MapSettings, MapTable, fit_path

from . import tiny

PAIRS = [(user, mask) for user in range(3) for mask in (1, 2, 4, 6)]


def same(mine, theirs):
    return all(
        np.array_equal(getattr(mine, name), getattr(theirs, name))
        for name in ("theta", "log_likelihood", "log_laplace", "precision")
    )


def test_fits_are_those_of_the_search_for_every_batch():
    user, composition = tiny.pilot(1), tiny.POOL.composition(6)
    found = fit_path(user, composition, tiny.PRIORS, tiny.QUICK, None)
    assert found.theta.shape == (2, 6)
    assert found.precision.shape == (2, 6, 6)
    # Other random starts, more of them: an optimum at least as good, so ours can only be below.
    better = find_map_path(user, composition, tiny.PRIORS, rng=np.random.default_rng(5), starts=8)
    thorough = fit_path(user, composition, tiny.PRIORS, MapSettings(starts=8, screen=64), None)
    np.testing.assert_allclose(thorough.log_laplace, [r.log_laplace for r in better], atol=0.02)
    np.testing.assert_allclose(thorough.log_likelihood, [r.log_likelihood for r in better], atol=0.02)


def test_a_last_digit_changes_no_start():
    """With few starts a period is found by luck, which must be the same on a machine that rounds otherwise."""
    user, composition = tiny.pilot(1), tiny.POOL.composition(6)
    near = user.with_y(user.y * (1 + 2e-16))
    assert not np.array_equal(near.y, user.y)
    mine, other = (fit_path(each, composition, tiny.PRIORS, tiny.QUICK, None) for each in (user, near))
    np.testing.assert_allclose(other.log_laplace, mine.log_laplace, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other.theta, mine.theta, rtol=0, atol=1e-3)


def test_a_fit_is_computed_once(monkeypatch):
    table = tiny.table()
    first = table.get(0, 5)
    monkeypatch.setattr(MapTable, "fit", lambda *a: pytest.fail("fitted again"))
    assert same(table.get(0, 5), first)
    assert table.compute([(0, 5)]) == []
    assert same(table.get(0, 5), first)
    assert set(table.known) == {(0, 5)}


def test_known_is_a_copy_and_put_is_believed():
    table, other = tiny.table(), tiny.table()
    fits = other.get(1, 1)
    table.put(0, 4, fits)
    assert same(table.get(0, 4), fits)
    table.known.clear()
    assert set(table.known) == {(0, 4)}


def test_neither_the_order_of_users_nor_of_questions_matters():
    forward, backward = tiny.table(), MapTable(tiny.pilots()[::-1], tiny.POOL, tiny.PRIORS, tiny.QUICK)
    for user, mask in PAIRS:
        forward.get(user, mask)
    for user, mask in PAIRS[::-1]:
        assert same(backward.get(2 - user, mask), forward.get(user, mask))


def test_two_processes_find_what_one_does():
    alone, together = tiny.table(), tiny.table()
    assert sorted(alone.compute(PAIRS)) == sorted(together.compute(PAIRS, workers=2)) == sorted(PAIRS)
    assert all(same(alone.get(*pair), together.get(*pair)) for pair in PAIRS)
    on_demand = tiny.table()
    assert all(same(on_demand.get(*pair), alone.get(*pair)) for pair in PAIRS[:4])


def test_another_session_finds_the_same_bits():
    fits = tiny.table().fit(1, 6)
    given = pickle.dumps((tiny.pilot(1), tiny.POOL.composition(6), tiny.PRIORS, tiny.QUICK))
    code = (
        "import pickle, sys; from kerneltrail.trajectory.map_table import fit_path;"
        "sys.stdout.buffer.write(pickle.dumps(fit_path(*pickle.load(sys.stdin.buffer), None)))"
    )
    run = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True)
    assert same(pickle.loads(run.stdout), fits)


def test_other_rows_get_other_starts_and_another_name_the_same():
    base, composition = tiny.pilot(1), tiny.POOL.composition(6)
    mine, renamed = (
        fit_path(user, composition, tiny.PRIORS, tiny.QUICK, None) for user in (base, base.with_name("else"))
    )
    assert same(renamed, mine)
    moved = fit_path(base.with_y(base.y + 1e-5), composition, tiny.PRIORS, tiny.QUICK, None)
    assert np.abs(moved.theta - mine.theta).max() > 1e-3  # far more than so little can do by itself


def test_new_fits_are_announced_one_by_one_and_old_ones_never():
    table, told, steps = tiny.table(), [], []
    table.on_new = lambda owner, pairs: told.append((owner is table, pairs))
    table.compute([(0, 1), (0, 1), (1, 4)], progress=lambda done, total: steps.append((done, total)))
    assert sorted(pairs[0] for _, pairs in told) == [(0, 1), (1, 4)]
    assert all(own and len(pairs) == 1 for own, pairs in told)
    assert steps == [(0, 2), (1, 2), (2, 2)]
    table.compute([(0, 1)])
    assert len(told) == 2


def test_a_worker_keeps_nothing_on_disk():
    table = tiny.table()
    table.on_new = lambda owner, pairs: None
    assert pickle.loads(pickle.dumps(table)).on_new is None
    assert table.on_new is not None


def test_a_reward_model_needs_actions_and_changes_the_fit():
    with pytest.raises(DataError, match="'pilot 0' has no actions"):
        tiny.table(reward=Reward()).get(0, 1)
    users = tiny.pilots(1, action=True)
    plain, rewarded = (MapTable(users, tiny.POOL, tiny.PRIORS, tiny.QUICK, reward) for reward in (None, Reward()))
    assert not np.array_equal(plain.get(0, 1).log_laplace, rewarded.get(0, 1).log_laplace)


def test_packed_fits_come_back_with_curvatures_and_ends_in_single_precision():
    rng = np.random.default_rng(0)
    for batches, size, ends in ((3, 4, 5), (1, 1, 0), (2, 7, 1)):
        half = rng.standard_normal((batches, size, size))
        fits = Fits(
            rng.standard_normal((batches, size)),
            rng.standard_normal(batches),
            rng.standard_normal(batches),
            half + np.swapaxes(half, 1, 2),
            rng.standard_normal((ends, size)) if ends else np.empty((0, 0)),
        )
        back = Fits.unpacked(fits.packed())
        for name in ("theta", "log_likelihood", "log_laplace"):
            np.testing.assert_array_equal(getattr(back, name), getattr(fits, name))
        np.testing.assert_array_equal(back.precision, fits.precision.astype(np.float32).astype(float))
        np.testing.assert_array_equal(back.ends, fits.ends.astype(np.float32).astype(float))
        assert back.packed() == fits.packed()
