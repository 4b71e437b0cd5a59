"""Sessions of the desk: who has logged in with a key is known by a signed cookie, and only as long as the key is good.

A session is not kept on the server. Its cookie names the key and an end, and is signed with a secret that all servers
of the trial can derive. At every page the key is looked up in the ledger, so a key that is revoked or has expired ends
its sessions at once. A form carries a token that is made from the session, so no other site can send it.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

LIFETIME = timedelta(hours=12)
"""After which somebody has to log in again."""
SESSION, VISIT = "kerneltrail_desk", "kerneltrail_desk_visit"
"""Cookies: of a session, and of somebody who has not logged in yet, for the log-in form."""
SEVERAL = 10_000
"""Of so many sessions that were logged out is remembered that they were."""


def person_clock() -> datetime:
    """The time of whoever looks, by which a session ends: a trial that is simulated has a clock that runs ahead."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Session:
    """Somebody who has logged in.

    Attributes:
        key: the id of the key.
        nonce: tells this session from others of the key.
        ends: when it is over.
    """

    key: str
    nonce: str
    ends: datetime


class Sessions:
    """Signs sessions and forms, and knows them again.

    >>> from datetime import UTC
    >>> sessions, now = Sessions(b"secret"), datetime(2026, 3, 1, tzinfo=UTC)
    >>> cookie = sessions.begin("1a2b", now)
    >>> sessions.of(cookie, now).key, sessions.of(cookie + "x", now), sessions.of(cookie, now + LIFETIME)
    ('1a2b', None, None)
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, key: str, now: datetime) -> str:
        """The cookie of a new session."""
        content = f"{key}.{secrets.token_hex(16)}.{int((now + LIFETIME).timestamp())}"
        return f"{content}.{self._signed('session', content)}"

    def of(self, cookie: str | None, now: datetime) -> Session | None:
        """The session of a cookie, or None: it is not ours, is over, or was logged out here."""
        content, _, signature = (cookie or "").rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed("session", content).encode()):
            return None
        key, nonce, end = content.split(".")
        ends = datetime.fromtimestamp(int(end), now.tzinfo)
        return Session(key, nonce, ends) if now < ends and nonce not in self._ended else None

    def end(self, session: Session) -> None:
        """Log out: the cookie is of no use on this server from now on."""
        with self._lock:
            self._ended[session.nonce] = None
            if len(self._ended) > SEVERAL:
                self._ended.popitem(last=False)

    def token(self, nonce: str) -> str:
        """What every form of a session, or of a visit, carries."""
        return self._signed("form", nonce)

    def is_token(self, token: str, nonce: str) -> bool:
        """Whether a form was made by us for this session or visit."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token(nonce).encode())

    def _signed(self, what: str, content: str) -> str:
        digest = hmac.new(self._secret, f"{what}\n{content}".encode("utf-8", "replace"), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def visit() -> str:
    """A name for somebody who has not logged in yet."""
    return secrets.token_hex(16)
