"""What was found on real users, as tidy tables: every number that the page shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kerneltrail.evaluation import Evaluation
from kerneltrail.evaluation.intervals import over_users
from kerneltrail.evaluation.verdicts import verdict
from kerneltrail.kernels import Hyperparameters
from kerneltrail.report.description import describe
from kerneltrail.report.graph_structure import key_masks
from kerneltrail.studies.experiments.methods import metric_rows, paired_rows
from kerneltrail.studies.experiments.real.compute import Findings
from kerneltrail.studies.experiments.real.design import TRAJECTORY
from kerneltrail.trajectory.graph import Node
from kerneltrail.trajectory.model import TrajectoryModel

Row = Mapping[str, Any]


def tables(findings: Findings) -> dict[str, list[dict[str, Any]]]:
    """All tables by name."""
    return {
        "users": users(findings),
        "metrics": metric_rows(findings.most),
        "paired": judged(paired_rows(findings.most, TRAJECTORY)),
        "first_metrics": metric_rows(findings.first),
        "first_paired": judged(paired_rows(findings.first, TRAJECTORY)),
        "growth": growth(findings.most),
        "compositions": compositions(findings.first),
        "nodes": [row for label, model in findings.models.items() for row in nodes(label, model)],
        "learning": [{"stage": stage, "seconds": seconds} for stage, seconds in findings.learning.items()],
    }


def users(findings: Findings) -> list[dict[str, Any]]:
    """Each user's rows and batches, and on which side of the first split."""
    return [
        {"user": user.name, "side": side, "rows": user.rows, "batches": user.batches}
        for side, cohort in (("training", findings.train), ("test", findings.test))
        for user in cohort.users
    ]


def judged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Paired differences with a word: it wins or loses where the interval excludes 0, else it ties."""
    return [{**row, "verdict": verdict(row["metric"], row["low"], row["high"])} for row in rows]


def growth(evaluation: Evaluation) -> list[dict[str, Any]]:
    """How the processor time of an update grows from a user's first batch to the last, by method.

    The ratio of the two is taken within each user and averaged as a logarithm, so that users with few batches and those
    with many count alike; milliseconds are means over the same users. ``peak_ms`` is the largest mean of any t.
    """
    rows = []
    for method in evaluation.methods:
        spent: dict[tuple[str, str], dict[int, float]] = {}
        for step in evaluation.steps:
            if step.method == method and step.cpu_seconds > 0:  # none at t = 0
                spent.setdefault((step.run, step.person), {})[step.t] = step.cpu_seconds
        pairs = {who: (cpu[min(cpu)], cpu[max(cpu)]) for who, cpu in spent.items() if len(cpu) > 1}
        if not pairs:
            continue
        logs = [math.log(last / first) for first, last in pairs.values()]
        ratio = over_users(logs, [person for _, person in pairs])
        means = {
            t: _mean([cpu[t] for cpu in spent.values() if t in cpu]) for t in {t for cpu in spent.values() for t in cpu}
        }
        peak = max(means, key=lambda t: means[t])
        rows.append(
            {
                "method": method,
                "users": ratio.users,
                "first_ms": 1e3 * _mean([first for first, _ in pairs.values()]),
                "last_ms": 1e3 * _mean([last for _, last in pairs.values()]),
                "ratio": math.exp(ratio.mean),
                "low": math.exp(ratio.low),
                "high": math.exp(ratio.high),
                "peak_t": peak,
                "peak_ms": 1e3 * means[peak],
            }
        )
    return rows


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def compositions(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The kernels of one test user after every batch under each method (the paper's last table)."""
    run = evaluation.runs[0]
    steps = [step for step in evaluation.steps if step.run == run and step.t > 0]
    if not steps:
        return []
    longest = max(steps, key=lambda step: step.t).user
    user_steps = [step for step in steps if step.user == longest]
    return [
        {"user": longest, "t": step.t, "rows": step.rows, "method": step.method, "composition": step.composition}
        for step in user_steps
    ]


def nodes(label: str, model: TrajectoryModel) -> list[dict[str, Any]]:
    """The nodes of a graph, with how often and by whom they are used, and their words in data units."""
    key = set(key_masks(model.paths))
    return [
        {
            "model": label,
            "composition": node.composition.text,
            "users": len(node.users),
            "customers": len(node.thetas),
            "key": node.mask in key,
            "words": " ".join(sentence.text for sentence in words(model, node)),
        }
        for node in model.nodes
    ]


def words(model: TrajectoryModel, node: Node) -> Any:
    """A node in words, at the centre of its group."""
    schema = model.schema
    fitted = Hyperparameters(node.composition, tuple(node.group.mean))
    return describe(fitted, target=schema.target, units=schema.units, scale=schema.scaler, levels=schema.levels)
