"""Burden (method §15.3): the dose as a sum written out, and what an advantage must exceed."""

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.burden import Burden, dose_after, dose_of


def test_the_dose_is_the_sum_of_what_is_left_of_each():
    rng = np.random.default_rng(2)
    sent = (rng.random(80) < 0.4).tolist()
    for decay in (0.0, 0.5, 0.95):
        total = sum(decay ** (len(sent) - 1 - j) for j, each in enumerate(sent) if each)
        assert dose_of(sent, decay) == pytest.approx(total, rel=1e-12)
    assert dose_of([]) == 0.0
    assert dose_of(sent) == dose_after(dose_of(sent[:-1]), sent[-1])
    assert dose_of([True] * 2000) == pytest.approx(20.0)


def test_a_threshold_rises_with_the_dose():
    assert Burden().threshold(7.0) == 0.0
    assert Burden(delta=0.1, per_dose=0.02).threshold(3.0) == pytest.approx(0.16)


@pytest.mark.parametrize("bad", [{"delta": np.nan}, {"per_dose": -1.0}, {"decay": 1.0}, {"per_dose": np.inf}])
def test_a_burden_that_means_nothing_is_refused(bad):
    with pytest.raises(DataError, match="a burden needs"):
        Burden(**bad)
