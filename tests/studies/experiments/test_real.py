"""An experiment on real users, run on a small simulated trial; claims and verdicts on tables made by hand."""

import csv
import json
import math
import re
from dataclasses import fields, replace

import pytest

from kerneltrail.data import Cohort, simulate
from kerneltrail.data.simulate.mobile_health import UNITS
from kerneltrail.errors import DataError
from kerneltrail.evaluation import Evaluation, Step
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool
from kerneltrail.methods.cks import SearchSettings
from kerneltrail.studies.experiments import Context, run
from kerneltrail.studies.experiments.context import KEPT
from kerneltrail.studies.experiments.real import design
from kerneltrail.studies.experiments.real.claims import PAPER_ROWS, claims
from kerneltrail.studies.experiments.real.compute import compute
from kerneltrail.studies.experiments.real.experiment import RealExperiment
from kerneltrail.studies.experiments.real.tables import growth, judged, tables
from kerneltrail.trajectory.map_table import MapSettings

from .shown import decimals

pytestmark = pytest.mark.slow

SIZES = design.Sizes(
    splits=2,
    test=2,
    seeds=2,
    users=1,
    published=1,
    own=("cks",),
    search=SearchSettings(depth=0, refits=1),
    changes={"largest": 1, "chains": 2, "sweeps": 16, "check": 8, "maps": MapSettings(1, 4, 1e-3, 1e-3)},
)


def trial(path):
    """Six users of a simulated trial, whatever the file says."""
    simulated = simulate.mhealth(4, 2, 0, days=9, batch_size=15)
    return Cohort.from_users([*simulated.train.raw, *simulated.test.raw], target="log_steps30", units=UNITS)


