"""One file of arrays with a JSON header, in the safetensors format: no code in it, none run by reading it.

The header is one text in the format's metadata: which kind of thing it is, the version of its layout, the package
version that wrote it, the content, and a digest of content and arrays. The same content gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from kerneltrail.errors import ModelFileError
from kerneltrail.store.digest import blake
from kerneltrail.store.validate import conform, plain, reading

SCHEMA = 1
"""Version of the layout. It changes whenever an older reader would misread a file, or a newer one an older file."""

KINDS = {"model": "a trajectory model", "user": "a followed user", "arrays": "arrays"}
"""What a file may hold, in words."""

_KEY = "kerneltrail"
_LONGEST_HEADER = 100_000_000  # the format's own limit

Arrays = Mapping[str, NDArray[Any]]


def pack(kind: str, content: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a file."""
    # Memory order is kept too: sums over a transposed array may round otherwise.
    turned = [name for name, a in arrays.items() if a.flags.f_contiguous and not a.flags.c_contiguous]
    stored = {name: np.ascontiguousarray(a.T if name in turned else a) for name, a in arrays.items()}
    inner = {"content": content, "turned": turned}
    about = {"kind": kind, "schema": SCHEMA, "version": version("kerneltrail"), "digest": digest_of(inner, stored)}
    return save_arrays(stored, metadata={_KEY: _dumps(about | inner)})


def unpack(data: bytes, kind: str, shown: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Content and arrays of a file's bytes; `shown` is what messages call the file.

    Raises:
        ModelFileError: if it is something else, of another version, cut short or damaged.
    """
    head, size = _head(data, shown)
    if head.get("schema") != SCHEMA:
        raise ModelFileError(
            f"{shown} was written by kerneltrail {head.get('version')} in schema version {head.get('schema')}; this "
            f"kerneltrail, {version('kerneltrail')}, reads schema version {SCHEMA}. Read it with the version that "
            "wrote it, or fit again."
        )
    if head.get("kind") != kind:
        contents = KINDS.get(str(head.get("kind")), "something else")
        raise ModelFileError(f"{shown} holds {contents}, not {KINDS[kind]}")
    if len(data) != size:
        raise ModelFileError(f"{shown} is {'cut short' if len(data) < size else 'too long'}: {_sizes(data, size)}")
    with reading(shown, ModelFileError):
        try:
            conform(head, {"digest": str, "content": dict[str, Any], "turned": list[str]}, "its header")
            stored = load_arrays(data)
        except Exception as problem:  # whatever the format's reader makes of it
            raise ModelFileError(f"{shown} is damaged: {problem}") from None
        if head["digest"] != digest_of({"content": head["content"], "turned": head["turned"]}, stored):
            raise ModelFileError(f"{shown} is damaged: its contents are not what was written")
        return head["content"], {
            name: np.array(a.T if name in head["turned"] else a, order="K") for name, a in stored.items()
        }


def _head(data: bytes, shown: str) -> tuple[dict[str, Any], int]:
    """The header and the length that the whole file should have."""
    foreign = ModelFileError(f"{shown} is not a file that kerneltrail wrote")
    if not data:
        raise ModelFileError(f"{shown} is empty")
    length = int.from_bytes(data[:8], "little")
    if len(data) < 9 or length > _LONGEST_HEADER or data[8:9] != b"{":
        raise foreign
    if len(data) < 8 + length:
        raise ModelFileError(f"{shown} is cut short: {_sizes(data, 8 + length)} at least")
    try:
        header = json.loads(data[8 : 8 + length])
        head = json.loads(header["__metadata__"][_KEY])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        conform(head, dict[str, Any])
        conform(ends, list[int])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise foreign from None
    return head, 8 + length + max(ends, default=0)


def _sizes(data: bytes, size: int) -> str:
    return f"{len(data)} bytes, where it should have {size}"


def digest_of(content: Mapping[str, Any], arrays: Arrays) -> str:
    """A digest of plain values and arrays, the same in every process."""
    parts: list[str | NDArray[Any]] = [_dumps(content)]
    for name, array in sorted(arrays.items()):
        parts += [f"{name}{array.shape}{array.dtype.str}", array]
    return blake(*parts).hex()


def _dumps(value: Any) -> str:
    """JSON with the shortest digits that read back to the same float64."""
    return json.dumps(value, ensure_ascii=False, default=_kept)


def _kept(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray | Mapping):
        return plain(value)
    raise ModelFileError(f"a {type(value).__name__} cannot be kept in a model file: {value!r}")
