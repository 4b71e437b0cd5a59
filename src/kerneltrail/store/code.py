"""The code that a result depends on: the package's (`digest.code`), and that of what comes from outside.

What comes from outside is a function that computes, or what was registered with `kerneltrail.register`. A class that a
notebook defines has no file, and a plug-in's class may use functions of its other modules. So code is followed from the
thing itself: its methods, the classes it is made from, and the functions, classes and constants that these name. The
package is not followed, nor are the standard library and other installed packages. Values that may change while a
program runs (lists, dictionaries, sets) are left out: a cache would make every digest another one. Where a module has a
file, the file counts too, and with it the values that its text gives them.
"""

from __future__ import annotations

import dis
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from kerneltrail.errors import DataError
from kerneltrail.plugins import outside
from kerneltrail.store.digest import HOME, LAYERS, blake, code, compiled, described, instructions

COMPUTING = ("atom", "evidence", "move")
"""Kinds that results depend on wherever they are named: a method may name an atom in its settings or in its code."""


def code_of(function: Callable[..., Any], layer: str = LAYERS[-1], *, by_module: bool = False) -> str:
    """The code that results depend on which a function computes with the help of a layer and of those before it.

    Of ``methods`` the function's own module or package counts with what it imports. A function from elsewhere counts
    besides, with all that it names; and so do the atoms, evidences and moves that were registered from outside, since
    it may name any of them.

    Args:
        function: what computes.
        layer: the last room that it uses.
        by_module: count the module of a function from elsewhere, not the values that it has there: who asks knows them.
    """
    return " ".join(filter(None, (_own(function, layer, by_module), all_registered_code())))


def _own(function: Callable[..., Any], layer: str, by_module: bool) -> str:
    module = _module(function)
    file = getattr(sys.modules.get(module), "__file__", None)
    if module.partition(".")[0] == HOME.name:
        room, *rest = Path(str(file)).relative_to(HOME).parts
        if room == "methods":
            return code(layer, rest[0].removesuffix(".py"))
        return code(layer) if room in LAYERS else f"{code(layer)} {compiled(Path(str(file))).hex()}"
    if by_module and file is not None:
        return f"{code(layer)} {compiled(Path(file)).hex()}"
    return f"{code(layer)} {outside_code(function)}"


def registered_code(**used: Iterable[str]) -> str:
    """A digest of the code of things that are used and were registered from outside; empty where none was.

    Args:
        used: names by kind, such as ``atom=("SE", "RQ"), evidence=("group",)``; the package's own count for nothing.
    """
    names = {kind: set(each) for kind, each in used.items()}
    return _digest(each for each in outside() if each[1] in names.get(each[0], ()))


def all_registered_code() -> str:
    """A digest of the code of every atom, evidence and move from outside; empty where there is none."""
    return _digest(each for each in outside() if each[0] in COMPUTING)


def _digest(things: Iterable[tuple[str, str, Any]]) -> str:
    parts = [f"{kind} {name} {outside_code(thing)}\n" for kind, name, thing in things]
    return blake(*parts, size=8).hex() if parts else ""


def outside_code(thing: Any) -> str:
    """A digest of the code of a class, a function or an object that the package does not define."""
    return blake(*(part + b"\n" for part in _Reader(_module(thing)).read(thing)), size=8).hex()


def _module(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or type(thing).__module__)


class _Reader:
    """Reads a thing of the module `home` with all that it names; each thing once."""

    def __init__(self, home: str) -> None:
        self._home = home.partition(".")[0]
        self._seen: dict[int, Any] = {}  # what has been read, kept alive, since its id is what it is known by
        self._files: set[str] = set()

    def read(self, value: Any) -> Iterator[bytes]:
        """All that makes the value what it is, as bytes."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            yield repr(value).encode()
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType | type):
            yield value.__qualname__.encode()
            if self._follows(value.__module__):
                yield from self._file(value.__module__)
                yield from self._function(value) if isinstance(value, FunctionType) else self._class(value)
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
            if self._follows(value.__name__):
                yield from self._file(value.__name__)
        elif isinstance(value, tuple):
            for each in value:
                yield from self.read(each)
        elif (parts := _parts(value)) is not None:
            yield from self.read(parts)
        else:
            yield from self._object(value)

    def _function(self, function: FunctionType) -> Iterator[bytes]:
        code = function.__code__
        if code.co_consts and code.co_consts[0] == function.__doc__:
            code = code.replace(co_consts=(None, *code.co_consts[1:]))
        yield from instructions(code)
        yield from self.read(function.__defaults__)
        for name, value in sorted((function.__kwdefaults__ or {}).items()):
            yield name.encode()
            yield from self.read(value)
        for cell in function.__closure__ or ():
            try:
                yield from self.read(cell.cell_contents)
            except ValueError:  # it is empty
                yield b"nothing"
        for name in sorted(_named(code)):
            if name in function.__globals__:
                yield name.encode()
                yield from self.read(function.__globals__[name])

    def _class(self, kind: type) -> Iterator[bytes]:
        for base in kind.__bases__:
            yield from self.read(base)
        for name, value in sorted(vars(kind).items()):
            if not name.startswith("__") or _parts(value) is not None or isinstance(value, FunctionType):
                yield name.encode()
                yield from self.read(value)

    def _object(self, value: Any) -> Iterator[bytes]:
        kind = type(value)
        yield from self.read(kind)
        if isinstance(value, list | dict | set | bytearray):
            return
        if self._follows(kind.__module__):
            for name, each in sorted(getattr(value, "__dict__", {}).items()):
                yield name.encode()
                yield from self.read(each)
        else:
            try:
                yield json.dumps(described(value), sort_keys=True).encode()
            except DataError:  # its type must do
                yield kind.__qualname__.encode()

    def _file(self, module: str) -> Iterator[bytes]:
        """The module's file, as it runs; once."""
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and module not in self._files and Path(file).is_file():
            self._files.add(module)
            yield compiled(Path(file))

    def _follows(self, module: str | None) -> bool:
        """Whether a module's code belongs to what is read: not the package's, nor that of libraries."""
        top = (module or "").partition(".")[0]
        if top in ("", "kerneltrail", "builtins", *sys.stdlib_module_names):
            return False
        if top in (self._home, "__main__"):
            return True
        file = getattr(sys.modules.get(module or ""), "__file__", None)
        return file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _parts(value: Any) -> tuple[Any, ...] | None:
    """What a wrapped function consists of; None of anything else."""
    if isinstance(value, staticmethod | classmethod | MethodType):
        return (value.__func__, getattr(value, "__self__", None))
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, cached_property):
        return (value.func,)
    if isinstance(value, partial):
        return (value.func, value.args, tuple(sorted(value.keywords.items())))
    # A function that numba compiles, or one that a decorator has made an object of.
    inner = getattr(value, "py_func", getattr(value, "__wrapped__", None))
    return (inner,) if isinstance(inner, FunctionType) else None


def _named(code: CodeType) -> set[str]:
    """The global names that code loads, functions inside it included."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_named(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
