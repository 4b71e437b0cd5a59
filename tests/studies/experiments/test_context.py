"""Stages are computed once, kept whole, and depend on all they should."""

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool
from kerneltrail.studies.experiments import ARRAYS, Context, Outcome, run
from kerneltrail.studies.experiments.context import KEPT
from kerneltrail.trajectory.candidates import FITTING
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.sampler.chains import SAMPLING
from kerneltrail.trajectory.settings import Settings

TINY = Settings(evidence="laplace", chains=2, sweeps=16, check=8, largest=1, maps=MapSettings(starts=1, screen=4))


def counted(value):
    """A stage that counts how often it is computed."""

    def compute():
        compute.times += 1
        return value

    compute.times = 0
    return compute


def test_a_finished_stage_is_not_computed_again(tmp_path):
    compute = counted({"a": [1.0, float("nan"), 0.1 + 0.2], "b": None})
    first = Context("mine", tmp_path).stage("one", compute)
    heard = []
    again = Context("mine", tmp_path, hear=heard.append).stage("one", compute)
    assert compute.times == 1
    assert repr(first) == repr(again) == repr({"a": [1.0, float("nan"), 0.1 + 0.2], "b": None})
    assert [now.said.endswith(KEPT) for now in heard] == [True]


def test_arrays_come_back_to_the_bit(tmp_path):
    values = {"x": np.random.default_rng(0).normal(size=(3, 2)), "n": np.arange(4)}
    compute = counted(values)
    for _ in range(2):
        found = Context("mine", tmp_path).stage("one", compute, format=ARRAYS)
        assert all(np.array_equal(found[name], values[name]) for name in values)
    assert compute.times == 1


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"name": "other"}, {"about": {"users": 2}}, {"stage": "two"}, {"data": "other"}]
)
def test_a_stage_depends_on_seed_experiment_settings_name_and_data(tmp_path, change):
    (tmp_path / "data.csv").write_text("a\n1\n")
    (tmp_path / "other.csv").write_text("a\n2\n")
    compute = counted(1)

    def ask(name="mine", seed=0, about=None, stage="one", data="data"):
        Context(name, tmp_path / "out", seed=seed, data=tmp_path / f"{data}.csv").stage(stage, compute, about=about)

    ask()
    ask()
    assert compute.times == 1
    ask(**change)
    assert compute.times == 2


def test_a_stage_that_is_interrupted_leaves_nothing_and_those_before_it_stay(tmp_path):
    before, context = counted("kept"), Context("mine", tmp_path)
    context.stage("before", before)
    there = set(tmp_path.rglob("*"))

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        context.stage("long", interrupted)
    assert set(tmp_path.rglob("*")) == there
    assert Context("mine", tmp_path).stage("before", before) == "kept"
    assert before.times == 1


@pytest.mark.parametrize("damage", [b"", b'{"a": 1'])
def test_a_damaged_stage_is_computed_again(tmp_path, damage):
    compute = counted([1])
    Context("mine", tmp_path).stage("one", compute)
    for file in (tmp_path / "stages").iterdir():
        if file.suffix == ".entry":
            file.write_bytes(damage)
    assert Context("mine", tmp_path).stage("one", compute) == [1]
    assert compute.times == 2


@pytest.mark.parametrize("left", [0, 40, -9])
def test_damaged_arrays_are_computed_again(tmp_path, left):
    compute = counted({"x": np.arange(40.0)})
    Context("mine", tmp_path).stage("one", compute, format=ARRAYS)
    (file,) = (tmp_path / "stages").glob("*.entry")
    file.write_bytes(file.read_bytes()[:left])
    assert Context("mine", tmp_path).stage("one", compute, format=ARRAYS)["x"].tolist() == list(range(40))
    assert compute.times == 2


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file/out/results\.json cannot be written"):
        Context("mine", tmp_path / "file" / "out").begin()


@pytest.mark.parametrize("held", ['{"experiment": "distinct"}', "[1, 2]", "no json"])
def test_a_folder_with_other_results_is_refused(tmp_path, held):
    (tmp_path / "results.json").write_text(held)
    with pytest.raises(DataError, match=r"holds the results of .*, not of mine; name another folder"):
        Context("mine", tmp_path).begin()
    (tmp_path / "results.json").write_text('{"experiment": "mine"}')
    Context("mine", tmp_path).begin()


