"""The replication package: one zip with the record, the models, the versions and the tables, that anybody can re-run.

It holds no secret: the ledger has only hashes of keys, and the key of the draws is put in only where that is asked for.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from kerneltrail.errors import TrialError
from kerneltrail.store.atomic import write
from kerneltrail.trajectory import model_file
from kerneltrail.trial.analysis.analysis import Analysis
from kerneltrail.trial.draw import Draws
from kerneltrail.trial.ledger.copies import backup
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.models import SUFFIX, Models
from kerneltrail.trial.protocol_text import commented_text
from kerneltrail.trial.versions import Versions

FORMAT, VERSION = "kerneltrail-replication", 1
MANIFEST, README, LEDGER, PROTOCOL, KEY = "manifest.json", "README.md", "ledger.jsonl", "protocol.yaml", "draw.key"
SETTINGS, CONSTRAINTS, PAGE, MODELS, TABLES = "settings.json", "constraints.txt", "analysis.html", "models", "tables"
"""Names in the zip."""
_THEN = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the zip, so that the same content is the same zip."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def write_package(
    path: Path,
    analysis: Analysis,
    ledger: Ledger,
    models: Models,
    *,
    page: str,
    draws: Draws | None = None,
) -> dict[str, Any]:
    """Write the package of an analysed trial, and return its manifest.

    Args:
        path: of the zip.
        analysis: whose tables and settings go in.
        ledger: of the trial; it is verified while it is copied, up to the last entry that was analysed.
        models: of the trial; those that a version of the policy has go in.
        page: as HTML.
        draws: whose key is published with it; None keeps it secret.

    Raises:
        TrialError: if the key is not the protocol's, or somebody's data were removed since the analysis began.
        LedgerError: if the ledger is not sound; `UnknownName` for a model that is not there.
    """
    protocol = analysis.record.protocol
    if draws is not None and draws.commitment != protocol.draw.commitment:
        raise TrialError("the key of the draws is not the one that the protocol is committed to; it is not published")
    tables = analysis.tables()
    files: dict[str, bytes] = {
        LEDGER: _lines(ledger, analysis.record.state.sequence),
        PROTOCOL: commented_text(protocol).encode(),
        SETTINGS: _pretty(analysis.settings.to_json()),
        CONSTRAINTS: constraints().encode(),
        PAGE: page.encode(),
        **{f"{TABLES}/{table.name}.csv": table.csv().encode() for table in tables},
        **model_files(analysis, models),
    }
    if draws is not None:
        files[KEY] = f"{draws.key.hex()}\n".encode()
    head = json.loads(files[LEDGER].rsplit(b"\n", 2)[-2])
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "trial": protocol.trial,
        "title": protocol.title,
        "entries": head["entries"],
        "head": head["head"],
        "made_with": made_with(),
        "draw_key": draws is not None,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    }
    files[README] = _readme(analysis, manifest).encode()
    files[MANIFEST] = _pretty(manifest | {"files": manifest["files"] | {README: _sha(files[README])}})
    write(path, zipped(files))
    return json.loads(files[MANIFEST])


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Files as a zip; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _THEN), files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _pretty(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2, ensure_ascii=False).encode() + b"\n"


def _lines(ledger: Ledger, until: int) -> bytes:
    """The entries that were analysed: a trial that runs has gone on since."""
    if any(entry.kind == Kind.REMOVAL for entry in ledger.entries(after=until)):
        raise TrialError(
            "somebody's data were removed from the ledger while it was analysed, and no table may have them: start the "
            "analysis again"
        )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / LEDGER
        backup(ledger, copy, until=until)
        return copy.read_bytes()


def model_files(analysis: Analysis, models: Models) -> dict[str, bytes]:
    """The models of all versions of the policy, by their names in the zip."""
    needed = {each.model_id for each in Versions(analysis.record.state).by_name.values()}
    return {f"{MODELS}/{name[:16]}{SUFFIX}": model_file.to_bytes(models.get(name)) for name in sorted(needed)}


def made_with() -> dict[str, str]:
    """What computed the numbers: package, interpreter, machine."""
    numeric = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {
        "kerneltrail": version("kerneltrail"),
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.machine()}",
        **numeric,
    }


def constraints() -> str:
    """The versions of all packages that were there for it to use, one to a line, for ``pip install -c``."""
    pins: dict[str, str] = {}
    waiting = ["kerneltrail"]
    while waiting:
        name = waiting.pop()
        if name.lower() in pins:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        pins[name.lower()] = f"{found.name}=={found.version}"
        for required in found.requires or ():
            match = _NAME.match(required)
            if match is not None:
                waiting.append(match[0])
    pins.pop("kerneltrail")
    return "".join(f"{pin}\n" for _, pin in sorted(pins.items()))


def _readme(analysis: Analysis, manifest: Mapping[str, Any]) -> str:
    made = manifest["made_with"]
    drawn = (
        f"`{KEY}` is the key of the draws. Its SHA-256 is the protocol's commitment, so every u can be computed anew:\n"
        "nobody chose the draws."
        if manifest["draw_key"]
        else "The key of the draws is not in here. Every probability is computed anew; the numbers u that were drawn\n"
        "are taken from the record, and that each action follows from its u is checked."
    )
    found = "\n".join(f"- {line}" for line in analysis.words())
    return f"""# {manifest["title"]}: replication package

Trial `{manifest["trial"]}`, {manifest["entries"]} entries of its ledger up to the hash
`{manifest["head"]}`.

## What was found

{found}

## What is in here

| file | what it is |
|---|---|
| `{LEDGER}` | every entry of the ledger, with hashes: decisions, outcomes, updates, events |
| `{PROTOCOL}` | the protocol in force; all its versions are in the ledger |
| `{MODELS}/` | the models that the policy's versions have |
| `{TABLES}/`, `{PAGE}` | the numbers, and the page about them |
| `{SETTINGS}` | what was asked for |
| `{CONSTRAINTS}`, `{MANIFEST}` | versions of packages; the SHA-256 of every file |

{drawn}

Participants whose data were removed on request are removed here too: their entries have hashes and nothing else.
All else that was recorded of participants is in `{LEDGER}`, under their study ids: **these are health data. Share this
file only as consent and law allow.** Keys to the service are in it as SHA-256 hashes of random secrets, and the names
of the machines that ran updates as they were. The models hold the names of pilot users as their table had them.

## How to run it again

```text
pip install -c {CONSTRAINTS} 'kerneltrail[trial]=={made["kerneltrail"]}'
kerneltrail trial rerun THIS.zip
```

That verifies the chain of the ledger, computes every decision anew, and makes every table again; it says what is equal
and what is not. It was made with Python {made["python"]} on {made["system"]}. On another kind of machine numbers may
differ in their last digits; up to one part in 10⁹ counts as equal.
"""


def checked_json(content: bytes, name: str) -> dict[str, Any]:
    """A JSON object of the zip; `TrialError` if it is none."""
    try:
        values = json.loads(content)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise TrialError(f"{name} in the package is no JSON object")
    return values
