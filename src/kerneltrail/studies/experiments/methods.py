"""An evaluation of methods as the rows of results.json: ``metrics`` and ``paired``."""

from __future__ import annotations

from typing import Any

from kerneltrail.evaluation import Evaluation

SHOWN = ("rmse", "log_density", "seconds", "cpu_seconds")
"""Metrics that results.json and the page compare; the others are in the evaluation's own tables."""


def metric_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """A row per method and t: means over users, with 90 % intervals as ``rmse_low`` and the like.

    ``seconds``, by the clock, and ``cpu_seconds``, of the processor, are of the update that led to t, so there are none
    at t = 0; after the last batch nothing is predicted.
    """
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for average in evaluation.summary():
        key = (average.method, average.t)
        row = rows.setdefault(key, {"method": average.method, "t": average.t, "users": 0})
        if average.metric not in SHOWN:
            if average.metric == "right":
                row["right"] = average.mean
            continue
        row["users"] = max(row["users"], average.users)
        row[average.metric] = average.mean
        row[f"{average.metric}_low"], row[f"{average.metric}_high"] = average.low, average.high
    for row in rows.values():
        for metric in SHOWN:
            row.setdefault(metric, None)
    return list(rows.values())


def paired_rows(evaluation: Evaluation, first: str | None = None) -> list[dict[str, Any]]:
    """A row per other method, t and metric: `first` minus it, over the same users, with a 90 % interval."""
    return [
        {
            "method": each.first,
            "against": each.second,
            "t": each.t,
            "metric": each.metric,
            "mean": each.mean,
            "low": each.low,
            "high": each.high,
            "users": each.users,
        }
        for each in evaluation.paired(first)
        if each.metric in SHOWN
    ]
