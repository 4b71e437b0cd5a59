"""What was found, as tidy tables and as the values of results.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

from kerneltrail.evaluation import Interval, Step
from kerneltrail.studies.experiments.methods import metric_rows, paired_rows
from kerneltrail.studies.experiments.simulated.compute import Findings
from kerneltrail.studies.experiments.simulated.design import PRESETS
from kerneltrail.studies.preset_comparison import of_batch
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.sampler.urn import ROOT, Counts

Row = dict[str, Any]
NORMAL_90 = 1.644854
"""Standard deviations on either side that hold 90 % of a Normal."""


def tables(findings: Findings) -> dict[str, list[Row]]:
    """Tidy tables by name."""
    by_name: dict[str, list[Row]] = {
        "log_likelihood": [each.to_json() for each in findings.likelihoods],
        "fits": [row for each in findings.examples for row in _fit_rows(each)],
        "followed": _followed_rows(findings),
    }
    if findings.evaluation is not None:
        by_name["metrics"] = metric_rows(findings.evaluation)
        by_name["paired"] = paired_rows(findings.evaluation, "trajectory")
        by_name["methods"] = [step.to_json() for step in findings.evaluation.steps]
    for preset in PRESETS:
        model = findings.models[preset]
        selected = [findings.followed.at(preset, t) for t in range(1, len(findings.rows) + 1)]
        of_preset = {
            "recovery": _recovery(findings, preset),
            "selected": _selected(selected),
            "confusion": _confusion(findings, selected[-1]),
            "training": _training(findings, model),
            "edges": _edges(model, model.structures[0]),
            "alternatives": _alternatives(model),
            "chains": [_chains(model)],
        }
        for name, rows in of_preset.items():
            by_name.setdefault(name, []).extend({"preset": preset, **row} for row in rows)
    return by_name


def results(findings: Findings, table_rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The keys of results.json that people look for first; those at the top are of the default preset."""
    presets = {preset: _summary(preset, table_rows) for preset in PRESETS}
    order = {name: _by_rows(findings, name) for name in ("log_likelihood", "log_laplace")}
    first = presets[PRESETS[0]]
    return {
        "recovery": first["recovery"],
        "confusion": first["confusion"],
        "log_likelihood": order["log_likelihood"],
        "log_evidence": order["log_laplace"],
        "presets": presets,
        "metrics": list(table_rows.get("metrics", ())),
        "paired": list(table_rows.get("paired", ())),
        "failures": [] if findings.evaluation is None else [each.to_json() for each in findings.evaluation.failures],
        "differences": [
            {"measure": measure, "first": PRESETS[0], "second": PRESETS[1], "rows": rows, **interval.to_json()}
            for measure in ("right", "log_density", "rmse")
            for rows, interval in zip(findings.rows, _differences(findings, measure), strict=True)
        ],
        "examples": [dict(each) for each in findings.examples],
    }


