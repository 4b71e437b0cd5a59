"""What the paper says of simulated users, held against a run: every verdict is computed from what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from kerneltrail.kernels import Composition, layout_of
from kerneltrail.studies.experiments.agreement import Agreement
from kerneltrail.studies.experiments.simulated.compute import Findings
from kerneltrail.studies.experiments.simulated.design import PRESETS
from kerneltrail.studies.experiments.simulated.likelihoods import LikelihoodRow

PAPER_LIKELIHOOD: Mapping[tuple[str, int], float] = {
    ("LIN[x]", 3): -5.86,
    ("LIN[x] + PER[x]", 3): -6.22,
    ("LIN[x]", 187): -114.67,
    ("LIN[x] + PER[x]", 187): -84.44,
}
"""The paper's table in Appendix C.3: log likelihood by kernel and rows."""
PAPER_SPREAD = 55.0
"""The paper's alternatives are "within 55 log likelihood values of one another" (Appendix C.4)."""
AUTHORS_BEST: Mapping[str, tuple[int, int]] = {"distinct": (2, 60), "similar": (0, 32)}
"""Exact recovery of 50 new users at the last batch by the authors' code, %, worst and best snapshot of one chain."""


def claims(name: str, findings: Findings) -> tuple[Agreement, ...]:
    """All claims that a set can be held against."""
    agreements: list[Agreement] = []
    if name == "synthetic":
        agreements += [_flip(findings.likelihoods, "log_likelihood"), _flip(findings.likelihoods, "log_laplace")]
    for preset in PRESETS:
        if name == "synthetic":
            agreements += [*_training(findings, preset), _majority(findings, preset), _grows(findings, preset)]
            agreements.append(_alternatives(findings, preset))
        elif name in AUTHORS_BEST:
            agreements.append(_as_good(findings, preset, AUTHORS_BEST[name]))
            agreements.append(_majority(findings, preset))
        else:
            agreements.append(_majority(findings, preset))
    return tuple(agreements)


def _flip(orders: Sequence[LikelihoodRow], measure: str) -> Agreement:
    """Whether the simpler kernel leads with few rows and trails with many."""
    ours = {(each.composition, each.rows): getattr(each, measure) for each in orders}
    few, many = min(each.rows for each in orders), max(each.rows for each in orders)

    def leads(values: Mapping[tuple[str, int], float], rows: int) -> bool:
        return values["LIN[x]", rows] > values["LIN[x] + PER[x]", rows]

    paper = [leads(PAPER_LIKELIHOOD, rows) for rows in (3, 187)]
    what = {"log_likelihood": "log likelihood at the best hyperparameters", "log_laplace": "Laplace's log evidence"}
    return Agreement(
        f"LIN beats the true LIN + PER at {few} rows and loses at {many} "
        f"({what[measure]}, mean over {orders[0].users} users)",
        _listed(PAPER_LIKELIHOOD),
        _listed({key: value for key, value in ours.items() if key[1] in (few, many)}),
        [leads(ours, rows) for rows in (few, many)] == paper,
        "Appendix, table of log likelihoods",
        topic="likelihood",
    )


def _listed(values: Mapping[tuple[str, int], float]) -> str:
    sizes = dict.fromkeys(rows for _, rows in values)
    lines = []
    for rows in sizes:
        kernels = ", ".join(f"{_short(kernel)} {value:.2f}" for (kernel, size), value in values.items() if size == rows)
        lines.append(f"{rows} rows: {kernels}")
    return "; ".join(lines)


def _short(kernel: str) -> str:
    return kernel.replace("[x]", "")


def _size(kernel: Composition) -> int:
    return len(layout_of(kernel).slots)


