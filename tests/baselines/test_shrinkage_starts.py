"""Where shrinkage starts, and the tables of its benchmark."""

import numpy as np
import pytest

from kerneltrail.baselines.frame import own_frame
from kerneltrail.baselines.shrinkage import Shrinkage
from kerneltrail.baselines.shrinkage.benchmark import (
    Draw,
    SeriesResult,
    main,
    read,
    recovery_table,
    series_table,
    smallest_share,
)
from kerneltrail.baselines.shrinkage.starts import around, at_periods, greedy, own_map, periods_of
from kerneltrail.data import User
from kerneltrail.errors import DataError
from kerneltrail.kernels import Composition, Hyperparameters, Pool, Priors, layout_of, parse

POOL = Pool.of("LIN[x]", "PER[x]", "SE[x]")
WHOLE = Composition(POOL.products)


def wave(rows=50):
    """A steep line with a cycle of 0.15 on it."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, rows))
    y = 3.0 * x - 1.5 + np.sin(2 * np.pi * x / 0.15) + 0.1 * rng.standard_normal(rows)
    return User("ann", ("x",), x[:, None], y, (rows,))


def test_likely_periods_are_put_where_periods_are():
    composition = parse("PER[x] + PER[x]*PER[x] + SE[z]")
    vector = np.zeros(layout_of(composition).size)
    names = layout_of(composition).names
    at = at_periods(vector, composition, {"x": (2.0, 3.0)})
    found = {name: float(np.exp(value)) for name, value in zip(names, at, strict=True) if value}
    assert found == pytest.approx(
        {"PER[x].period": 2.0, "PER[x]*PER[x]: PER[x].period": 2.0, "PER[x]*PER[x]: PER[x]#2.period": 3.0}
    )
    shifted = dict(zip(names, np.exp(at_periods(vector, composition, {"x": (2.0, 3.0)}, 1)), strict=True))
    assert shifted["PER[x].period"] == pytest.approx(3.0)
    assert shifted["PER[x]*PER[x]: PER[x]#2.period"] == pytest.approx(2.0)
    assert periods_of(wave())["x"][0] == pytest.approx(0.15, rel=0.03)


def test_a_product_alone_finds_the_likely_period():
    user = wave().with_y(np.sin(2 * np.pi * wave().X[:, 0] / 0.15))
    theta = own_map(user, WHOLE, Priors.heartsteps(), np.random.default_rng(0), None, periods_of(user))
    names = layout_of(WHOLE).names
    assert np.exp(theta[names.index("PER[x].period")]) == pytest.approx(0.15, rel=0.02)


def test_a_greedy_sum_is_what_the_rows_are_made_of_and_a_start_is_it():
    user = wave()
    found = greedy(user, WHOLE, Priors.heartsteps(), None, periods_of(user), 3)
    assert found is not None
    assert found.kernel is not None
    assert found.kernel.composition == parse("LIN[x] + PER[x]")
    theta, _ = Priors.heartsteps().moments(WHOLE)
    start = around(found, WHOLE, theta, 2.0)
    inside = Hyperparameters(found.kernel.composition, found.kernel.unconstrained)
    log_weights, _ = start.log_weights
    by_product = dict(zip(map(str, WHOLE), np.exp(log_weights), strict=True))
    assert by_product["LIN[x]"] == pytest.approx(inside["LIN[x].amplitude"])
    assert by_product["PER[x]"] == pytest.approx(inside["PER[x].amplitude"])
    assert by_product["SE[x]"] < 0.1
    kept = [name for name in layout_of(WHOLE).names if not name.endswith("amplitude")]
    values = dict(zip(kept, start.theta, strict=True))
    assert np.exp(values["PER[x].period"]) == pytest.approx(inside["PER[x].period"])
    assert np.exp(values["noise"]) == pytest.approx(inside["noise"])
    assert greedy(user, WHOLE, Priors.heartsteps(), None, {}, 0) is None


def test_a_greedy_start_is_no_worse():
    user, frame = wave(40), own_frame(("x",), "none")
    plain = Shrinkage(frame, POOL, Priors.heartsteps(), pairs=2).fit(user, None)
    better = Shrinkage(frame, POOL, Priors.heartsteps(), pairs=2, greedy=2).fit(user, None)
    assert better.bound > plain.bound - 0.5
    with pytest.raises(DataError, match="greedy"):
        Shrinkage(frame, POOL, Priors.heartsteps(), greedy=-1)


def test_the_smallest_share_by_hand():
    user = User("a", ("x", "z"), [[-1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], (2,))
    theta = Hyperparameters.from_values(parse("LIN[x] + LIN[z]"), [3.0, 0.0, 1.0, 0.0, 1.0])
    assert smallest_share(theta, user) == 0.0  # z never changes
    two = Hyperparameters.from_values(parse("LIN[x] + SE[x]"), [3.0, 0.0, 1.0, 1.0, 1.0])
    smooth = 1.0 - 0.5 * (1.0 + np.exp(-2.0))  # variance left once the mean of two values is taken out
    assert smallest_share(two, user) == pytest.approx(smooth / (smooth + 3.0))


def test_tables_count_what_they_say():
    draws = [
        Draw("paper", 30, 0, "LIN[x] + SE[x]", 0.3, "LIN[x] + SE[x]", 1.0),
        Draw("paper", 30, 1, "LIN[x] + SE[x]", 0.05, "LIN[x]", 1.0),
        Draw("paper", 30, 2, "LIN[x] + SE[x]", 0.3, "LIN[x] + PER[x] + SE[x]", 1.0),
        Draw("paper", 30, 3, "PER[x] + SE[x]", 0.3, "LIN[x]", 1.0),
        Draw("paper", 30, 0, "", 1.0, "", 2.0),
    ]
    (row,) = recovery_table(draws).splitlines()[2:]
    assert row == "| paper | 30 | 4 | 25 % | 50 % | 50 % | 1.8 | 33 % of 3 | 100 % | 1.2 |"
    runs = [SeriesResult(seed, 15.0 + seed, -4.0, 90.0, "SE[x]", 10.0, 5.0) for seed in range(3)]
    assert "| mean ± sd | 16.0 ± 1.0 | -4.00 ± 0.00 | | | |" in series_table(runs)


def test_the_benchmark_runs_and_resumes(tmp_path, capsys):
    rows = np.column_stack([wave(20).X[:, 0], wave(20).y])
    np.savetxt(tmp_path / "wave.csv", rows, delimiter=",", header="x,y", comments="")
    out = tmp_path / "series.jsonl"
    for _ in range(2):
        main(["series", str(tmp_path / "wave.csv"), "--test", "4", "--seeds", "1", "--out", str(out)])
    (result,) = read(out, SeriesResult)
    assert np.isfinite([result.rmse, result.log_density, result.bound]).all()
    assert "| mean ± sd |" in capsys.readouterr().out
    kept = tmp_path / "recovery.jsonl"
    main(["recovery", "--draws", "1", "--rows", "30", "--out", str(kept)])
    found = read(kept, Draw)
    assert [(each.pool, bool(each.truth)) for each in found] == [
        ("paper", True), ("paper", False), ("apart", True), ("apart", False),
    ]  # fmt: skip
    assert "| apart | 30 | 1 |" in capsys.readouterr().out