def _summary(preset: str, table_rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    rows = {name: [row for row in table_rows[name] if row["preset"] == preset] for name in ("recovery", "confusion")}
    confusion: dict[str, dict[str, int]] = {}
    for row in rows["confusion"]:
        confusion.setdefault(row["truth"], {})[row["selected"]] = row["users"]
    return {
        "recovery": {key: [row[key] for row in rows["recovery"]] for key in ("rows", "correct", "users")},
        "confusion": confusion,
    }


def _by_rows(findings: Findings, name: str) -> dict[str, dict[str, float]]:
    """Rows seen, then kernel: ``{"3": {"LIN[x]": …}}``."""
    by: dict[str, dict[str, float]] = {}
    for each in findings.likelihoods:
        by.setdefault(str(each.rows), {})[each.composition] = getattr(each, name)
    return by


def wilson(right: int, users: int) -> tuple[float, float]:
    """A 90 % interval of a share (Wilson 1927), which is sound near 0 and 1 too.

    >>> tuple(round(end, 2) for end in wilson(10, 10))
    (0.79, 1.0)
    """
    share, z2 = right / users, NORMAL_90**2 / users
    centre = (share + z2 / 2) / (1 + z2)
    half = NORMAL_90 * sqrt(share * (1 - share) / users + z2 / (4 * users)) / (1 + z2)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _differences(findings: Findings, metric: str) -> list[Interval]:
    """The first preset minus the second, batch by batch."""
    pairs = findings.followed.paired(PRESETS[0])
    return [of_batch(pairs, t)[metric].interval for t in range(1, len(findings.rows) + 1)]


def _recovery(findings: Findings, preset: str) -> list[Row]:
    averages = [each for each in findings.followed.summary() if each.method == preset]
    rows = []
    for t, seen in enumerate(findings.rows, start=1):
        steps, mean = findings.followed.at(preset, t), {k: v.mean for k, v in of_batch(averages, t).items()}
        right = sum(bool(step.right) for step in steps)
        low, high = wilson(right, len(steps))
        rows.append(
            {
                "rows": seen,
                "users": len(steps),
                "correct": right,
                "share": right / len(steps),
                "low": low,
                "high": high,
                "log_density": mean["log_density"],
                "rmse": mean["rmse"],
                "products": mean["products"],
                "hyperparameters": mean["hyperparameters"],
                "changed": mean.get("changed", 0.0),  # nobody changes at the first batch
                "said": mean["probability"],
            }
        )
    return rows


def _selected(batches: Sequence[Sequence[Step]]) -> list[Row]:
    """How many users have each kernel at each size (the paper's histogram)."""
    rows = []
    kernels = dict.fromkeys(step.composition for steps in batches for step in steps)
    for steps in batches:
        for kernel in kernels:
            chosen = [step for step in steps if step.composition == kernel]
            right = sum(bool(step.right) for step in chosen)
            rows.append({"rows": steps[0].rows, "composition": kernel, "users": len(chosen), "correct": right})
    return rows


def _confusion(findings: Findings, last: Sequence[Step]) -> list[Row]:
    """True and selected kernels at the last batch."""
    truths = [truth.text for truth in findings.truths]
    kernels = list(dict.fromkeys([*truths, *(step.composition for step in last)]))
    counts = Counter((findings.simulation.truth[step.user].text, step.composition) for step in last)
    return [
        {"rows": last[0].rows, "truth": truth, "selected": kernel, "users": counts[truth, kernel]}
        for truth in truths
        for kernel in kernels
    ]


def _training(findings: Findings, model: TrajectoryModel) -> list[Row]:
    """Each pilot user's kernel after each batch (the paper's table in Appendix C)."""
    ends = {user.name: user.ends for user in findings.simulation.train.users}
    return [
        {
            "user": name,
            "truth": findings.simulation.truth[name].text,
            "batch": t + 1,
            "rows": int(ends[name][t]),
            "composition": kernel.text,
        }
        for name, path in model.table()
        for t, kernel in enumerate(path)
    ]


def _edges(model: TrajectoryModel, structure: Structure) -> list[Row]:
    rows = []
    for parent, row in Counts.of(structure.paths).rows.items():
        total = sum(row.values())
        source = "" if parent == ROOT else model.pool.composition(parent).text
        rows += [
            {"parent": source, "child": model.pool.composition(child).text, "count": count, "total": total}
            for child, count in row.items()
        ]
    return rows


def _alternatives(model: TrajectoryModel) -> list[Row]:
    """Edges of the other structures, each with its log joint relative to the chosen one's."""
    chosen, *others = model.structures
    return [
        {
            "structure": number,
            "log_joint_difference": other.log_joint - chosen.log_joint,
            "nodes": other.nodes,
            "edges": other.edges,
            "visits": other.visits,
            **edge,
        }
        for number, other in enumerate(others, start=1)
        for edge in _edges(model, other)
    ]


def _chains(model: TrajectoryModel) -> Row:
    diagnostics = model.diagnostics
    return {
        "chains": len(diagnostics.log_joint),
        "sweeps": diagnostics.sweeps,
        "candidates": len(model.provenance["candidates"]),
        "log_joint": model.structures[0].log_joint,
        "nodes": model.structures[0].nodes,
        "edges": model.structures[0].edges,
        "visits": model.structures[0].visits,
        **{f"rhat_{name}": value for name, value in diagnostics.rhat.items()},
        **{f"ess_{name}": value for name, value in diagnostics.ess.items()},
        **{f"seconds_{name}": value for name, value in diagnostics.seconds.items()},
    }


def _followed_rows(findings: Findings) -> list[Row]:
    """Every new user after every batch, with how the batch was predicted before."""
    return [
        {
            "preset": after.method,
            "user": after.user,
            "truth": findings.simulation.truth[after.user].text,
            "batch": after.t,
            "rows": after.rows,
            "composition": after.composition,
            "right": after.right,
            "probability": after.probability,
            "probability_of_truth": after.truth_probability,
            "log_density": before.log_density,
            "rmse": before.rmse,
        }
        for before, after in pairwise(findings.followed.steps)
        if after.t
    ]


def _fit_rows(each: Mapping[str, Any]) -> list[Row]:
    return [
        {
            "user": each["user"],
            "truth": each["truth"],
            "rows": step["rows"],
            "composition": step["composition"],
            "probability": step["probability"],
            "x": x,
            "mean": mean,
            "sd": sd,
            "total_sd": total,
        }
        for step in each["steps"]
        for x, mean, sd, total in zip(each["grid"], step["mean"], step["sd"], step["total_sd"], strict=True)
    ]
