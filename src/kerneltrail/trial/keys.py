"""Keys to the service: made, revoked and recognised by the SHA-256 of their secret, which is all that is kept."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime

from kerneltrail.errors import DataError, UnknownName
from kerneltrail.names import nearest
from kerneltrail.store.canonical import digest
from kerneltrail.trial.core import Core, answer_of
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.ledger.folds import Key
from kerneltrail.trial.results import Answer, NewKey

SCOPES = ("app", "operator", "analyst", "monitor", "unblinded")
"""What a key may be for."""


def create(core: Core, scopes: Sequence[str], expires_at: datetime | None, note: str, by: str) -> NewKey:
    """Make a key; its token is nowhere but in the answer."""
    if isinstance(scopes, str) or not scopes:
        raise DataError(f"a key needs at least one scope: {', '.join(SCOPES)}")
    for scope in scopes:
        if scope not in SCOPES:
            raise DataError(f"there is no scope {scope!r}; {nearest(str(scope), SCOPES, 'there are')}")
    if expires_at is not None and expires_at.tzinfo is None:
        raise DataError(f"the time at which a key expires needs a time zone, got {expires_at.isoformat()}")
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32).replace("_", "-")
    payload = {"scopes": list(scopes), "sha256": digest(secret.encode()), "note": note, "by": by}
    if expires_at is not None:
        payload["expires_at"] = expires_at.isoformat()
    core.append(Kind.KEY_CREATED, id, payload, {"id": id, "scopes": list(scopes)})
    return NewKey(id, f"kt_{id}_{secret}", tuple(scopes))


def revoke(core: Core, id: str, reason: str, by: str) -> Answer:
    """Make a key useless."""
    with core.reading() as state:
        if id not in state.keys:
            raise UnknownName(f"there is no key {id!r}")
        revoked = core.ledger.get(Kind.KEY_REVOKED, id)
    if revoked is not None:
        return answer_of(revoked, new=False)
    payload = {"reason": reason, "by": by}
    return core.append(Kind.KEY_REVOKED, id, payload, {"id": id, **payload})


def opened(core: Core, token: str, since: float | None) -> Key | None:
    """The key that a token opens with, or None; by what was recorded by `since` at least (`Folded.state`)."""
    parts = token.split("_", 2)
    if len(parts) != 3 or parts[0] != "kt":
        return None
    with core.reading(since) as state:
        key = state.keys.get(parts[1])
    if key is None or key.revoked_at is not None:
        return None
    same = hmac.compare_digest(digest(parts[2].encode("utf-8", "replace")), str(key.payload["sha256"]))
    return key if same else None
