"""Make the tables of the example study that ships with the package: ``python scripts/example_tables.py``.

They come from `simulate.mhealth` with a fixed seed, and are the same every time; nobody's data are in them.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from kerneltrail.data import User, simulate
from kerneltrail.data.example import NEW, PILOT

FOLDER = Path(__file__).parents[1] / "src" / "kerneltrail" / "data" / "examples"
SEED = 7
COLUMNS = ("user", "time", "hour", "temperature", "log_steps30pre", "available", "send", "log_steps")
"""Columns of both tables.

    user: who.
    time: of the decision point.
    hour: the same as hours of the day.
    temperature: °C; missing on some days.
    log_steps30pre: log(steps in the 30 minutes before + 0.5).
    available: whether the user could be prompted, 0 or 1.
    send: whether a prompt was sent, 0 or 1.
    log_steps: log(steps in the 30 minutes after + 0.5), the target; missing where the tracker was off.
"""
MISSING_DAY, MISSING_OUTCOME = 0.03, 0.02
"""How often a day has no temperature, and a row no outcome."""


def example_tables(seed: int = SEED) -> dict[str, str]:
    """The text of both tables by file name: eight pilot users and four new ones, 32 days of five decision points."""
    simulation = simulate.mhealth(train=8, test=4, seed=seed)
    rng = np.random.default_rng([seed, 1])
    return {
        PILOT: _text("pilot", simulation.train.raw, rng),
        NEW: _text("new", simulation.test.raw, rng),
    }


def _text(label: str, users: tuple[User, ...], rng: np.random.Generator) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, user in enumerate(users, start=1):
        times = np.asarray(user.order).astype("datetime64[s]")
        days = times.astype("datetime64[D]")
        cold = {day for day in np.unique(days) if rng.random() < MISSING_DAY}
        off = rng.random(user.rows) < MISSING_OUTCOME
        hour, before, temperature = (user.X[:, user.covariates.index(name)] for name in user.covariates)
        assert user.action is not None
        assert user.availability is not None
        for row in range(user.rows):
            writer.writerow(
                [
                    f"{label}-{number}",
                    str(times[row]).replace("T", " "),
                    f"{hour[row]:.2f}",
                    "" if days[row] in cold else f"{temperature[row]:.1f}",
                    f"{before[row]:.3f}",
                    f"{user.availability[row]:.0f}",
                    f"{user.action[row]:.0f}",
                    "" if off[row] else f"{user.y[row]:.3f}",
                ]
            )
    return text.getvalue()


if __name__ == "__main__":
    for _name, _content in example_tables().items():
        (FOLDER / _name).write_text(_content, encoding="utf-8")