def _training(findings: Findings, preset: str) -> list[Agreement]:
    """The paper's figure and table of pilot users."""
    paths = dict(findings.models[preset].table())
    truth = findings.simulation.truth
    where = "Appendix, table of compositions"
    users = len(paths)
    early = sum(path[0] != truth[name] for name, path in paths.items())
    smaller = sum(_size(path[0]) < _size(truth[name]) for name, path in paths.items())
    ends = sum(path[-1] == truth[name] for name, path in paths.items())
    second = sum(all(kernel == truth[name] for kernel in path[1:]) for name, path in paths.items())
    apart = all(
        not {path[t] for name, path in paths.items() if truth[name] == kind}
        & {path[t] for name, path in paths.items() if truth[name] != kind}
        for kind in findings.truths
        for t in range(1, len(findings.rows))
    )
    firsts = ", ".join(_short(kernel.text) for kernel in dict.fromkeys(path[0] for path in paths.values()))
    lasts = ", ".join(_short(kernel.text) for kernel in dict.fromkeys(path[-1] for path in paths.values()))
    return [
        Agreement(
            "After the first batch pilot users do not have their true kernel yet, but an intermediary",
            "6 of 6: LIN or PER",
            f"{early} of {users}, {smaller} with fewer hyperparameters than the true one; {firsts}",
            early == users,
            where,
            preset,
            "training",
        ),
        Agreement(
            "From the second batch on, no kernel is shared by pilot users of different true kernels",
            "LIN + PER for one half, SE for the other",
            "none is shared" if apart else "some are shared",
            apart,
            "figure of the trajectory model",
            preset,
            "training",
        ),
        Agreement(
            "From the second batch on, pilot users have their true kernel and keep it",
            "6 of 6",
            f"{second} of {users}",
            second == users,
            where,
            preset,
            "training",
        ),
        Agreement(
            "Pilot users' paths end at the true kernel, LIN + PER or SE",
            "6 of 6",
            f"{ends} of {users}; {lasts}",
            ends == users,
            where,
            preset,
            "training",
        ),
    ]


def _majority(findings: Findings, preset: str) -> Agreement:
    steps = findings.followed.at(preset, len(findings.rows))
    right = sum(bool(step.right) for step in steps)
    return Agreement(
        f"A majority of new users has the true kernel at the last batch, {findings.rows[-1]} rows",
        "a majority (no number is printed)",
        f"{right} of {len(steps)}",
        2 * right > len(steps),
        "Appendix, confusion matrix",
        preset,
        "confusion",
    )


def _grows(findings: Findings, preset: str) -> Agreement:
    followed, batches = findings.followed, range(1, len(findings.rows) + 1)
    sizes = [fmean(step.hyperparameters for step in followed.at(preset, t)) for t in batches]
    return Agreement(
        "Kernels of new users are more complex at the last batch than at the first",
        "the number of users with complex kernels increases with the data size",
        f"mean number of hyperparameters {', '.join(f'{size:.2f}' for size in sizes)} by batch",
        sizes[-1] > sizes[0],
        "figure of compositions by data size",
        preset,
        "selected",
    )


def _alternatives(findings: Findings, preset: str) -> Agreement:
    joints = [structure.log_joint for structure in findings.models[preset].structures]
    spread = max(joints) - min(joints)
    return Agreement(
        "Alternative structures are about as likely as the chosen one",
        f"within {PAPER_SPREAD:.0f} log likelihood values of one another",
        f"{len(joints) - 1} alternatives, within {spread:.1f} of one another in log joint" if joints[1:] else "none",
        spread <= PAPER_SPREAD if joints[1:] else None,
        "Appendix, alternate structures",
        preset,
        "alternatives",
    )


def _as_good(findings: Findings, preset: str, theirs: tuple[int, int]) -> Agreement:
    steps = findings.followed.at(preset, len(findings.rows))
    share = 100.0 * sum(bool(step.right) for step in steps) / len(steps)
    worst, best = theirs
    return Agreement(
        "Exact recovery at the last batch, beside the best snapshot of the authors' own code",
        f"{worst}–{best} % by snapshot",
        f"{share:.0f} %",
        share >= best,
        "authors' later work, its code run on this kind of machine",
        preset,
        "confusion",
    )
