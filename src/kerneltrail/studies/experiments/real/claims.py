"""What the paper says of HeartSteps, held against a run: every verdict is computed from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrail.data.heartsteps import PAPER_TEST, PAPER_TRAIN, absent_covariates
from kerneltrail.studies.experiments.agreement import Agreement
from kerneltrail.studies.experiments.real.compute import Findings
from kerneltrail.studies.experiments.real.design import TRAJECTORY

Row = Mapping[str, Any]
PAPER_ROWS = (110, 178, 147, 142, 167, 133, 68, 147, 175, 150, 152, 156, 173, 190, 150, 169, 171, 182, 179, 164, 137)
"""Rows of the paper's 15 training and 6 test users (Appendix D.1; the labels of its last two lines are exchanged)."""
BASELINES = ("cks", "shrinkage")
FLAT = 1.5
"""An update is constant where, by the interval, it takes at most so many times as long after the last batch as after
the first; it grows where the interval of that ratio lies above 1. An interval that holds the limit cannot say."""


def claims(findings: Findings, tables: Mapping[str, Sequence[Row]], *, paper: bool) -> tuple[Agreement, ...]:
    """The paper's claims; those about its own users only where they are the ones in the data."""
    agreements = _accuracy(tables["first_paired"])
    agreements += _accuracy(tables["paired"], "all splits") if findings.splits else []
    agreements += _time(tables["growth"])
    if paper:
        agreements += [_rows(tables["users"]), _covariates(findings), _kernels(tables["nodes"], "PER[steps30pre]")]
        agreements.append(_kernels(tables["nodes"], "SE[hour]"))
    return tuple(agreements)


def _accuracy(paired: Sequence[Row], of: str = "first split") -> list[Agreement]:
    agreements = []
    for other in BASELINES:
        for metric in ("rmse", "log_density"):
            rows = sorted((r for r in paired if r["against"] == other and r["metric"] == metric), key=lambda r: r["t"])
            rows = [row for row in rows if row["t"] > 0]
            if not rows:
                continue
            first, last = rows[0], rows[-1]
            name = metric.replace("_", " ").replace("rmse", "RMSE")
            where = "Results, figure of RMSE, likelihood and run time"
            agreements += [
                Agreement(
                    f"After one batch the trajectory model is better than {other} ({name})",
                    "noticeably better at the first time step; a figure without numbers",
                    _said(first),
                    first["verdict"] == "wins",
                    where,
                    of,
                    "accuracy",
                ),
                Agreement(
                    f"At the end it is as good as {other} ({name})",
                    "all algorithms eventually select kernels with similar predictive performance",
                    _said(last),
                    last["verdict"] in ("ties", "wins"),
                    where,
                    of,
                    "accuracy",
                ),
            ]
    return agreements


def _said(row: Row) -> str:
    return f"difference {row['mean']:+.3f}, 90 % interval {row['low']:+.3f} to {row['high']:+.3f}, t = {row['t']}"


def _time(growth: Sequence[Row]) -> list[Agreement]:
    agreements = []
    known = {row["method"]: row for row in growth}
    for method in (TRAJECTORY, *BASELINES):
        if method not in known:
            continue
        row, constant = known[method], method == TRAJECTORY
        agreements.append(
            Agreement(
                f"The time of an update {'does not grow' if constant else 'grows'} with t: {method}",
                "constant for the trajectory model, growing for the others",
                f"processor time {row['first_ms']:.1f} ms after the first batch, {row['last_ms']:.1f} ms after the "
                f"last; for the same user {row['ratio']:.2f} times, 90 % interval {row['low']:.2f} to "
                f"{row['high']:.2f}; largest at t = {row['peak_t']}, {row['peak_ms']:.1f} ms",
                _flat(row) if constant else _grows(row),
                "Results, figure of RMSE, likelihood and run time",
                topic="time",
            )
        )
    return agreements


def _flat(row: Row) -> bool | None:
    return True if row["high"] <= FLAT else False if row["low"] > FLAT else None


def _grows(row: Row) -> bool | None:
    return True if row["low"] > 1.0 else False if row["high"] <= 1.0 else None


def _rows(users: Sequence[Row]) -> Agreement:
    known = {row["user"]: row["rows"] for row in users}
    ours = [known.get(name, 0) for name in (*PAPER_TRAIN, *PAPER_TEST)]
    same = sum(a == b for a, b in zip(ours, PAPER_ROWS, strict=True))
    short = sum(PAPER_ROWS) - sum(ours)
    return Agreement(
        "Rows of each user",
        f"{sum(PAPER_ROWS)} rows of 21 users; rows without an outcome are said to be dropped",
        f"{sum(ours)} rows; {same} of 21 users have the paper's number, and {short} rows fewer are left in all once "
        "those without a recorded outcome are dropped",
        same == len(ours),
        "Appendix, overview of the data",
        topic="data",
    )


def _covariates(findings: Findings) -> Agreement:
    absent = absent_covariates(findings.cohort.covariates)
    return Agreement(
        "Covariates that the paper names are there",
        "47 features, among them hour, minute, steps before, temperature, weather, chance of rain, activity, day",
        f"{len(findings.cohort.covariates)} covariates; without {', '.join(absent) or 'none of the named'}",
        not absent,
        "Appendix, overview of the data and priors",
        topic="data",
    )


def _kernels(nodes: Sequence[Row], product: str) -> Agreement:
    holding = {row["model"] for row in nodes if product in row["composition"].split(" + ")}
    every = dict.fromkeys(row["model"] for row in nodes)
    return Agreement(
        f"{product} is among the graph's compositions",
        "a key composition",
        ", ".join(f"{label}: {'yes' if label in holding else 'no'}" for label in every),
        bool(holding),
        "Results, structure of kernel trajectories",
        topic="graph",
    )
