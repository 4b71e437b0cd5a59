"""Recovery on tiny simulations: what is reported is what plain loops recompute."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.evaluation import Evaluation, Step, follow, reliability
from kerneltrail.kernels import Pool, Priors, layout_of, parse
from kerneltrail.methods.trajectory import TrajectoryMethod
from kerneltrail.studies.bench import nested
from kerneltrail.studies.bench.recovery import MEASURES, RecoveryBenchmark
from kerneltrail.studies.preset_comparison import compare_presets, of_batch, recovered, right_by_run
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


def simulated(seed: int):
    return simulate.paper(train=2, test=4, seed=seed, batches=(3, 4, 8))


@pytest.fixture(scope="module")
def learning():
    """A learner that counts how often it learns."""
    calls = []

    def learner(cohort, pool, priors, settings):
        calls.append(settings.selection)
        return fit(cohort, pool=pool, priors=priors, settings=settings, workers=1)

    return calls, learner


@pytest.fixture(scope="module")
def comparison(learning) -> Evaluation:
    calls, learner = learning
    said: list[str] = []
    found = compare_presets(
        simulated, PRESETS, [3], pool=POOL, priors=Priors.synthetic(), learner=learner, tick=said.append
    )
    assert said == ["seed 3, default", "seed 3, greedy"]
    assert calls == ["filter"]  # presets that differ in selection alone share a model
    return found


def test_everybody_is_followed_under_every_preset_in_the_same_order(comparison):
    assert comparison.methods == ("default", "greedy")
    assert not comparison.failures
    ours, theirs = (comparison.at(preset, 0) for preset in comparison.methods)
    assert [s.user for s in ours] == [s.user for s in theirs] == [user.name for user in simulated(3).test.users]
    assert [{s.rows for s in comparison.at("default", t)} for t in comparison.times] == [{0}, {3}, {7}, {15}]


def test_what_is_kept_of_a_user_is_what_plain_calls_give(comparison, learning):
    simulation = simulated(3)
    user = simulation.test.users[0]
    model = learning[1](simulation.train, POOL, Priors.synthetic(), SETTINGS)
    truth = simulation.truth[user.name]
    followed = follow(TrajectoryMethod(model), user, truth=truth)
    own = [comparison.at("default", t)[0] for t in range(4)]
    timeless = {"seconds": 0.0, "cpu_seconds": 0.0, "predict_seconds": 0.0, "run": "", "method": ""}
    assert [repr(replace(step, **timeless)) for step in followed.steps] == [
        repr(replace(step, **timeless)) for step in own
    ]
    new = model.new_user()
    for t, (a, b) in enumerate(((0, 3), (3, 7), (7, 15))):
        said = new.predict(user.X[a:b])
        assert own[t].log_density == pytest.approx(np.mean(said.log_density(user.y[a:b])))
        assert own[t].rmse == pytest.approx(np.sqrt(np.mean((user.y[a:b] - said.mean) ** 2)))
        step, after = new.update(user.X[a:b], user.y[a:b]), own[t + 1]
        assert after.composition == step.composition.text
        assert after.right == (step.composition == truth)
        assert after.products == len(step.composition)
        assert after.hyperparameters == len(layout_of(step.composition).slots)
        assert after.probability == max(step.probabilities.values())
        assert after.truth_probability == step.probabilities.get(truth, 0.0)
        squares = [(p - (c == truth)) ** 2 for c, p in step.probabilities.items()]
        assert after.brier == pytest.approx(sum(squares) + (truth not in step.probabilities))


def test_greedy_is_sure_of_itself(comparison):
    assert all(step.probability == 1.0 for t in (1, 2, 3) for step in comparison.at("greedy", t))


def _followed(user: str, run: str, compositions: tuple[str, ...], truth: str = "SE[x]") -> list[Step]:
    """A user followed by a method that selects these, one after the other, and is 0.95 sure of each."""
    steps = []
    for t, text in enumerate(("", *compositions)):
        density = -float(len(user) + t + 1) if t < len(compositions) else float("nan")
        later = compositions[t] if 0 < t < len(compositions) else text
        steps.append(
            Step(
                run, "a", user, f"{user} {run}", t, t + 2, 1, density, density, 0.5, 0.9, 0.0, 0.0, 0.0, text,
                len(parse(text)), len(parse(text)), 1, ("x",), None,
                int(later != text) if 0 < t < len(compositions) else None, text == truth if t else None,
                0.95 if t else float("nan"), 0.5, float(text != truth),
            )
        )  # fmt: skip
    return steps


def test_a_summary_is_plain_arithmetic():
    everybody = (
        *_followed("x", "0", ("LIN[x]", "SE[x]", "SE[x]")),
        *_followed("y", "0", ("SE[x]", "SE[x]", "LIN[x] + SE[x]")),
        *_followed("xyz", "1", ("LIN[x]", "PER[x]", "LIN[x]")),
    )
    found = Evaluation(everybody)
    batches = [of_batch(found.summary(), t) for t in (1, 2, 3)]
    assert all(each["right"].users == 3 for each in batches)
    assert [each["right"].mean for each in batches] == pytest.approx((1 / 3, 2 / 3, 1 / 3))
    assert right_by_run(found, "a") == {"0": 0.5, "1": 0.0}
    assert "changed" not in batches[0]
    assert [each["changed"].mean for each in batches[1:]] == pytest.approx((2 / 3, 2 / 3))
    assert recovered(found, "a") == 0.5  # x and xyz were wrong at first, x was right at last
    assert [each["products"].mean for each in batches] == pytest.approx((1.0, 1.0, 4 / 3))
    assert [each["log_density"].mean for each in batches] == pytest.approx(
        (-(2 + 2 + 4) / 3, -(3 + 3 + 5) / 3, -(4 + 4 + 6) / 3)
    )
    (bin_,) = reliability((step.probability, bool(step.right)) for step in found.steps if step.t)
    assert (bin_.count, bin_.said) == (9, pytest.approx(0.95))
    assert bin_.right == pytest.approx(4 / 9)


def test_nobody_wrong_means_nobody_to_recover():
    assert recovered(Evaluation(tuple(_followed("x", "0", ("SE[x]", "LIN[x]")))), "a") is None


def test_differences_are_paired_and_zero_with_itself(comparison):
    same = [
        replace(step, method=label) for label in ("one", "two") for step in comparison.steps if step.method == "greedy"
    ]
    pairs = Evaluation(tuple(same)).paired("one")
    for metric in MEASURES:
        own = [row for row in pairs if row.metric == metric]
        assert own
        assert all((row.mean, row.low, row.high) == (0, 0, 0) for row in own)
    ours, theirs = (
        np.array([[s.log_density for s in comparison.at(p, t)] for t in (0, 1, 2)]) for p in comparison.methods
    )
    found = [of_batch(comparison.paired("default"), t)["log_density"] for t in (1, 2, 3)]
    assert [row.mean for row in found] == pytest.approx((ours - theirs).mean(axis=1))
    assert all(row.low <= row.mean <= row.high for row in found)


def test_results_are_plain_values(comparison, tmp_path):
    comparison.save(tmp_path)
    stored = json.loads((tmp_path / "evaluation.json").read_text())
    assert len({(step["user"], step["method"]) for step in stored["steps"]}) == 8
    assert {row["metric"] for row in stored["paired"]} >= set(MEASURES)
    first = stored["about"]["runs"][0]["models"]["default"]
    assert first["edges"][0].startswith("-> ")
    assert len(first["paths"]) == len(first["truth"]) == 2


def test_rows_of_the_benchmark(comparison):
    rows = list(RecoveryBenchmark().rows_of(comparison, "paper", "synthetic"))
    assert [(r["method"], r["n"]) for r in rows] == [(p, n) for p in ("default", "greedy") for n in (3, 7, 15)]
    assert all(r["bench"] == "recovery" and r["samples"] == 4 for r in rows)
    assert rows[0]["default_minus_this"] == {}
    assert set(rows[3]["default_minus_this"]["rmse"]) == {"mean", "low", "high", "level", "users"}
    assert [r["right_by_seed"] is None for r in rows] == [True, True, False] * 2
    assert (rows[0]["changed"], rows[3]["default_minus_this"]["changed"]["high"]) == (0.0, 0.0)


def test_sizes_are_those_of_the_contract():
    assert RecoveryBenchmark().cases[0] == ("paper", "synthetic", 5)
    assert RecoveryBenchmark().steps == (5 + 6 * 2) * 4
    assert nested.NestedBenchmark().steps == 30
    assert wide_priors().of("location").mean == 10.0


def test_nested_rows_summarise():
    base = {"bench": "nested", "n": 7, "truth": "SE[x]", "seconds": 1.0, "nested_error": 0.1, "nested_seconds": 2.0}
    values = {"LIN[x]": (-3.0, -3.5), "SE[x]": (-2.0, -1.5), "PER[x]": (-1.0, -2.5)}
    rows = [
        {**base, "method": "m", "composition": k, "log_evidence": a, "nested": b, "error": a - b}
        for k, (a, b) in values.items()
    ]
    (found,) = nested.summary(rows)
    assert found["mean_error"] == pytest.approx((0.5 + 0.5 + 1.5) / 3)
    assert found["median_error"] == 0.5
    assert found["error_95"] == pytest.approx(0.5 + 0.9 * 1.0)  # nine tenths of the way from the second to the third
    assert found["largest_error"] == 1.5
    assert found["bias"] == pytest.approx((0.5 - 0.5 + 1.5) / 3)
    assert found["tau"] == pytest.approx(1 / 3)  # of three pairs, one is the other way round
    assert found["same_best"] == 0.0


@pytest.mark.slow
def test_nested_sampling_agrees_with_laplace_on_a_small_problem():
    pytest.importorskip("dynesty")
    rows = list(nested.NestedBenchmark(sizes=(7,), kernels=("LIN[x]",), live=100).run(0))
    near = ("laplace", "sampled", "group laplace", "group closed form", "group sampled")
    assert tuple(r["method"] for r in rows[:7]) == (*near, "own MAP", "prior draws")
    assert all(abs(r["error"]) < 1.0 for r in rows if r["method"] in near)  # 5 of the sampler's standard errors
