"""Telling somebody of incidents: an address that gets them as JSON, or a command that reads them."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from kerneltrail.errors import TrialError
from kerneltrail.trial.ledger import canonical
from kerneltrail.trial.ledger.folds import Incident

PATIENCE = 20.0
"""Seconds that an address or a command may take."""


def message(trial: str, incidents: Sequence[Incident]) -> bytes:
    """Incidents as JSON: kinds, words and study ids, and nothing that was observed."""
    shown: list[dict[str, Any]] = [
        {
            "incident": each.id,
            "kind": each.payload["kind"],
            "severity": each.payload.get("severity", "warning"),
            "words": each.payload.get("words", ""),
            "recorded_at": each.received_at,
        }
        for each in incidents
        if each.payload is not None
    ]
    return canonical({"trial": trial, "incidents": shown})


def send(hook: str, body: bytes) -> None:
    """Send a message to an address (http:// or https://), or to the standard input of a shell command.

    Raises:
        TrialError: if nobody took it; the incidents are recorded all the same.
    """
    if hook.startswith(("http://", "https://")):
        request = urllib.request.Request(hook, body, {"Content-Type": "application/json"}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE):
                return
        except (urllib.error.URLError, OSError, ValueError) as problem:
            raise TrialError(f"the incidents are recorded, but {hook} did not take them: {problem}") from None
    try:
        done = subprocess.run(hook, shell=True, input=body, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise TrialError(f"the incidents are recorded, but the command {hook!r} took too long") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise TrialError(f"the incidents are recorded, but the command {hook!r} failed: {words}")
