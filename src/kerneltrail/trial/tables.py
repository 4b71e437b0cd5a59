"""Tables of a trial for analysis, from the ledger alone, as CSV, Parquet or JSON lines.

What is missing is empty, never 0; what was assigned and what was delivered are two columns.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Literal

import narwhals as nw

from kerneltrail.errors import DataError
from kerneltrail.names import nearest
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.ledger.canonical import real
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Participant, sifted
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.results import PolicyVersion

FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet", "jsonl": "application/jsonl"}
"""Media types by format."""

Kind = Literal["text", "number", "whole", "flag"]
_PARQUET = {"text": nw.String, "number": nw.Float64, "whole": nw.Int64, "flag": nw.Boolean}


@dataclass(frozen=True)
class Column:
    """A column: its name, its type, its unit, and what it means."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its columns described."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class _Source:
    """What tables are made from: a state of the ledger, its protocol, the versions of the policy."""

    state: State
    protocol: Protocol
    versions: Sequence[PolicyVersion]

    @property
    def people(self) -> Iterator[Participant]:
        return iter(self.state.participants.values())

    def points(self) -> Iterator[tuple[Participant, Mapping[str, Any], Any]]:
        """Decisions that were not removed, in the order of their times, with the outcome that counts or None."""
        for person in self.people:
            for each in person.inputs():
                yield person, each.decision.payload or {}, each.outcome


DECISIONS = (
    Column("decision_id", "text", "the decision's name; empty where it was removed"),
    Column("key", "text", "participant/kind/index, percent-encoded"),
    Column("participant", "text", "study id"),
    Column("kind", "text", "kind of decision"),
    Column("index", "whole", "how manieth of its kind for this participant, from 0 on"),
    Column("decided_at", "text", "on the participant's clock"),
    Column("received_at", "text", "when it was recorded, in UTC"),
    Column("available", "flag", "whether anybody could act"),
    Column("reasons", "text", "why not, separated by ;"),
    Column("action", "whole", "assigned: 1 acts, 0 does not"),
    Column("probability", "number", "of action 1, at the time"),
    Column("probability_of_action", "number", "of the action that was assigned"),
    Column("rung", "text", "what decided: policy, last_good, group_prior, fixed, unavailable"),
    Column("rung_reason", "text", "why it was not the policy"),
    Column("policy_version", "text", "version of the policy"),
    Column("model_id", "text", "fingerprint of the model"),
    Column("composition", "text", "the participant's kernel"),
    Column("advantage_mean", "number", "what acting adds to the outcome here, expected"),
    Column("advantage_sd", "number", "its standard deviation"),
    Column("clipped", "flag", "whether the probability stands at one of its limits"),
    Column("imputed", "text", "covariates that were missing and filled in, separated by ;"),
    Column("drawn_by", "text", "app where the app drew it while nothing could be recorded, else service"),
    Column("delivery", "text", "what was reported last of it; empty if nothing was"),
    Column("delivered_action", "whole", "what reached the participant; empty if nobody knows"),
    Column("outcome", "number", "the outcome that counts; empty if it is missing or not there yet"),
    Column("removed", "flag", "whether the participant's data were removed"),
)
OUTCOMES = (
    Column("key", "text", "participant/client_id, percent-encoded"),
    Column("participant", "text", "study id"),
    Column("decision", "text", "key of the decision"),
    Column("value", "number", "the outcome; empty where it was looked for and is missing"),
    Column("observed_at", "text", "when it was observed"),
    Column("received_at", "text", "when it was recorded, in UTC"),
    Column("supersedes", "text", "key of the outcome that it corrects"),
    Column("counts", "flag", "whether it is the one that counts for its decision"),
    Column("why_not", "text", "why it does not count"),
)
POLICIES = (
    Column("version", "text", "version of the policy"),
    Column("model_id", "text", "fingerprint of the model"),
    Column("base", "text", "the version that it went on from"),
    Column("made_at", "text", "when it was recorded, in UTC"),
    Column("until", "whole", "the last entry of the ledger that it knows"),
    Column("active", "flag", "whether it serves now"),
    Column("activated", "text", "when it began to serve, each time, separated by ;"),
    Column("checks", "text", "checks that it passed, separated by ;"),
)
INCIDENTS = (
    Column("id", "text", "the incident's name"),
    Column("received_at", "text", "when it was recorded, in UTC"),
    Column("kind", "text", "kind of incident"),
    Column("severity", "text", "info, warning or error"),
    Column("participant", "text", "study id, if it is about one"),
    Column("words", "text", "in one sentence"),
    Column("acknowledged_at", "text", "when it was first acknowledged, in UTC; empty while it is open"),
    Column("acknowledged_by", "text", "by whom"),
)
DICTIONARY = (
    Column("table", "text", "name of the table"),
    Column("column", "text", "name of the column"),
    Column("type", "text", "text, number, whole or flag"),
    Column("unit", "text", "unit of the values"),
    Column("meaning", "text", "what it is"),
)
_MRT = (
    Column("id", "text", "study id"),
    Column("decision_point", "whole", "how manieth decision of the participant, from 1 on"),
    Column("decided_at", "text", "on the participant's clock"),
    Column("kind", "text", "kind of decision"),
    Column("outcome", "number", "the outcome that counts; empty if it is missing"),
    Column("treatment", "whole", "assigned action"),
    Column("rand_prob", "number", "probability of treatment 1; 0 where nobody could act"),
    Column("availability", "whole", "1 if somebody could act, else 0"),
)
_LIFEJACKET = (
    Column("subject_id", "text", "study id"),
    Column("calendar_t", "whole", "number of the slot: days in order, within a day how manieth decision, from 1 on"),
    Column("active", "whole", "1: the participant was in the study"),
    Column("policy_num", "whole", "number of the policy version, in the order made; -1 for another rung"),
    Column("action", "whole", "assigned action"),
    Column("action_prob", "number", "probability of action 1"),
    Column("reward", "number", "the outcome that counts; empty if it is missing"),
)
_OBP = (
    Column("timestamp", "text", "when it was decided"),
    Column("user", "text", "study id"),
    Column("position", "whole", "always 0: there is one place for an action"),
    Column("action", "whole", "assigned action"),
    Column("reward", "number", "the outcome that counts"),
    Column("pscore", "number", "probability of the action that was assigned"),
)


