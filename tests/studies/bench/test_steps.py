"""Settings one at a time: what is compared with what, and which way differences run."""

import pytest

from kerneltrail.data.simulate import MixedTruth
from kerneltrail.evaluation import follow
from kerneltrail.methods import METHODS
from kerneltrail.studies.bench.between_sets import MixedSet
from kerneltrail.studies.bench.over_splits import LATER
from kerneltrail.studies.bench.steps import NONE, STEPS, StepsBenchmark
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.settings import Settings

SMALL = MixedSet("small", MixedTruth(noise=0.5), pilots=4, new=3, batches=(8, 8))
CHANGES = (("largest", 1), ("sweeps", 16), ("chains", 2), ("check", 8))
TINY = StepsBenchmark(splits=1, sets=(SMALL,), changes=CHANGES)


def test_each_step_changes_one_thing_and_the_default_has_all_that_predict():
    plain = NONE.to_json()
    changed = {
        name: {key for key, value in each.to_json().items() if value != plain[key]} for name, each in STEPS.items()
    }
    assert changed["none"] == set()
    assert all(
        len(changed[name]) == 1 for name in STEPS if name not in ("none", "curve, joint", "default", "published")
    )
    one = set().union(*(changed[name] for name in ("joint", "tails", "shape", "sampled")))
    assert one < changed["default"] == one | {"mean", "walk", "advancing"}
    assert Settings().resolved(standardised=True).mean == STEPS["curve"].mean


@pytest.fixture(scope="module")
def rows():
    return {(row["method"], row["t"]): row for row in TINY.run(0)}


def test_every_step_has_a_row_at_every_t(rows):
    assert set(rows) == {(method, t) for method in (*STEPS, "truth") for t in (0, 1, LATER)}
    assert all((row["difference"] == {}) == (method == "none") for (method, _), row in rows.items())
    assert {row["failures"] for row in rows.values()} == {0}


def test_differences_are_a_step_minus_none(rows):
    for (method, t), row in rows.items():
        if method != "none":
            expected = row["log_density"] - rows["none", t]["log_density"]
            assert row["difference"]["log_density"]["mean"] == pytest.approx(expected, abs=1e-12)
    assert any(row["difference"]["log_density"]["mean"] != 0.0 for row in rows.values() if row["difference"])
    assert StepsBenchmark.markdown(list(rows.values()))[0].endswith(
        "differences are this method minus none, with 90 % intervals over people:"
    )


def test_a_step_is_the_model_with_its_settings(rows):
    (split,) = SMALL.splits(1, 0, None)
    model = fit(split.pilots, settings=STEPS["tails"].changed(dict(CHANGES)), workers=1)
    method = METHODS["trajectory"](split.pilots, seed=0, model=model)
    steps = [step for user in split.new.raw for step in follow(method, user, catch=()).steps if step.predicted]
    density = [step.log_density for step in steps if step.t == 1]
    assert rows["tails", 1]["log_density"] == pytest.approx(sum(density) / len(density), rel=1e-12)
