"""Versions of the policy: what each goes on from."""

import pytest

from kerneltrail.errors import UnknownName
from kerneltrail.trial.versions import Versions

from .running import begun, enrol, walked


def test_a_chain_leads_from_the_first_version_to_the_named_one_past_what_was_rolled_back(tmp_path):
    trial = begun(tmp_path / "chain.db", warm=False)
    enrol(trial, "p01")
    walked(trial, "p01", range(2))
    trial.update(reason="one")
    walked(trial, "p01", range(2, 4))
    trial.update(reason="two")
    trial.activate("2", reason="back", expected="3", by="ann")
    walked(trial, "p01", range(4, 6))
    trial.update(reason="three")
    versions = Versions(trial.snapshot())
    assert [each.version for each in versions.chain("3")] == ["1", "2", "3"]
    assert [each.version for each in versions.chain("4")] == ["1", "2", "4"]
    assert [each.version for each in versions.chain("1")] == ["1"]
    with pytest.raises(UnknownName):
        versions.chain("9")
    trial.close()
