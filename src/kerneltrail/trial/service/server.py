"""Serving an application: on this machine only unless told otherwise, until somebody asks to stop."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from kerneltrail.errors import TrialError

LOCAL = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 20
"""Seconds that calls have to end after somebody asked to stop."""


class Server(uvicorn.Server):
    """A server that stops on Ctrl-C or SIGTERM: what is being answered is answered, then `run` returns."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, and do not raise it again when all is done: this is how a server ends."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in _SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def server_for(app: FastAPI) -> Server:
    """A server of an application."""
    config: dict[str, Any] = {
        "access_log": False,  # it would have whole paths and queries; the application writes its own lines
        "server_header": False,
        "proxy_headers": False,  # an address that anybody can claim is no address
        "log_config": None,
        "timeout_graceful_shutdown": GRACE,
        "timeout_keep_alive": 30,
        "h11_max_incomplete_event_size": 32_768,
        "lifespan": "on",
    }
    return Server(uvicorn.Config(app, **config))


def listening(host: str = LOCAL, port: int = 8000) -> socket.socket:
    """A socket that listens; a port of 0 is any that is free.

    Raises:
        TrialError: if it cannot be, with the reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as problem:
        listener.close()
        reason = getattr(problem, "strerror", None) or problem
        raise TrialError(f"nothing can listen at {host}, port {port}: {reason}") from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address at which a socket listens, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def in_thread(app: FastAPI, *, host: str = LOCAL, port: int = 0) -> Iterator[str]:
    """Serve in a thread of this process while the block runs; gives the address."""
    listener = listening(host, port)
    server = server_for(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server", daemon=True)
    thread.start()
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join(timeout=2 * GRACE)
        listener.close()
