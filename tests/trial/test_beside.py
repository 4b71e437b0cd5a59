"""Updates in a process of their own: it leaves states in files, and a policy in the ledger or the old one serving."""

import multiprocessing
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest

from kerneltrail.errors import UpdateRunning
from kerneltrail.trial import apart, beside, states
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.folder import BACKUPS, Folder, make_folder
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.ledger.copies import restore

from .running import asked, begun, enrol, incidents, models, walked
from .study import DRAWS, centred_model


def until(answered, seconds=120.0):
    end = monotonic() + seconds
    while not (answer := answered()):
        assert monotonic() < end, "it took too long"
        sleep(0.02)
    return answer


def ended(trial, id):
    """An update when it has ended, and what is done after it, too."""
    until(lambda: trial.updated(id).state != "running")
    for thread in trial._core.beside:
        thread.join()
    return trial.updated(id)


@pytest.fixture
def folder(tmp_path, location):
    """A trial's folder with somebody who has answered; it lies on either database."""
    centred_model().save(tmp_path / "pilot.trail")
    made, _ = make_folder(tmp_path / "study", tmp_path / "pilot.trail", trial="walks")
    file = made.path / "protocol.yaml"
    file.write_text(
        file.read_text().replace('daily: "03:00"', "every: 1000").replace("deadline_ms: 500", "deadline_ms: 60000")
    )
    return Folder(made.path, str(location))


@pytest.fixture
def served(folder):
    trial = folder.open(freeze=True)
    enrol(trial, "p01", "p02")
    walked_here(trial)
    yield trial
    trial.close()


def walked_here(trial, indices=range(4)):
    for index in indices:
        request = asked("p01", index, kind="decision")
        answer = trial.decide(request)
        item = {"client_id": f"o{index}", "participant": "p01", "decision": answer.value["decision_id"]}
        trial.outcomes([{**item, "value": 1.0 + index, "observed_at": "2026-03-01T12:00:00+00:00"}])


def test_the_server_computes_nothing_and_reads_what_the_process_has_left(served, folder, monkeypatch):
    computed = []
    monkeypatch.setattr(states, "followed", lambda *given: computed.append(given))
    done = ended(served, served.start_update(reason="test"))
    assert (done.state, done.version, done.rows) == ("done", "2", 4)
    with served.reading() as state:
        request = state.updates["1"].request
    assert request["process"] == os.getpid()  # whoever sees to it that the update ends, or is recorded as killed
    after = served.decide(asked("p01", 8, kind="decision"))
    assert (after.value["policy_version"], after.value["rung"]) == ("2", "policy")
    assert after.value["composition"] is not None
    assert not computed
    monkeypatch.undo()
    assert served.replay().exact == 5
    assert served.verify().sound


def test_the_copy_is_of_the_ledger_before_the_update(served, folder, tmp_path):
    walked_here(served, range(4, 6))
    head = served._core.ledger.head()
    assert ended(served, served.start_update(reason="test")).state == "done"
    (copy,) = (folder.path / BACKUPS).iterdir()
    assert "before-update-1" in copy.name
    (verdict,) = restore(copy, tmp_path / "restored.db")
    assert verdict.head == head
    drill = Folder(folder.path, str(tmp_path / "restored.db")).open()
    with drill.reading() as state:
        assert not state.updates
    assert drill.update(reason="again").version == "2"
    assert drill.verify().sound
    drill.close()


@dataclass(frozen=True)
class Stuck:
    """In the place of a trial: it says that it is at work, and does not end."""

    mark: Path

    def complete(self, id, aside=None):
        self.mark.write_text(id)
        sleep(60)

    def warm(self):
        return 0

    def close(self):
        pass


def stuck(mark):
    return Stuck(mark)


LOADED = os.nice(0)
"""The priority of the thread that loaded this module; in another process, of the one that loads it there."""


