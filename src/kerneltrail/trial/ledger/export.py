"""Tables for analysts, from a trial's state: what was decided, delivered and observed, in files for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, get_args

from kerneltrail.errors import DataError
from kerneltrail.evaluation.tables import csv_text, parquet_bytes
from kerneltrail.trial.ledger.canonical import real
from kerneltrail.trial.ledger.dictionary import COLUMNS, CONTEXT, WITH_CONTEXT, Column, context_columns
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.ledger.participant import Decision, Input, Participant

Form = Literal["csv", "parquet", "jsonl"]
FORMS: tuple[Form, ...] = get_args(Form)
TABLES = tuple(COLUMNS)
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows with their columns, each explained."""

    name: str
    columns: tuple[Column, ...]
    rows: list[Row]

    def written(self, form: Form) -> bytes:
        """As a file's bytes; what is missing is empty in CSV, and null elsewhere. Parquet needs pyarrow."""
        names = [column.name for column in self.columns]
        if form == "csv":
            listed = ({key: list(v) if isinstance(v, tuple) else v for key, v in row.items()} for row in self.rows)
            return csv_text(names, listed).encode("utf-8")
        if form == "jsonl":
            lines = (json.dumps({name: row.get(name) for name in names}, ensure_ascii=False) for row in self.rows)
            return "".join(f"{line}\n" for line in lines).encode("utf-8")
        if form == "parquet":
            try:
                return parquet_bytes({column.name: column.type for column in self.columns}, self.rows)
            except ImportError:
                raise DataError("Parquet files need pyarrow: pip install 'kerneltrail[tables]'") from None
        raise DataError(f"a table is written as {', '.join(FORMS)}, not as {form!r}")


def table(state: State, name: str) -> Table:
    """One of the tables of `TABLES`, as the entries so far have it."""
    if name not in COLUMNS:
        raise DataError(f"there is no table {name!r}; there are {', '.join(TABLES)}")
    return Table(name, _columns(state, name), list(_ROWS[name](state)))


def _columns(state: State, name: str) -> tuple[Column, ...]:
    return COLUMNS[name] + (context_columns(_covariates(state)) if name in WITH_CONTEXT else ())


def _covariates(state: State) -> list[tuple[str, str]]:
    """Covariates that came with any request, and the type that holds all their values."""
    kinds: dict[str, set[str]] = {}
    for person in state.participants.values():
        for decision in person.decisions.values():
            for name, value in _context(decision).items():
                if value is not None:
                    kinds.setdefault(name, set()).add(_kind(value))
                else:
                    kinds.setdefault(name, set())
    return [(name, kind.pop() if len(kind) == 1 else "str") for name, kind in sorted(kinds.items())]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "float" if isinstance(value, int | float) else "str"


def _context(decision: Decision) -> Mapping[str, Any]:
    context = (decision.payload or {}).get("context")
    return context if isinstance(context, Mapping) else {}


def _cells(decision: Decision, types: Mapping[str, str]) -> Row:
    """A decision's covariates as cells; of a column with values of several types each is a text."""
    cells: Row = {}
    for name, value in _context(decision).items():
        if value is None:
            continue
        kind = types[name]
        if kind == "str" and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        cells[f"{CONTEXT}{name}"] = float(value) if kind == "float" else value
    return cells


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else real(value)


def _joined(state: State) -> Iterator[tuple[Participant, int, Input]]:
    """Every decision that is known, by participant in the order of time, numbered from 1."""
    for person in state.participants.values():
        for number, each in enumerate(person.inputs(), 1):
            yield person, number, each


def _decisions(state: State) -> Iterator[Row]:
    types = dict(_covariates(state))
    rows = [_decision(person, each, types) for person, _, each in _joined(state)]
    for person in state.participants.values():
        for decision in person.decisions.values():
            if decision.payload is None:
                known = {"sequence": decision.sequence, "participant": person.id, "decision": decision.key}
                rows.append({**known, "received_at": decision.received_at, "removed": True})
    yield from sorted(rows, key=lambda row: row["sequence"])


def _decision(person: Participant, each: Input, types: Mapping[str, str]) -> Row:
    decision, payload = each.decision, each.decision.payload or {}
    delivery = person.delivery(decision.key)
    advantage = payload.get("advantage") or {}
    texts = ("decision_id", "kind", "index", "drawn_by", "rung", "rung_reason", "policy_version", "model_id")
    return {
        "sequence": decision.sequence,
        "participant": person.id,
        "decision": decision.key,
        "decided_at": payload["decided_at"],
        "received_at": decision.received_at,
        "available": payload["available"],
        "reasons": tuple(map(str, payload.get("reasons") or ())),
        "action": payload["action"],
        "probability": real(payload["probability"]),
        "probability_of_action": _of_action(payload),
        "draw": _number(payload.get("draw")),
        "advantage_mean": _number(advantage.get("mean")),
        "advantage_sd": _number(advantage.get("sd")),
        "imputed": tuple(map(str, payload.get("imputed") or ())),
        "delivery_status": None if delivery is None else delivery.status,
        "delivered_action": None if delivery is None else delivery.action,
        "delivered_at": None if delivery is None else delivery.at,
        "outcome": None if each.outcome is None else each.outcome.value,
        "outcome_key": None if each.outcome is None else each.outcome.key,
        "removed": False,
        **{name: _text(payload.get(name)) for name in (*texts, "composition", "clipped")},
        **_cells(decision, types),
    }


