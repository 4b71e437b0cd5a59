"""A served trial with many participants, on a tiny size: every decision is counted. Times are not tested."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import DataError, KerneltrailError, TrialError
from kerneltrail.studies.bench import KEYS, chosen, serve, summary, tables
from kerneltrail.studies.bench.serve import FAST, STEADY, UPDATING, ServeBenchmark

serving = pytest.importorskip("kerneltrail.studies.bench.serving", reason="needs kerneltrail[trial]")
study = pytest.importorskip("kerneltrail.studies.bench.serving_study")

TINY = ServeBenchmark(
    participants=3, few=2, nodes=2, rows=4, new=2, callers=2, rate=10.0, seconds=0.5, databases=("SQLite",)
)
MACHINE = {"cores": 2, "processor": "one", "python": "3", "versions": {"numpy": "2"}, "load": 1.0}


@pytest.fixture(scope="module")
def measured():
    ticks = []
    return list(TINY.run(0, ticks.append)), ticks


def test_rows_have_every_measurement(measured):
    rows, ticks = measured
    assert [(row["case"], row["method"]) for row in rows] == [("SQLite", each) for each in (FAST, STEADY, UPDATING)]
    assert len(ticks) == TINY.steps
    for row in rows:
        assert set(KEYS) < set(row)
        assert row["n"] > 0
        assert 0.0 < row["seconds"] <= row["p95"] <= row["p99"] <= row["largest"]
        assert 0.0 < row["p95_call"] <= row["p95"] + 1e-9
        assert row["late"] <= row["fallbacks"] <= row["n"]
    assert rows[1]["n"] == round(TINY.rate * TINY.seconds)
    assert rows[2]["update_seconds"] > 0.0


def test_rows_are_shown_with_the_load_beside_them(measured):
    rows, _ = measured
    (table,) = tables(rows)
    assert table.row_count == 3
    text = summary(rows, MACHINE)
    assert "SQLite: the update of all participants took" in text
    assert "load average 1.0" in text


def test_the_bar_is_about_lateness_and_the_slowest_twentieth():
    row = {"method": UPDATING, "p95": 0.05, "late": 0, "refused": 0}
    assert ServeBenchmark.is_met(row)
    assert ServeBenchmark.style(row) == ""
    assert ServeBenchmark.style({**row, "late": 1}) == "red"
    assert ServeBenchmark.style({**row, "refused": 1}) == "red"
    assert ServeBenchmark.style({**row, "p95": 0.051}) == "red"
    assert ServeBenchmark.style({**row, "method": FAST, "p95": 1.0}) == ""


def test_what_took_long_and_what_another_rung_made_is_counted():
    late = "the deadline of 500 ms had passed before policy"
    reasons = [late, "policy: no answer within 500 ms", "policy: there is none"]
    notes = serving.Notes([0.1 * each for each in range(1, 12)], [0.1] * 11, reasons)
    found = notes.summary(2.0, 0.11)
    assert (found["decisions"], found["per_second"], found["fallbacks"], found["late"]) == (11, 5.5, 3, 2)
    np.testing.assert_allclose([found["p50"], found["largest"], found["processor"]], [0.6, 1.1, 0.01])
    notes.problems.append(TrialError("refused"))
    with pytest.raises(TrialError, match="refused"):
        notes.summary(2.0, 0.0)


@pytest.mark.parametrize("nodes", [1, 5])
def test_the_graph_has_as_many_nodes_as_are_asked_for(nodes):
    model = study.model_with(nodes, 0)
    assert len(model.nodes) == nodes
    assert all(node.users for node in model.nodes)
    with pytest.raises(DataError, match="nodes, not 99"):
        study.model_with(99, 0)


def test_without_the_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(TrialError, match=r"needs uvicorn: install kerneltrail\[trial\]"):
        next(TINY.run(0))


def test_it_is_not_part_of_all():
    assert "serve" not in {each.name for each in chosen("all")}
    assert chosen("serve", quick=True) == [ServeBenchmark.quick()]
    with pytest.raises(KerneltrailError, match="no --splits"):
        chosen("serve", changes={"splits": 3})


def test_a_postgresql_that_is_not_there_is_left_out_with_a_warning(monkeypatch):
    monkeypatch.delenv(serving.POSTGRES, raising=False)

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(serving.importlib, "import_module", absent)
    with pytest.warns(UserWarning, match="PostgreSQL is left out"), serving.location("PostgreSQL") as address:
        assert address is None


def test_a_server_that_does_not_start_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    nobody = study.Study(tmp_path / "empty", None, "kt_a_b", ("kt_a_b",), np.random.default_rng(0))
    with pytest.raises(TrialError, match="did not start"), serving.serving(nobody):
        pass


def test_quick_is_smaller():
    full, quick = ServeBenchmark(), ServeBenchmark.quick()
    assert quick.participants < full.participants
    assert replace(quick, databases=full.databases).steps == full.steps
