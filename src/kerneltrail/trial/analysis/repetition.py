"""A replication package run again: is its ledger whole, do decisions come out as recorded, are its tables equal?"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kerneltrail.errors import ConfigError, LedgerError, TrialError
from kerneltrail.kernels.phrases import counted
from kerneltrail.progress import Progress, Tell
from kerneltrail.trial.analysis import package
from kerneltrail.trial.analysis.analysis import Analysis, AnalysisSettings, analyse, null_effect
from kerneltrail.trial.analysis.draws import RecordedDraws
from kerneltrail.trial.analysis.personal import STAGE, Personalisation, judged, measured, measures_of, recorded
from kerneltrail.trial.analysis.record import FOREVER, read_record
from kerneltrail.trial.analysis.resampling import ground_of, resampled
from kerneltrail.trial.core import Core
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.ledger.copies import restore
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.ledger.writer import Head
from kerneltrail.trial.models import Models
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.rerun import replay
from kerneltrail.trial.results import Replayed

TOLERANCE = 1e-9
"""Relative difference up to which numbers count as equal: sums round otherwise on another kind of machine."""
LARGEST = 4 * 2**30
"""Bytes that a package may hold: more is no package of ours."""
REPLAYING, REMAKING = "computing decisions anew", "making tables again"


@dataclass(frozen=True)
class Repeated:
    """What became of a package that was run again.

    Attributes:
        trial: whose.
        entries: of its ledger, whose chain is whole.
        with_key: whether the draws were computed from the key; else they are those of the record.
        replayed: its decisions.
        tables: of each table what differs; empty where nothing does.
        resampled: simulated trials that were computed again, of
        resamples: so many.
    """

    trial: str
    entries: int
    with_key: bool
    replayed: Replayed
    tables: Mapping[str, str]
    resampled: int = 0
    resamples: int = 0

    @property
    def same(self) -> bool:
        """Whether everything came out as before."""
        return self.replayed.same and not any(self.tables.values())

    def lines(self) -> list[str]:
        """All of it in sentences."""
        drawn = (
            "computed from the key" if self.with_key else "taken from the record, since the key is not in the package"
        )
        lines = [
            f"The ledger of {self.trial} is whole: {counted(self.entries, 'entry', 'entries')}.",
            f"{str(self.replayed)[0].upper()}{str(self.replayed)[1:]}. The draws were {drawn}.",
        ]
        wrong = {name: problem for name, problem in self.tables.items() if problem}
        lines += [f"The table {name} differs: {problem}." for name, problem in wrong.items()]
        if not wrong:
            lines.append(f"All {len(self.tables)} tables have equal numbers.")
        if self.resamples:
            lines.append(f"Of {counted(self.resamples, 'simulated trial')}, {self.resampled} were computed again.")
        return lines


def repeat(
    path: Path,
    *,
    resamples: int = 2,
    expected: Head | None = None,
    tell: Tell = lambda now: None,
) -> Repeated:
    """Run a package again.

    Args:
        path: of the zip.
        resamples: how many of its simulated trials are computed again, from the first on; of the others the measures in
            the package are taken, and p values made from them.
        expected: an end of the chain that was noted elsewhere.
        tell: hears how far it is.

    Raises:
        TrialError: for a file that is no package, or one in which a file is missing or was changed.
        LedgerError: if the chain of its ledger is not sound.
    """
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        manifest = unpacked(path, folder)
        with opened(folder, manifest, expected) as core:
            tell(Progress(REPLAYING))
            replayed = replay(core)
            tell(Progress(REMAKING))
            analysis, again, of = _analysed(core, folder, resamples, tell)
        tables = {table.name: table.csv() for table in analysis.tables()}
        compared = compare_tables(folder / package.TABLES, tables)
        return Repeated(manifest["trial"], manifest["entries"], manifest["draw_key"], replayed, compared, again, of)


def unpacked(path: Path, folder: Path) -> dict[str, Any]:
    """The files of a package in a folder, each with the content that its manifest says; returns the manifest."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist()]
            if package.MANIFEST not in names:
                raise TrialError(f"{path} is no replication package: it has no {package.MANIFEST}")
            if len(set(names)) < len(names) or sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise TrialError(f"{path} is no replication package: it has a file twice, or is too large")
            files = {name: archive.read(name) for name in names}
    except FileNotFoundError:
        raise TrialError(f"there is no file {path}") from None
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as problem:
        raise TrialError(f"{path} cannot be read as a zip: {problem}") from None
    manifest = package.checked_json(files.pop(package.MANIFEST), package.MANIFEST)
    if manifest.get("format") != package.FORMAT or manifest.get("version") != package.VERSION:
        raise TrialError(f"{path} is no replication package that this kerneltrail reads")
    sums = manifest["files"]
    for name in sorted({*sums, *files}):
        if name not in files or name not in sums:
            raise TrialError(f"{path} was changed: {name} is {'missing' if name in sums else 'not of the package'}")
        if hashlib.sha256(files[name]).hexdigest() != sums[name]:
            raise TrialError(f"{path} was changed: {name} is not what its manifest says")
        goal = (folder / name).resolve()
        if not goal.is_relative_to(folder.resolve()):
            raise TrialError(f"{path} is no replication package: {name} lies outside of it")
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_bytes(files[name])
    return manifest


