"""Pilot users are added to a model without starting again."""

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings

POOL = Pool.of("LIN[x]", "SE[x]")
QUICK = {"largest": 2, "chains": 2, "sweeps": 16, "check": 8, "maps": MapSettings(starts=1, screen=4)}


@pytest.fixture(scope="module")
def cohort():
    return simulate.paper(train=4, test=1, seed=3, batches=(4, 6)).train


@pytest.fixture(scope="module")
def model(cohort):
    return fit(cohort.subset(cohort.names[:3]), pool=POOL, workers=1, **QUICK)


def test_an_extended_model_has_all_users_and_its_pool(model, cohort):
    extended = fit(cohort, extend=model, workers=1)
    assert extended.users == cohort.names
    assert extended.pool == model.pool
    assert extended.priors == model.priors
    assert extended.settings == model.settings


def test_chains_go_on_from_the_paths_of_the_model(model, cohort, monkeypatch):
    from kerneltrail.trajectory import fit as module

    seen = []

    def spy(problem, *others):
        seen.append(problem)
        return original(problem, *others)

    original = module.run_chains
    monkeypatch.setattr(module, "run_chains", spy)
    fit(cohort, extend=model, workers=1)
    assert dict(seen[0].begin) == dict(enumerate(model.paths))
    assert {mask for path in model.paths for mask in path} <= set(seen[0].candidates)


def test_single_settings_can_be_changed(model, cohort):
    assert fit(cohort, extend=model, workers=1, seed=7).settings.seed == 7


def test_a_cohort_of_strangers_is_refused(model, cohort):
    strangers = cohort.subset(cohort.names[3:])
    with pytest.raises(DataError, match="none of the model's pilot users"):
        fit(strangers, extend=model, workers=1)


def test_traces_cover_all_sweeps(model):
    assert {name: trace.shape for name, trace in model.diagnostics.traces.items()} == dict.fromkeys(
        ("log_joint", "edges", "agreement"), (2, model.diagnostics.sweeps)
    )
    assert np.isfinite(model.diagnostics.log_joint).all()
