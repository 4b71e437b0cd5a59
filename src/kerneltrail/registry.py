"""Things found by name: one idea for atoms, evidences, moves, methods, allocations and studies.

Each room owns a `Registry` of its kind and fills it beside the definitions; nothing elsewhere asks "is it this one?".
`kerneltrail.register` adds to any of them from outside. A registry tells the package's own things from those that were
added later: another process knows the first by itself, the second must be sent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from kerneltrail.errors import KerneltrailError
from kerneltrail.names import nearest

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Named things of one kind, in the order in which they were added; a wrong name is answered with the nearest.

    >>> colours = Registry("colour")
    >>> colours.add("blue", 0x0000FF)
    255
    >>> colours["bleu"]
    Traceback (most recent call last):
        ...
    kerneltrail.errors.KerneltrailError: no colour is called 'bleu'; did you mean 'blue'?
    """

    def __init__(
        self,
        kind: str,
        error: type[KerneltrailError] = KerneltrailError,
        check: Callable[[str, object], str | None] = lambda name, thing: None,
    ) -> None:
        self.kind = kind
        self._error = error
        self._check = check  # says what is wrong with a thing, if anything is
        self._things: dict[str, T] = {}
        self._built_in: frozenset[str] | None = None  # names; None until the package's own are all there
        self._sent: frozenset[str] = frozenset()  # in a worker: names that came from the process which began it
        self._lost: dict[str, str] = {}  # in a worker: why a thing could not come along, by name

    def add(self, name: str, thing: T) -> T:
        """Add a thing under a name that is free; returns it, so that it can stand in an assignment."""
        if type(name) is not str or not name:
            raise self._error(f"a {self.kind} needs a name, got {name!r}")
        if name in self._things and name not in self._sent:  # a module that registers it may be imported here later
            raise self._error(f"a {self.kind} called {name!r} is registered already")
        calls_itself = getattr(thing, "name", name)
        if calls_itself != name:
            raise self._error(f"this {self.kind} calls itself {calls_itself!r}, so it cannot be registered as {name!r}")
        problem = self._check(name, thing)
        if problem is not None:
            raise self._error(f"{name!r} cannot be registered as a {self.kind}: {problem}")
        self._things[name] = thing
        return thing

    def complete(self) -> None:
        """State that the package's own things are all here: what is added from now on comes from outside."""
        self._built_in = frozenset(self._things)

    @property
    def outside(self) -> dict[str, T]:
        """What was added after the package's own things, by name, in the order in which it was added."""
        built_in = self._things if self._built_in is None else self._built_in
        return {name: thing for name, thing in self._things.items() if name not in built_in}

    def receive(self, outside: Mapping[str, T], lost: Mapping[str, str]) -> None:
        """Have from outside exactly what another process has, in its order; `lost` says why a thing did not arrive.

        The order matters: pools list the kinds of atoms in it.
        """
        others = self.outside
        self._things = {name: thing for name, thing in self._things.items() if name not in others} | dict(outside)
        self._sent, self._lost = frozenset(outside), dict(lost)

    def named(self, name: str) -> Callable[[T], T]:
        """`add` as a decorator."""
        return lambda thing: self.add(name, thing)

    @contextmanager
    def temporarily(self, name: str, thing: T) -> Iterator[T]:
        """A thing that is registered inside a block only."""
        self.add(name, thing)
        try:
            yield thing
        finally:
            del self._things[name]

    def __getitem__(self, name: str) -> T:
        try:
            return self._things[name]
        except (KeyError, TypeError):
            if name in self._lost:
                raise self._error(
                    f"the {self.kind} {name!r} cannot be sent to another process ({self._lost[name]}); use one worker"
                ) from None
            hint = nearest(str(name), self._things, "there are")
            raise self._error(f"no {self.kind} is called {name!r}; {hint}") from None

    def get(self, name: str, default: Any = None) -> Any:
        """The thing of that name, or `default`."""
        return self._things.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


def subclass_of(base: type) -> Callable[[str, object], str | None]:
    """The check that a thing is a class made from another."""

    def check(name: str, thing: object) -> str | None:
        fits = isinstance(thing, type) and issubclass(thing, base)
        return None if fits else f"it must be a subclass of {base.__name__}, got {thing!r}"

    return check
