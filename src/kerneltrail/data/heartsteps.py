"""HeartSteps V1 (Klasnja et al. 2019): the official release's ``suggestions.csv``, or tables rebuilt from derivatives.

The outcome is log(steps in the 30 minutes after a decision point + 0.5). Kept are the decision points at which the user
was available and the steps of the 30 minutes before were recorded (which reproduces 19 of the 21 row counts in the
paper's table), less those whose outcome was not recorded, as the paper says.

The pool of the paper's experiment is here as well (method §3.1; paper, Appendix D.4).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kerneltrail.data.cohort import Cohort
from kerneltrail.data.columns import flags, labels, numbers
from kerneltrail.data.scaling import Scaling
from kerneltrail.data.table import Table, read_table
from kerneltrail.errors import DataError
from kerneltrail.kernels import Pool, Product, parse
from kerneltrail.names import nearest

PAPER_TRAIN = ("15", "17", "18", "24", "25", "27", "29", "33", "37", "3", "4", "5", "9", "14", "30")
"""The paper's training users, in its order. Inferred from its table of row counts, which names nobody."""
PAPER_TEST = ("22", "34", "19", "35", "26", "32")
"""The paper's test users, in its order; inferred likewise."""

COVARIATES = ("hour", "log_steps30pre", "steps30pre", "temperature", "weekday", "yday", "dom", "location")
"""Covariates of every source, known at practically every decision point: the default."""
REBUILT_ONLY = ("log_steps_yesterday", "dosage")
"""Further covariates of the rebuilt tables; missing on a user's first days."""
OFFICIAL_ONLY = ("activity", "precip_chance", "windspeed")
"""Further covariates of the official file."""

LEVELS = {"location": ("home", "work", "other", "unknown"), "activity": ("still", "active", "unknown")}
UNITS = {
    "hour": "hours",
    "log_steps30pre": "log steps",
    "steps30pre": "steps",
    "temperature": "°C",
    "weekday": "days from Monday",
    "yday": "days of the year",
    "dom": "days of the month",
    "precip_chance": "%",
    "log_steps_yesterday": "log steps",
    "log_steps30": "log steps",
}
PROBABILITY = 0.6
"""The trial's randomisation probability where the user was available."""

_NO_TEMPERATURE = -1024.0

FAVOURITE = "PER[steps30pre]"
PRELIMINARY = (
    "LIN[min]",
    "SE[steps30pre]",
    "SE[log_steps30pre]",  # the same covariate on the scale that the outcome has
    "PER[hour]",
    "SE[hour]",
    "SE[temperature]",
    "PER[temperature]",
    "SE[weather]",
    "PER[yday]",
    "SE[yday]",
    "SE[hour]*SE[weather]",
    "SE[hour]*SE[temperature]",
)
"""The paper's preliminary set, which it says came from users who are not among its training users."""

PRODUCTS = ("SE[hour]*SE[weather]", "SE[hour]*SE[temperature]")
"""The paper includes "a small selection of multiplicative kernels", and names these."""
OURS = ("SE[hour]*SE[log_steps30pre]",)
"""Added here: whether somebody who moves goes on moving depends on the time of day."""

PAPER_COVARIATES = ("hour", "min", "steps30pre", "temperature", "weather", "precip_chance", "activity", "yday", "dom")
"""Covariates that the paper names, of its 47."""


