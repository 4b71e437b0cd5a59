"""How an action enters a reward model, in words."""

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.gp import Reward
from kerneltrail.report.assignment_text import assignment_lines

TABLE = {
    "who": ["a"] * 6,
    "when": range(6),
    "hour": np.arange(6.0),
    "sent": [0, 1, 0, 1, 0, 1],
    "free": [0, 1, 1, 1, 1, 1],
    "chance": [0.0, 0.5, 0.5, 0.5, 0.75, 0.75],
    "steps": np.arange(6.0),
}
ROLES = {"user": "who", "order": "when", "target": "steps", "covariates": ["hour"], "batch_size": 3}


def lines(reward, **roles):
    return assignment_lines(Cohort.from_table(TABLE, **ROLES, **roles), reward)


def test_what_is_coded_and_why():
    assert lines(None) == []
    assert lines(Reward()) == []
    assert lines(None, action="sent")[0].startswith("sent is read but not used")
    (plain,) = lines(Reward(), action="sent")
    assert plain.endswith("(plain coding), as no column of its probability is given (--probability).")
    (asked,) = lines(Reward(coding="plain"), action="sent", probability="chance")
    assert asked.endswith("(plain coding), as the configuration asks.")
    (centred,) = lines(Reward(), action="sent", probability="chance", availability="free")
    assert "What sent adds is learnt from sent less its probability (centred coding)" in centred
    # The average over the five rows at which somebody could act, not over all six.
    assert centred.endswith("Typical probability: 0.60. Rows at which nobody could act (1) inform the baseline only.")


def test_rows_at_which_nobody_could_act_may_have_been_dropped():
    roles = {"action": "sent", "probability": "chance", "availability": "free", "available_only": True}
    assert lines(Reward(), **roles)[0].endswith(" Rows at which nobody could act were dropped (1 row).")
