"""Documents that people write, as plain values, and what is wrong with them in words: file, key, place.

A document may come from anywhere, so that its size, its depth and its whole numbers have limits; in YAML, what aliases
and merges stand for counts as if it had been written out.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError

from kerneltrail.errors import ConfigError, DataError
from kerneltrail.names import nearest
from kerneltrail.store.atomic import read
from kerneltrail.store.validate import short

Language = Literal["yaml", "toml"]

BYTES = 200_000
"""The longest document."""
VALUES = 10_000
"""The most values in a document."""
DEPTH = 40
"""The most lists and mappings within each other."""
DIGITS = 40
"""The longest whole number."""

_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
}


class _Loader(yaml.SafeLoader):
    """YAML without code, in which 1e-6 is a number (as in YAML 1.2) and a key stands once."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """A node's value; one that is not of its type, such as the date 2024-13-45, is an error with its place."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception:  # whatever Python's types say of it
            raise _marked(f"{short(node.value)} cannot be read as {node.tag.rpartition(':')[2]}", node) from None


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def _marked(problem: str, part: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=part.start_mark)


def _once(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys: set[Any] = set()
    for key_node, _ in node.value:
        key = key_node.value
        if not isinstance(key_node, yaml.ScalarNode):
            raise _marked("a key must be a name", key_node)
        if key in keys:
            raise _marked(f"the key {key!r} stands twice", key_node)
        keys.add(key)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _once)


def _load_yaml(text: str) -> Any:
    """The value of a text whose size was counted first: a few aliases of aliases can stand for millions of values."""
    sizes: dict[str, tuple[int, int]] = {}  # values and depth of what an alias stands for
    around: list[tuple[str | None, int, int]] = [(None, 0, 0)]  # the collections that are open: alias, values, depth
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, 1, 1))
            size = (0, 0)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise _marked(f"*{event.anchor} stands for nothing that ends before it", event)
            size = sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            size = (1, 0)
            sizes[event.anchor] = size
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, *counts = around.pop()
            size = (counts[0], counts[1])
            sizes[str(anchor)] = size
        else:
            continue
        anchor, values, depth = around[-1]
        around[-1] = (anchor, values + size[0], max(depth, size[1] + 1))
        if values + size[0] > VALUES:
            raise _marked(f"more than {VALUES:,} values, what aliases stand for counted each time", event)
        if len(around) + size[1] > DEPTH:
            raise _marked(f"more than {DEPTH} lists or mappings within each other", event)
    return yaml.load(text, _Loader)


def _check_values(value: Any, source: str, path: tuple[str | int, ...] = ()) -> int:
    """How many values there are; too many, too deep, or whole numbers too long are refused."""
    if isinstance(value, int) and abs(value) >= 10**DIGITS:
        raise ConfigError(f"{source}: {_dotted(path)} is a whole number of more than {DIGITS} digits")
    if len(path) > DEPTH:
        raise ConfigError(f"{source}: {_dotted(path[:3])} holds more than {DEPTH} lists or mappings within each other")
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    total = 1 + sum(_check_values(item, source, (*path, key)) for key, item in items)
    if total > VALUES:
        raise ConfigError(f"{source}: {_dotted(path)} holds more than {VALUES:,} values")
    return total


def read_text(path: str | os.PathLike[str]) -> tuple[str, Language]:
    """A configuration file's text and its language, by its ending."""
    source = Path(path)
    languages: dict[str, Language] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
    if source.suffix.lower() not in languages:
        raise ConfigError(f"{source} must be a .yaml, .yml or .toml file")
    try:
        return read(source, error=ConfigError).decode("utf-8"), languages[source.suffix.lower()]
    except UnicodeDecodeError:
        raise ConfigError(f"{source} is not text in UTF-8") from None


def parse_text(text: str, language: Language, source: str) -> dict[str, Any]:
    """The plain values of a text.

    Raises:
        ConfigError: naming the line or the key, where it cannot be read or is larger than a document may be.
    """
    if len(text) > BYTES:
        raise ConfigError(f"{source} has {len(text):,} characters; a configuration may have {BYTES:,}")
    try:
        stored = tomllib.loads(text) if language == "toml" else _load_yaml(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise ConfigError(f"{source}{line}: {getattr(problem, 'problem', None) or problem}") from None
    except RecursionError:
        raise ConfigError(f"{source} holds more than {DEPTH} lists or mappings within each other") from None
    except ValueError as problem:  # of TOML's reader, and of Python where a whole number has thousands of digits
        raise ConfigError(f"{source} cannot be read as TOML: {problem}") from None
    if stored is None:
        return {}
    if not isinstance(stored, dict):
        raise ConfigError(f"{source} must hold keys with values, such as 'preset: default'")
    _check_values(stored, source)
    return stored


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file that a program wrote."""
    try:
        return json.loads(read(path))
    except RecursionError:
        raise DataError(f"{path} is not JSON that can be read: its lists or mappings lie too deep") from None
    except ValueError as problem:
        raise DataError(f"{path} is not JSON: {problem}") from None


def explain(problem: ValidationError, model: type[BaseModel], source: str) -> str:
    """All that is wrong, a line each."""
    return "\n".join(f"{source}: {_one(error['type'], error, model)}" for error in problem.errors())


def _one(kind: str, error: Any, model: type[BaseModel]) -> str:
    loc = error["loc"]
    path = _dotted(loc)
    if kind == "extra_forbidden":
        around = f"in {_dotted(loc[:-1])}" if loc[:-1] else "at the top"
        return f"unknown key {loc[-1]!r} {around}; {nearest(str(loc[-1]), _keys(model, loc[:-1]), 'known are')}"
    if kind == "missing":
        return f"{_dotted(loc[:-1])} lacks the key {loc[-1]!r}"
    if kind == "literal_error":
        given = error["input"]
        choices = error["ctx"]["expected"]
        return f"{path} must be {choices}, got {short(given)}"
    if kind in _EXPECTED:
        return f"{path} must be {_EXPECTED[kind]}, got {short(error['input'])}"
    return f"{path}: {error['msg'].removeprefix('Value error, ')}"


def _dotted(loc: Sequence[str | int]) -> str:
    """``pool.kernels[0].probability``; list items count from 1, as people do."""
    text = ""
    for part in loc:
        text += f"[item {part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def _keys(model: Any, loc: Sequence[str | int]) -> list[str]:
    """The keys known at a place."""
    for part in loc:
        model = _plain(model)
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation
        else:  # a list's items or a mapping's values
            model = get_args(model)[-1]
    model = _plain(model)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _plain(annotation: Any) -> Any:
    """A type without "or None"."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation
