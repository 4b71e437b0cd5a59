"""Which rows a policy learns from: by one declared rule, with the reason for every row that is left out.

A row is a decision with the outcome that counts for it (`ledger.participant.sifted`).

1. Its treatment is the action that was assigned, with the probability that was recorded. What was delivered is a column
   of its own, and changes neither.
2. A missing outcome is no row: neither one that nobody has recorded, nor one that was looked for and not found.
3. Where nobody could act, a row speaks of the baseline alone; a model that was learnt without such rows leaves it out.
4. A late outcome enters at the next update, in a batch with all that is new then.
5. A correction takes the place of what it corrects, in the same batch: the participant's batches are computed anew.
6. A decision while the participant paused or had withdrawn is no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kerneltrail.data.assignment import Assignment
from kerneltrail.kernels import Array
from kerneltrail.kernels.phrases import counted, listing
from kerneltrail.store.canonical import real
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.participant import Decision, Outcome, Participant
from kerneltrail.trial.versions import Batches

NO_OUTCOME = "no outcome"
MISSING = "outcome missing"
NO_DECISION = "no decision"
REPLACED = "corrected"
CONTEXT = "context incomplete"
NOBODY = "nobody could act"
"""Reasons for leaving a row out; a status (paused, withdrawn) is another."""
SENTENCES = {
    NO_OUTCOME: ("decision has no outcome", "decisions have no outcome"),
    MISSING: ("outcome was reported missing", "outcomes were reported missing"),
    CONTEXT: ("decision has an incomplete context", "decisions have an incomplete context"),
    NOBODY: ("decision was made where nobody could act", "decisions were made where nobody could act"),
    "paused": ("decision was made in a pause", "decisions were made in a pause"),
    "withdrawn": ("decision was made after a withdrawal", "decisions were made after a withdrawal"),
    NO_DECISION: ("outcome belongs to no decision", "outcomes belong to no decision"),
    REPLACED: ("outcome was replaced by a later one", "outcomes were replaced by later ones"),
}
"""What each reason says of one entry, and of several: of a corrected outcome only the old value does not count."""


ALL_WORDS = "In all so far"
"""With which a sentence over all that was recorded begins: whatever its age, and whether or not somebody could act."""


def reasons_in_words(counts: Mapping[str, int]) -> str:
    """How many entries are no rows, by the reason, as a sentence over all that was recorded.

    >>> reasons_in_words({"no outcome": 37, "corrected": 1})
    'In all so far, 37 decisions have no outcome and 1 outcome was replaced by a later one.'
    """
    known = [(reason, counts[reason]) for reason in SENTENCES if counts.get(reason)]
    return f"{ALL_WORDS}, {listing([counted(number, *SENTENCES[reason]) for reason, number in known])}."


def until(person: Participant, sequence: int) -> Participant:
    """A participant as they were when the ledger had so many entries, as long as nothing was removed."""
    return replace(
        person,
        changes=[each for each in person.changes if each.sequence <= sequence],
        decisions={key: each for key, each in person.decisions.items() if each.sequence <= sequence},
        deliveries={
            key: [each for each in several if each.sequence <= sequence] for key, several in person.deliveries.items()
        },
        outcomes={key: each for key, each in person.outcomes.items() if each.sequence <= sequence},
    )


@dataclass(frozen=True)
class Row:
    """A row that can be learnt from.

    Attributes:
        decision: the sequence of its decision's entry, and
        outcome: of its outcome's.
        values: the context by covariate, what was filled in included.
        y: the outcome.
        action, probability, available: as assigned.
    """

    decision: int
    outcome: int
    values: Mapping[str, float]
    y: float
    action: float
    probability: float
    available: float


def context_of(record: Mapping[str, Any]) -> dict[str, float]:
    """A decision's context in the model's terms, with what stood in for missing values."""
    filled = {each["covariate"]: real(each["value"]) for each in record.get("imputed_values", ())}
    return {name: float(value) for name, value in record.get("arrived", {}).items()} | filled


def row_of(decision: Decision, outcome: Outcome) -> Row:
    """A decision with an outcome as a row; the outcome has a value."""
    record = decision.payload or {}
    probability = real(record["probability"])
    return Row(
        decision.sequence,
        outcome.sequence,
        context_of(record),
        float(outcome.value if outcome.value is not None else np.nan),
        float(record["action"]),
        probability,
        float(record["available"]),
    )


@dataclass(frozen=True)
class Usable:
    """Rows of a participant in the order of their decisions, and entries that are no rows, by the reason."""

    rows: tuple[Row, ...]
    left_out: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def usable(person: Participant, model: LearntGraph) -> Usable:
    """A participant's rows by the rule above; `left_out` lists decisions, or outcomes that belong to none."""
    left: dict[str, list[int]] = {}
    rows = []
    for each in person.inputs():
        record, outcome = each.decision.payload or {}, each.outcome
        values = context_of(record)
        status = person.status(instant(record["decided_at"]))
        if status in ("paused", "withdrawn"):
            reason = status
        elif outcome is None:
            reason = NO_OUTCOME
        elif outcome.value is None:
            reason = MISSING
        elif not all(name in values for name in model.covariates):
            reason = CONTEXT
        elif not record["available"] and model.schema.available_only:
            reason = NOBODY
        else:
            rows.append(row_of(each.decision, outcome))
            continue
        left.setdefault(reason, []).append(each.decision.sequence)
    replaced = person.left_out()
    for outcome in person.outcomes.values():
        if outcome.key in replaced:
            left.setdefault(REPLACED, []).append(outcome.sequence)
        elif outcome.decision is None or outcome.decision not in person.decisions:
            left.setdefault(NO_DECISION, []).append(outcome.sequence)
    return Usable(tuple(rows), {reason: tuple(sorted(numbers)) for reason, numbers in left.items()})


@dataclass(frozen=True)
class Plan:
    """A participant's batches at the next version.

    Attributes:
        batches: all of them.
        change: what the version records: one batch more, or all anew; None where nothing changes.
        new: outcomes that the version before did not have; corrections are among them, and not in
        fresh: outcomes of decisions of which it had none.
        late: of those, outcomes of decisions earlier than one that it had.
    """

    batches: Batches
    change: Mapping[str, Any] | None
    new: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    late: tuple[int, ...] = ()

    @property
    def rebuilt(self) -> bool:
        """Whether the batches are computed anew."""
        return self.change is not None and "rebuilt" in self.change


def planned(base: Batches, rows: Iterable[Row], person: Participant) -> Plan:
    """What becomes of a participant's batches, given the rows that are usable now."""
    decision_of = {each.sequence: each.decision for each in person.outcomes.values()}
    key_of = {person.decisions[key].sequence: key for key in person.decisions}
    current = {key_of[row.decision]: row.outcome for row in rows}  # in the order of the decisions
    used = {decision_of[outcome]: outcome for batch in base for outcome in batch if outcome in decision_of}
    fresh = [outcome for key, outcome in current.items() if key not in used]
    kept = [
        tuple(current[key] for outcome in batch if (key := decision_of.get(outcome)) is not None and key in current)
        for batch in base
    ]
    batches = (*(batch for batch in kept if batch), *((tuple(fresh),) if fresh else ()))
    new = tuple(sorted(set(current.values()) - {outcome for batch in base for outcome in batch}))
    last = max((i for i, key in enumerate(current) if key in used), default=-1)
    late = tuple(outcome for i, (key, outcome) in enumerate(current.items()) if key not in used and i < last)
    if batches == base:
        return Plan(base, None)
    if batches[:-1] == base and fresh:
        return Plan(batches, {"batch": fresh}, new, tuple(fresh), late)
    return Plan(batches, {"rebuilt": [list(batch) for batch in batches]}, new, tuple(fresh), late)


def arrays(rows: Iterable[Row], covariates: Iterable[str]) -> tuple[Array, Array, Assignment]:
    """Rows as `NewUser.update` takes them: covariates, outcomes, and what was assigned."""
    listed, names = list(rows), list(covariates)
    columns = [[getattr(row, name) for row in listed] for name in ("action", "probability", "available")]
    X = np.array([[row.values[name] for name in names] for row in listed], dtype=np.float64)
    return X, np.array([row.y for row in listed]), Assignment(*(np.array(each) for each in columns))


def rows_of(person: Participant, batches: Batches) -> list[list[Row]]:
    """The rows of recorded batches; one that was removed is a `KeyError`."""
    outcomes = {each.sequence: each for each in person.outcomes.values()}
    return [
        [row_of(person.decisions[str(outcomes[number].decision)], outcomes[number]) for number in batch]
        for batch in batches
    ]