def load_heartsteps(
    path: str | os.PathLike[str],
    *,
    users: str | Sequence[str] = "paper",
    covariates: Sequence[str] | None = None,
    batch_size: int = 40,
    scaling: Scaling = "group",
) -> Cohort:
    """The HeartSteps V1 cohort in a file, recognised by its columns.

    Args:
        path: ``suggestions.csv`` of the official release, or a rebuilt table of decision points.
        users: ``paper`` for the paper's 21, ``all``, or names (the trial's user numbers).
        covariates: which ones, among `COVARIATES` (the default) and the source's further ones. Rows that lack one are
            dropped and counted in the report; an unrecognised activity or location is the level ``unknown``.
        batch_size: decision points per batch.
        scaling: as in `Cohort.from_table`; the paper's is ``group``, on the training users: see `paper_split`.

    Raises:
        DataError: if the file is neither, or lacks a column or user asked for.
    """
    table = read_table(path)
    if "user.index" in table:
        source = _OFFICIAL
    elif {"user", "decision_index", "jbsteps30pre", "jbsteps30"} <= set(table.names):
        source = _REBUILT
    else:
        raise DataError(
            f"{table.source} is not HeartSteps V1: it has neither the column 'user.index' of the official file nor "
            "'user', 'decision_index', 'jbsteps30pre' and 'jbsteps30' of the rebuilt ones"
        )
    names = COVARIATES if covariates is None else tuple(covariates)
    given = (*COVARIATES, *source.further)
    for name in names:
        if name not in given:
            raise DataError(f"{table.source} does not give the covariate {name!r}; {nearest(name, given, 'it gives')}")
    table, note = _decision_points(table, source, users)
    columns = {name: source.covariates[name](table) for name in names}
    cohort = Cohort.from_table(
        Table(
            {
                "user": labels(table, source.user, "user column"),
                "decision_index": table.column(source.order),
                **columns,
                "log_steps30": _log_steps(numbers(table, "jbsteps30").tolist()),
                "send": table.column("send"),
                "available": [1.0] * table.rows,
                "probability": [PROBABILITY] * table.rows,
            },
            table.source,
            table.lines,
        ),
        user="user",
        order="decision_index",
        target="log_steps30",
        covariates=names,
        batch_size=batch_size,
        action="send",
        availability="available",
        probability="probability",
        categorical={name: levels for name, levels in LEVELS.items() if name in names},
        missing={name: "unknown" if name in LEVELS else "drop" for name in (*names, "log_steps30", "send")},
        scaling=scaling,
        target_scaling="none",
        units={name: unit for name, unit in UNITS.items() if name in (*names, "log_steps30")},
    )
    return replace(cohort, report=replace(cohort.report, notes=(note,)))


def paper_split(cohort: Cohort) -> tuple[Cohort, Cohort]:
    """(training, test) users of the paper, in its order, scaled on the training users under ``group`` scaling."""
    return cohort.subset((*PAPER_TRAIN, *PAPER_TEST)).split(test=PAPER_TEST)


@dataclass(frozen=True)
class _Source:
    """Where a kind of file keeps things; each covariate is computed from the table of kept decision points."""

    user: str
    order: str
    further: tuple[str, ...]
    covariates: Mapping[str, Callable[[Table], list[Any]]]


def _decision_points(table: Table, source: _Source, users: str | Sequence[str]) -> tuple[Table, str]:
    """The rows of the users wanted, available and with steps before; and a note of what was left out."""
    names = labels(table, source.user, "user column")
    known = tuple(dict.fromkeys(names))
    if isinstance(users, str):
        if users not in ("paper", "all"):
            raise DataError(f"users must be 'paper', 'all' or a list of names, got {users!r}")
        wanted = known if users == "all" else (*PAPER_TRAIN, *PAPER_TEST)
    else:
        wanted = tuple(str(name) for name in users)
    for name in wanted:
        if name not in known:
            raise DataError(f"{table.source} has no user {name!r}; it has {', '.join(known)}")
    chosen = [name in wanted for name in names]
    available = (flags(table, "avail", "availability") == 1.0).tolist()
    before = [not math.isnan(steps) for steps in numbers(table, "jbsteps30pre").tolist()]
    usable = [all(three) for three in zip(chosen, available, before, strict=True)]
    away = sum(c and not a for c, a in zip(chosen, available, strict=True))
    blind = sum(c and a and not b for c, a, b in zip(chosen, available, before, strict=True))
    if not any(usable):
        raise DataError(f"{table.source} has no decision point with the user available and the steps before recorded")
    note = (
        f"of {sum(chosen)} decision points, {away} were not available and {blind} more had no record of the steps "
        "before; they are not among the rows read"
    )
    return table.where(usable), note


def _log_steps(steps: list[float]) -> list[float]:
    return [math.log(value + 0.5) for value in steps]  # the log of NaN is NaN: missing stays missing


def _column(name: str) -> Callable[[Table], list[Any]]:
    return lambda table: table.column(name)


def _log_column(name: str) -> Callable[[Table], list[Any]]:
    return lambda table: _log_steps(numbers(table, name).tolist())


def _clock(read: Callable[[datetime], float]) -> Callable[[Table], list[Any]]:
    """A covariate of the local time at the decision point, UTC plus the offset; missing where either is."""

    def covariate(table: Table) -> list[Any]:
        offsets = numbers(table, "sugg.gmtoff").tolist()
        values: list[Any] = []
        for row, (time, fallback) in enumerate(
            zip(table.column("sugg.decision.utime"), table.column("sugg.select.utime"), strict=True)
        ):
            utc = _utc(time if time is not None else fallback, table, row)
            known = utc is not None and not math.isnan(offsets[row])
            values.append(read(utc + timedelta(seconds=offsets[row])) if utc is not None and known else None)
        return values

    return covariate


