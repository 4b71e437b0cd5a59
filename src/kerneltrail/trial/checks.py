"""Checks of a participant's new state before it decides: numbers that are numbers, and how far probabilities move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import KerneltrailError
from kerneltrail.kernels import Array
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.answer import AdvantageParts
from kerneltrail.trial.decision import Policy
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Check
from kerneltrail.trial.rows import Row, arrays

CONTEXTS = 10
"""Newest contexts of a participant at which a new policy is tried."""
BOUND = 50.0
"""Noise standard deviations beyond which no advantage is believed."""
LEVEL = 0.9
"""Of the predictive interval by which calibration is counted."""


def checked(
    protocol: Protocol, policy: Policy, participant: str, new: NewUser, old: NewUser, contexts: Array
) -> list[Check]:
    """What is found of a new state at a participant's newest contexts: (m, d), in the model's order of covariates."""
    checks = believed(protocol, participant, new, contexts)
    if all(check.passed for check in checks):
        shift = shift_of(protocol, policy, new, old, contexts)
        most = protocol.updates.largest_shift
        words = f"the probability of {participant} moves by {shift:.2f} at most, and {most:.2f} is usual"
        checks.append(Check("shift", shift <= most, words, participant))
    return checks


def believed(protocol: Protocol, participant: str, new: NewUser, contexts: Array) -> list[Check]:
    """The checks that a new state must pass to decide: finite numbers, variances that are none, and no giant effect."""
    name = participant
    try:
        weights = np.array(list(new.probabilities.values()))
        parts = new.advantage(contexts)
        nothing = Assignment(np.zeros(len(contexts)), np.full(len(contexts), 0.5))
        prediction = new.predict(contexts, action=nothing)
    except (KerneltrailError, ArithmeticError, ValueError, np.linalg.LinAlgError) as problem:
        return [Check("finite", False, f"the advantage of {name} cannot be computed: {problem}", name)]
    numbers = (weights, parts.weights, parts.means, parts.variances, prediction.mean, prediction.variance)
    if not all(np.isfinite(each).all() for each in numbers):
        return [Check("finite", False, f"a number of {name} is not finite", name)]
    checks = [Check("finite", True, "all numbers are finite", name)]
    least = min(float(parts.variances.min()), float(prediction.variance.min()))
    checks.append(Check("positive", least >= 0.0, f"the least variance is {least:g}", name))
    if least < 0.0:
        return checks
    largest, bound = float(np.abs(parts.mean).max()), BOUND * protocol.allocation.noise_sd
    words = f"the largest advantage is {largest:.3g}, and {bound:.3g} at most is believed"
    checks.append(Check("bounded", largest <= bound, words, name))
    return checks


def shift_of(protocol: Protocol, policy: Policy, new: NewUser, old: NewUser, contexts: Array) -> float:
    """By how much the probability of acting moves at most, in some contexts."""
    moved = 0.0
    for i in range(len(contexts)):
        row = contexts[i : i + 1]
        after, before = (
            protocol.allocate(policy.allocation, AdvantageParts.of(user.advantage(row)).mixture).probability
            for user in (new, old)
        )
        moved = max(moved, abs(after - before))
    return moved


def inside(user: NewUser, rows: Sequence[Row]) -> int:
    """How many outcomes lie in the interval that was predicted for them, which should hold nine of ten."""
    X, y, assignment = arrays(rows, user.model.covariates)
    low, high = user.predict(X, action=assignment).interval(LEVEL)
    return int(((low <= y) & (y <= high)).sum())
