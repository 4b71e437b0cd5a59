"""The folder of a trial: its protocol, the key of its draws, its models, and its ledger unless that is elsewhere."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltrail.errors import TrialError
from kerneltrail.store.atomic import check_writable, read, write
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.ledger import Ledger
from kerneltrail.trial.protocol import Protocol, read_protocol
from kerneltrail.trial.protocol_text import commented_text

LEDGER = "KERNELTRAIL_LEDGER"
"""The environment's variable that says where the ledger is: an address may have a password, which is not typed."""


@dataclass(frozen=True)
class Folder:
    """Where the files of a trial are."""

    path: Path

    @property
    def protocol_file(self) -> Path:
        """What was agreed."""
        return self.path / "protocol.yaml"

    @property
    def key_file(self) -> Path:
        """The secret of the draws, in hexadecimal; nobody else may read it."""
        return self.path / "draws.key"

    @property
    def models(self) -> Path:
        """Model files."""
        return self.path / "models"

    @property
    def backups(self) -> Path:
        """Copies of the ledger."""
        return self.path / "backups"

    @property
    def location(self) -> str:
        """Where the ledger is: as the environment says, or a file here."""
        return os.environ.get(LEDGER) or str(self.path / "ledger.db")

    def begin(self, model: TrajectoryModel, *, trial: str, **choices: Any) -> Protocol:
        """Make the folder: a key, the model, and a protocol with all that the model knows, to be read and changed.

        Raises:
            TrialError: if there is a protocol or a key already.
        """
        for file in (self.protocol_file, self.key_file):
            if file.exists():
                raise TrialError(f"{file} is there already; a trial begins in a folder of its own")
            check_writable(file)
        draws = Draws(secrets.token_bytes(32))
        protocol = Protocol.from_model(
            model, trial=trial, commitment=draws.commitment, file="models/pilot.trail", **choices
        )
        self.models.mkdir(parents=True, exist_ok=True)
        model.save(self.models / "pilot.trail")
        keep_secret(self.key_file, draws.key.hex())
        write(self.protocol_file, commented_text(protocol))
        return protocol

    def key(self) -> bytes:
        """The secret of the draws.

        Raises:
            TrialError: if it is not there, or no key.
        """
        text = read(self.key_file, error=TrialError).decode("ascii", "replace").strip()
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise TrialError(f"{self.key_file} has no key: expected hexadecimal digits") from None

    def protocol(self) -> Protocol:
        """The protocol as the file has it."""
        return read_protocol(self.protocol_file)

    def open(self, **options: Any) -> Trial:
        """The trial, with its ledger; `options` are those of `Trial.open`.

        Raises:
            TrialError: if no protocol was frozen yet.
        """
        stated = {"key": self.key(), "models": self.models, "backups": self.backups, **options}
        trial = Trial.open(Ledger(self.location, self.protocol().trial), **stated)
        _ = trial.protocol  # refuses where none is frozen
        return trial


def keep_secret(path: Path, text: str) -> Path:
    """Write a new file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise TrialError(f"{path} cannot be written: {problem.strerror or problem}") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return path
