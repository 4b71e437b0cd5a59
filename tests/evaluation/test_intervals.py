"""Bootstrap intervals and calibration, against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from kerneltrail.evaluation import brier, paired, reliability
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
