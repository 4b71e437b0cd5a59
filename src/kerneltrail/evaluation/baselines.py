"""What simple rules predict of a user's batches: beside them one sees what a kernel adds."""

from __future__ import annotations

import numpy as np

from kerneltrail.data import User
from kerneltrail.kernels import Array

RUNNING = "running mean"
SHARED = "what users share"


def simple_predictions(user: User, shared: Array | None = None) -> tuple[dict[str, Array], ...]:
    """Means that simple rules predict for each batch of a user from the batches before, by name of the rule.

    The running mean is that of all the user's rows before the batch. What users share is `shared`, moved to the user's
    own level: by the mean of what it left over in the rows before. Of the first batch the rules say nothing.

    >>> user = User("ann", ("hour",), [[8.0], [12.0], [18.0]], [1.0, 3.0, 5.0], ends=(2, 3))
    >>> [{name: mean.tolist() for name, mean in batch.items()} for batch in simple_predictions(user)]
    [{}, {'running mean': [2.0]}]

    Args:
        user: in data units.
        shared: what the population is expected to have at each of the user's rows, in data units, (n,); or None.
    """
    predictions: list[dict[str, Array]] = []
    for start, end in zip((0, *user.ends), user.ends, strict=False):
        means: dict[str, Array] = {}
        if start:
            means[RUNNING] = np.full(end - start, user.y[:start].mean())
            if shared is not None:
                means[SHARED] = shared[start:end] + (user.y[:start] - shared[:start]).mean()
        predictions.append(means)
    return tuple(predictions)
