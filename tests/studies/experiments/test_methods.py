"""Evaluations as rows of results.json."""

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.evaluation import evaluate
from kerneltrail.studies.experiments import Context
from kerneltrail.studies.experiments.context import KEPT
from kerneltrail.studies.experiments.methods import metric_rows, paired_rows


@pytest.fixture(scope="module")
def simulation():
    return simulate.paper(2, 3, seed=0, batches=(4, 6, 8))


def measured(simulation, calls):
    def measure(folder, tell):
        calls.append(folder)
        return evaluate(simulation.train, simulation.test, ["linear", "mean"], workers=1, out=folder, progress=tell)

    return measure


def test_rows_are_means_over_users_and_paired_differences(simulation):
    found = evaluate(simulation.train, simulation.test, ["linear", "mean"], workers=1)
    rows = {(row["method"], row["t"]): row for row in metric_rows(found)}
    at = {name: [step.rmse for step in found.at(name, 1)] for name in ("linear", "mean")}
    assert rows["linear", 1]["rmse"] == pytest.approx(np.mean(at["linear"]))
    assert rows["linear", 1]["rmse_low"] <= rows["linear", 1]["rmse"] <= rows["linear", 1]["rmse_high"]
    assert rows["linear", 1]["users"] == 3
    assert rows["linear", 3]["rmse"] is None  # nothing is left to predict
    assert rows["linear", 0]["seconds"] is None
    (row,) = [row for row in paired_rows(found, "linear") if row["t"] == 1 and row["metric"] == "rmse"]
    assert (row["method"], row["against"]) == ("linear", "mean")
    assert row["mean"] == pytest.approx(np.mean(np.subtract(at["linear"], at["mean"])))
    assert row["low"] <= row["mean"] <= row["high"]


def test_an_evaluation_is_kept(simulation, tmp_path):
    calls, heard = [], []
    first = Context("mine", tmp_path, hear=heard.append).evaluation("methods", measured(simulation, calls))
    again = Context("mine", tmp_path, hear=heard.append).evaluation("methods", measured(simulation, calls))
    assert len(calls) == 1
    assert [step.to_json() for step in first.steps] == [step.to_json() for step in again.steps]
    assert heard[-1].said.endswith(KEPT)
    assert {told.said for told in heard} >= {"linear: test-01"}
