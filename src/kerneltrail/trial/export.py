"""A trial's record as tables: one row for each decision, outcome, delivery, participant, policy or incident.

Every column is described once, beside its table; `dictionary` is made of that. What was removed is in no table.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from kerneltrail.errors import DataError, TrialError
from kerneltrail.evaluation.tables import csv_text
from kerneltrail.names import nearest
from kerneltrail.store.canonical import real
from kerneltrail.trial.delivered import delivered_action
from kerneltrail.trial.ledger import canonical
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Input, Participant
from kerneltrail.trial.rows import context_of
from kerneltrail.trial.versions import Versions

Row = dict[str, Any]

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "decisions": {
        "decision_id": "name of the decision",
        "participant": "study id",
        "kind": "of decision",
        "index": "number among the decisions of its kind for this participant, from 0 on",
        "decided_at": "time on the participant's clock",
        "available": "whether somebody could act",
        "reasons": "why not",
        "action": "assigned: 1 or 0",
        "probability": "of the action being 1",
        "probability_of_action": "of the action that was assigned",
        "rung": "what decided",
        "rung_reason": "why it was not the policy",
        "policy_version": "that decided",
        "model_id": "fingerprint of its model",
        "composition": "the participant's kernel",
        "advantage_mean": "expected change of the outcome by acting",
        "advantage_sd": "its standard deviation",
        "threshold": "what it had to exceed; where a lower outcome is better, minus it had to",
        "clipped": "the limit at which the probability stands",
        "draw": "the number that was compared with the probability",
        "dose": "of actions before",
        "delivered_action": "what reached the participant, 0 if a message failed; empty if nobody reported it",
        "outcome": "that counts; empty if it is missing",
        "recorded_at": "when it was recorded",
    },
    "outcomes": {
        "participant": "study id",
        "client_id": "the app's name for it",
        "decision_id": "of the decision it belongs to",
        "value": "empty if it was looked for and is missing",
        "observed_at": "when it was observed",
        "recorded_at": "when it was recorded",
        "supersedes": "the outcome that it corrects",
        "counts": "whether it counts now",
        "why_not": "why it does not",
    },
    "deliveries": {
        "participant": "study id",
        "decision_id": "of the decision",
        "status": "that was reported",
        "at": "when, if anybody knows",
        "assigned_action": "1 or 0",
        "delivered_action": "1 or 0; empty if nobody knows",
    },
    "participants": {
        "participant": "study id",
        "status": "by all that is recorded",
        "timezone": "of their clock",
        "starts_on": "first day",
        "ends_on": "last day",
        "decisions": "recorded",
        "outcomes": "that count",
    },
    "policies": {
        "version": "of the policy",
        "base": "the version it goes on from",
        "model_id": "fingerprint of its model",
        "made_at": "when it was recorded",
        "until": "the last entry of the ledger that it knows",
        "active": "whether it serves now",
        "activated": "when it began to serve, each time",
    },
    "incidents": {
        "incident": "its name",
        "kind": "of incident",
        "severity": "info, warning or error",
        "participant": "study id, if it is about one",
        "words": "what happened",
        "recorded_at": "when it was recorded",
        "acknowledged": "when somebody acknowledged it",
    },
    "mrt": {
        "id": "study id",
        "decision_point": "order of the participant's decisions in time, from 0 on",
        "outcome": "that counts; empty if it is missing",
        "treatment": "assigned: 1 or 0",
        "rand_prob": "probability of the treatment being 1",
        "availability": "1 where somebody could act",
    },
    "lifejacket": {
        "user_id": "study id",
        "calendar_t": "order of the participant's decisions in time, from 1 on",
        "in_study": "1 in every row: there are rows while somebody takes part",
        "policy_num": "version of the policy; empty where none decided",
        "action": "assigned: 1 or 0",
        "action1prob": "probability of the action being 1",
        "reward": "the outcome that counts; empty if it is missing",
    },
    "obp": {
        "position": "always 0: there is one place for an action",
        "action": "assigned: 1 or 0",
        "pscore": "probability of the action that was assigned",
        "reward": "the outcome; rows without one are not here",
    },
    "dictionary": {"table": "its name", "column": "its name", "meaning": "what is in it"},
}
"""Tables with their columns; `mrt`, `lifejacket` and `obp` have the contexts' covariates beside these."""

