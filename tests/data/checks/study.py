"""A clean table of a small study, for tests that spoil it in one place."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np

from kerneltrail.data import DataCheck, Finding, Schema, check_table
from kerneltrail.data.batching import Batching

USERS, ROWS = 8, 60
ROLES: dict[str, Any] = {
    "user": "who",
    "order": "when",
    "target": "mood",
    "covariates": ("hour", "temp", "pulse"),
    "batching": Batching(size=20),
    "action": "sent",
    "availability": "free",
    "probability": "chance",
}


def study(seed: int = 0) -> dict[str, list[Any]]:
    """Eight users with sixty rows each, four a day: nothing in it is odd."""
    rng = np.random.default_rng(seed)
    count = USERS * ROWS
    hour = np.tile(np.repeat([[8.0, 12.0, 16.0, 20.0]], ROWS // 4, axis=0).ravel(), USERS) + rng.uniform(
        -0.5, 0.5, count
    )
    day = np.tile(np.repeat(np.arange(ROWS // 4), 4), USERS)
    start = datetime(2024, 3, 4)
    free = rng.random(count) < 0.8
    return {
        "who": [f"user-{1 + i // ROWS}" for i in range(count)],
        "when": [str(start + timedelta(days=int(d), seconds=round(3600 * h))) for d, h in zip(day, hour, strict=True)],
        "hour": hour.tolist(),
        "temp": np.round(rng.normal(12.0, 5.0, count), 1).tolist(),
        "pulse": np.round(rng.normal(70.0, 9.0, count)).tolist(),
        "mood": rng.normal(3.0, 1.0, count).tolist(),
        "free": free.astype(float).tolist(),
        "sent": (free & (rng.random(count) < 0.6)).astype(float).tolist(),
        "chance": (0.6 * free).tolist(),
        "note": ["text"] * count,
    }


def look(rows: Any, *, candidates: tuple[str, ...] = (), **changes: Any) -> DataCheck:
    """A check of such a table."""
    return check_table(Schema(**{**ROLES, **changes}), rows, candidates=candidates)


def put(rows: dict[str, list[Any]], column: str, places: Any, value: Any) -> dict[str, list[Any]]:
    """The table with one value in some rows, counted from 1."""
    wanted = set(places)
    return {**rows, column: [value if i in wanted else old for i, old in enumerate(rows[column], 1)]}


def one(check: DataCheck, code: str) -> Finding:
    """The finding of a kind, of which there must be one."""
    (found,) = [finding for finding in check.findings if finding.code == code]
    return found
