"""What is folded from a participant's record, against sums over the whole record."""

import numpy as np
import pytest

from kerneltrail.trial.burden import dose_of
from kerneltrail.trial.past import Past

from .study import protocol


def test_the_fold_is_what_the_whole_record_says():
    agreed, rng, past = protocol(), np.random.default_rng(3), Past()
    slots, values, sent = [], [], []
    for _ in range(60):
        slots.append(str(rng.choice(["walk 09:00", "walk 17:30"])))
        values.append({name: float(rng.normal()) for name in ("hour", "steps") if rng.random() < 0.6})
        sent.append(bool(rng.random() < 0.4))
        past = past.after(agreed, slots[-1], values[-1], sent[-1])
    assert past.dose == pytest.approx(dose_of(sent))
    for name in ("hour", "steps"):
        assert past.seen[name] == [each[name] for each in values if name in each][-1]
        for slot in set(slots):
            here = [each[name] for each, where in zip(values, slots, strict=True) if name in each and where == slot]
            assert past.mean(slot, name) == pytest.approx(np.mean(here))
    assert past.mean("rest", "hour") is None


def test_the_dose_fades_as_the_protocol_says():
    agreed = protocol(burden={"decay": 0.5})
    past = Past().after(agreed, "rest", {}, True).after(agreed, "rest", {}, True)
    assert past.dose == 1.5


def test_whole_numbers_of_a_record_stand_in_as_numbers_with_a_point():
    past = Past().after(protocol(), "walk 09:00", {"hour": 9, "steps": 120}, sent=False)
    assert [type(past.seen["steps"]), type(past.mean("walk 09:00", "steps"))] == [float, float]