BY_ACTION = ("decisions", "outcomes", "mrt", "lifejacket", "obp")
"""Tables that tell what came after a message and what after none; `outcomes` has names of decisions, which others have
beside actions. On a server they are for keys with the scope `unblinded`, and each look is recorded."""
WITH_CONTEXT = ("decisions", "mrt", "lifejacket", "obp")


def inputs(state: State) -> Iterator[tuple[Participant, int, Input, Any]]:
    """All decisions that are there: participant, position in time, decision with outcome, record."""
    for person in state.participants.values():
        for position, each in enumerate(person.inputs()):
            yield person, position, each, each.decision.payload


def _context(record: Mapping[str, Any], name: str) -> Row:
    """The covariates of a decision; one that is called as a column of the table is told apart from it."""
    values = context_of(record)
    return {f"context_{key}" if key in COLUMNS[name] else key: value for key, value in values.items()}


def _value(each: Input) -> float | None:
    return None if each.outcome is None else each.outcome.value


def _probability(record: Mapping[str, Any]) -> float:
    return real(record["probability"])


def _decisions(state: State) -> Iterator[Row]:
    for person, _, each, record in inputs(state):
        advantage = record["advantage"] or {}
        yield {
            **{name: record[name] for name in COLUMNS["decisions"] if name in record},
            "reasons": " ".join(record["reasons"]),
            "probability": _probability(record),
            "probability_of_action": real(record["probability_of_action"]),
            "advantage_mean": advantage.get("mean"),
            "advantage_sd": advantage.get("sd"),
            "threshold": None if record["threshold"] is None else real(record["threshold"]),
            "draw": None if record["draw"] is None else real(record["draw"]),
            "dose": real(record["dose"]),
            "delivered_action": delivered_action(person, each.decision.key),
            "outcome": _value(each),
            "recorded_at": each.decision.received_at,
            **_context(record, "decisions"),
        }


def _outcomes(state: State) -> Iterator[Row]:
    for person in state.participants.values():
        left = person.left_out()
        for each in person.outcomes.values():
            decision = person.decisions.get(str(each.decision))
            record = None if decision is None else decision.payload
            yield {
                "participant": person.id,
                "client_id": _client_id(each.key),
                "decision_id": None if record is None else record["decision_id"],
                "value": each.value,
                "observed_at": each.observed_at,
                "recorded_at": each.received_at,
                "supersedes": None if each.supersedes is None else _client_id(each.supersedes),
                "counts": each.key not in left,
                "why_not": left.get(each.key, ""),
            }


def _client_id(key: str) -> str:
    return unquote(key.partition("/")[2])


def _deliveries(state: State) -> Iterator[Row]:
    for person in state.participants.values():
        for key, several in person.deliveries.items():
            record: Any = person.decisions[key].payload
            for each in several:
                yield {
                    "participant": person.id,
                    "decision_id": record["decision_id"],
                    "status": each.status,
                    "at": each.at,
                    "assigned_action": record["action"],
                    "delivered_action": each.action,
                }


def _participants(state: State) -> Iterator[Row]:
    for person in state.participants.values():
        facts = person.enrolled or {}
        yield {
            "participant": person.id,
            "status": person.status(),
            **{name: facts.get(name) for name in ("timezone", "starts_on", "ends_on")},
            "decisions": len(person.decisions),
            "outcomes": sum(each.value is not None for each in person.current().values()),
        }


