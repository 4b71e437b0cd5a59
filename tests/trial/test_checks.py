"""Checks of a new state: how far probabilities move is what decisions would say."""

import numpy as np
import pytest

from kerneltrail.trial.checks import shift_of

from .study import followed, model, policy, protocol


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_shift_is_that_of_the_probabilities_of_decisions(better):
    agreed, contexts = protocol(better=better), np.array([[9.0, 120.0], [20.0, 300.0]])
    new, old = followed(), model().new_user("p01")
    moved = []
    for row in contexts:
        here = dict(zip(("hour", "steps"), row.tolist(), strict=True))
        chances = [user.decide(here, better=better).probability for user in (new, old)]
        moved.append(abs(chances[0] - chances[1]))
    assert shift_of(agreed, policy(agreed), new, old, contexts) == pytest.approx(max(moved), abs=1e-12)
    assert max(moved) > 0.0
