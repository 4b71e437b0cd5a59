import json

import cloudpickle
import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.store.cache import Cache
from kerneltrail.trial.simulator import study as module
from kerneltrail.trial.simulator.design import designs_of
from kerneltrail.trial.simulator.people import population_of
from kerneltrail.trial.simulator.study import Study, simulate

from .made import design, protocol_and_model, study

PAIR = ("ours", "fixed")


def test_what_is_done_is_not_done_again_and_comes_out_the_same(tmp_path, monkeypatch):
    known, cache = study(), Cache.at(tmp_path)
    heard = []
    first = simulate(known, [design()], range(2), PAIR, cache=cache, tell=heard.append)
    assert [(now.done, now.total) for now in heard] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    monkeypatch.setattr(Study, "measure", lambda *_: pytest.fail("run again"))
    again = simulate(known, [design()], range(2), PAIR, cache=cache)
    assert json.dumps([run.values for run in again]) == json.dumps([run.values for run in first])


def test_a_study_that_was_stopped_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    known, cache, seen = study(), Cache.at(tmp_path), []
    measure = Study.measure

    def noted(self, design, policy, seed):
        seen.append((policy, seed))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return measure(self, design, policy, seed)

    monkeypatch.setattr(Study, "measure", noted)
    with pytest.raises(KeyboardInterrupt):
        simulate(known, [design()], range(2), PAIR, cache=cache)
    seen.clear()
    seen.extend([None] * 3)
    simulate(known, [design()], range(2), PAIR, cache=cache)
    assert seen[3:] == [("ours", 1), ("fixed", 1)]


def test_compared_policies_are_run_once_for_designs_that_differ_in_the_trials_own(monkeypatch):
    seen = []
    measure = Study.measure
    monkeypatch.setattr(Study, "measure", lambda self, *job: seen.append(job[1]) or measure(self, *job))
    runs = simulate(study(), designs_of(3, 3, ["slope=5,10"]), [0], PAIR)
    assert sorted(seen) == ["fixed", "ours", "ours"]
    assert len(runs) == 4
    assert runs[1].values == runs[3].values


def test_a_study_that_was_sent_to_another_process_runs_there_as_it_does_here():
    """As engines send it."""
    here, plan = study(), design(2, 3)
    there = cloudpickle.loads(cloudpickle.dumps(here))
    first, second = (each.measure(plan, "ours", 0) for each in (here, there))
    assert {k: v for k, v in first.items() if k[-2:] != "ms"} == {k: v for k, v in second.items() if k[-2:] != "ms"}


def test_policies_meet_the_same_people_and_the_same_draws():
    known, plan = study(), design(3, 4)
    always, never, fixed = (known.run(plan, name, 0) for name in ("always", "never", "fixed"))
    assert np.array_equal(always.effect, never.effect)
    assert np.array_equal(always.available, never.available)
    arrived = (fixed.delivered == always.delivered) & (fixed.action == always.action)
    assert np.array_equal(fixed.outcome[arrived], always.outcome[arrived])
    # Who is prompted with a fixed probability is prompted with every larger one too.
    assert (always.action >= fixed.action).all()


def test_what_happened_depends_on_the_seed_alone():
    known, plan = study(), design(2, 3)
    first, same, other = (known.run(plan, "ours", seed) for seed in (0, 0, 1))
    assert np.array_equal(first.probability, same.probability, equal_nan=True)
    assert not np.array_equal(first.probability, other.probability, equal_nan=True)


def test_the_key_holds_all_that_matters():
    plan, base = design(), study()
    keys = {
        base.key(plan, "ours"),
        base.key(plan, "fixed"),
        base.key(design(4), "ours"),
        base.key(design(3, 4, "slope=3"), "ours"),
        study(effect=0.0).key(plan, "ours"),
        study(drive="conduct").key(plan, "ours"),
        study(trouble=module.TROUBLES["none"]).key(plan, "ours"),
    }
    assert len(keys) == 7
    assert base.key(plan, "fixed") == base.key(design(3, 4, "slope=3"), "fixed")
    assert base.key(plan, "fixed") != base.key(design(3, 4, "clip=0.1:0.9"), "fixed")


@pytest.mark.parametrize("drive", ["quick", "conduct"])
def test_a_protocol_that_pools_is_refused_and_not_simulated_as_another(drive):
    with pytest.raises(DataError, match=r"not simulated.*simulate it with `pooling: participant`"):
        study(drive=drive, pooling="pooled")


def test_runs_are_kept_only_while_the_code_that_sets_their_numbers_stays():
    """This file draws the people and seeds; the page only shows what came of it."""
    trial = module.HOME / "trial"
    counts = {name: module._counts(trial / "simulator" / name, trial) for name in ("study.py", "run.py", "page.py")}
    assert counts == {"study.py": True, "run.py": True, "page.py": False}


def test_refusals_say_what_to_do():
    protocol, model = protocol_and_model()
    with pytest.raises(DataError, match="leave the protocol out"):
        Study(protocol, model, population_of("brushing"))
    with pytest.raises(DataError, match="driven by quick, conduct, service"):
        Study(protocol, model, population_of("heartsteps"), drive="slow")
    with pytest.raises(DataError, match="did you mean 'fixed'"):
        simulate(study(), [design()], [0], ["fixd"])
