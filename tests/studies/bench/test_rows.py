"""Benchmarks on tiny sizes: rows have the keys they promise. Times are not tested."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.errors import KerneltrailError, NumericalError
from kerneltrail.gp import log_evidence
from kerneltrail.kernels import Hyperparameters, Pool, Priors, parse
from kerneltrail.methods import methods as registered
from kerneltrail.studies.bench import KEYS, chosen, evidence, machine, save, summary, tables
from kerneltrail.studies.bench.evidence import EvidenceBenchmark, batch_ends, check_agreement, other_libraries
from kerneltrail.studies.bench.map import MapBenchmark
from kerneltrail.studies.bench.methods import MethodsBenchmark
from kerneltrail.studies.bench.select import SelectBenchmark
from kerneltrail.studies.bench.timing import Effort
from kerneltrail.studies.bench.train import TrainBenchmark
from kerneltrail.studies.bench.update import UpdateBenchmark
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings

ONCE = Effort(least=1, most=1, seconds=0.0)
QUICK = Settings(largest=1, chains=2, sweeps=24, check=8, maps=MapSettings(starts=1, screen=4))
TINY = {
    "evidence": EvidenceBenchmark(sizes=(7, 60), samples=3, effort=ONCE),
    "map": MapBenchmark(users=1, starts=1, batches=(3, 9)),
    "update": UpdateBenchmark(sizes=(60, 120), batch=5, effort=ONCE),
    "train": TrainBenchmark(
        synthetic=2,
        rows=(2, 4),
        pool=Pool.of("LIN[x]", "SE[x]"),
        distinct=2,
        sweeps=(50, 8, 8),
        users=(2, 3),
        batches=(1, 2),
        growth=8,
        settings=QUICK,
    ),
    "select": SelectBenchmark(sizes=(101, 141), pilots=2, rows=(3, 5), settings=QUICK, effort=ONCE),
}


@pytest.fixture(scope="module")
def rows():
    return {name: list(benchmark.run(0)) for name, benchmark in TINY.items()}


@pytest.mark.parametrize("name", list(TINY))
def test_rows_have_the_promised_keys_and_sane_values(rows, name):
    assert rows[name]
    for row in rows[name]:
        assert set(KEYS) < set(row)
        assert row["bench"] == name
        assert row["seconds"] > 0.0
        assert all(isinstance(row[key], int) and row[key] > 0 for key in ("n", "batches", "samples"))
        if row["dpotrf_seconds"] is not None:
            assert row["ratio_to_dpotrf"] == pytest.approx(row["seconds"] / row["dpotrf_seconds"])


def test_evidence_covers_cases_sizes_and_methods(rows):
    found = {(row["case"], row["n"], row["method"]) for row in rows["evidence"]}
    for case in ("LIN+PER", "SE", "SE+PER", "LIN*PER", "SE*SE"):
        for n in (7, 60):
            assert {(case, n, "auto"), (case, n, "dense")} <= found
            assert ((case, n, "sklearn") in found) == (find_spec("sklearn") is not None)
    assert ("LIN+PER", 60, "spectral") in found
    assert ("SE*SE", 7, "spectral") not in found  # more features than rows
    own = [row for row in rows["evidence"] if row["method"] in ("auto", "dense", "spectral")]
    assert all(row["batches"] == 6 for row in own)


def test_the_map_says_how_often_the_period_was_found(rows):
    whole, path = rows["map"]
    assert (whole["method"], whole["batches"], whole["n"]) == ("find_map", 1, 12)
    assert whole["found"] in (0.0, 1.0)
    assert (path["method"], path["batches"], path["samples"]) == ("find_map_path", 2, 1)


def test_updates_are_compared_with_the_first_size(rows):
    firsts = [row for row in rows["update"] if row["n"] == 60]
    assert {row["method"] for row in firsts} == {"update", "update+predict", "grow", "grow+predict"}
    assert all(row["ratio_to_first"] == 1.0 for row in firsts)
    assert {row["method"] for row in rows["update"] if row["n"] == 120} == {"update", "update+predict"}


def test_training_has_every_case_with_its_numbers(rows):
    found = {(row["case"], row["method"], row["samples"], row["batches"]): row for row in rows["train"]}
    assert set(found) == {
        ("synthetic", "exact", 2, 2),
        ("distinct", "exact", 2, 6),
        ("distinct", "published", 2, 6),
        ("distinct", "as authors", 2, 6),
        ("users", "exact", 2, 1),
        ("users", "exact", 3, 1),
        ("batches", "exact", 2, 2),
    }
    first = found["synthetic", "exact", 2, 2]
    assert first["seconds_to_converge"] in (None, first["seconds"])
    assert first["rhat"] > 0.0
    assert first["ess_per_second"] == pytest.approx(first["ess"] / first["seconds_chains"])
    for row in rows["train"]:
        assert row["seconds_per_sweep"] > 0.0
        if row["case"] == "distinct":
            assert row["authors_seconds_per_sweep"] == 339.0
            assert row["ratio_to_authors"] == row["seconds_per_sweep"] / 339.0
    assert found["distinct", "exact", 2, 6]["ess_per_second"] > 0.0
    assert found["distinct", "published", 2, 6]["ess_per_second"] is None  # 8 sweeps say nothing
    authors = found["distinct", "as authors", 2, 6]
    assert authors["moves"].count("published_seat") == 10
    assert authors["options"] == {"published_plate": {"steps": 100}}
    assert found["users", "exact", 2, 1]["ratio_to_first"] == 1.0


def test_selection_steps_are_compared_with_the_first_size(rows):
    found = {(row["method"], row["n"], row["batch"]): row for row in rows["select"]}
    ways = [f"{way}{more}" for way in ("filter", "greedy", "kept") for more in ("", "+predict")]
    assert set(found) == {(way, *size) for way in ways for size in ((101, 40), (101, 100), (141, 40))}
    assert all(found[way, 101, 40]["ratio_to_first"] == 1.0 for way in ways)
    assert all(row["case"] == "select" and row["seconds"] <= row["median"] for row in rows["select"])


def test_every_method_is_timed_after_every_batch(capsys):
    from rich.console import Console

    quick = {"trajectory": {"changes": {"largest": 1, "chains": 2, "sweeps": 24, "check": 8, "maps": QUICK.maps}}}
    benchmark = MethodsBenchmark(("trajectory", "mean", "cks"), train=2, users=2, batches=(2, 3), settings=quick)
    said = []
    found = list(benchmark.run(0, said.append))
    assert len(said) == benchmark.steps
    assert [(row["method"], row["t"], row["n"]) for row in found] == [
        (name, *at) for name in benchmark.methods for at in ((1, 2), (2, 5))
    ]
    for row in found:
        assert set(KEYS) < set(row)
        assert (row["bench"], row["case"], row["samples"]) == ("methods", "update", 2)
        assert row["seconds"] > 0.0
        assert (row["predict_seconds"] is None) == (row["t"] == 2)
    (table,) = tables(found)
    Console(width=80).print(table)
    assert "5 rows" in capsys.readouterr().out
    assert MethodsBenchmark().methods == registered()
    assert (MethodsBenchmark().train, MethodsBenchmark().batches) == (6, (3, 4, 10, 20, 50, 100))


def test_sizes_are_those_of_the_contract():
    assert SelectBenchmark().sizes == (187, 1_000, 10_000)
    assert (TrainBenchmark().synthetic, TrainBenchmark().rows, TrainBenchmark().distinct) == (
        6,
        (3, 4, 10, 20, 50, 100),
        10,
    )
    assert (TrainBenchmark().users, TrainBenchmark().batches) == ((50, 100, 200), (3, 6, 12))
    assert TrainBenchmark().settings == Settings()
    assert EvidenceBenchmark().sizes == (30, 100, 187, 450, 1000, 2000)
    assert [len(batch_ends(n)) for n in EvidenceBenchmark().sizes] == [6] * 6
    assert batch_ends(187) == (3, 7, 17, 37, 87, 187)
    assert UpdateBenchmark().sizes == (1_000, 10_000, 100_000)
    assert UpdateBenchmark().batch == 40
    assert (MapBenchmark().users, MapBenchmark().starts, sum(MapBenchmark().batches)) == (100, 8, 187)
    every, quick = ({each.name: each.steps for each in chosen("all", quick=quick)} for quick in (False, True))
    assert list(every) == list(quick) == list(TINY)  # the long ones are run by name only
    assert sum(quick.values()) < sum(every.values())


@pytest.mark.parametrize("name", ["update", "train", "select"])
def test_every_step_is_announced(name):
    said = []
    list(TINY[name].run(0, said.append))
    assert len(said) == TINY[name].steps


def test_an_unknown_benchmark_is_refused():
    with pytest.raises(KerneltrailError, match=r"no benchmark is called 'quality'; there are evidence, map, update, "):
        chosen("quality")


def test_rows_are_written_under_their_key_beside_the_machine(rows, tmp_path):
    path = save(tmp_path / "bench.json", rows["map"], machine())
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["rows"] == rows["map"]
    assert stored["machine"]["blas_threads"] == 1
    assert "numpy" in stored["machine"]["versions"]


def test_tables_hold_every_row_within_80_columns(rows, capsys):
    from rich.console import Console

    console = Console(width=80)
    everything = [row for name in TINY for row in rows[name]]
    made = list(tables(everything))
    assert sum(table.row_count for table in made) == len(everything)
    for table in made:
        console.print(table)
    assert "…" not in capsys.readouterr().out


def test_others_compute_the_same_evidence():
    rng = np.random.default_rng(0)
    composition = parse("LIN[x]*PER[x] + SE[z]")
    user = User("u", ("x", "z"), rng.uniform(-4, 4, (25, 2)), rng.standard_normal(25), (25,))
    thetas = Priors.synthetic().sample(composition, 3, rng)
    ours = log_evidence(user, composition, thetas)[:, 0]
    for calls in other_libraries(user, [Hyperparameters(composition, tuple(u)) for u in thetas]).values():
        np.testing.assert_allclose([call() for call in calls], ours, rtol=1e-8)


def test_a_comparison_of_different_values_is_refused():
    with pytest.raises(NumericalError, match=r"sklearn and the dense method differ by 0\.5"):
        check_agreement("sklearn", [1.0, 2.0], np.array([1.0, 2.5]))


def test_the_summary_names_what_was_measured(rows, monkeypatch):
    monkeypatch.setattr(evidence, "IN_MARKDOWN", (60,))
    everything = [row for name in TINY for row in rows[name]]
    text = summary(everything, machine())
    assert text.count("| 60 |") == 5
    assert "| LIN[x] + PER[x] |" in text
    assert "from 1 starts" in text
    assert "after 120 (ratio of last to first" in text
    assert "Learning from 2 synthetic users" in text
    assert "by the authors' code: 339 s" in text
    assert "for 3 users with 1 batches" in text
    assert "One selection step, `filter`" in text
    assert "one BLAS thread" in text
