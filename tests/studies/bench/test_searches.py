"""Random problems for the search: they are what they say, and what is measured of them adds up."""

import numpy as np
import pytest
from rich.console import Console

from kerneltrail.studies.bench import KEYS, chosen, tables
from kerneltrail.studies.bench.searches import KINDS, SearchesBenchmark
from kerneltrail.trajectory.map_table import MapSettings

QUICK = MapSettings(starts=1, screen=4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_repeats_a_problem(kind):
    make, share = KINDS[kind]
    one, two = (make(np.random.default_rng(3), "u") for _ in range(2))
    assert one.user.fingerprint == two.user.fingerprint
    assert one.composition == two.composition
    assert (one.block is not None) == (kind == "reward")
    assert one.user.rows == 3 if kind == "tiny" else one.user.rows >= 187
    assert 0.0 < share < 1.0


def test_a_slope_is_that_of_the_fit_and_not_of_another_batch():
    problem = KINDS["curves"][0](np.random.default_rng(0), "u")
    path, seconds = problem.search(QUICK, 0)
    assert seconds > 0.0
    assert all(problem.slope(fit, t) < 0.1 for t, fit in enumerate(path))
    assert problem.slope(path[0], 5) > 0.1


def test_shares_are_of_all_fits(capsys):
    benchmark, said = SearchesBenchmark(problems=2, settings=QUICK, thorough=QUICK), []
    rows = list(benchmark.run(0, said.append))
    assert len(said) == benchmark.steps == 4
    found = {row["case"]: row for row in rows}
    assert set(KINDS) <= set(found)
    assert sum(found[kind]["fits"] for kind in KINDS) == 6 + 3 + 5 + 2
    assert sum(row["fits"] for case, row in found.items() if "period" in case) == 16
    for row in rows:
        assert set(KEYS) < set(row)
        assert row["ended"] + row["false"] <= 1.0
        assert row["false"] == 0.0
        assert 0.0 <= row["moved"] <= 1.0
        assert row["farthest"] >= 0.0
    (table,) = tables(rows)
    Console(width=80).print(table)
    assert "…" not in capsys.readouterr().out
    assert [each.name for each in chosen("searches")] == ["searches"]
