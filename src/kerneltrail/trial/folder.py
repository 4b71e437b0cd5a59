"""A trial's folder: the protocol, the key of the draws, the models, the ledger and its copies, each in its place."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kerneltrail.data import Cohort
from kerneltrail.errors import ConfigError, DataError, TrialError
from kerneltrail.store.atomic import read, write
from kerneltrail.trajectory.model import load
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.keeping import USUAL, Keeping
from kerneltrail.trial.ledger.database import url_of
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.models import SUFFIX, Models
from kerneltrail.trial.protocol import Protocol, read_protocol
from kerneltrail.trial.protocol_text import commented_text

PROTOCOL, KEY, LEDGER = "protocol.yaml", "draw.key", "ledger.db"
MODELS, BACKUPS, STATES, PILOT = "models", "backups", "states", "pilot.csv"
"""Names in the folder."""


@dataclass(frozen=True)
class Folder:
    """A folder of a trial.

    Attributes:
        path: where it is.
        location: of the ledger: a path or a URL; None for the SQLite file in the folder.
    """

    path: Path
    location: str | None = None

    def protocol(self) -> Protocol:
        """The protocol in the file, frozen or not."""
        if not (self.path / PROTOCOL).exists():
            raise DataError(
                f"there is no file {self.path / PROTOCOL}: name the trial's folder with --folder; `kerneltrail trial "
                "init` makes one"
            )
        return read_protocol(self.path / PROTOCOL)

    def draws(self) -> Draws:
        """The draws of the key in the file."""
        text = read(self.path / KEY).decode("ascii", "replace").strip()
        try:
            return Draws(bytes.fromhex(text))
        except ValueError:
            raise DataError(f"{self.path / KEY} must hold the key of the draws in hexadecimal digits") from None

    def pilot(self, protocol: Protocol) -> Cohort | None:
        """The pilot users' rows, for a protocol that pools, if their table is there: read as the model read it."""
        path = self.path / PILOT
        if protocol.pooling != "pooled" or not path.exists():
            return None
        model = Models(self.path / MODELS).get(protocol.model.fingerprint)
        return Cohort.from_schema(model.schema, path)

    def ledger(self, *, new: bool = False) -> Ledger:
        """The ledger; one that is not there yet is refused unless it may be new."""
        location = self.path / LEDGER if self.location is None else self.location
        ledger = Ledger(location, self.protocol().trial)
        if not new and ledger.head() is None:
            ledger.close()
            raise TrialError(
                f"{ledger.database.shown} has no ledger of the trial {ledger.trial} yet: `kerneltrail trial freeze` "
                "begins it"
            )
        return ledger

    def check_output(self, out: Path, *, copy: bool = False) -> None:
        """Refuse to write over what the trial keeps; a link is refused by its own place and by what it leads to.

        Args:
            out: the file to write.
            copy: it is a copy of the ledger, which may replace another copy among the backups, but no other file of
                the folder.
        """
        ledgers = [each for each in (_file_of(self.path / LEDGER), _file_of(self.location)) if each is not None]
        for place in (out.resolve(), out.parent.resolve() / out.name):
            at_ledger = any(place in _files_of_sqlite(ledger) or _is_same(place, ledger) for ledger in ledgers)
            if at_ledger or (os.path.lexists(place) and not place.is_dir() and self._keeps(place, copy)):
                what = "the trial's ledger" if at_ledger else "a file of the trial's folder"
                among = f", or one in {self.path / BACKUPS}" if copy else ""
                raise TrialError(
                    f"{out} is {what}, and would be replaced: name another file, which is not there yet{among}"
                )

    def _keeps(self, file: Path, copy: bool) -> bool:
        """Whether a file in the folder is one that stays: any but a backup in the way of a copy, else the trial's."""
        folder = self.path.resolve()
        if copy:
            return file.is_relative_to(folder) and not file.is_relative_to(folder / BACKUPS)
        names = (PROTOCOL, KEY, PILOT, MODELS, BACKUPS, STATES)
        return any(file.is_relative_to(folder / name) for name in names)

    def open(
        self,
        *,
        freeze: bool = False,
        warm: bool = False,
        clock: Callable[[], datetime] | None = None,
        alone: bool = False,
        keep: str = USUAL,
    ) -> Trial:
        """The trial of the folder; `freeze` freezes the protocol in the file if none is in force.

        Updates that are started compute in a process of their own, unless this one should do all `alone`, or has a
        clock that no other process has. `keep` says which copies are kept (`Keeping.of`).
        """
        protocol = self.protocol()
        key, pilot, rule = self.draws().key, self.pilot(protocol), Keeping.of(keep)
        again = partial(Folder(self.path.resolve(), self.location).open, alone=True, keep=keep)
        return Trial.open(
            self.ledger(new=freeze),  # when nothing else can be refused: who has it closes it
            key=key,
            models=self.path / MODELS,
            protocol=protocol if freeze else None,
            pilot=pilot,
            backups=self.path / BACKUPS,
            states=self.path / STATES,
            clock=clock or partial(datetime.now, UTC),
            warm=warm,
            again=None if alone or clock is not None else again,
            keep=rule,
        )


def _file_of(location: str | Path | None) -> Path | None:
    """The file of a ledger that is one."""
    if location is None:
        return None
    url = url_of(location)
    return Path(url.database).resolve() if url.get_backend_name() == "sqlite" and url.database else None


def _files_of_sqlite(ledger: Path) -> list[Path]:
    """A ledger with what SQLite keeps beside it while it is in use."""
    return [ledger.with_name(f"{ledger.name}{ending}") for ending in ("", "-wal", "-shm", "-journal")]


def _is_same(path: Path, other: Path) -> bool:
    """Whether both are one file, under other names too."""
    return path.exists() and other.exists() and path.samefile(other)


_ID = re.compile(r"[A-Za-z0-9_-]+")


def make_folder(
    path: Path, model_file: Path, *, trial: str, allocation: str = "default", better: str = "higher"
) -> tuple[Folder, Protocol]:
    """A folder for a trial with a model: a protocol to be read and changed, and a secret key that is nowhere else.

    Raises:
        DataError: if there is a protocol already; a key that is there is used.
        ConfigError: if the model has no reward model, or the id has other signs than letters, digits, - and _.
    """
    if not _ID.fullmatch(trial):
        raise ConfigError(
            f"a trial's id stands in addresses and file names, so it has only letters, digits, - and _; got {trial!r}"
        )
    folder = Folder(path)
    if (path / PROTOCOL).exists():
        raise DataError(f"{path / PROTOCOL} is there already; take another folder, or take it away")
    model = load(model_file)
    key = secrets.token_bytes(32) if not (path / KEY).exists() else folder.draws().key
    kept = Path(MODELS) / f"{model_file.stem}{SUFFIX}"
    protocol = Protocol.from_model(
        model, trial=trial, commitment=Draws(key).commitment, file=str(kept), allocation=allocation, better=better
    )
    (path / MODELS).mkdir(parents=True, exist_ok=True)
    model.save(path / kept)
    if not (path / KEY).exists():
        # Nobody else may read it, not even for the moment in which it is written.
        handle = os.open(path / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(key.hex() + "\n")
    write(path / PROTOCOL, commented_text(protocol))
    return folder, protocol
