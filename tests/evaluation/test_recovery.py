"""Recovery on tiny simulations: what is reported is what plain loops recompute."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kerneltrail.data import simulate_paper
from kerneltrail.evaluation import Comparison, Followed, compare_presets, follow, orders
from kerneltrail.evaluation.recovery import MEASURES, merged
from kerneltrail.kernels import Pool, Priors, layout_of, parse
from kerneltrail.studies.bench import nested
from kerneltrail.studies.bench.recovery import RecoveryBenchmark
from kerneltrail.studies.sets import wide_priors
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]")
SETTINGS = Settings(largest=2, chains=2, sweeps=20, check=10, maps=MapSettings(starts=1, screen=4))
PRESETS = {
    "default": SETTINGS,
    "greedy": Settings(**{**SETTINGS.to_json(), "maps": SETTINGS.maps, "selection": "greedy"}),
}


def simulate(seed: int):
    return simulate_paper(train=2, test=4, seed=seed, batches=(3, 4, 8))


@pytest.fixture(scope="module")
def learning():
    """A learner that counts how often it learns."""
    calls = []

    def learner(cohort, pool, priors, settings):
        calls.append(settings.selection)
        return fit(cohort, pool=pool, priors=priors, settings=settings, workers=1)

    return calls, learner


@pytest.fixture(scope="module")
def comparison(learning) -> Comparison:
    calls, learner = learning
    said: list[str] = []
    found = compare_presets(
        simulate, PRESETS, [3], pool=POOL, priors=Priors.synthetic(), learner=learner, tick=said.append
    )
    assert said == ["seed 3, default", "seed 3, greedy"]
    assert calls == ["filter"]  # presets that differ in selection alone share a model
    return found


def test_everybody_is_followed_under_every_preset_in_the_same_order(comparison):
    assert comparison.presets == ("default", "greedy")
    ours, theirs = (comparison.of(preset) for preset in comparison.presets)
    assert [f.user for f in ours] == [f.user for f in theirs] == [user.name for user in simulate(3).test.users]
    assert {f.ends for f in comparison.followed} == {(3, 7, 15)}


def test_following_is_predicting_before_each_update(comparison, learning):
    simulation = simulate(3)
    user = simulation.test.users[0]
    model = learning[1](simulation.train, POOL, Priors.synthetic(), SETTINGS)
    truth = simulation.truth[user.name]
    found = follow(model, user, truth, preset="default", seed=3)
    assert found == comparison.of("default")[0]
    new = model.new_user()
    for t, (a, b) in enumerate(((0, 3), (3, 7), (7, 15))):
        said = new.predict(user.X[a:b])
        variance = said.variance + said.noise
        density = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (user.y[a:b] - said.mean) ** 2 / variance
        assert found.log_density[t] == pytest.approx(np.mean(density))
        assert found.rmse[t] == pytest.approx(np.sqrt(np.mean((user.y[a:b] - said.mean) ** 2)))
        step = new.update(user.X[a:b], user.y[a:b])
        assert found.compositions[t] == step.composition.text
        assert found.right[t] == (step.composition == truth)
        assert found.products[t] == len(step.composition)
        assert found.hyperparameters[t] == len(layout_of(step.composition).slots)
        assert found.top[t] == max(step.probabilities.values())
        assert found.on_truth[t] == step.probabilities.get(truth, 0.0)


def test_greedy_is_sure_of_itself(comparison):
    assert all(f.top == (1.0, 1.0, 1.0) for f in comparison.of("greedy"))


def _followed(user: str, seed: int, compositions: tuple[str, ...], truth: str = "SE[x]") -> Followed:
    right = tuple(text == truth for text in compositions)
    n = len(compositions)
    density = tuple(-float(len(user) + t + 1) for t in range(n))
    sizes = tuple(len(parse(text)) for text in compositions)
    return Followed(
        "a", seed, user, truth, tuple(range(3, 3 + n)), compositions, right, density, density, sizes, sizes,
        (0.95,) * n, (0.5,) * n, tuple(float(not each) for each in right),
    )  # fmt: skip


def test_a_summary_is_plain_arithmetic():
    everybody = (
        _followed("x", 0, ("LIN[x]", "SE[x]", "SE[x]")),
        _followed("y", 0, ("SE[x]", "SE[x]", "LIN[x] + SE[x]")),
        _followed("xyz", 1, ("LIN[x]", "PER[x]", "LIN[x]")),
    )
    found = Comparison(everybody, ()).summary("a")
    assert found.users == 3
    assert found.rows == (3, 4, 5)
    assert found.right == pytest.approx((1 / 3, 2 / 3, 1 / 3))
    assert found.right_by_seed == (0.5, 0.0)
    assert found.changed == pytest.approx((0.0, 2 / 3, 2 / 3))
    assert found.recovered == 0.5  # x and xyz were wrong at first, x was right at last
    assert found.products == pytest.approx((1.0, 1.0, 4 / 3))
    assert found.log_density == pytest.approx((-(2 + 2 + 4) / 3, -(3 + 3 + 5) / 3, -(4 + 4 + 6) / 3))
    (bin_,) = found.bins
    assert (bin_.count, bin_.said) == (9, pytest.approx(0.95))
    assert bin_.right == pytest.approx(4 / 9)


def test_nobody_wrong_means_nobody_to_recover():
    assert Comparison((_followed("x", 0, ("SE[x]", "LIN[x]")),), ()).summary("a").recovered is None


def test_differences_are_paired_and_zero_with_itself(comparison):
    for measure in (*MEASURES, "changed"):
        assert all((d.mean, d.low, d.high) == (0, 0, 0) for d in comparison.difference(measure, "greedy", "greedy"))
    ours, theirs = (np.array([f.log_density for f in comparison.of(p)]) for p in comparison.presets)
    found = comparison.difference("log_density", "default", "greedy")
    assert [d.mean for d in found] == pytest.approx((ours - theirs).mean(axis=0))
    assert all(d.low <= d.mean <= d.high for d in found)


def test_results_are_plain_values(comparison):
    stored = json.loads(json.dumps(comparison.to_json()))
    assert set(stored) == {"summaries", "differences", "learnt", "followed"}
    assert len(stored["followed"]) == 8
    assert {d["measure"] for d in stored["differences"]} == {*MEASURES, "changed"}
    first = stored["learnt"][0]
    assert first["edges"][0].startswith("-> ")
    assert len(first["paths"]) == len(first["truth"]) == 2
    assert merged([comparison]) == comparison


def test_rows_of_the_benchmark(comparison):
    rows = list(RecoveryBenchmark().rows_of(comparison, "paper", "synthetic"))
    assert [(r["method"], r["n"]) for r in rows] == [(p, n) for p in ("default", "greedy") for n in (3, 7, 15)]
    assert all(r["bench"] == "recovery" and r["samples"] == 4 for r in rows)
    assert rows[0]["default_minus_this"] == {}
    assert set(rows[3]["default_minus_this"]["rmse"]) == {"mean", "low", "high", "level", "users"}


def test_sizes_are_those_of_the_contract():
    assert RecoveryBenchmark().cases[0] == ("paper", "synthetic", 5)
    assert RecoveryBenchmark().steps == (5 + 6 * 2) * 4
    assert nested.NestedBenchmark().steps == 30
    assert wide_priors().of("location").mean == 10.0


def test_orders_average_over_users():
    users = simulate(0).test.users[:2]
    kernels = (parse("LIN[x]"), parse("SE[x]"))
    both = orders(users, kernels, Priors.synthetic())
    singles = [orders([user], kernels, Priors.synthetic()) for user in users]
    assert [(o.composition, o.rows) for o in both] == [(k.text, n) for k in kernels for n in (3, 7, 15)]
    for i, order in enumerate(both):
        assert order.users == 2
        assert order.log_laplace == pytest.approx(np.mean([single[i].log_laplace for single in singles]))
        assert order.log_likelihood == pytest.approx(np.mean([single[i].log_likelihood for single in singles]))


def test_nested_rows_summarise():
    base = {"bench": "nested", "n": 7, "truth": "SE[x]", "seconds": 1.0, "nested_error": 0.1, "nested_seconds": 2.0}
    values = {"LIN[x]": (-3.0, -3.5), "SE[x]": (-2.0, -1.5), "PER[x]": (-1.0, -2.5)}
    rows = [
        {**base, "method": "m", "composition": k, "log_evidence": a, "nested": b, "error": a - b}
        for k, (a, b) in values.items()
    ]
    (found,) = nested.summary(rows)
    assert found["mean_error"] == pytest.approx((0.5 + 0.5 + 1.5) / 3)
    assert found["largest_error"] == 1.5
    assert found["bias"] == pytest.approx((0.5 - 0.5 + 1.5) / 3)
    assert found["tau"] == pytest.approx(1 / 3)  # of three pairs, one is the other way round
    assert found["same_best"] == 0.0


@pytest.mark.slow
def test_nested_sampling_agrees_with_laplace_on_a_small_problem():
    pytest.importorskip("dynesty")
    rows = list(nested.NestedBenchmark(sizes=(7,), kernels=("LIN[x]",), live=100).run(0))
    near = ("laplace", "group laplace", "group closed form")
    assert tuple(r["method"] for r in rows[:5]) == (*near, "own MAP", "prior draws")
    assert all(abs(r["error"]) < 1.0 for r in rows if r["method"] in near)  # 5 of the sampler's standard errors
