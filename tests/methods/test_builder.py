"""Builders: which settings a learner's method has, and what is handed to the learner."""

import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from kerneltrail.data import Batching, Cohort, Schema, default_priors
from kerneltrail.kernels import Pool, Priors
from kerneltrail.methods.builder import MethodBuilder
from kerneltrail.methods.memoryless import Memoryless
from kerneltrail.methods.preprocessing import Preprocessor
from kerneltrail.methods.registry import METHODS, learns_from, methods


@dataclass(frozen=True)
class Probe:
    """A learner that only remembers what it was given."""

    preprocessor: Preprocessor
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


def test_settings_are_the_learners_and_the_preprocessors():
    scaled = {"scaling", "target_scaling", "reward", "constant"}
    assert settings_of(MethodBuilder("probe", Probe, "own rows")) == scaled | {"pool", "priors", "depth"}
    assert settings_of(MethodBuilder("probe", Probe, "group")) == {"reward", "constant", "pool", "priors", "depth"}
    assert settings_of(MethodBuilder("probe", Probe, "own rows", {"depth": 1})) == scaled | {"pool", "priors"}
    default = inspect.signature(MethodBuilder("probe", Probe, "own rows")).parameters["depth"].default
    assert default == Probe.depth


def test_a_learner_gets_what_it_asks_for(cohort):
    pool = Pool.of("LIN[x]")
    made = MethodBuilder("probe", Probe, "own rows")(cohort, seed=7, pool=pool, depth=5, constant=2.0).learner
    assert (made.seed, made.depth, made.pool) == (7, 5, pool)
    assert made.priors == default_priors(cohort.schema)
    assert made.preprocessor.schema.scaling == "user"
    assert made.preprocessor.reward.constant_variance == 2.0
    group = MethodBuilder("probe", Probe, "group")(cohort, seed=7).learner
    assert group.preprocessor.schema.scaling == "group"
    assert group.pool == Pool.atoms(("x",))
    assert group.depth == Probe.depth


def test_none_leaves_a_setting_as_it_is(cohort):
    made = MethodBuilder("probe", Probe, "own rows")(cohort, seed=0, depth=None, scaling=None, pool=None).learner
    assert made == MethodBuilder("probe", Probe, "own rows")(cohort, seed=0).learner


def test_what_is_fixed_wins_and_what_nobody_has_is_refused(cohort):
    assert MethodBuilder("probe", Probe, "own rows", {"depth": 1})(cohort, seed=0).learner.depth == 1
    with pytest.raises(TypeError, match="depht"):
        MethodBuilder("probe", Probe, "own rows")(cohort, seed=0, depht=4)


def test_every_method_goes_to_another_process():
    for name in methods():
        again = pickle.loads(pickle.dumps(METHODS[name]))
        assert inspect.signature(again) == inspect.signature(METHODS[name])
    assert METHODS["memoryless"].learn is Memoryless


def test_whose_rows_a_method_learns_from_is_said_beside_it():
    assert [name for name in methods() if learns_from(name) == "own rows"] == [
        "se-ard", "memoryless", "cks", "shrinkage",
    ]  # fmt: skip
