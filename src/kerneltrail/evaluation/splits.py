"""Users drawn for testing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kerneltrail.errors import DataError


def splits(names: Sequence[str], test: int, count: int, *, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """Test users of so many random splits; each is drawn anew, so users may come again."""
    if not 0 < test < len(names):
        raise DataError(f"a split of {len(names)} users needs 1 to {len(names) - 1} test users, got {test}")
    rng = np.random.default_rng(seed)
    for _ in range(count):
        chosen = set(rng.permutation(len(names))[:test].tolist())
        yield tuple(name for i, name in enumerate(names) if i in chosen)
