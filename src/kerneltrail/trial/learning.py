"""What an update computes: every participant's new batches, followed and checked; nothing is recorded here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kerneltrail.errors import KerneltrailError
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trial.checks import CONTEXTS, checked, inside
from kerneltrail.trial.core import Core
from kerneltrail.trial.decision import Policy
from kerneltrail.trial.ledger.participant import Participant
from kerneltrail.trial.pooled import extended
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Check
from kerneltrail.trial.rows import Plan, Row, planned, rows_of, usable
from kerneltrail.trial.versions import Batches, Version


@dataclass(frozen=True)
class Job:
    """What an update works on, taken from the ledger at one moment.

    Attributes:
        id: of the update; empty for a dry run.
        reason: why it is made.
        protocol: in force.
        base: the version that it goes on from.
        until: the last entry that it knows.
        people: participants as they were at that entry.
        batches: theirs at the base.
    """

    id: str
    reason: str
    protocol: Protocol
    base: Version
    until: int
    people: Mapping[str, Participant]
    batches: Mapping[str, Batches]


@dataclass
class Learnt:
    """What an update has come to so far: as in `Updated`, with the numbers of entries."""

    model_id: str
    participants: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    calibration: dict[str, dict[str, int]] = field(default_factory=dict)
    rebuilt: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    rows: int = 0
    late: int = 0


@dataclass(frozen=True)
class Followed:
    """A participant whose batches were planned."""

    person: Participant
    plan: Plan
    rows: tuple[Row, ...]


def learn(core: Core, job: Job) -> Learnt:
    """Plan, compute and check every participant.

    A participant who fails a check is held back. With a pooled model there is no going on with the old one for one of
    them, so then everybody is.
    """
    before = Policy(job.base.version, core.models.get(job.base.model_id), job.base.model_id, job.protocol.rule)
    result = Learnt(before.model_id)
    everybody = []
    for name, person in job.people.items():
        rows = usable(person, before.model)
        if rows.left_out:
            result.left_out[name] = {reason: list(numbers) for reason, numbers in rows.left_out.items()}
        everybody.append(Followed(person, planned(job.batches[name], rows.rows, person), rows.rows))
    changed = [each for each in everybody if each.plan.change is not None]
    if job.protocol.pooling != "pooled" or not changed:
        for each in changed:
            _follow(core, job, before, before, each, result)
        return result
    batches = {each.person.id: rows_of(each.person, each.plan.batches) for each in everybody if each.plan.batches}
    model = extended(core.pilot, before.model, batches)
    result.model_id = core.models.keep(model)
    policy = Policy(job.base.version, model, result.model_id, job.protocol.rule)
    for each in everybody:
        if each.plan.batches or each.plan.change is not None:
            _follow(core, job, before, policy, each, result)
    if result.held:
        result.held, result.participants = [each.person.id for each in everybody], {}
    elif job.id:
        core.models.save(result.model_id)
    return result


def _follow(core: Core, job: Job, before: Policy, policy: Policy, each: Followed, result: Learnt) -> None:
    """Follow one participant on a policy's model, and check what comes of it beside the policy before."""
    person, plan = each.person, each.plan
    name = person.id
    checks: list[Check] = []
    try:
        old = _state(core, before, person, job.batches[name])
        new = _state(core, policy, person, plan.batches)
        if new is not None:
            covariates = policy.model.covariates
            contexts = np.array([[row.values[one] for one in covariates] for row in each.rows[-CONTEXTS:]])
            checks = checked(job.protocol, policy, name, new, old or before.newcomer, contexts)
        fresh = [row for row in each.rows if row.outcome in plan.fresh]
        hit = inside(old or before.newcomer, fresh) if fresh else 0
    except (KerneltrailError, ArithmeticError, ValueError) as problem:
        checks = [Check("finite", False, f"{name} cannot be followed: {problem}", name)]
    result.checks.extend(checks)
    if any(not check.passed for check in checks if check.name != "shift"):
        result.held.append(name)
        return
    if plan.change is None:
        return
    if fresh:
        result.calibration[name] = {"rows": len(fresh), "inside": hit}
    result.participants[name] = {**plan.change, **({"late": list(plan.late)} if plan.late else {})}
    result.rows += len(plan.new)
    result.late += len(plan.late)
    if plan.rebuilt:
        result.rebuilt.append(name)


def _state(core: Core, policy: Policy, person: Participant, batches: Batches) -> NewUser | None:
    if not batches:
        return None
    gather: Callable[[int], list[list[Row]]] = lambda begin: rows_of(person, batches[begin:])  # noqa: E731
    return core.states.compute(policy.model, policy.model_id, person.id, batches, gather)