def _utc(value: Any, table: Table, row: int) -> datetime | None:
    if value is None:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise DataError(
            f"time {value!r} in {table.place(row)} of {table.source} is not written like 2015-07-22 16:31:53"
        ) from None
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _temperature(table: Table) -> list[Any]:
    degrees = numbers(table, "dec.temperature").tolist()
    return [None if value == _NO_TEMPERATURE else value for value in degrees]


def _level(column: str, read: Callable[[str], str | None]) -> Callable[[Table], list[Any]]:
    """A categorical covariate; None is the level ``unknown``."""
    return lambda table: [read("" if v is None else str(v).strip().lower()) for v in table.column(column)]


def _location(text: str) -> str | None:
    return text if text in ("home", "work") else None if text in ("", "unknown") else "other"


def _activity(text: str) -> str | None:
    """The phone's recognised activity on the paper's levels; in a vehicle or tilting is neither still nor active."""
    if any(word in text for word in ("foot", "walk", "run", "bicycle")):
        return "active"
    return "still" if "still" in text else None


def _rebuilt_hour(table: Table) -> list[Any]:
    hours, minutes = numbers(table, "hour_local"), numbers(table, "minute_local")
    return (hours + minutes / 60.0).tolist()


_OFFICIAL = _Source(
    user="user.index",
    order="decision.index",
    further=OFFICIAL_ONLY,
    covariates={
        "hour": _clock(lambda time: time.hour + time.minute / 60.0),
        "weekday": _clock(lambda time: time.weekday()),
        "yday": _clock(lambda time: time.timetuple().tm_yday),
        "dom": _clock(lambda time: time.day),
        "log_steps30pre": _log_column("jbsteps30pre"),
        "steps30pre": _column("jbsteps30pre"),
        "temperature": _temperature,
        "location": _level("dec.location.category", _location),
        "activity": _level("recognized.activity", _activity),
        "precip_chance": _column("dec.precipitation.chance"),
        "windspeed": _column("dec.windspeed"),
    },
)
# The rebuilt tables fill a missing temperature from the user's own neighbouring decision points or other users' within
# 90 minutes, and say so in temperature_source; the filled one costs no rows.
_REBUILT = _Source(
    user="user",
    order="decision_index",
    further=REBUILT_ONLY,
    covariates={
        "hour": _rebuilt_hour,
        "weekday": _column("weekday_local"),
        "yday": _column("yday_local"),
        "dom": _column("dom_local"),
        "log_steps30pre": _log_column("jbsteps30pre"),
        "steps30pre": _column("jbsteps30pre"),
        "temperature": _column("temperature_filled"),
        "location": _column("location3"),
        "log_steps_yesterday": _column("log_steps_yesterday"),
        "dosage": _column("dosage"),
    },
)


def heartsteps_pool(covariates: Iterable[str], *, ours: bool = True) -> Pool:
    """Each atom on each covariate and a few products, with the paper's inclusion probabilities.

    0.1 for PER[steps30pre], 0.05 for the preliminary set, 0.03 for one factor, 0.01 otherwise. With `ours`, a product
    that the paper does not name is among them.

    >>> pool = heartsteps_pool(["hour", "steps30pre", "temperature"])
    >>> len(pool), dict(zip(map(str, pool), pool.probabilities))["PER[steps30pre]"]
    (10, 0.1)
    """
    names = tuple(dict.fromkeys(covariates))
    preliminary = {str(parse(text)) for text in PRELIMINARY}

    def probability(product: Product) -> float:
        text = str(product)
        if text == FAVOURITE:
            return 0.1
        if text in preliminary:
            return 0.05
        return 0.03 if product.order == 1 else 0.01

    pool = Pool.atoms(names, probability=probability)
    products = (*PRODUCTS, *OURS) if ours else PRODUCTS
    there = [text for text in products if set(parse(text).covariates) <= set(names)]
    return pool | Pool.of(*there, probability=probability) if there else pool


def absent_covariates(covariates: Iterable[str]) -> tuple[str, ...]:
    """Covariates that the paper names and that are not among these."""
    there = set(covariates)
    return tuple(name for name in PAPER_COVARIATES if name not in there)
