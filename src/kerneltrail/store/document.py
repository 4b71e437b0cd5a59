"""Configuration files as plain values, and what is wrong with them in words: file, key, place, what was expected."""

from __future__ import annotations

import os
import re
import tomllib
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError

from kerneltrail.errors import ConfigError
from kerneltrail.names import nearest

Format = Literal["yaml", "toml"]

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


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def _once(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    found: set[Any] = set()
    for key_node, _ in node.value:
        key = key_node.value
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a name", problem_mark=key_node.start_mark)
        if key in found:
            raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark)
        found.add(key)
    loader.flatten_mapping(node)
    return dict(loader.construct_pairs(node, deep=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _once)


def read_text(path: str | os.PathLike[str]) -> tuple[str, Format]:
    """A configuration file's text and its format, by its ending."""
    source = Path(path)
    formats: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
    if source.suffix.lower() not in formats:
        raise ConfigError(f"{source} must be a .yaml, .yml or .toml file")
    try:
        return source.read_text(encoding="utf-8"), formats[source.suffix.lower()]
    except FileNotFoundError:
        raise ConfigError(f"there is no file {source}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{source} is not text in UTF-8") from None
    except OSError as problem:
        raise ConfigError(f"{source} cannot be read: {problem.strerror or problem}") from None


def parse_text(text: str, format: Format, source: str) -> dict[str, Any]:
    """The plain values of a text."""
    try:
        stored = tomllib.loads(text) if format == "toml" else yaml.load(text, _Loader)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{source} cannot be read as TOML: {problem}") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise ConfigError(f"{source}{place}: {getattr(problem, 'problem', None) or problem}") from None
    if stored is None:
        return {}
    if not isinstance(stored, dict):
        raise ConfigError(f"{source} must hold keys with values, such as 'preset: default'")
    return stored


def explain(problem: ValidationError, model: type[BaseModel], source: str) -> str:
    """All that is wrong, a line each."""
    return "\n".join(f"{source}: {_one(error['type'], error, model)}" for error in problem.errors())


def _one(kind: str, error: Any, model: type[BaseModel]) -> str:
    loc = error["loc"]
    place = _place(loc)
    if kind == "extra_forbidden":
        around = f"in {_place(loc[:-1])}" if loc[:-1] else "at the top"
        return f"unknown key {loc[-1]!r} {around}; {nearest(str(loc[-1]), _keys(model, loc[:-1]), 'known are')}"
    if kind == "missing":
        return f"{_place(loc[:-1])} lacks the key {loc[-1]!r}"
    if kind == "literal_error":
        given = error["input"]
        choices = error["ctx"]["expected"]
        return f"{place} must be {choices}, got {given!r}"
    if kind in _EXPECTED:
        return f"{place} must be {_EXPECTED[kind]}, got {error['input']!r}"
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"


def _place(loc: Sequence[str | int]) -> str:
    """``pool.kernels[0].probability``; list items count from 1, as people do."""
    said = ""
    for part in loc:
        said += f"[item {part + 1}]" if isinstance(part, int) else f".{part}" if said else str(part)
    return said or "the file"


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
    """Without "or None"."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation
