"""A small table of two people with every role filled, and reading it."""

from typing import Any

from kerneltrail.data import Cohort

ROWS: dict[str, list[Any]] = {
    "who": ["ann", "bob", "ann", "bob", "ann", "bob", "ann"],
    "when": [3, 1, 1, 2, 2, 3, 4],
    "hour": [8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 18.0],
    "activity": ["still", "active", "still", "unknown", "active", "still", "still"],
    "steps": [3.0, 5.0, 1.0, 6.0, 2.0, 7.0, 4.0],
    "sent": [1, 0, 0, 1, 1, 0, 1],
    "free": [True, True, False, True, True, True, True],
    "chance": [0.6, 0.6, 0.0, 0.6, 0.6, 0.6, 0.6],
}
ROLES: dict[str, Any] = {
    "user": "who",
    "order": "when",
    "target": "steps",
    "covariates": ["hour", "activity"],
    "categorical": {"activity": ["still", "active", "unknown"]},
    "action": "sent",
    "availability": "free",
    "probability": "chance",
    "batch_size": 2,
}


def read(rows: Any = ROWS, **changes: Any) -> Cohort:
    return Cohort.from_table(rows, **{**ROLES, "target_scaling": "none", **changes})


def with_value(column: str, row: int, value: Any) -> dict[str, list[Any]]:
    return {**ROWS, column: [value if i == row else old for i, old in enumerate(ROWS[column])]}
