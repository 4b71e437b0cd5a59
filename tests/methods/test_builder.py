"""Recipes: which settings a learner's method has, and what is handed to the learner."""

import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from kerneltrail.data import Batching, Cohort, Schema
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.builder import Recipe
from kerneltrail.methods.memoryless import Memoryless
from kerneltrail.methods.preprocessing import Frame, priors_for
from kerneltrail.methods.registry import _FACTORIES, methods


@dataclass(frozen=True)
class Probe:
    """A learner that only remembers what it was given."""

    frame: Frame
    pool: Pool
    priors: Priors
    depth: int = 3
    seed: int = 0

    covariates = ("x",)
    takes_action = False
    in_pieces = True

    def fit(self, rows, before):
        pytest.fail("nobody fits this one")

    def restore(self, rows, stored):
        pytest.fail("nobody restores this one")


@pytest.fixture
def cohort():
    rng = np.random.default_rng(3)
    rows = {"id": np.repeat(["a", "b"], 6), "x": rng.uniform(2, 9, 12), "y": rng.normal(size=12)}
    rows["t"] = np.tile(np.arange(6), 2)
    schema = Schema(user="id", order="t", target="y", covariates=("x",), batching=Batching(size=3))
    return Cohort.from_schema(schema, rows)


def settings_of(factory):
    return set(inspect.signature(factory).parameters) - {"cohort", "seed"}


def test_settings_are_the_learners_and_the_frames():
    frame = {"scaling", "target_scaling", "reward", "constant"}
    assert settings_of(Recipe("probe", Probe, "own")) == frame | {"pool", "priors", "depth"}
    assert settings_of(Recipe("probe", Probe, "group")) == {"reward", "constant", "pool", "priors", "depth"}
    assert settings_of(Recipe("probe", Probe, "own", {"depth": 1})) == frame | {"pool", "priors"}
    default = inspect.signature(Recipe("probe", Probe, "own")).parameters["depth"].default
    assert default == Probe.depth


def test_a_learner_gets_what_it_asks_for(cohort):
    pool = Pool.of("LIN[x]")
    made = Recipe("probe", Probe, "own")(cohort, seed=7, pool=pool, depth=5, constant=2.0).learner
    assert (made.seed, made.depth, made.pool) == (7, 5, pool)
    assert made.priors == priors_for(cohort.schema)
    assert made.frame.schema.scaling == "user"
    assert made.frame.reward.constant_variance == 2.0
    group = Recipe("probe", Probe, "group")(cohort, seed=7).learner
    assert group.frame.schema.scaling == "group"
    assert group.pool == Pool.atoms(("x",))
    assert group.depth == Probe.depth


def test_none_leaves_a_setting_as_it_is(cohort):
    made = Recipe("probe", Probe, "own")(cohort, seed=0, depth=None, scaling=None, pool=None).learner
    assert made == Recipe("probe", Probe, "own")(cohort, seed=0).learner


def test_what_is_fixed_wins_and_what_nobody_has_is_refused(cohort):
    assert Recipe("probe", Probe, "own", {"depth": 1})(cohort, seed=0).learner.depth == 1
    with pytest.raises(TypeError, match="depht"):
        Recipe("probe", Probe, "own")(cohort, seed=0, depht=4)


def test_every_method_goes_to_another_process():
    for name in methods():
        again = pickle.loads(pickle.dumps(_FACTORIES[name]))
        assert inspect.signature(again) == inspect.signature(_FACTORIES[name])
    assert _FACTORIES["memoryless"].learn is Memoryless
