"""Make the tables of the example study that ships with the package: ``python scripts/example_tables.py``.

They come from `simulate.mhealth` with a fixed seed, and are the same every time; nobody's data are in them.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from kerneltrail.data import User, simulate
from kerneltrail.data.example import NEW, NEXT, PILOT

FOLDER = Path(__file__).parents[1] / "src" / "kerneltrail" / "data" / "examples"
SEED = 7
COLUMNS = ("user", "time", "hour", "temperature", "log_steps30pre", "available", "send", "log_steps")
"""Columns of both tables of what was observed.

    user: who.
    time: of the decision point.
    hour: the same as hours of the day.
    temperature: °C; missing on some days.
    log_steps30pre: log(steps in the 30 minutes before + 0.5).
    available: whether the user could be prompted, 0 or 1.
    send: whether a prompt was sent, 0 or 1.
    log_steps: log(steps in the 30 minutes after + 0.5), the target; missing where the tracker was off.
"""
PLANNED = ("user", "time", "hour", "temperature", "log_steps30pre")
"""Columns of the table of the next days: what is known or planned beforehand. The temperature is a forecast, and the
steps before, which nobody knows yet, are what is usual for the user."""
SLOTS = ("08:30", "12:30", "15:30", "18:30", "21:00")
"""Planned times of the decision points of a day."""
WAVE = (-1.0, 2.5, 3.5, 2.0, 0.0)
"""How much warmer it is then than on average over the day, in °C."""
WARMER = {"new-4": (0.0, 12.0)}
"""How much warmer the next days are than the last one, in °C: for new-4 a heat that no pilot user met."""
MISSING_DAY, MISSING_OUTCOME = 0.03, 0.02
"""How often a day has no temperature, and a row no outcome."""


def example_tables(seed: int = SEED) -> dict[str, str]:
    """The text of the tables by file name.

    Eight pilot users and four new ones, 32 days of five decision points; and the next two days of the new ones and of
    somebody who has just begun.
    """
    simulation = simulate.mhealth(train=8, test=4, seed=seed)
    rng = np.random.default_rng([seed, 1])
    return {
        PILOT: _text("pilot", simulation.train.raw, rng),
        NEW: _text("new", simulation.test.raw, rng),
        NEXT: _next_text("new", simulation.test.raw),
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


def _next_text(label: str, users: tuple[User, ...]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PLANNED)
    for number, user in enumerate((*users, users[0]), start=1):
        name = f"{label}-{number}"
        last = np.asarray(user.order).astype("datetime64[D]")[-1]
        _, before, temperature = (user.X[:, user.covariates.index(each)] for each in user.covariates)
        usual = np.median(before)
        for day, warmer in enumerate(WARMER.get(name, (0.0, 0.0)), start=1):
            for slot, wave in zip(SLOTS, WAVE, strict=True):
                hours, minutes = map(int, slot.split(":"))
                warmth = temperature[-len(SLOTS) :].mean() + warmer + wave
                hour = hours + minutes / 60
                writer.writerow([name, f"{last + day} {slot}:00", f"{hour:.2f}", f"{warmth:.1f}", f"{usual:.3f}"])
    return text.getvalue()


if __name__ == "__main__":
    for _name, _content in example_tables().items():
        (FOLDER / _name).write_text(_content, encoding="utf-8")
