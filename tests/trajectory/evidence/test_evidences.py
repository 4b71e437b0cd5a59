"""The evidences against plain loops."""

import math

import numpy as np
import pytest

from gp import oracle
from kerneltrail.gp import Reward
from kerneltrail.trajectory import EVIDENCES, TrajectoryError
from kerneltrail.trajectory.evidence.empirical import PRIOR_DRAWS, evenly
from kerneltrail.trajectory.evidence.group import Quadratic
from kerneltrail.trajectory.map_table import Fits, MapTable, group_of
from kerneltrail.trajectory.sampler.urn import last_use
from trajectory import tiny
from trajectory.tiny import LIN, PER, SE

PATHS = ((LIN, LIN), (SE, LIN | SE), (LIN, SE))
KINDS = ("laplace", "group", "empirical", "sampled", "group-sampled")


@pytest.fixture(scope="module")
def table():
    return tiny.table()


def logmeanexp(values):
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values) / len(values))


@pytest.mark.parametrize("kind", KINDS)
def test_every_evidence_has_one_number_per_batch_and_none_for_what_is_too_large(table, kind):
    evidence = EVIDENCES[kind](table, 1).for_paths(((LIN, LIN), (SE, SE), (LIN, SE)))
    assert evidence.customers == (2, 2, 2)
    for mask in (LIN, SE):
        values = evidence.log_evidence(1, mask)
        assert values.shape == (2,)
        assert np.isfinite(values).all()
        if kind == "laplace":  # the table's own
            np.testing.assert_array_equal(evidence.log_evidence(1, mask), values)
        else:
            assert np.shares_memory(evidence.log_evidence(1, mask), values)  # not computed twice
    assert evidence.log_evidence(0, LIN | SE).tolist() == [-math.inf, -math.inf]
    assert (0, LIN | SE) not in table.known or kind != "laplace"


def test_laplace_is_the_tables_own_and_learns_nothing(table):
    evidence = EVIDENCES["laplace"](table, 3)
    assert evidence.for_paths(PATHS) is evidence
    np.testing.assert_array_equal(evidence.log_evidence(2, SE), table.get(2, SE).log_laplace)


def test_empirical_is_the_mean_over_all_customers_assigned(table):
    evidence = EVIDENCES["empirical"](table, 3).for_paths(PATHS)
    assigned = {LIN: [(0, 0), (0, 1), (2, 0)], SE: [(1, 0), (2, 1)], LIN | SE: [(1, 1)]}
    for mask, customers in assigned.items():
        composition = tiny.POOL.composition(mask)
        thetas = [table.get(m, mask).theta[t] for m, t in customers]
        np.testing.assert_array_equal(evidence.thetas(mask), thetas)
        for user in range(3):
            each = oracle.log_evidence(table.users[user], composition, thetas)
            wanted = [logmeanexp(each[:, t].tolist()) for t in range(2)]
            np.testing.assert_allclose(evidence.log_evidence(user, mask), wanted, atol=2e-4)


def test_empirical_judges_what_nobody_uses_by_draws_from_the_prior(table):
    evidence = EVIDENCES["empirical"](table, 3).for_paths(PATHS)
    thetas = evidence.thetas(PER)
    assert thetas.shape == (PRIOR_DRAWS, 4)
    np.testing.assert_array_equal(EVIDENCES["empirical"](table, 3).thetas(PER), thetas)  # always the same draws
    mean, variance = tiny.PRIORS.moments(tiny.POOL.composition(PER))
    assert (np.abs(thetas.mean(axis=0) - mean) < 5 * np.sqrt(variance / PRIOR_DRAWS)).all()
    each = oracle.log_evidence(table.users[0], tiny.POOL.composition(PER), thetas)
    wanted = [logmeanexp(each[:, t].tolist()) for t in range(2)]
    np.testing.assert_allclose(evidence.log_evidence(0, PER), wanted, atol=2e-4)


def test_empirical_follows_the_paths(table):
    start = EVIDENCES["empirical"](table, 3)
    one, two = start.for_paths(PATHS), start.for_paths(((SE, SE), (LIN, LIN), (SE, SE)))
    assert not np.array_equal(one.log_evidence(0, LIN), two.log_evidence(0, LIN))
    np.testing.assert_array_equal(one.log_evidence(0, PER), two.log_evidence(0, PER))