def learner(stop_after=None):
    cohort = simulate.paper(2, 1, seed=0, batches=(4, 8)).train
    seen = []

    def learn(folder, tell):
        def hear(progress):
            seen.append(progress)
            if stop_after is not None and len(seen) > stop_after:
                raise KeyboardInterrupt
            tell(progress)

        pool = Pool.of("LIN[x]", "SE[x]")
        return fit(cohort, pool=pool, settings=TINY, workers=1, progress=hear, checkpoint=folder)

    return learn, seen


def test_a_fit_that_was_stopped_goes_on_to_the_same_model(tmp_path):
    whole, progress = learner()
    expected = Context("mine", tmp_path / "a").model("fit", whole)
    stopped, _ = learner(stop_after=len(progress) - 2)
    with pytest.raises(KeyboardInterrupt):
        Context("mine", tmp_path / "b").model("fit", stopped)
    assert not list((tmp_path / "b" / "stages").glob("*.entry"))
    rest, seen = learner()
    found = Context("mine", tmp_path / "b").model("fit", rest)
    assert sum(p.stage == FITTING and p.done > 0 for p in seen) < sum(
        p.stage == FITTING and p.done > 0 for p in progress
    )
    assert found.structures == expected.structures
    assert np.array_equal(found.diagnostics.log_joint, expected.diagnostics.log_joint)
    never = Context("mine", tmp_path / "b").model("fit", lambda folder, tell: pytest.fail("fitted again"))
    assert never.structures == expected.structures


def test_fits_are_shared_between_models_of_the_same_users(tmp_path):
    context = Context("mine", tmp_path)
    first, _ = learner()
    context.model("first", first)
    second, seen = learner()
    context.model("second", second, fits_of="first")
    assert not any(p.stage == FITTING and p.done > 0 for p in seen)
    assert any(p.stage == SAMPLING for p in seen)


@pytest.mark.parametrize("change", ["users", "pool"])
def test_fits_of_other_users_or_pools_are_not_taken(tmp_path, change):
    """A stage that names the wrong one before it finds what it would have found alone."""
    context = Context("mine", tmp_path / "a")
    first, _ = learner()
    context.model("first", first)
    cohort = simulate.paper(2, 1, seed=1 if change == "users" else 0, batches=(4, 8)).train
    pool = Pool.of("PER[x]", "SE[x]") if change == "pool" else Pool.of("LIN[x]", "SE[x]")

    def learn(folder, tell):
        return fit(cohort, pool=pool, settings=TINY, workers=1, progress=tell, checkpoint=folder)

    alone = Context("mine", tmp_path / "b").model("second", learn)
    found = context.model("second", learn, fits_of="first")
    assert found.structures == alone.structures
    assert all(np.array_equal(one.thetas, other.thetas) for one, other in zip(found.nodes, alone.nodes, strict=True))


class Staged:
    """An experiment of two stages, one of which may be another than before."""

    about = ""

    def __init__(self, users, stop=False):
        self.users, self.stop = users, stop

    def run(self, context):
        learn, _ = learner()
        context.model("fit", learn, about={"users": self.users})
        (context.folder("shared") / "x").mkdir(parents=True, exist_ok=True)
        context.stage("fit-more", lambda: 1, about={"users": self.users})
        if self.stop:
            raise KeyboardInterrupt
        return Outcome("title", "lead", {})


def kept(out):
    return {path.name for path in (out / "stages").iterdir()}


def test_what_an_older_run_left_is_removed_once_another_is_finished(tmp_path):
    run(Staged(1), Context("staged", tmp_path))
    old = kept(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(Staged(2, stop=True), Context("staged", tmp_path))
    both = kept(tmp_path)
    assert old < both  # an unfinished run takes nothing away
    (tmp_path / "stages" / "mine.txt").write_text("not ours")
    run(Staged(2), Context("staged", tmp_path))
    shared = {name for name in old if name.startswith("staged-shared-")}
    assert kept(tmp_path) == (both - old) | shared | {"mine.txt"}


def test_runs_of_another_seed_or_size_leave_each_other_alone(tmp_path):
    run(Staged(1), Context("staged", tmp_path))
    old = kept(tmp_path)
    run(Staged(2), Context("staged", tmp_path, quick=True))
    run(Staged(2), Context("staged", tmp_path, seed=1))
    assert old < kept(tmp_path)


def test_another_experiment_stopped_in_the_same_folder_loses_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Staged(1, stop=True), Context("staged", tmp_path))
    old = kept(tmp_path)
    assert old
    run(Staged(2), Context("other", tmp_path))
    assert old < kept(tmp_path)
