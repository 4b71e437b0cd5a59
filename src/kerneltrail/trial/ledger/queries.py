"""Statements on the ledger's tables. They are built once: building one takes longer than SQLite needs to answer it."""

from __future__ import annotations

from sqlalchemy import Table, and_, bindparam, func, insert, select, text, union_all

from kerneltrail.trial.ledger import schema
from kerneltrail.trial.ledger.entries import Entry, Kind

ENTRIES, PAYLOADS = schema.entries, schema.payloads
CHUNK = 1000
"""Rows that are fetched at a time."""

_COLUMNS = (*(ENTRIES.c[name] for name in Entry.__dataclass_fields__ if name in ENTRIES.c),)
_BESIDE = (PAYLOADS.c.salt, PAYLOADS.c.content, PAYLOADS.c.response)
_WITH_PAYLOADS = select(*_COLUMNS, *_BESIDE).select_from(
    ENTRIES.outerjoin(PAYLOADS, and_(PAYLOADS.c.trial == ENTRIES.c.trial, PAYLOADS.c.sequence == ENTRIES.c.sequence))
)
_OF_TRIAL = ENTRIES.c.trial == bindparam("of")
_OF_KIND, _REMOVAL = ENTRIES.c.kind == bindparam("sought"), ENTRIES.c.kind == str(Kind.REMOVAL)
_OF_KEY = and_(_OF_KIND, ENTRIES.c.key == bindparam("named"))
_OF_KEYS = and_(_OF_KIND, ENTRIES.c.key.in_(bindparam("several", expanding=True)))

FIND = _WITH_PAYLOADS.where(_OF_TRIAL, _OF_KEY)
_IS_LAST = ENTRIES.c.sequence == select(func.max(ENTRIES.c.sequence)).where(_OF_TRIAL).scalar_subquery()
BEFORE_WRITING = union_all(
    FIND,  # each with an index of its own, which databases do not find for one condition with all three
    _WITH_PAYLOADS.where(_OF_TRIAL, _REMOVAL, ENTRIES.c.key == bindparam("whom")),
    _WITH_PAYLOADS.where(_OF_TRIAL, _IS_LAST),
)
"""An entry of a key, the removal of a participant, and the last entry, whichever there are."""
FIND_SEVERAL = union_all(
    _WITH_PAYLOADS.where(_OF_TRIAL, _OF_KEYS),
    _WITH_PAYLOADS.where(_OF_TRIAL, _REMOVAL, ENTRIES.c.key.in_(bindparam("people", expanding=True))),
)
AFTER = _WITH_PAYLOADS.where(_OF_TRIAL, ENTRIES.c.sequence > bindparam("after")).order_by(ENTRIES.c.sequence)
NEXT = AFTER.limit(CHUNK)
LAST = select(ENTRIES.c.sequence, ENTRIES.c.hash).where(_OF_TRIAL).order_by(ENTRIES.c.sequence.desc()).limit(1)
BY_THEN = select(func.max(ENTRIES.c.sequence)).where(_OF_TRIAL, ENTRIES.c.received_at <= bindparam("then"))
INSERT_ENTRY, INSERT_PAYLOAD = insert(ENTRIES), insert(PAYLOADS)
ENTRY_NAMES, PAYLOAD_NAMES = list(ENTRIES.c.keys()), list(PAYLOADS.c.keys())


def _inserted(table: Table) -> str:
    names = list(table.c.keys())
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


INSERT_BOTH = text(f"WITH entry AS ({_inserted(ENTRIES)}) {_inserted(PAYLOADS)}")
"""An entry with its payload in one message to PostgreSQL; SQLite, which knows no such statement, needs no messages."""
