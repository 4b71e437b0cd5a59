"""What users share, where it is known: what is compared with what."""

from kerneltrail.studies.bench.shared import CASES, SharedBenchmark


def test_every_quantity_of_every_case_has_a_row():
    benchmark = SharedBenchmark(cohorts=1, pilots=4, new=2, batches=(10, 10))
    ticks = []
    rows = list(benchmark.run(0, ticks.append))
    assert len(ticks) == benchmark.steps == len(CASES)
    quantities = [
        "variance of levels",
        "variance of slopes along x1",
        "noise of a new user",
        "degrees of freedom",
    ]
    assert [(row["case"], row["method"]) for row in rows] == [(case, what) for case in CASES for what in quantities]
    assert [row["samples"] for row in rows] == [1, 1, 2, 1] * len(CASES)
    # In data units: a noise of 4 is not found near 1, which it is of a standardised target.
    assert all(1.5 < row["estimate"] < 12.0 for row in rows if row["method"] == "noise of a new user")
    assert all(0.0 <= row["covered"] <= 1.0 for row in rows)
