"""Traces for ArviZ; a stand-in of each of its two interfaces, and the real one where it is installed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.adapters.arviz import to_arviz
from kerneltrail.errors import TrajectoryError
from trajectory.small import small_model


@pytest.mark.parametrize(
    "from_dict",
    [lambda *, posterior: posterior, lambda groups: groups["posterior"]],
    ids=["before 1.0", "from 1.0 on"],
)
def test_traces_without_warm_up(monkeypatch, from_dict):
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
    model = small_model()
    kept = to_arviz(model)
    assert np.array_equal(kept["log_joint"], model.diagnostics.log_joint[:, 3:])
    assert np.array_equal(to_arviz(model, warmup=True)["edges"], model.diagnostics.traces["edges"])


def test_its_absence_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(TrajectoryError, match="ArviZ is not installed"):
        to_arviz(small_model())


def test_the_real_library_reads_them():
    arviz = pytest.importorskip("arviz", reason="ArviZ is an optional extra")
    data = to_arviz(small_model(), warmup=True)
    assert data["posterior"]["log_joint"].shape == (2, 6)
    assert arviz is not None
