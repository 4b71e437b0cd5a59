import math

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.kernels import Pool, Priors, parse
from kerneltrail.trajectory import candidates
from kerneltrail.trajectory.candidates import PROMISING, find_candidates, levels, support
from kerneltrail.trajectory.map_table import Fits, MapSettings, MapTable

from . import tiny


class Given(MapTable):
    """Fits that are simply given: a log evidence by (user, mask, batch)."""

    def __init__(self, batches, pool, log_laplace):
        super().__init__([tiny.pilot(m, tuple(range(1, t + 1))) for m, t in enumerate(batches)], pool, tiny.PRIORS)
        self.asked = []
        self._log = log_laplace

    def get(self, user, mask):
        values = np.array([self._log(user, mask, t) for t in range(self.users[user].batches)])
        return Fits(np.zeros((len(values), 1)), values, values, np.ones((len(values), 1, 1)))

    def compute(self, pairs, *, workers=1, progress=None):
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        for pair in new:
            self.put(*pair, self.get(*pair))
        self.asked.append(new)
        return new


def test_a_small_pool_is_fitted_whole():
    table = Given([2, 1], tiny.POOL, lambda user, mask, t: 0.0)
    found = [sorted(level) for level in levels(table, 3, 1)]
    assert [{mask for _, mask in level} for level in found] == [{1, 2, 4}, {3, 5, 6}, {7}]
    assert all(len(level) == 2 * len({mask for _, mask in level}) for level in found)
    assert [len(list(level)) for level in levels(table, 2, 1)] == [6, 6]


def test_the_empty_composition_is_a_candidate_where_the_pool_allows_it():
    table = Given([2], tiny.POOL.with_empty(), lambda user, mask, t: 0.0)
    assert 0 in support(table, 2, 1)
    assert 0 not in support(Given([2], tiny.POOL, lambda user, mask, t: 0.0), 2, 1)


def wide(count=12):
    return Pool.of(*(f"SE[x{i}]" for i in range(count)), probability=0.1)


@pytest.mark.parametrize("width", [1, 3])
def test_a_large_pool_is_searched_along_a_beam(width):
    """By a naive search: sizes of more than 40 compositions are reached from the best of the size before."""
    rng = np.random.default_rng(width)
    value = {}

    def log_laplace(user, mask, t):
        return value.setdefault((user, mask, t), float(rng.normal(0.0, 5.0)))

    pool = wide()
    table = Given([2, 3], pool, log_laplace)
    found = []
    for level in levels(table, 3, width):
        found.append(sorted(level))
        table.compute(level)
    assert len(found[0]) == 2 * 12
    singles = [1 << i for i in range(12)]
    for size, before in ((2, singles), (3, None)):
        wanted = set()
        for user, batches in ((0, 2), (1, 3)):
            sources = before or [mask for m, mask in found[size - 2] if m == user]
            for t in range(batches):
                score = {mask: log_laplace(user, mask, t) + pool.log_h0(mask) for mask in sources}
                ranked = sorted(score, key=lambda mask: (-score[mask], mask))
                past = [-math.inf]  # the best of all smaller sizes
                past += [
                    log_laplace(user, mask, t) + pool.log_h0(mask)
                    for level in found[: size - 2]
                    for m, mask in level
                    if m == user
                ]
                if score[ranked[0]] > max(past):
                    wanted |= {
                        (user, mask | single) for mask in ranked[:width] for single in singles if not mask & single
                    }
        assert set(found[size - 1]) == wanted


def test_support_is_what_is_promising_for_somebody_fitted_for_everybody():
    def log_laplace(user, mask, t):
        return -abs(mask - 10 * (user + 1)) * 2.5 - 0.1 * t

    pool = Pool.of("LIN[x]", "PER[x]", "SE[x]", "LIN[x]*PER[x]", "PER[x]*SE[x]", probability=0.5)
    table = Given([1, 2], pool, log_laplace)
    chosen = support(table, 3, 1)
    legal = list(pool.masks(3))
    wanted = set()
    for user in range(2):
        score = {mask: log_laplace(user, mask, 0) + pool.log_h0(mask) for mask in legal}
        wanted |= {mask for mask in legal if score[mask] >= max(score.values()) - PROMISING}
    assert set(chosen) == wanted
    assert list(chosen) == sorted(chosen, key=lambda mask: (mask.bit_count(), mask))
    assert {(user, mask) for user in range(2) for mask in chosen} <= set(table.known)


