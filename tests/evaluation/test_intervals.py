"""Bootstrap intervals and calibration, against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from kerneltrail.evaluation import brier, paired, reliability
from kerneltrail.evaluation.intervals import mean_over_users, share_over_users
from kerneltrail.kernels import parse


def test_an_interval_is_that_of_a_plain_bootstrap():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=40), rng.normal(size=40)
    found = paired(first, second, draws=20_000)
    means = [np.mean(rng.choice(first - second, size=40)) for _ in range(20_000)]
    assert found.mean == pytest.approx(np.mean(first) - np.mean(second))
    # The ends are quantiles of 20,000 draws on either side: standard error of each about 0.002.
    assert (found.low, found.high) == pytest.approx(np.quantile(means, [0.05, 0.95]), abs=0.015)
    assert (found.level, found.users) == (0.9, 40)


def test_an_interval_depends_on_the_seed_alone():
    values = np.arange(10.0) ** 2
    assert paired(values, 0 * values) == paired(values, 0 * values)
    assert paired(values, 0 * values, seed=1) != paired(values, 0 * values)


def test_intervals_cover_as_often_as_they_say():
    """Of 400 sets of 50 Normals, 90 % ± 4.5 % (three standard errors) have 0 within; small samples cover a bit less."""
    rng = np.random.default_rng(0)
    hits = [
        (found := paired(rng.normal(size=50), np.zeros(50), draws=500, seed=i)).low <= 0 <= found.high
        for i in range(400)
    ]
    assert 0.84 < np.mean(hits) < 0.945


def test_pairing_removes_what_users_share():
    rng = np.random.default_rng(2)
    level = 100.0 * rng.normal(size=30)
    found = paired(level + 1.0, level)
    assert (found.low, found.high) == pytest.approx((1.0, 1.0))


class TestSharesOverUsers:
    def drawn(self, rng, users, spread):
        """Users whose chances of a hit vary around 0.9; the larger `spread`, the less."""
        chances = np.full(users, 0.9) if spread is None else rng.beta(0.9 * spread, 0.1 * spread, users)
        return [rng.random(rng.integers(60, 180)) < chance for chance in chances]

    @pytest.mark.parametrize(("users", "spread"), [(4, None), (8, 30.0), (20, 30.0)])
    def test_false_alarms_are_few_whether_or_not_users_differ(self, users, spread):
        """Of 300 sets 5 % miss, or with skewed chances up to 7 %; more than 12 % once in 1,000 times."""
        rng = np.random.default_rng(0)
        found = [share_over_users(self.drawn(rng, users, spread)) for _ in range(300)]
        assert np.mean([not share.low <= 0.9 <= share.high for share in found]) < 0.12

    def test_intervals_that_take_rows_for_independent_would_miss_often(self):
        """The same where users differ, with all rows as if one user's: it is users who must be counted."""
        rng = np.random.default_rng(0)
        found = [share_over_users([np.concatenate(self.drawn(rng, 8, 30.0))]) for _ in range(300)]
        assert np.mean([not share.low <= 0.9 <= share.high for share in found]) > 0.2

    def test_it_is_the_share_of_rows_and_never_narrower_than_for_independent_rows(self):
        hits = [np.array([True] * 9 + [False]), np.array([True] * 45 + [False] * 5), np.empty(0, dtype=bool)]
        share, alone = share_over_users(hits), share_over_users([np.concatenate(hits)])
        assert share.mean == pytest.approx(0.9)
        assert (share.users, alone.users) == (2, 1)
        assert (share.low, share.high) == (alone.low, alone.high)  # both users have 90 %

    def test_one_user_has_the_exact_binomial_interval(self):
        """The ends are where as many hits, or as few, have the probability of one tail."""
        share = share_over_users([np.array([True] * 17 + [False] * 3)])
        assert binom.sf(16, 20, share.low) == pytest.approx(0.025)
        assert binom.cdf(17, 20, share.high) == pytest.approx(0.025)
        assert share_over_users([np.ones(5, dtype=bool)]).high == 1.0
        assert share_over_users([np.zeros(5, dtype=bool)]).low == 0.0

    def test_no_rows_are_refused(self):
        with pytest.raises(ValueError, match="at least one row"):
            share_over_users([])


def test_the_mean_of_few_users_has_student_s_interval():
    """Of 400 sets of four Normals, 90 % ± 4.5 % (three standard errors) have 0 within."""
    rng = np.random.default_rng(0)
    found = [mean_over_users(rng.normal(size=4)) for _ in range(400)]
    assert 0.855 < np.mean([each.low <= 0.0 <= each.high for each in found]) < 0.945
    alone = mean_over_users([2.0])
    assert (alone.mean, alone.low, alone.high) == (2.0, -np.inf, np.inf)


def test_brier_scores():
    se, lin, per = (parse(text) for text in ("SE[x]", "LIN[x]", "PER[x]"))
    assert brier({se: 1.0, lin: 0.0}, se) == 0.0
    assert brier({se: 1.0, lin: 0.0}, lin) == 2.0
    assert brier({se: 0.6, lin: 0.4}, per) == pytest.approx(0.36 + 0.16 + 1.0)  # the truth is not in the graph


def test_reliability_bins():
    selections = [(0.55, True), (0.7, False), (0.75, True), (1.0, True), (0.8, True)]
    found = reliability(selections, edges=(0.0, 0.6, 0.8, 0.9, 1.0))
    assert [(b.low, b.high, b.count) for b in found] == [(0.0, 0.6, 1), (0.6, 0.8, 3), (0.9, 1.0, 1)]
    assert found[1].said == pytest.approx(0.75)
    assert found[1].right == pytest.approx(2 / 3)
    assert set(found[0].to_json()) == {"low", "high", "count", "said", "right"}