def _policies(state: State) -> Iterator[Row]:
    for each in Versions(state).listed():
        row = {name: getattr(each, name) for name in COLUMNS["policies"]}
        yield {**row, "activated": " ".join(at for at, _ in each.activated)}


def _incidents(state: State) -> Iterator[Row]:
    for each in state.incidents.values():
        if each.payload is not None:
            yield {
                "incident": each.id,
                "kind": each.payload["kind"],
                "severity": each.payload.get("severity", "warning"),
                "participant": each.participant,
                "words": each.payload.get("words", ""),
                "recorded_at": each.received_at,
                "acknowledged": " ".join(at for at, _ in each.acknowledged),
            }


def _mrt(state: State) -> Iterator[Row]:
    for person, position, each, record in inputs(state):
        yield {
            "id": person.id,
            "decision_point": position,
            "outcome": _value(each),
            "treatment": record["action"],
            "rand_prob": _probability(record),
            "availability": int(record["available"]),
            **_context(record, "mrt"),
        }


def _lifejacket(state: State) -> Iterator[Row]:
    for person, position, each, record in inputs(state):
        version = record["policy_version"]
        yield {
            "user_id": person.id,
            "calendar_t": position + 1,
            "in_study": 1,
            "policy_num": None if version is None else int(version),
            "action": record["action"],
            "action1prob": _probability(record),
            "reward": _value(each),
            **_context(record, "lifejacket"),
        }


def _obp(state: State) -> Iterator[Row]:
    for _, _, each, record in inputs(state):
        value, chance = _value(each), _probability(record)
        if value is not None and record["available"]:
            score = chance if record["action"] else 1.0 - chance
            yield {
                "position": 0,
                "action": record["action"],
                "pscore": score,
                "reward": value,
                **_context(record, "obp"),
            }


def _dictionary(state: State) -> Iterator[Row]:
    for table, columns in COLUMNS.items():
        for column, meaning in columns.items():
            yield {"table": table, "column": column, "meaning": meaning}


TABLES: Mapping[str, Callable[[State], Iterator[Row]]] = {
    "decisions": _decisions,
    "outcomes": _outcomes,
    "deliveries": _deliveries,
    "participants": _participants,
    "policies": _policies,
    "incidents": _incidents,
    "mrt": _mrt,
    "lifejacket": _lifejacket,
    "obp": _obp,
    "dictionary": _dictionary,
}
FORMATS = ("csv", "jsonl", "parquet")


def table(state: State, name: str) -> tuple[list[str], list[Row]]:
    """A table by its name: its columns and its rows.

    Raises:
        DataError: for a name that is none.
    """
    if name not in TABLES:
        raise DataError(f"there is no table {name!r}; {nearest(name, tuple(TABLES), 'there are')}")
    rows = list(TABLES[name](state))
    columns = list(COLUMNS[name])
    if name in WITH_CONTEXT:
        columns += sorted({key for row in rows for key in row} - set(columns))
    return columns, [{column: row.get(column) for column in columns} for row in rows]


def export(state: State, name: str, format: str = "csv") -> bytes:
    """A table as the bytes of a file.

    Raises:
        DataError: for a table or a format that is none; `TrialError` for Parquet without PyArrow.
    """
    if format not in FORMATS:
        raise DataError(f"a table is exported as {', '.join(FORMATS)}, not as {format!r}")
    columns, rows = table(state, name)
    if format == "jsonl":
        return b"".join(canonical(row) + b"\n" for row in rows)
    if format == "parquet":
        return _parquet(columns, rows)
    return csv_text(columns, rows).encode("utf-8")


def _parquet(columns: list[str], rows: list[Row]) -> bytes:
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise TrialError("Parquet files need PyArrow: install kerneltrail[tables]") from None
    sink = io.BytesIO()
    parquet.write_table(arrow.table({column: [row[column] for row in rows] for column in columns}), sink)
    return sink.getvalue()