def test_support_does_not_depend_on_what_was_known_before_in_which_order():
    first, second = tiny.table(), tiny.table()
    second.compute([(2, 4), (1, 1), (0, 6)])
    assert support(first, 2, 1) == support(second, 2, 1)


def test_few_is_where_a_search_would_save_nothing(monkeypatch):
    monkeypatch.setattr(candidates, "FEW", 0)
    table = Given([1], tiny.POOL, lambda user, mask, t: -float(mask))
    assert [sorted(mask for _, mask in level) for level in levels(table, 2, 1)] == [[1, 2, 4], [3, 5]]


@pytest.mark.slow
def test_the_truth_is_among_the_candidates_of_simulated_users():
    simulation = simulate.paper(train=4, test=1, seed=1, batches=(3, 7, 30))
    table = MapTable(simulation.train.users, Pool.paper(), Priors.synthetic(), MapSettings())
    chosen = {Pool.paper().composition(mask) for mask in support(table, 2, 1)}
    assert {parse("LIN[x] + PER[x]"), parse("SE[x]")} <= chosen
    assert len(chosen) < len(list(Pool.paper().masks(2)))


def test_together_expands_what_is_best_for_all_customers():
    """By a naive search: no customer prefers product 3, but all together do, and it is found."""
    pool, batches = wide(), [2, 3, 1]
    gain = np.random.default_rng(5).normal(0.0, 0.3, len(pool))
    gain[3], gain[7] = 2.0, 1.5

    def log_laplace(user, mask, t):
        own = 2.5 if mask == 1 << (4 + user) else 0.0  # each customer's own favourite, which nobody else likes
        return own + sum(gain[i] for i in range(len(pool)) if mask >> i & 1) - 0.8 * mask.bit_count()

    table = Given(batches, pool, log_laplace)
    support(table, 4, 1, "together")

    def score(mask):
        return sum(log_laplace(m, mask, t) for m, own in enumerate(batches) for t in range(own)) + pool.log_h0(mask)

    singles = sorted((1 << i for i in range(len(pool))), key=score, reverse=True)
    wanted = [set(singles)]
    best, partners = singles[0], singles[: candidates.PARTNERS]
    for _ in range(3):
        level = {best | one for one in partners if not best & one}
        wanted.append(level)
        if score(max(level, key=score)) <= score(best):
            break
        best = max(level, key=score)
    searched = [level for level in table.asked[:-1] if level]
    assert [{mask for _, mask in level} for level in searched] == wanted
    assert all(len(level) == len(batches) * len(masks) for level, masks in zip(searched, wanted, strict=True))
    assert best == 1 << 3 | 1 << 7


def test_together_begins_at_the_empty_composition_where_it_is_allowed():
    table = Given([2, 1], wide().with_empty(), lambda user, mask, t: -10.0 * mask.bit_count())
    assert support(table, 3, 1, "together")[0] == 0
    assert {mask.bit_count() for _, mask in table.known} == {0, 1}


def test_what_a_table_holds_from_elsewhere_changes_nothing():
    """Fits that were read from a checkpoint of a wider search are no candidates of this one."""
    fresh, stocked = (Given([2, 1], tiny.POOL, lambda user, mask, t: 3.0 * mask.bit_count()) for _ in range(2))
    stocked.compute([(user, mask) for user in range(2) for mask in range(1, 8)])
    assert support(stocked, 1, 1) == support(fresh, 1, 1) == (1, 2, 4)


def test_what_is_told_of_the_fits_is_one_count_that_grows_with_the_levels():
    told = []
    table = MapTable([tiny.pilot(m, (3, 6)) for m in range(2)], tiny.POOL, tiny.PRIORS, tiny.QUICK)
    chosen = support(table, 2, 1, tell=told.append)
    level = [int(now.said.split()[1]) for now in told]
    assert {now.said.split()[-1] for now in told} == {"3"}
    assert level == sorted(level)
    assert set(level) == {1, 2, 3}
    assert [now.done for now in told] == sorted(now.done for now in told)
    assert [now.total for now in told] == sorted(now.total for now in told)
    assert {now.total for now in told if now.said == "level 1 of 3"} == {6}
    assert (told[-1].done, told[-1].total, told[-1].bound) == (len(table.known), len(table.known), "about")
    assert {now.bound for now in told if now.said != "level 3 of 3"} == {"at least"}
    assert set(chosen) <= {mask for _, mask in table.known}


