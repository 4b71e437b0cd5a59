"""Updates of the policy: computed beside decisions, checked, and put in force by one entry or not at all."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta

from kerneltrail.engines import short_turns
from kerneltrail.errors import (
    KerneltrailError,
    LedgerError,
    TrialError,
    UnknownName,
    UpdateRunning,
)
from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.trial import rhythm
from kerneltrail.trial.core import Core, incident_draft
from kerneltrail.trial.enrolment import copy_name
from kerneltrail.trial.learning import Job, Learnt, learn
from kerneltrail.trial.ledger.copies import backup
from kerneltrail.trial.ledger.entries import Kind, instant
from kerneltrail.trial.ledger.folds import State, Update
from kerneltrail.trial.ledger.writer import Draft
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import Check, Updated, UpdateState
from kerneltrail.trial.rows import reasons_in_words
from kerneltrail.trial.rows import until as as_it_was
from kerneltrail.trial.versions import Version, Versions, stored_version

Aside = Callable[[Callable[[], tuple[Job, Learnt]]], tuple[Job, Learnt]]
"""Calls a function elsewhere, and returns what it returned."""
LEASE = timedelta(hours=1)
"""An update of another machine that has not ended after so long counts as killed."""


def update(core: Core, reason: str, as_of: datetime | None, by: str, *, dry_run: bool) -> Updated:
    """Make an update here and now; a dry run records nothing."""
    return _dry_run(core, reason, as_of) if dry_run else run(core, begin(core, reason, as_of, by))


def begin(core: Core, reason: str, as_of: datetime | None, by: str) -> str:
    """Start an update, and return its id: its entry is recorded, and others are refused until it ends.

    Nothing long is done here: whoever asked for it is answered, and decisions do not wait.
    """
    _bury(core)
    with core.reading() as state:
        _check_alone(state)
        _basis(core, state, as_of)  # refuses what cannot be
    with core.ledger.transaction() as writer:
        with core.reading() as state:
            _check_alone(state)
            _, base, until = _basis(core, state, as_of)
            id = str(len(state.updates) + 1)
        core.working.add(id)
        writer.append(
            Kind.UPDATE_STARTED,
            id,
            {
                "reason": reason,
                "by": by,
                "as_of": None if as_of is None else as_of.isoformat(),
                "until": until,
                "base": base.version,
                "host": platform.node(),
                "process": os.getpid(),
                "token": core.token,
            },
        )
    return id


def _check_alone(state: State) -> None:
    running = state.running_update
    if running is not None:
        raise UpdateRunning(f"update {running.id} has been running since {running.started_at}")


def _basis(core: Core, state: State, as_of: datetime | None) -> tuple[Protocol, Version, int]:
    """What an update that begins now rests on: the protocol, the version that serves, the last entry it may know."""
    protocol, base = core.protocol(state), Versions(state).active
    if base is None:
        raise UnknownName(f"the trial {state.trial} has no policy that serves")
    until = state.sequence if as_of is None else min(core.ledger.last_by(as_of), state.sequence)
    if until < base.until:
        raise TrialError(
            f"the policy that serves knows what was recorded up to entry {base.until}, and {as_of} is before that: "
            "activate an earlier version first"
        )
    return protocol, base, until


def _dry_run(core: Core, reason: str, as_of: datetime | None) -> Updated:
    """Compute and check, and record nothing."""
    with core.reading() as state:
        protocol, base, until = _basis(core, state, as_of)
        job = _job("", reason, protocol, base, until, state)
    try:
        with short_turns():
            result = learn(core, job)
    except Exception as problem:
        return Updated("", "failed", None, base.version, words=_words(problem))
    return _updated(job, result, _outcome(result), None)


def _started(core: Core, id: str) -> Job:
    """What an update works on, as it was when it was started, whatever was recorded since."""
    with core.reading() as state:
        update = state.updates[id]
        frozen = [each for each in state.protocols if each.sequence < update.started]
        protocol = core.protocol(state, frozen[-1].hash)
        base = Versions(state).get(str(update.request["base"]))
        return _job(id, str(update.request["reason"]), protocol, base, int(update.request["until"]), state)


def _job(id: str, reason: str, protocol: Protocol, base: Version, until: int, state: State) -> Job:
    people = {
        name: as_it_was(person, until)
        for name, person in state.participants.items()
        if person.removed is None and person.enrolled is not None
    }
    versions = Versions(state)
    batches = {name: versions.batches(base.version, name) for name in people}
    return Job(id, reason, protocol, base, until, people, batches)


def _copy(core: Core, id: str) -> None:
    """Copy the ledger as it was before an update, before anything is learnt."""
    if core.backups is not None:
        with core.reading() as state:
            last = state.updates[id].started - 1
        try:
            backup(core.ledger, core.backups / copy_name(core, f"before-update-{id}"), until=last)
        except (LedgerError, OSError) as problem:
            raise TrialError(f"the ledger was not copied: {problem}") from problem
        core.keep.thin(core.backups)


def _bury(core: Core) -> None:
    """Record that an update was killed whose process has ended, or that has not ended for too long."""
    with core.reading() as state:
        running = state.running_update
    if running is not None and is_dead(core, running, core.clock()):
        killed(core, running.id)


def killed(core: Core, id: str) -> None:
    """Record that an update was killed."""
    words = f"update {id} was killed before it ended: the policy before it has gone on serving"
    with core.ledger.transaction() as writer:
        writer.append(Kind.UPDATE_FINISHED, id, {"state": "killed", "words": words})
        core.incident("update-killed", words, key=f"update-killed/{id}", writer=writer)


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


def run(core: Core, id: str, aside: Aside | None = None) -> Updated:
    """Do an update that was started, to its end; what goes wrong is its state.

    Args:
        core: of the trial.
        id: of the update.
        aside: does what takes long, at a lower priority, say; what is recorded is recorded here, since others wait.

    Raises:
        NotRecorded: if not even that can be recorded. The next update then notes that this one was broken off.
    """

    def learnt() -> tuple[Job, Learnt]:
        _copy(core, id)
        job = _started(core, id)
        result = learn(core, job)
        with core.reading():  # what was recorded meanwhile, perhaps thousands of decisions, is read here
            return job, result

    try:
        with short_turns():  # decisions may go on in other threads meanwhile
            job, result = learnt() if aside is None else aside(learnt)
            return finish(core, job, result)
    except Exception as problem:  # one of the ledger, too: it may be written again by now
        return failed(core, id, problem)
    finally:
        core.working.discard(id)


def run_alone(core: Core, id: str) -> None:
    """As `run`, in a thread of its own: the next update notes what could not be recorded, since nobody listens here."""
    with suppress(LedgerError):
        run(core, id)


def _outcome(result: Learnt) -> UpdateState:
    return "done" if result.participants else "refused" if result.held else "empty"


def finish(core: Core, job: Job, result: Learnt) -> Updated:
    """Record what an update came to, and with it, in the same commit, that its policy serves."""
    with core.reading() as now:
        basis = _turn(now, result)
    done, draft = _finished(job, result, basis)  # spelt before the transaction, for which decisions wait
    incidents = list(_incidents(job, result))
    with core.ledger.transaction() as writer:
        with core.reading() as now:
            latest = _turn(now, result)
        if latest != basis:  # another policy was activated, or somebody's data were removed, just now
            done, draft = _finished(job, result, latest)
        (recorded,) = writer.extend([draft])
        if isinstance(recorded, Exception):  # somebody took it for killed
            raise recorded
        if done.version is not None:
            reason = f"update {job.id}: {job.reason}"
            key = f"{done.version}/update-{job.id}"
            writer.append(Kind.POLICY_ACTIVATED, key, {"version": done.version, "reason": reason})
        writer.extend(incidents)  # of somebody whose data were removed none is recorded
    return done


def _turn(state: State, result: Learnt) -> tuple[str, str | None, tuple[str, ...]]:
    """What a new policy depends on when its turn comes: its name, the version that serves, and who was removed."""
    versions = Versions(state)
    gone = tuple(name for name in result.participants if state.participants[name].removed is not None)
    return versions.next_name(), None if versions.active is None else versions.active.version, gone


def _finished(job: Job, result: Learnt, turn: tuple[str, str | None, tuple[str, ...]]) -> tuple[Updated, Draft]:
    """What an update came to, and its entry."""
    name, serving, gone = turn
    state, policy = _outcome(result), None
    for each in gone:  # removed while it was computed
        result.participants.pop(each, None)
    if state == "done" and serving != job.base.version:
        state = "superseded"
    if state == "done":
        policy = stored_version(name, result.model_id, job.base.version, job.until, result.participants)
    done = _updated(job, result, state, None if policy is None else name)
    payload = {
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
    }
    return done, Draft.of(Kind.UPDATE_FINISHED, job.id, payload)


def _incidents(job: Job, result: Learnt) -> Iterator[Draft]:
    """Incidents of participants who were held back, or whose probability moves far, recorded with the update."""
    for check in result.checks:
        if not check.passed:
            severity = "warning" if check.name == "shift" else "error"
            kind = "large-shift" if check.name == "shift" else "held-back"
            name = f"{kind}/{job.id}/{check.participant}"
            yield incident_draft(kind, check.words, severity, check.participant, name, {"update": job.id})


def _updated(job: Job, result: Learnt, state: UpdateState, version: str | None) -> Updated:
    counts = _counts(result.left_out)
    rows = counted(result.rows, "new or corrected row" if result.rebuilt else "new row")
    sentences = {
        "done": f"{rows} entered, of {counted(len(result.participants), 'participant')}.",
        "empty": "There is nothing new, so nothing changes.",
        "refused": "Nothing new passed its checks, so the policy stays as it was.",
        "superseded": "Another policy was activated meanwhile, so the new one was not made.",
    }
    words = [sentences[state]]
    if result.late:
        words.append(f"{counted(result.late, 'row')} came late.")
    if result.rebuilt:
        were = "was" if len(result.rebuilt) == 1 else "were"
        words.append(f"After a correction {listing(result.rebuilt)} {were} computed anew.")
    if result.held:
        words.append(f"Held back: {listing(result.held)}.")
    if counts:
        words.append(reasons_in_words(counts))
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


def failed(core: Core, id: str, problem: Exception) -> Updated:
    """Record that an update failed."""
    words = _words(problem)
    with core.reading() as state:
        base = state.updates[id].request.get("base")
    with core.ledger.transaction() as writer:
        writer.append(Kind.UPDATE_FINISHED, id, {"state": "failed", "base": base, "words": words})
        core.incident("update-failed", words, severity="error", key=f"update-failed/{id}", writer=writer)
    return Updated(id, "failed", None, base, words=words)


def _words(problem: Exception) -> str:
    known = isinstance(problem, KerneltrailError)
    return (
        f"The update failed, so the policy stays as it was: {'' if known else f'{type(problem).__name__}: '}{problem}"
    )


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
