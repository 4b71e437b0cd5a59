"""Forward filtering: how probable each node is after a batch, from how probable it was before and the evidence."""

from __future__ import annotations

import numpy as np

from kerneltrail.kernels import Array
from kerneltrail.trajectory.user_state import UserState


def filtered(state: UserState, transitions: Array, log_evidence: Array) -> tuple[Array, Array]:
    """Probabilities of the nodes before and after the newest batch's evidence (method (28), (29)).

    The cumulative sets overlap, so with memory "newest" only the newest one speaks, and what went before enters by the
    graph alone.

    Args:
        state: of the user before the batch.
        transitions: of the root, and then of each node.
        log_evidence: of each node, of all rows with those of the batch.
    """
    prior = state.prior
    if state.batches:
        prior = (prior if state.memory == "newest" else state.weights) @ transitions[1:]
    with np.errstate(divide="ignore"):
        total = np.log(prior) + log_evidence
    weights = np.exp(total - total.max())
    return prior, weights / weights.sum()