@contextmanager
def opened(folder: Path, manifest: Mapping[str, Any], expected: Head | None = None) -> Iterator[Core]:
    """The parts of a package's trial: its ledger restored and verified, its models, and its draws."""
    location = folder / "ledger.db"
    verdict = restore(folder / package.LEDGER, location)[0]
    head = verdict.head
    if head is None or (head.sequence, head.hash) != (manifest["entries"], manifest["head"]):
        raise LedgerError("the package's ledger does not end where its manifest says")
    ledger = Ledger(location, verdict.trial)
    if expected is not None:
        noted = next(ledger.entries(after=expected.sequence - 1, until=expected.sequence), None)
        if noted is None or noted.hash != expected.hash:
            ledger.close()
            raise LedgerError(f"entry {expected.sequence} of the package is not the one that was noted")
    core = Core(ledger, Draws(package_key(folder)), Models(folder / package.MODELS), lambda: datetime.now(UTC))
    try:
        if not manifest["draw_key"]:
            state = core.snapshot()
            core.draws = RecordedDraws.of(state, core.protocol(state).draw.commitment)
        yield core
    finally:
        core.close()


def package_key(folder: Path) -> bytes:
    """The key of the draws in an unpacked package, or zeros where it has none."""
    path = folder / package.KEY
    return bytes.fromhex(path.read_text().strip()) if path.exists() else bytes(32)


def _analysed(core: Core, folder: Path, resamples: int, tell: Tell) -> tuple[Analysis, int, int]:
    """The analysis made again; how many simulated trials were computed again, and of how many."""
    stored = package.checked_json((folder / package.SETTINGS).read_bytes(), package.SETTINGS)
    try:
        settings = AnalysisSettings.from_json(stored)
    except (KeyError, TypeError) as problem:
        raise TrialError(f"{package.SETTINGS} in the package does not say what was asked for: {problem}") from None
    state = core.snapshot()
    protocol = core.protocol(state)
    _check_protocol(folder, protocol)
    analysis = analyse(state, protocol, core.models, replace(settings, resamples=0))
    path = folder / package.TABLES / "personalisation_null.csv"
    if not settings.resamples or not path.exists():
        return replace(analysis, settings=settings), 0, 0
    personal, again = _personal(core, analysis, settings, path, resamples, tell)
    return replace(analysis, settings=settings, personal=personal), again, settings.resamples


def _check_protocol(folder: Path, protocol: Protocol) -> None:
    text = (folder / package.PROTOCOL).read_text(encoding="utf-8")
    try:
        same = Protocol.parse(text, source=package.PROTOCOL).hash == protocol.hash
    except ConfigError:
        same = False
    if not same:
        raise TrialError(f"{package.PROTOCOL} in the package is not the protocol in force by its ledger")


def _personal(
    core: Core, analysis: Analysis, settings: AnalysisSettings, path: Path, resamples: int, tell: Tell
) -> tuple[Personalisation, int]:
    """Whether it personalised, from the measures in the package; the first ones computed again."""
    record = read_record(analysis.record.state, analysis.record.protocol, now=FOREVER)
    measures = measures_of(record.protocol.reward.features)
    observed = measured(recorded(record), measures)
    kept = [place for place, value in enumerate(observed) if np.isfinite(value)]
    with path.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    drawn = np.full((len(lines), len(measures)), np.nan)
    drawn[:, kept] = [[float(cell) for cell in line[1:]] for line in lines]
    effect = null_effect(record, settings)
    ground = ground_of(record.state, core.models, effect, settings.seed)
    again = min(resamples, len(lines))
    for place in range(again):
        drawn[place] = measured(resampled(ground, place), measures)
        tell(Progress(STAGE, place + 1, again))
    return judged(measures, observed, drawn, effect, settings.seed), again


def compare_tables(folder: Path, made: Mapping[str, str]) -> dict[str, str]:
    """What differs between the tables in a folder and those made again, by name; empty where nothing does."""
    there = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.csv"))}
    compared = {}
    for name in sorted({*there, *made}):
        if name not in there or name not in made:
            compared[name] = "it is not in the package" if name not in there else "it is not made by this analysis"
        else:
            compared[name] = _difference(there[name], made[name])
    return compared


def _difference(one: str, other: str) -> str:
    if one == other:
        return ""
    before, after = (list(csv.reader(io.StringIO(text))) for text in (one, other))
    if len(before) != len(after):
        return f"it had {len(before) - 1} rows and has now {len(after) - 1}"
    for number, (was, now) in enumerate(zip(before, after, strict=True)):
        for column, (first, second) in enumerate(zip(was, now, strict=False)):
            if not _agree(first, second):
                return f"row {number}, column {before[0][column]}: it was {first} and is now {second}"
        if len(was) != len(now):
            return f"row {number} had {len(was)} cells and has now {len(now)}"
    return ""


def _agree(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return False
