"""One way to add something of one's own: `kerneltrail.register(kind, name, thing)`; and all that was added so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from kerneltrail.registry import Registry

REGISTRIES: Registry[str] = Registry("kind of thing to register")
"""Where each kind is kept: module and name. Text, so that adding an atom does not load the studies."""

REGISTRIES.add("atom", "kerneltrail.kernels.atoms:ATOMS")
REGISTRIES.add("evidence", "kerneltrail.trajectory.evidence:EVIDENCES")
REGISTRIES.add("move", "kerneltrail.trajectory.sampler.moves:MOVES")
REGISTRIES.add("method", "kerneltrail.methods:METHODS")
REGISTRIES.add("allocation", "kerneltrail.trial.allocation:ALLOCATIONS")
REGISTRIES.add("people", "kerneltrail.trial.simulator.people:POPULATIONS")
REGISTRIES.add("policy", "kerneltrail.trial.simulator.policies:POLICIES")
REGISTRIES.add("study", "kerneltrail.studies.experiments:EXPERIMENTS")


def register(kind: str, name: str, thing: Any) -> Any:
    """Add an atom, an evidence, a move, a method or the like; it is then found like a built-in one.

    Args:
        kind: ``atom``, ``evidence``, ``move``, ``method``, ``allocation``, ``people``, ``policy`` or ``study``.
        name: what people write for it: in a kernel's text, in settings, on the command line.
        thing: an `AtomKind`, an evidence class, a move class, a method's builder, an allocation class, a class of
            simulated participants or of policies to compare, or an experiment. The file of any built-in one is an
            example (docs/developing.md).

    Returns:
        The thing itself.

    >>> register("atom", "SE", None)
    Traceback (most recent call last):
        ...
    kerneltrail.errors.KernelError: a kernel called 'SE' is registered already
    """
    return registry_of(kind).add(name, thing)


def registry_of(kind: str) -> Registry[Any]:
    """The registry of a kind; its room is loaded if it was not."""
    module, _, attribute = REGISTRIES[kind].partition(":")
    registry: Registry[Any] = getattr(import_module(module), attribute)
    return registry


def loaded() -> Iterator[tuple[str, Registry[Any]]]:
    """The kinds whose rooms are loaded, with their registries: to the others nothing can have been added."""
    for kind, where in REGISTRIES.items():
        if where.partition(":")[0] in sys.modules:
            yield kind, registry_of(kind)


def outside() -> Iterator[tuple[str, str, Any]]:
    """All that was registered from outside the package: (kind, name, thing)."""
    for kind, registry in loaded():
        for name, thing in registry.outside.items():
            yield kind, name, thing