@dataclass(frozen=True)
class Noting:
    """In the place of a trial: it notes at which priority (by how much it is lower) each part is done."""

    file: Path

    def note(self, what, by):
        with self.file.open("a") as file:
            file.write(f"{what} {by}\n")

    def complete(self, id, aside):
        aside(lambda: self.note("computes", os.nice(0)))
        self.note("records", os.nice(0))

    def warm(self):
        self.note("warms", os.nice(0))

    def close(self):
        pass


def noting(file):
    noting = Noting(file)
    noting.note("loads", LOADED)
    noting.note("opens", os.nice(0))
    return noting


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has the priority of its process")
def test_only_what_is_recorded_is_done_at_full_priority(tmp_path):
    assert beside._in_process(partial(noting, tmp_path / "update"), "1") == 0
    assert beside._in_process(partial(noting, tmp_path / "warm"), None) == 0
    here, low = os.nice(0), min(19, os.nice(0) + apart.NICE)
    noted = (tmp_path / "update").read_text().split("\n")
    assert noted == [f"loads {low}", f"opens {low}", f"computes {low}", f"records {here}", ""]
    assert (tmp_path / "warm").read_text().split("\n") == [f"loads {low}", f"opens {low}", f"warms {low}", ""]


def test_a_process_begins_with_next_to_nothing_of_the_package():
    code = (
        "import sys, kerneltrail.trial.apart; print(*(name for name in sys.modules if name.startswith('kerneltrail')))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert set(shown.split()) == {"kerneltrail", "kerneltrail.trial", "kerneltrail.trial.apart"}


def broken():
    raise RuntimeError("no such trial")


def opened(location, again):
    return Trial.open(Ledger(location, "walks", patience=30), key=DRAWS.key, models=models(), again=again)


def test_a_process_that_is_killed_leaves_the_old_policy_and_is_recorded(location, tmp_path):
    first = begun(location)
    enrol(first, "p01")
    walked(first)
    trial = opened(location, partial(stuck, tmp_path / "mark"))
    id = trial.start_update(reason="to be killed")
    until((tmp_path / "mark").exists)
    with pytest.raises(UpdateRunning):
        trial.start_update(reason="beside it")
    assert trial.decide(asked(index=8)).value["policy_version"] == "1"
    (process,) = [each for each in multiprocessing.active_children() if each.name == f"update {id}"]
    process.kill()
    assert ended(trial, id).state == "killed"
    assert len(incidents(trial, "update-killed")) == 1
    assert trial.decide(asked(index=9)).value["policy_version"] == "1"
    assert trial.update(reason="again").version == "2"
    assert trial.decide(asked(index=10)).value["policy_version"] == "2"
    assert trial.replay().same
    trial.close()
    first.close()


def test_a_process_that_cannot_open_the_trial_is_recorded_as_failed(location):
    first = begun(location)
    enrol(first, "p01")
    walked(first)
    trial = opened(location, broken)
    done = ended(trial, trial.start_update(reason="test"))
    assert (done.state, done.version) == ("failed", None)
    assert "ended with the code 1" in done.words
    assert len(incidents(trial, "update-failed")) == 1
    assert trial.decide(asked(index=9)).value["policy_version"] == "1"
    trial.close()
    first.close()


def test_what_fails_in_the_process_is_recorded_by_it(served, folder):
    (folder.path / BACKUPS).write_text("no folder")
    done = ended(served, served.start_update(reason="test"))
    assert done.state == "failed"
    assert "the ledger was not copied" in done.words
    assert [each.version for each in served.policies()] == ["1"]


def test_states_that_no_file_has_are_computed_elsewhere_after_a_restart(served, folder, monkeypatch):
    assert served.update(reason="test").state == "done"
    for path in (folder.path / "states").glob("*/*.user"):
        path.unlink()
    computed = []
    monkeypatch.setattr(states, "followed", lambda *given: computed.append(given))
    again = folder.open()
    assert again.warm() == 1
    assert not computed
    assert again._core.states._users.keys() == {"p01"}
    again.close()
