"""Updates of the policy: computed beside decisions, checked, and put in force by one entry or not at all."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from kerneltrail.engines import short_turns
from kerneltrail.errors import (
    KerneltrailError,
    LedgerError,
    ParticipantRemoved,
    TrialError,
    UnknownName,
    UpdateRunning,
)
from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial import rhythm
from kerneltrail.trial.core import Core
from kerneltrail.trial.enrolment import copy_name
from kerneltrail.trial.learning import Job, Learnt, learn
from kerneltrail.trial.ledger.copies import backup
from kerneltrail.trial.ledger.entries import Kind, instant
from kerneltrail.trial.ledger.folds import State, Update
from kerneltrail.trial.ledger.ledger import Writer
from kerneltrail.trial.results import Check, Updated, UpdateState
from kerneltrail.trial.rows import until as as_it_was
from kerneltrail.trial.versions import Versions, stored_version

LEASE = timedelta(hours=1)
"""An update of another machine that has not ended after so long counts as killed."""


def begin(core: Core, reason: str, as_of: datetime | None, by: str, *, dry_run: bool) -> Job:
    """Start an update: its entry is recorded, and others are refused until it ends."""
    if dry_run:
        with core.reading() as state:
            return _job(core, state, "", reason, as_of)
    _bury(core)
    with core.reading() as state:
        _check_alone(state)
        _job(core, state, "", reason, as_of)  # refuses what cannot be, before a copy is made
        number = len(state.updates) + 1
    problem = _copied(core, number)
    with core.ledger.transaction() as writer:
        with core.reading() as state:
            _check_alone(state)
            job = _job(core, state, str(len(state.updates) + 1), reason, as_of)
            job = replace(job, problem=problem)
        core.working.add(job.id)
        writer.append(
            Kind.UPDATE_STARTED,
            job.id,
            {
                "reason": reason,
                "by": by,
                "as_of": None if as_of is None else as_of.isoformat(),
                "until": job.until,
                "base": job.base.version,
                "host": platform.node(),
                "process": os.getpid(),
                "token": core.token,
            },
        )
    return job


def _check_alone(state: State) -> None:
    running = state.running_update
    if running is not None:
        raise UpdateRunning(f"update {running.id} has been running since {running.started_at}")


def _copied(core: Core, number: int) -> str:
    """Copy the ledger before anything is learnt; what went wrong, in words."""
    if core.backups is not None:
        try:
            backup(core.ledger, core.backups / copy_name(core, f"before-update-{number}"))
        except (LedgerError, OSError) as problem:
            return f"the ledger was not copied: {problem}"
    return ""


def _job(core: Core, state: State, id: str, reason: str, as_of: datetime | None) -> Job:
    protocol, versions = core.protocol(state), Versions(state)
    base = versions.active
    if base is None:
        raise UnknownName(f"the trial {state.trial} has no policy that serves")
    until = state.sequence if as_of is None else _sequence(core, as_of, state.sequence)
    if until < base.until:
        raise TrialError(
            f"the policy that serves knows what was recorded up to entry {base.until}, and {as_of} is before that: "
            "activate an earlier version first"
        )
    people = {
        name: as_it_was(person, until)
        for name, person in state.participants.items()
        if person.removed is None and person.enrolled is not None
    }
    batches = {name: versions.batches(base.version, name) for name in people}
    return Job(id, reason, protocol, base, until, people, batches)


def _sequence(core: Core, as_of: datetime, last: int) -> int:
    """The last entry that was received by a time."""
    return max((each.sequence for each in core.ledger.entries(until=last) if instant(each.received_at) <= as_of),
               default=0)  # fmt: skip


def _bury(core: Core) -> None:
    """Record that an update was killed whose process has ended, or that has not ended for too long."""
    with core.reading() as state:
        running = state.running_update
    if running is not None and is_dead(core, running, core.clock()):
        words = f"update {running.id} was killed before it ended: the policy before it has gone on serving"
        with core.ledger.transaction() as writer:
            writer.append(Kind.UPDATE_FINISHED, running.id, {"state": "killed", "words": words})
            core.incident("update-killed", words, key=f"update-killed/{running.id}", writer=writer)


def due(core: Core, state: State, now: datetime) -> str:
    """Why an update is due at a time, or nothing; one whose process has ended does not count."""
    running = state.running_update
    dead = running if running is not None and is_dead(core, running, now) else None
    return rhythm.due(state, core.protocol(state), now, dead)


def is_dead(core: Core, update: Update, now: datetime) -> bool:
    """Whether nobody is working at an update any more."""
    request = update.request
    if request.get("token") == core.token:
        return update.id not in core.working
    if now - instant(update.started_at) > LEASE:
        return True
    if request.get("host") != platform.node():
        return False
    number = int(request.get("process", 0))
    if number == os.getpid():  # the number of a process that ended
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except OSError:  # there is one, of somebody else
        return False
    return False


def run(core: Core, job: Job) -> Updated:
    """Do an update that was started, to its end; what goes wrong is its state.

    Raises:
        NotRecorded: if not even that can be recorded. The next update then notes that this one was broken off.
    """
    try:
        with short_turns():  # decisions go on in other threads meanwhile
            return _run(core, job)
    finally:
        core.working.discard(job.id)


def run_alone(core: Core, job: Job) -> None:
    """As `run`, in a thread of its own: the next update notes what could not be recorded, since nobody listens here."""
    with suppress(LedgerError):
        run(core, job)


def _run(core: Core, job: Job) -> Updated:
    if job.problem:
        return _failed(core, job, job.problem)
    try:
        result = learn(core, job)
    except KerneltrailError as problem:
        return _failed(core, job, str(problem))
    except Exception as problem:
        return _failed(core, job, f"{type(problem).__name__}: {problem}")
    try:
        return finish(core, job, result)
    except LedgerError as problem:  # it may be written again by now
        return _failed(core, job, str(problem))
    except Exception as problem:
        return _failed(core, job, f"{type(problem).__name__}: {problem}")


def finish(core: Core, job: Job, result: Learnt) -> Updated:
    """Record what an update came to, and with it, in the same commit, that its policy serves."""
    state: UpdateState = "done" if result.participants else "refused" if result.held else "empty"
    if not job.id:
        return _updated(job, result, state, None)
    with core.ledger.transaction() as writer:
        with core.reading() as now:
            versions = Versions(now)
            gone = [name for name in result.participants if now.participants[name].removed is not None]
            serving = versions.active
        for name in gone:  # removed while it was computed
            del result.participants[name]
        if state == "done" and (serving is None or serving.version != job.base.version):
            state = "superseded"
        version = versions.next_name() if state == "done" else None
        policy = None
        if version is not None:
            policy = stored_version(version, result.model_id, job.base.version, job.until, result.participants)
        done = _updated(job, result, state, version)
        writer.append(
            Kind.UPDATE_FINISHED,
            job.id,
            {
                "state": state,
                "policy": policy,
                "base": job.base.version,
                "checks": [asdict(check) for check in result.checks],
                "left_out": result.left_out,
                "calibration": result.calibration,
                "rebuilt": result.rebuilt,
                "held": result.held,
                "rows": result.rows,
                "words": done.words,
            },
        )
        if version is not None:
            reason = f"update {job.id}: {job.reason}"
            writer.append(Kind.POLICY_ACTIVATED, f"{version}/update-{job.id}", {"version": version, "reason": reason})
        _tell(core, job, result, writer)
    return done


def _tell(core: Core, job: Job, result: Learnt, writer: Writer) -> None:
    """Incidents of participants who were held back, or whose probability moves far, recorded with the update."""
    for check in result.checks:
        if not check.passed:
            severity = "warning" if check.name == "shift" else "error"
            kind = "large-shift" if check.name == "shift" else "held-back"
            key = f"{kind}/{job.id}/{check.participant}"
            details = {"update": job.id}
            person = check.participant
            with suppress(ParticipantRemoved):
                core.incident(
                    kind, check.words, severity=severity, participant=person, key=key, details=details, writer=writer
                )


def _updated(job: Job, result: Learnt, state: UpdateState, version: str | None) -> Updated:
    counts = _counts(result.left_out)
    sentences = {
        "done": f"{counted(result.rows, 'row')} entered, of {counted(len(result.participants), 'participant')}.",
        "empty": "There is nothing new, so nothing changes.",
        "refused": "Nothing new passed its checks, so the policy stays as it was.",
        "superseded": "Another policy was activated meanwhile, so the new one was not made.",
    }
    words = [sentences[state]]
    if result.late:
        words.append(f"{counted(result.late, 'row')} came late.")
    if result.rebuilt:
        words.append(f"After a correction {listing(result.rebuilt)} was computed anew.")
    if result.held:
        words.append(f"Held back: {listing(result.held)}.")
    if counts:
        parts = [f"{number} {reason}" for reason, number in sorted(counts.items())]
        words.append(f"Left out: {listing(parts)}.")
    return Updated(
        id=job.id,
        state=state,
        version=version,
        base=job.base.version,
        checks=tuple(result.checks),
        rows=result.rows,
        left_out=counts,
        rebuilt=tuple(result.rebuilt),
        held=tuple(result.held),
        words=" ".join(words),
    )


def _counts(left_out: Mapping[str, Mapping[str, list[int]]]) -> dict[str, int]:
    """How many rows were left out, by the reason."""
    counts: dict[str, int] = {}
    for reasons in left_out.values():
        for reason, numbers in reasons.items():
            counts[reason] = counts.get(reason, 0) + len(numbers)
    return counts


def _failed(core: Core, job: Job, problem: str) -> Updated:
    words = f"The update failed, so the policy stays as it was: {problem}"
    done = Updated(job.id, "failed", None, job.base.version, words=words)
    if job.id:
        with core.ledger.transaction() as writer:
            writer.append(Kind.UPDATE_FINISHED, job.id, {"state": "failed", "base": job.base.version, "words": words})
            core.incident("update-failed", words, severity="error", key=f"update-failed/{job.id}", writer=writer)
    return done


def recorded(update: Update) -> Updated:
    """An update as the ledger has it."""
    result = update.result
    if result is None:
        return Updated(update.id, "running", None, str(update.request.get("base")), words="The update is running.")
    policy = result.get("policy")
    return Updated(
        id=update.id,
        state=result["state"],
        version=None if policy is None else policy["version"],
        base=result.get("base"),
        checks=tuple(Check(**check) for check in result.get("checks", ())),
        rows=result.get("rows", 0),
        left_out=_counts(result.get("left_out", {})),
        rebuilt=tuple(result.get("rebuilt", ())),
        held=tuple(result.get("held", ())),
        words=result.get("words", ""),
    )


def warm(core: Core) -> int:
    """Compute the states of all active participants that are not in memory; their number.

    A model that is missing, or a state that cannot be computed, is left to the ladder.
    """
    with core.reading() as state:
        versions = Versions(state)
        people = [each for each in state.participants.values() if each.status() in ("active", "paused")]
        removed = [each.id for each in state.participants.values() if each.removed is not None]
    for name in removed:  # perhaps by a process that did not know of files here
        core.states.forget(name)
    version, count = versions.active, 0
    for person in people if version is not None else ():
        with suppress(Exception):
            if version is not None and core.user(person, versions, version) is not None:
                count += 1
    return count
