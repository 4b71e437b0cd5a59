"""What a finished stage of an experiment is kept as, and what it depends on."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Codec(Protocol):
    """How values of one kind are kept in a file."""

    @property
    def suffix(self) -> str:
        """Ending of the file's name."""
        ...

    def save(self, value: Any) -> bytes:
        """The file's content."""
        ...

    def load(self, data: bytes) -> Any:
        """The value that `save` was given; what is computed anew is passed through both, so that nothing differs."""
        ...


class _Json:
    suffix = "json"

    def save(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode()  # floats read back to the same bits

    def load(self, data: bytes) -> Any:
        return json.loads(data)


class _Arrays:
    suffix = "npz"

    def save(self, value: Mapping[str, NDArray[Any]]) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(file, **value)  # type: ignore[arg-type]
        return file.getvalue()

    def load(self, data: bytes) -> dict[str, NDArray[Any]]:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


KEY = 12
"""Letters of a key."""
JSON: Codec = _Json()
"""Plain values: dicts with text keys, lists, numbers (NaN and infinities too), texts, True, False, None."""
ARRAYS: Codec = _Arrays()
"""Arrays by name."""


def key_of(parts: Mapping[str, Any]) -> str:
    """Plain values in twelve letters: equal for equal values, whatever the order of keys."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=KEY // 2).hexdigest()


def superseded(folder: Path, used: AbstractSet[str]) -> None:
    """Remove files and folders that are named as those in use but for their key, which is what follows the last dash.

    >>> superseded(Path("nowhere"), {"model-0-0123456789ab"})
    """
    stages = {name.rpartition("-")[0] for name in used}
    for path in sorted(folder.glob("*-*")):
        stem = path.name.partition(".")[0]
        stage, _, key = stem.rpartition("-")
        if stage in stages and stem not in used and len(key) == KEY and set(key) <= set("0123456789abcdef"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