STUDY = replace(
    design.HEARTSTEPS,
    name="tiny",
    load=trial,
    first=lambda cohort: cohort.names[-2:],
    pool=lambda names: Pool.of("SE[hour]", "LIN[log_steps30pre]", "SE[temperature]", probability=0.1),
    paper_pool=lambda names: Pool.of("SE[hour]", "LIN[log_steps30pre]", probability=0.1),
    reward=Reward(("log_steps30pre",)),
    full=SIZES,
    quick=SIZES,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (folder / "trial.csv").write_text("nothing\n")
    context = Context("tiny", folder / "out", data=folder / "trial.csv", workers=1)
    page, outcome = run(RealExperiment(STUDY), context)
    return folder, page, outcome


def test_everything_that_is_asked_for_is_in_the_results(written):
    folder, page, _ = written
    results = json.loads((folder / "out" / "results.json").read_text())
    assert results["failures"] == []
    for row in results["metrics"]:
        assert {"method", "t", "users", "rmse", "log_density", "seconds"} <= set(row)
    for row in results["paired"]:
        assert {"method", "against", "t", "metric", "mean", "low", "high", "verdict"} <= set(row)
        assert row["method"] == "trajectory"
        assert row["low"] <= row["mean"] <= row["high"]
    methods = {row["method"] for row in results["metrics"]}
    assert methods == {
        "trajectory",
        "published",
        "no mean",
        "union",
        "flat",
        "final",
        "pooled",
        "pooled-mean",
        "linear",
        "mean",
        "cks",
    }
    assert {row["t"] for row in results["metrics"] if row["rmse"] is not None} == {0, 1, 2}
    first = results["first_split"]["metrics"]
    assert {row["users"] for row in first if row["rmse"] is not None} == {1}
    assert results["learning_seconds"] > 0
    assert results["settings"]["sizes"]["changes"]["maps"]["screen"] == 4
    assert results["settings"]["sizes"]["search"]["refits"] == 1
    text = page.read_text()
    for row in results["metrics"]:
        if row["rmse"] is not None:
            assert f"{row['rmse']:.3f}" in text
    assert "On the first 1 of them alone: published and no mean;" in text
    with (folder / "out" / "tables" / "compositions.csv").open(newline="") as file:
        told = list(csv.DictReader(file))
    assert {row["method"] for row in told} == methods
    assert len({row["user"] for row in told}) == 1


def test_every_decimal_in_the_page_s_tables_is_in_the_results(written):
    folder, page, _ = written
    shown, unknown = decimals(page, json.loads((folder / "out" / "results.json").read_text()))
    assert len(shown) > 40
    assert unknown == set()


def test_methods_are_shown_once(written):
    """Differences, means and times stand in the page's own section on methods, and nowhere else."""
    text = re.sub(r'aria-label="[^"]*"', "", written[1].read_text())  # which repeats captions
    assert text.count("t at which trajectory") == 3  # RMSE, log density, seconds
    assert text.count("Mean RMSE of the next batch") == 1


def test_growth_is_the_mean_log_ratio_within_users():
    """Against a loop; users of one batch say nothing, and a person of two runs is one person."""
    base = dict.fromkeys((field.name for field in fields(Step)), math.nan)
    spent = {("a", "ann"): (0.1, 0.2, 0.4), ("b", "ann"): (0.1, 0.1), ("a", "bob"): (0.2, 0.1), ("a", "eve"): (9.0,)}
    steps = [
        Step(**{**base, "run": run, "method": "cks", "user": who, "person": who, "t": t, "cpu_seconds": value})
        for (run, who), values in spent.items()
        for t, value in enumerate((math.nan, *values))
    ]
    (row,) = growth(Evaluation(tuple(steps)))
    logs = [math.log(own[-1] / own[0]) for own in spent.values() if len(own) > 1]
    assert row["ratio"] == pytest.approx(math.exp(sum(logs) / 3))
    assert row["users"] == 2
    assert row["low"] <= row["ratio"] <= row["high"]
    assert (row["first_ms"], row["last_ms"]) == pytest.approx((1e3 * 0.4 / 3, 1e3 * 0.6 / 3))
    assert (row["peak_t"], row["peak_ms"]) == (1, pytest.approx(1e3 * 9.4 / 4))


def test_a_second_run_computes_nothing(written):
    folder, _, outcome = written
    heard = []
    context = Context("tiny", folder / "out", data=folder / "trial.csv", workers=1, hear=heard.append)
    again = compute(STUDY, SIZES, context)
    assert all(told.said.endswith(KEPT) for told in heard)
    assert tuple(told.stage for told in heard) == RealExperiment(STUDY).stages(context)
    assert tables(again)["metrics"] == outcome.results["metrics"]


@pytest.mark.parametrize("change", ["search", "methods"])
def test_another_setting_of_any_method_is_evaluated_anew(written, monkeypatch, change):
    folder, _, _ = written

    class Asked(Exception):
        pass

    def evaluated(*given, **more):
        raise Asked

    monkeypatch.setattr("kerneltrail.studies.experiments.real.compute.evaluate", evaluated)
    context = Context("tiny", folder / "out", data=folder / "trial.csv", workers=1)
    sizes = SIZES
    if change == "search":
        sizes = replace(SIZES, search=replace(SIZES.search, refits=2))
    else:
        monkeypatch.setattr(design, "GROUP", design.GROUP[1:])
    with pytest.raises(Asked):
        compute(STUDY, sizes, context)
    assert set(context.seconds) == {"model", "model-published", "model-no-mean"}  # models are as they were


def test_absent_data_are_met_with_what_to_download(tmp_path):
    for data in (None, tmp_path / "nowhere.csv"):
        with pytest.raises(DataError, match=r"suggestions.csv of github.com/klasnja/HeartStepsV1, licence CC-BY-4.0"):
            run(RealExperiment(design.HEARTSTEPS), Context("heartsteps", tmp_path / "out", data=data))
        with pytest.raises(DataError, match=r"Furberg et al. 2016.*there under the licence CC0"):
            run(RealExperiment(design.FITBIT), Context("fitbit", tmp_path / "out", data=data))


def difference(metric, low, high, against="cks", t=1):
    mean = 0.5 * (low + high)
    return {
        "method": "trajectory",
        "against": against,
        "t": t,
        "metric": metric,
        "mean": mean,
        "low": low,
        "high": high,
    }


@pytest.mark.parametrize(
    ("metric", "low", "high", "verdict"),
    [
        ("rmse", -0.2, -0.1, "wins"),
        ("rmse", 0.1, 0.2, "loses"),
        ("rmse", -0.1, 0.2, "ties"),
        ("log_density", -0.2, -0.1, "loses"),
        ("log_density", 0.1, 0.2, "wins"),
        ("seconds", -3.0, -1.0, "wins"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(metric, low, high, verdict):
    assert judged([difference(metric, low, high)])[0]["verdict"] == verdict


def test_claims_are_computed_from_the_tables():
    early, late = difference("rmse", -0.2, -0.1), difference("rmse", 0.1, 0.2, t=4)
    rows = zip((*design.PAPER_TRAIN, *design.PAPER_TEST), PAPER_ROWS, strict=True)
    made = {
        "first_paired": judged([early, late]),
        "paired": [],
        "growth": [
            {
                "method": method,
                "users": 6,
                "first_ms": 10.0,
                "last_ms": 10.0 * ratio,
                "ratio": ratio,
                "low": ratio - 0.2,
                "high": ratio + 0.2,
                "peak_t": 2,
                "peak_ms": 40.0,
            }
            for method, ratio in {"trajectory": 1.1, "cks": 5.0, "shrinkage": 1.1}.items()
        ],
        "users": [{"user": name, "rows": count} for name, count in rows],
        "nodes": [{"model": "trajectory", "composition": "LIN[hour] + SE[hour]"}],
    }

    class Findings:
        splits = None
        cohort = type("C", (), {"covariates": ("hour", "steps30pre")})()

    told = {each.claim: each for each in claims(Findings(), made, paper=True)}
    assert told["After one batch the trajectory model is better than cks (RMSE)"].agrees
    assert not told["At the end it is as good as cks (RMSE)"].agrees
    assert told["The time of an update does not grow with t: trajectory"].agrees
    assert told["The time of an update grows with t: cks"].agrees
    assert told["The time of an update grows with t: shrinkage"].agrees is None  # the interval of its ratio holds 1
    assert (
        "10.0 ms after the first batch, 50.0 ms after the last" in told["The time of an update grows with t: cks"].ours
    )
    assert told["Rows of each user"].agrees
    assert not told["Covariates that the paper names are there"].agrees
    assert "weather" in told["Covariates that the paper names are there"].ours
    assert told["SE[hour] is among the graph's compositions"].agrees
    assert not told["PER[steps30pre] is among the graph's compositions"].agrees