def _context(source: _Source) -> tuple[Column, ...]:
    """A column for each field that the app sends."""
    return tuple(
        Column(f"context_{each.field}", "text" if each.levels else "number", f"as sent: {name}", each.unit)
        for name, each in source.protocol.covariates.items()
        if each.arrives == "context"
    )


def _covariates(source: _Source) -> tuple[Column, ...]:
    """A column for each covariate as the model had it: a level as its number, what was missing filled in."""
    return tuple(
        Column(name, "number", "as the model had it" + (f": {each.levels}" if each.levels else ""), each.unit)
        for name, each in source.protocol.covariates.items()
    )


def _arrived(source: _Source, record: Mapping[str, Any]) -> tuple[Any, ...]:
    arrived = record.get("arrived", {})
    return tuple(_number(arrived.get(name)) for name in source.protocol.covariates)


def _number(value: Any) -> float | None:
    return None if value is None else real(value)


def _decisions(source: _Source) -> Table:
    fields = [each for each in source.protocol.covariates.values() if each.arrives == "context"]
    rows = []
    for person in source.people:
        outcomes = {each.decision: each.value for each in person.current().values()}
        for each in person.decisions.values():
            record = each.payload
            if record is None:
                gap = (None,) * (len(DECISIONS) + len(fields))
                filled = {1: each.key, 2: person.id, 6: each.received_at, len(DECISIONS) - 1: True}
                rows.append(tuple(filled.get(place, value) for place, value in enumerate(gap)))
                continue
            advantage = record.get("advantage") or {}
            delivery = person.delivery(each.key)
            context = record.get("context", {})
            rows.append(
                (
                    record["decision_id"], each.key, person.id, record["kind"], record["index"], record["decided_at"],
                    each.received_at, record["available"], ";".join(record["reasons"]), record["action"],
                    _probability(record), _probability_of_action(record), record["rung"], record["rung_reason"],
                    record["policy_version"], record["model_id"], record["composition"],
                    _number(advantage.get("mean")), _number(advantage.get("sd")), record["clipped"],
                    ";".join(record["imputed"]), record.get("drawn_by", "service"),
                    None if delivery is None else delivery.status, None if delivery is None else delivery.action,
                    outcomes.get(each.key), False,
                    *(
                        _text(context.get(each.field)) if each.levels else _plain_number(context.get(each.field))
                        for each in fields
                    ),
                )
            )  # fmt: skip
    return Table("decisions", (*DECISIONS, *_context(source)), tuple(rows))


def _plain_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _probability(record: Mapping[str, Any]) -> float:
    """π to the last bit, as it is kept in hexadecimal."""
    return real(record.get("probability_hex", record["probability"]))


def _probability_of_action(record: Mapping[str, Any]) -> float:
    return _probability(record) if record["action"] else 1.0 - _probability(record)


def _outcomes(source: _Source) -> Table:
    rows = []
    for person in source.people:
        _, left = sifted(person.outcomes.values())
        for each in person.outcomes.values():
            why = left.get(each.key, "")
            rows.append(
                (each.key, person.id, each.decision, each.value, each.observed_at, each.received_at, each.supersedes,
                 not why, why)
            )  # fmt: skip
    return Table("outcomes", OUTCOMES, tuple(rows))


def _policies(source: _Source) -> Table:
    rows = (
        (
            each.version, each.model_id, each.base, each.made_at, each.until, each.active,
            ";".join(at for at, _ in each.activated), ";".join(check.name for check in each.checks if check.passed),
        )
        for each in source.versions
    )  # fmt: skip
    return Table("policies", POLICIES, tuple(rows))