@pytest.mark.parametrize("most", [1, 2, 4, 6, 9, 100])
def test_of_too_many_candidates_each_users_best_stay_first_then_those_worth_most(most):
    """By plain loops: worth is summed over customers, of what the search fitted to their users."""
    rng = np.random.default_rng(3)
    value = {}

    def log_laplace(user, mask, t):
        return value.setdefault((user, mask, t), float(rng.normal(0.0, 3.0)))

    pool, batches = wide(9), [2, 3, 1, 2]
    table = Given(batches, pool, log_laplace)
    found = find_candidates(table, 2, 1, most=most, always=(1 << 8,))
    searched = [pair for level in table.asked[:-1] for pair in level]
    whole = Given(batches, pool, log_laplace)
    promising = support(whole, 2, 1, always=(1 << 8,))
    worth, chance, bests = dict.fromkeys(promising, 0.0), dict.fromkeys(promising, 0.0), set()
    for user, count in enumerate(batches):
        masks = [mask for m, mask in searched if m == user]
        for t in range(count):
            score = {mask: log_laplace(user, mask, t) + pool.log_h0(mask) for mask in masks}
            top = max(score.values())
            total = sum(math.exp(s - top) for s in score.values())
            for mask in set(masks) & set(promising):
                worth[mask] += max(0.0, score[mask] - top + PROMISING)
                chance[mask] += math.exp(score[mask] - top) / total
        bests.add(max(masks, key=score.__getitem__))
    assert len(bests) > 2
    ranked = [1 << 8]
    for some in (bests, set(promising)):
        ranked += sorted(some - set(ranked), key=lambda mask: -worth[mask])
    assert set(found.masks) == set(ranked[:most])
    assert found.cut == len(ranked[most:])
    assert found.share == pytest.approx(sum(chance[mask] for mask in ranked[most:]) / sum(batches))
    assert {(user, mask) for user in range(4) for mask in found.masks} <= set(table.known)
    if most >= len(promising):
        assert (found.masks, found.cut, found.share) == (promising, 0, 0.0)


def test_what_an_extended_model_has_stays_however_few_may_be_kept():
    table = Given([2], tiny.POOL, lambda user, mask, t: -float(mask))
    assert find_candidates(table, 2, 1, most=1, always=(3, 5)).masks == (3, 5)


@pytest.mark.parametrize("negligible", [0.0, 0.01, 0.1, 0.3])
def test_the_least_probable_go_that_hold_a_negligible_share_together(negligible):
    """By plain loops: probabilities are among all candidates, of every customer, whoever the search fitted them for."""
    rng = np.random.default_rng(5)
    value = {}

    def log_laplace(user, mask, t):
        return value.setdefault((user, mask, t), float(rng.normal(0.0, 2.0)))

    pool, batches, always = wide(9), [2, 3, 1, 2], (1 << 8,)
    table = Given(batches, pool, log_laplace)
    whole = support(table, 2, 1, always=always)
    share, bests = dict.fromkeys(whole, 0.0), set()
    for user, count in enumerate(batches):
        for t in range(count):
            score = {mask: log_laplace(user, mask, t) + pool.log_h0(mask) for mask in whole}
            total = sum(math.exp(each) for each in score.values())
            for mask in whole:
                share[mask] += math.exp(score[mask]) / total / sum(batches)
        bests.add(max(whole, key=score.__getitem__))
    left, gone = 0.0, set()
    for mask in sorted(whole, key=share.__getitem__):
        left += share[mask]
        if left <= negligible and mask not in bests | set(always):
            gone.add(mask)
    found = find_candidates(table, 2, 1, always=always, negligible=negligible)
    assert found.masks == tuple(mask for mask in whole if mask not in gone)
    assert (len(gone) > 0) == (negligible > 0.0)
    assert (found.cut, found.share) == (0, 0.0)


def test_what_is_best_for_one_user_of_many_stays_however_little_it_holds():
    """Somebody's own kernel, found with all rows of one user among a thousand."""
    odd = 4

    def log_laplace(user, mask, t):
        return 50.0 * ((mask == odd) == (user == 7))

    table = Given([1] * 1000, tiny.POOL, log_laplace)
    assert set(find_candidates(table, 1, 1, negligible=0.4).masks) == {1, 2, odd}
    with_few = Given([1] * 1000, tiny.POOL, lambda user, mask, t: 50.0 * (mask == (4 if user == 7 else 1)))
    assert find_candidates(with_few, 1, 1, negligible=0.4).masks == (1, odd)
