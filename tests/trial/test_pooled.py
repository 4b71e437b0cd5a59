"""Pooled learning: a model extended by the participants' rows, followed by everybody, and replayed from its file."""

from functools import cache

import pytest

from kerneltrail.errors import TrialError
from kerneltrail.gp import Reward
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model_file import fingerprint
from kerneltrail.trial.folder import make_folder
from kerneltrail.trial.pooled import PREFIX, joint
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.request import Request
from trajectory import tiny

from .running import BEGIN, Time, begun, enrol, incidents, outcome
from .study import DRAWS


@cache
def pilot():
    return tiny.cohort(3, action=True)


@cache
def model():
    reward = Reward((), advantage_variance=0.3, constant_variance=2.0)
    return fit(pilot(), pool=tiny.POOL, settings=tiny.settings(), reward=reward, workers=1)


@pytest.fixture
def opened(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    model().save(folder / "pilot.trail")
    stated = {"updates": {"by_hand": True}, "deadline_ms": 60000, "pooling": "pooled"}
    agreed = Protocol.from_model(model(), trial="walks", commitment=DRAWS.commitment, **stated)

    def open_trial(**options):
        return begun(tmp_path / "ledger.db", Time(), **{"models": folder, "protocol": agreed, **options})

    return open_trial


def decided(trial, person, index):
    (covariate,) = model().covariates
    context = {covariate: 0.1 + 0.08 * index}
    answer = trial.decide(Request(person, "decision", index, BEGIN, context=context))
    trial.outcomes([outcome(answer, 0.5 * index + answer.value["action"])])
    return answer


def test_the_model_is_extended_and_everybody_is_followed_on_it(opened, tmp_path):
    trial = opened(pilot=pilot())
    enrol(trial, "p01", "p02", "p03")
    for index in range(4):
        decided(trial, "p01", index)
        decided(trial, "p02", index)
    first = trial.update(reason="one")
    assert (first.state, first.rows) == ("done", 8), first.words
    versions = trial.policies()
    assert versions[1].model_id != versions[0].model_id == fingerprint(model())
    extended = trial._core.models.get(versions[1].model_id)
    assert extended.users == (*pilot().names, f"{PREFIX}p01", f"{PREFIX}p02")
    answer = decided(trial, "p01", 4)
    assert answer.value["model_id"] == versions[1].model_id
    decided(trial, "p03", 0)
    # Only one of them has something new, and all go on with the newest model.
    assert trial.update(reason="two").rows == 2
    newest = trial.policies()[-1].model_id
    assert decided(trial, "p02", 5).value["model_id"] == newest
    trial.close()
    again = opened(protocol=None)  # the files and the ledger are all that there is
    assert again.replay().exact == 11
    assert len(list((tmp_path / "models").iterdir())) == 3
    again.close()


def test_without_the_pilots_rows_it_is_refused_and_the_old_policy_serves(opened):
    trial = opened()
    enrol(trial, "p01")
    decided(trial, "p01", 0)
    done = trial.update(reason="one")
    assert done.state == "failed"
    assert "needs the rows that the model was learnt from" in done.words
    assert len(incidents(trial, "update-failed")) == 1
    assert decided(trial, "p01", 1).value["policy_version"] == "1"
    trial.close()


def test_rows_of_others_are_refused():
    with pytest.raises(TrialError, match="not those that the model was learnt from"):
        joint(tiny.cohort(5, action=True), model(), {})


def test_from_a_folder_with_the_pilots_table(tmp_path):
    model().save(tmp_path / "m.trail")
    study, _ = make_folder(tmp_path / "study", tmp_path / "m.trail", trial="walks")
    text = (study.path / "protocol.yaml").read_text()
    text = text.replace('pooling: "participant"', 'pooling: "pooled"').replace("deadline_ms: 500", "deadline_ms: 60000")
    (study.path / "protocol.yaml").write_text(text)
    trial = study.open(freeze=True, clock=Time())
    enrol(trial, "p01")
    decided(trial, "p01", 0)
    assert trial.update(reason="without the table").state == "failed"
    trial.close()
    pilot().write_csv(study.path / "pilot.csv")
    trial = study.open(clock=Time())
    decided(trial, "p01", 1)
    assert trial.update(reason="with it").rows == 2
    assert decided(trial, "p01", 2).value["policy_version"] == "2"
    assert trial.replay().exact == 3
    trial.close()