def _incidents(source: _Source) -> Table:
    rows = []
    for each in source.state.incidents.values():
        payload = each.payload or {}
        at, seen = each.acknowledged[0] if each.acknowledged else (None, {})
        rows.append(
            (each.id, each.received_at, payload.get("kind"), payload.get("severity"), each.participant,
             payload.get("words"), at, seen.get("by"))
        )  # fmt: skip
    return Table("incidents", INCIDENTS, tuple(rows))


def _mrt(source: _Source) -> Table:
    rows, counts = [], dict[str, int]()
    for person, record, outcome in source.points():
        counts[person.id] = counts.get(person.id, 0) + 1
        rows.append(
            (person.id, counts[person.id], record["decided_at"], record["kind"], _value(outcome), record["action"],
             _probability(record), int(record["available"]), *_arrived(source, record))
        )  # fmt: skip
    return Table("mrt", (*_MRT, *_covariates(source)), tuple(rows))


def _value(outcome: Any) -> float | None:
    return None if outcome is None else outcome.value


def _lifejacket(source: _Source) -> Table:
    numbers = {each.version: number for number, each in enumerate(source.versions, 1)}
    slots, points, counts = set[tuple[str, int]](), [], dict[tuple[str, str], int]()
    for person, record, outcome in source.points():
        day = datetime.fromisoformat(record["decided_at"]).date().isoformat()
        counts[person.id, day] = counts.get((person.id, day), 0) + 1
        slot = (day, counts[person.id, day])
        slots.add(slot)
        points.append((person, record, outcome, slot))
    order = {slot: number for number, slot in enumerate(sorted(slots), 1)}
    rows = (
        (person.id, order[slot], 1, numbers.get(record["policy_version"], -1) if record["rung"] == "policy" else -1,
         record["action"], _probability(record), _value(outcome), *_arrived(source, record))
        for person, record, outcome, slot in points
    )  # fmt: skip
    return Table("lifejacket", (*_LIFEJACKET, *_covariates(source)), tuple(rows))


def _obp(source: _Source) -> Table:
    rows = (
        (record["decided_at"], person.id, 0, record["action"], outcome.value, _probability_of_action(record),
         *_arrived(source, record))
        for person, record, outcome in source.points()
        if record["available"] and outcome is not None and outcome.value is not None
    )  # fmt: skip
    return Table("obp", (*_OBP, *_covariates(source)), tuple(rows))


def _dictionary(source: _Source) -> Table:
    tables = (make(source) for name, make in _TABLES.items() if name != "dictionary")
    rows = [(table.name, each.name, each.kind, each.unit, each.meaning) for table in tables for each in table.columns]
    return Table("dictionary", DICTIONARY, tuple(rows))


_TABLES: Mapping[str, Callable[[_Source], Table]] = {
    "decisions": _decisions,
    "outcomes": _outcomes,
    "policies": _policies,
    "incidents": _incidents,
    "mrt": _mrt,
    "lifejacket": _lifejacket,
    "obp": _obp,
    "dictionary": _dictionary,
}
NAMES = tuple(_TABLES)
"""Names of the tables."""


def table_of(trial: Trial, name: str) -> Table:
    """A table of a trial by its name.

    Raises:
        DataError: if there is none.
    """
    if name not in _TABLES:
        raise DataError(f"there is no table {name!r}; {nearest(name, NAMES, 'there are')}")
    versions = trial.policies()
    protocol = trial.protocol
    with trial.reading() as state:
        return _TABLES[name](_Source(state, protocol, versions))


def table_bytes(table: Table, format: str) -> bytes:
    """A table as a file's content.

    Raises:
        DataError: for another format, or Parquet where nothing can write it.
    """
    if format not in FORMATS:
        raise DataError(f"there is no format {format!r}; {nearest(format, tuple(FORMATS), 'there are')}")
    names = [column.name for column in table.columns]
    if format == "parquet":
        return _parquet(table, names)
    text = io.StringIO(newline="")
    if format == "csv":
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for row in table.rows:
            writer.writerow(["" if value is None else _cell(value) for value in row])
    else:
        for row in table.rows:
            text.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
    return text.getvalue().encode("utf-8")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _parquet(table: Table, names: list[str]) -> bytes:
    writers: tuple[Literal["pyarrow", "polars"], ...] = ("pyarrow", "polars")
    backend = next((each for each in writers if find_spec(each)), None)
    if backend is None:
        raise DataError("Parquet needs pyarrow or polars: install kerneltrail[tables], or take csv or jsonl")
    columns = {name: [row[place] for row in table.rows] for place, name in enumerate(names)}
    schema = {column.name: _PARQUET[column.kind]() for column in table.columns}
    buffer = io.BytesIO()
    nw.from_dict(columns, schema=schema, backend=backend).write_parquet(buffer)
    return buffer.getvalue()
