"""Rows as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kerneltrail.studies.bench.rows import Row

TITLES = {
    "evidence": "Log evidence for one hyperparameter vector, beside LAPACK's dpotrf alone",
    "map": "MAP hyperparameters of a user, from {starts} starts; found: true period within 5%",
    "update": "One batch more, after n rows",
    "train": "Learning a trajectory model (size: users × batches); authors' sweep of 'distinct': 339 s",
    "select": "One selection step of a new user, n rows seen in the end; {nodes} nodes",
    "methods": "One update of every method, by rows seen in the end: median over {samples} users",
    "nested": "Log evidences beside nested sampling: errors in nats",
    "recovery": "New users followed to their true kernel; log density and error of each batch before it is seen",
}


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table for each benchmark among the rows."""
    for bench, group in groupby(rows, key=lambda found: found["bench"]):
        found = list(group)
        yield _MAKERS[bench](TITLES[bench].format(**found[0]), found)


def _evidence(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "case", "n", "batches", "method", "seconds", "dpotrf", "ratio", "rank")
    previous = None
    for found in rows:
        if previous not in (None, found["case"]):
            table.add_section()
        previous = found["case"]
        table.add_row(
            found["case"],
            f"{found['n']:,}",
            str(found["batches"]),
            found["method"],
            duration(found["seconds"]),
            duration(found["dpotrf_seconds"]),
            ratio(found["ratio_to_dpotrf"]),
            str(found.get("rank", "")),
            style="bold" if found["method"] == "auto" else "",
        )
    return table


def _map(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "case", "n", "batches", "users", "method", "median", "slowest", "found")
    for found in rows:
        table.add_row(
            found["case"],
            f"{found['n']:,}",
            str(found["batches"]),
            str(found["samples"]),
            found["method"],
            duration(found["seconds"]),
            duration(found["slowest"]),
            f"{found['found']:.0%}" if "found" in found else "",
        )
    return table


def _update(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "case", "n", "batch", "method", "seconds", "ratio to first n")
    for found in rows:
        table.add_row(
            found["case"],
            f"{found['n']:,}",
            str(found["batch"]),
            found["method"],
            duration(found["seconds"]),
            f"{found['ratio_to_first']:.2f}",
        )
    return table


def _methods(title: str, rows: Sequence[Row]) -> Table:
    """Methods down, batches across."""
    times = list(dict.fromkeys((found["t"], found["n"]) for found in rows))
    table = _table(title, "method", *(f"{n} rows" for _, n in times))
    for method, group in groupby(rows, key=lambda found: found["method"]):
        table.add_row(method, *(duration(found["seconds"]) for found in group))
    return table


def _nested(title: str, rows: Sequence[Row]) -> Table:
    from kerneltrail.studies.bench.nested import summary

    table = _table(title, "method", "problems", "mean", "largest", "bias", "tau", "same best", "seconds")
    for found in summary(rows):
        errors = (f"{found[name]:.2f}" for name in ("mean_error", "largest_error", "bias", "tau"))
        table.add_row(
            found["method"],
            str(found["problems"]),
            *errors,
            f"{found['same_best']:.0%}",
            duration(found["seconds"]),
        )
    return table


def _recovery(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "case", "priors", "method", "n", "right", "log density", "rmse", "products", "changed")
    previous = None
    for found in rows:
        key = (found["case"], found["priors"], found["method"])
        if previous not in (None, key):
            table.add_section()
        previous = key
        measures = (f"{found[name]:.2f}" for name in ("log_density", "rmse", "products", "changed"))
        table.add_row(*key, f"{found['n']:,}", f"{found['right']:.0%}", *measures)
    return table


def _train(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "case", "size", "method", "fits", "chains", "sweep", "ESS/s", "R-hat")
    for found in rows:
        size = found.get("ess_per_second")
        table.add_row(
            found["case"],
            f"{found['samples']}×{found['batches']}",
            found["method"],
            duration(found["seconds_fits"]),
            duration(found["seconds_chains"]),
            duration(found["seconds_per_sweep"]),
            "" if size is None else f"{size:.0f}",
            f"{found['rhat']:.3f}" if "rhat" in found else "",
        )
    return table


_MAKERS = {
    "evidence": _evidence,
    "map": _map,
    "methods": _methods,
    "nested": _nested,
    "recovery": _recovery,
    "update": _update,
    "train": _train,
    "select": _update,
}
_WORDS = ("case", "method")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=True)
    return table


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(4.23e-5), duration(0.0123), duration(2.0)
    ('42.3 µs', '12.3 ms', '2.00 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms"), (1.0, "s")):
        value = seconds * factor
        if value < 999.5 or unit == "s":
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError  # the last unit takes every value


def ratio(value: float) -> str:
    """Two decimals, or more digits where it is small."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"
