"""The simulated experiments: what they write, that claims are computed, and that a stopped run goes on."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.kernels import Pool, Priors, parse
from kerneltrail.studies.experiments import EXPERIMENTS, Context, run, stages_of
from kerneltrail.studies.experiments.context import KEPT
from kerneltrail.studies.experiments.simulated.claims import _flip
from kerneltrail.studies.experiments.simulated.design import PRESETS, STUDIES, Sizes
from kerneltrail.studies.experiments.simulated.experiment import SimulatedExperiment
from kerneltrail.studies.experiments.simulated.likelihoods import LikelihoodRow, likelihood_table
from kerneltrail.studies.sets import SETS
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.model import TrajectoryModel

from .shown import decimals

pytestmark = pytest.mark.slow

LIGHT = {"chains": 2, "sweeps": 16, "check": 8, "largest": 2, "maps": MapSettings(starts=1, screen=4)}
TINY = SimulatedExperiment(
    replace(
        STUDIES[0],
        simulate=partial(simulate.paper, batches=(3, 8, 14)),
        pool=lambda: Pool.of("LIN[x]", "PER[x]", "SE[x]"),
    ),
    Sizes(4, 4, table=2, methods=0, default=LIGHT, published=LIGHT),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("synthetic") / "deep"
    page, outcome = run(TINY, Context("synthetic", out, workers=1))
    return page, outcome, json.loads((out / "results.json").read_text(encoding="utf-8"))


def test_results_have_what_they_must(made):
    _, _, results = made
    assert results["experiment"] == "synthetic"
    assert results["seed"] == 0
    assert results["versions"]["kerneltrail"]
    for found in (results["recovery"], *(results["presets"][preset]["recovery"] for preset in PRESETS)):
        assert found["rows"] == [3, 11, 25]
        assert found["users"] == [4, 4, 4]
        assert all(0 <= right <= 4 for right in found["correct"])
    confusion = results["confusion"]
    assert set(confusion) == {"LIN[x] + PER[x]", "SE[x]"}
    assert [sum(own.values()) for own in confusion.values()] == [2, 2]
    assert sum(confusion[truth][truth] for truth in confusion) == results["recovery"]["correct"][-1]
    assert set(results["log_likelihood"]) == {"3", "11", "25"}
    assert set(results["log_likelihood"]["3"]) == {"LIN[x]", "LIN[x] + PER[x]"}


def test_histograms_count_everybody_once(made):
    for preset in PRESETS:
        for rows in (3, 11, 25):
            own = [r for r in made[2]["tables"]["selected"] if r["preset"] == preset and r["rows"] == rows]
            assert sum(r["users"] for r in own) == 4


def test_tables_figures_and_the_model_are_written(made):
    page, outcome, results = made
    out = page.parent
    for name, rows in results["tables"].items():
        with (out / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            assert len(list(csv.DictReader(file))) == len(rows) > 0
    assert len(results["figures"]) == len(outcome.drawn)
    for figure in results["figures"]:
        assert (out / figure).read_bytes()[:4] == b"\x89PNG"
        assert (out / figure).with_suffix(".svg").exists()
    model = TrajectoryModel.load(out / "model.trail")
    edges = {
        (row["parent"], row["child"], row["count"]) for row in results["tables"]["edges"] if row["preset"] == "default"
    }
    assert edges == {(edge.parent.text if edge.parent else "", edge.child.text, edge.count) for edge in model.edges}


def test_every_decimal_in_the_page_s_tables_is_in_the_results(made):
    page, _, results = made
    shown, unknown = decimals(page, results)
    assert len(shown) > 40
    assert unknown == set()


def test_claims_are_computed_from_what_was_found(made):
    _, outcome, results = made
    verdicts = {(a.of, a.topic): a for a in outcome.agreements if a.topic == "confusion"}
    for preset in PRESETS:
        right = results["presets"][preset]["recovery"]["correct"][-1]
        assert verdicts[preset, "confusion"].agrees == (right > 2)
        assert verdicts[preset, "confusion"].ours == f"{right} of 4"


@pytest.mark.parametrize(("few", "many", "agrees"), [(0.4, -30.0, True), (-0.4, -30.0, False), (0.4, 30.0, False)])
def test_the_flip_is_judged_by_its_signs(few, many, agrees):
    orders = [
        LikelihoodRow(kernel, rows, 5, base + (lead if kernel == "LIN[x]" else 0.0), 0.0)
        for rows, base, lead in ((3, -6.0, few), (187, -90.0, many))
        for kernel in ("LIN[x]", "LIN[x] + PER[x]")
    ]
    found = _flip(orders, "log_likelihood")
    assert found.agrees is agrees
    assert "-5.86" in found.paper


def test_likelihoods_are_averages_over_users():
    users = simulate.paper(train=2, test=4, seed=0, batches=(3, 4, 8)).test.users[:2]
    kernels = (parse("LIN[x]"), parse("SE[x]"))
    both = likelihood_table(users, kernels, Priors.synthetic())
    singles = [likelihood_table([user], kernels, Priors.synthetic()) for user in users]
    assert [(row.composition, row.rows) for row in both] == [(k.text, n) for k in kernels for n in (3, 7, 15)]
    for i, row in enumerate(both):
        assert row.users == 2
        assert row.log_laplace == pytest.approx(np.mean([single[i].log_laplace for single in singles]))
        assert row.log_likelihood == pytest.approx(np.mean([single[i].log_likelihood for single in singles]))


class Stopped(Exception):
    pass


def test_a_run_that_is_stopped_goes_on_to_the_same_results(made, tmp_path):
    expected = made[2]
    stages = dict.fromkeys(expected["seconds"])
    for place, stage in enumerate(stages):
        if place in (1, 3):  # stopped twice, at different stages

            def hear(told, stage=stage):
                if told.stage == stage:
                    raise Stopped

            with pytest.raises(Stopped):
                run(TINY, Context("synthetic", tmp_path, workers=1, hear=hear))
            assert not (tmp_path / "results.json").exists()
    heard = []
    run(TINY, Context("synthetic", tmp_path, workers=1, hear=heard.append))
    assert {told.stage for told in heard if told.said.endswith(KEPT)} == set(list(stages)[:3])
    assert tuple(dict.fromkeys(told.stage for told in heard)) == stages_of(TINY, Context("synthetic", tmp_path))
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))

    def timeless(results):
        plain = {key: value for key, value in results.items() if key not in ("seconds", "machine")}
        for row in plain["tables"]["chains"]:
            for name in ("fits", "chains", "sharing"):
                row.pop(f"seconds_{name}")
        plain["model"]["diagnostics"].pop("seconds")
        return plain

    assert timeless(found) == timeless(expected)


def test_every_experiment_is_found_and_quick_ones_are_smaller():
    assert set(EXPERIMENTS) == {"synthetic", "distinct", "similar", "complex", "heartsteps", "fitbit"}
    assert all(experiment.about for experiment in EXPERIMENTS.values())
    assert [each.simulate for each in STUDIES] == [users.simulate for users in SETS.values()]
    for each in STUDIES:
        assert each.quick.test < each.full.test
        assert each.full.settings("published", 3).seed == 3