def _of_action(payload: Mapping[str, Any]) -> float:
    probability = real(payload["probability"])
    return probability if payload["action"] == 1 else 1 - probability


def _outcomes(state: State) -> Iterator[Row]:
    rows: list[Row] = []
    for person in state.participants.values():
        left = person.left_out()
        rows += [
            {
                "sequence": each.sequence,
                "participant": person.id,
                "outcome": each.key,
                "decision": each.decision,
                "value": each.value,
                "observed_at": each.observed_at,
                "received_at": each.received_at,
                "supersedes": each.supersedes,
                "counts": each.key not in left,
                "left_out": left.get(each.key),
            }
            for each in person.outcomes.values()
        ]
    yield from sorted(rows, key=lambda row: row["sequence"])


def _policies(state: State) -> Iterator[Row]:
    for each, after in zip_longest(state.activations, state.activations[1:]):
        yield {
            "sequence": each.sequence,
            "version": _text(each.version),
            "activated_at": each.received_at,
            "replaced_at": None if after is None else after.received_at,
            "reason": each.reason,
            "model_id": _text(each.payload.get("model_id")),
            "active": after is None,
        }


def _incidents(state: State) -> Iterator[Row]:
    for each in state.incidents.values():
        when, first = each.acknowledged[0] if each.acknowledged else (None, {})
        payload = each.payload or {}
        yield {
            "sequence": each.sequence,
            "incident": each.id,
            "participant": each.participant,
            "recorded_at": each.received_at,
            "open": each.is_open,
            "acknowledged_at": when,
            "acknowledged_by": _text(first.get("by")),
            "note": _text(first.get("note")),
            **{name: _text(payload.get(name)) for name in ("kind", "severity", "words")},
        }


def _mrt(state: State) -> Iterator[Row]:
    types = dict(_covariates(state))
    for person, number, each in _joined(state):
        payload, delivery = each.decision.payload or {}, person.delivery(each.decision.key)
        yield {
            "id": person.id,
            "decision_point": number,
            "decided_at": payload["decided_at"],
            "outcome": None if each.outcome is None else each.outcome.value,
            "treatment": payload["action"],
            "rand_prob": real(payload["probability"]),
            "availability": int(payload["available"]),
            "delivered": None if delivery is None else delivery.action,
            **_cells(each.decision, types),
        }


def _obp(state: State) -> Iterator[Row]:
    types = dict(_covariates(state))
    number = 0
    for _, _, each in _joined(state):
        payload = each.decision.payload or {}
        if payload["available"] and each.outcome is not None and each.outcome.value is not None:
            scored = {"round": number, "action": payload["action"], "reward": each.outcome.value, "position": 0}
            yield {**scored, "pscore": _of_action(payload), **_cells(each.decision, types)}
            number += 1


def _lifejacket(state: State) -> Iterator[Row]:
    types = dict(_covariates(state))
    versions: dict[str, int] = {}
    for activation in state.activations:
        versions.setdefault(str(activation.version), len(versions) + 1)
    longest = max((number for _, number, _ in _joined(state)), default=0)
    for person in state.participants.values():
        inputs = person.inputs()
        for number, each in enumerate(inputs, 1):
            payload = each.decision.payload or {}
            yield {
                "user_id": person.id,
                "calendar_t": number,
                "in_study": 1,
                "policy_num": versions.get(str(payload.get("policy_version")), 0),
                "action": payload["action"],
                "action_prob": real(payload["probability"]),
                "reward": None if each.outcome is None else each.outcome.value,
                "available": int(payload["available"]),
                **_cells(each.decision, types),
            }
        if inputs:
            for number in range(len(inputs) + 1, longest + 1):
                yield {"user_id": person.id, "calendar_t": number, "in_study": 0}


def _dictionary(state: State) -> Iterator[Row]:
    for name in TABLES:
        for column in _columns(state, name):
            yield {"table": name, "column": column.name, "type": column.type, "words": column.words}


_ROWS: dict[str, Callable[[State], Iterator[Row]]] = {
    "decisions": _decisions,
    "outcomes": _outcomes,
    "policies": _policies,
    "incidents": _incidents,
    "mrt": _mrt,
    "obp": _obp,
    "lifejacket": _lifejacket,
    "dictionary": _dictionary,
}