def test_empirical_with_a_reward_model_counts_the_linear_block():
    table = MapTable(tiny.pilots(2, action=True), tiny.POOL, tiny.PRIORS, tiny.QUICK, Reward())
    evidence = EVIDENCES["empirical"](table, 3).for_paths(((LIN, LIN), (SE, SE)))
    user = table.users[1]
    block = Reward().block(user.X, user.covariates, user.action)
    thetas = [table.get(0, LIN).theta[t] for t in range(2)]
    each = oracle.log_evidence(user, tiny.POOL.composition(LIN), thetas, block)
    wanted = [logmeanexp(each[:, t].tolist()) for t in range(2)]
    np.testing.assert_allclose(evidence.log_evidence(1, LIN), wanted, atol=2e-4)


def test_group_carries_laplace_over_to_the_other_users(table):
    evidence = EVIDENCES["group"](table, 3).for_paths(PATHS)
    composition = tiny.POOL.composition(LIN)
    moments = tiny.PRIORS.moments(composition)
    # User 2 left LIN after the first batch: that is its word. User 0's last is the second batch.
    for user, others in ((1, [(0, 1), (2, 0)]), (0, [(2, 0)])):
        group = group_of(composition, [table.get(m, LIN).theta[t] for m, t in others], tiny.PRIORS)
        wanted = Quadratic.of(table.get(user, LIN), *moments).log_evidence(group.mean, group.variance)
        np.testing.assert_array_equal(evidence.log_evidence(user, LIN), wanted)


def test_group_fits_nothing_anew(table, monkeypatch):
    start = EVIDENCES["group"](table, 3)
    for user in range(3):
        start.log_evidence(user, LIN)
    monkeypatch.setattr("kerneltrail.gp.find_map_path", None)
    start.for_paths(PATHS).log_evidence(1, LIN)


def test_group_never_uses_the_users_own_path(table):
    start = EVIDENCES["group"](table, 3)
    found = {
        own: start.for_paths((PATHS[0], (own, own), PATHS[2])).log_evidence(1, LIN).tolist() for own in (LIN, SE, PER)
    }
    assert found[LIN] == found[SE] == found[PER]


def test_group_without_others_is_laplace(table):
    evidence = EVIDENCES["group"](table, 3).for_paths(PATHS)
    for mask in (LIN | SE, PER):
        np.testing.assert_array_equal(evidence.log_evidence(1, mask), table.get(1, mask).log_laplace)


def test_group_tells_a_late_batch_from_the_next_user():
    """Batch 1,000 of user 0 is not batch 0 of user 1."""
    told = []

    class Table(MapTable):
        def get(self, user, mask):
            told.append(user)
            return Fits(np.zeros((1001, 3)) + user, np.zeros(1001), np.zeros(1001), np.zeros((1001, 3, 3)) + np.eye(3))

    start = EVIDENCES["group"](Table((tiny.pilot(0),) * 3, tiny.POOL, tiny.PRIORS), 3)
    first = start.for_paths(((LIN,) * 1001, (SE,), (SE,))).log_evidence(2, LIN)
    second = start.for_paths(((SE,), (LIN,), (SE,))).log_evidence(2, LIN)
    assert sorted(set(told)) == [0, 1, 2]  # both others were asked, and the user itself
    assert not np.array_equal(first, second)


def test_last_use_and_the_group_of_fits(table):
    assert last_use(PATHS) == {LIN: {0: 1, 2: 0}, SE: {1: 0, 2: 1}, LIN | SE: {1: 1}}
    group = table.group(SE, last_use(PATHS)[SE].items())
    wanted = group_of(group.composition, [table.get(1, SE).theta[0], table.get(2, SE).theta[1]], tiny.PRIORS)
    np.testing.assert_array_equal(group.mean, wanted.mean)
    assert table.group(PER, ()).users == 0


def test_thinning_keeps_the_ends_and_the_order():
    kept = evenly(200, 64)
    assert len(kept) == 64
    assert (kept[0], kept[-1]) == (0, 199)
    assert (np.diff(kept) > 0).all()
    assert evenly(5, 64) == [0, 1, 2, 3, 4]


def test_an_unknown_evidence_is_refused_by_name(table):
    with pytest.raises(
        TrajectoryError,
        match="no evidence is called 'bic'; there are laplace, group, empirical, sampled, group-sampled",
    ):
        EVIDENCES["bic"](table, 3)
