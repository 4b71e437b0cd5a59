"""One way to add something of one's own: `kerneltrail.register(kind, name, thing)`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kerneltrail.errors import KerneltrailError
from kerneltrail.registry import Registry

REGISTRIES: Registry[str] = Registry("kind of thing to register")
"""Where each kind is kept: module and name. Text, so that adding an atom does not load the studies."""

REGISTRIES.add("atom", "kerneltrail.kernels.atoms:ATOMS")
REGISTRIES.add("evidence", "kerneltrail.trajectory.evidence:EVIDENCES")
REGISTRIES.add("move", "kerneltrail.trajectory.sampler.moves:MOVES")
REGISTRIES.add("method", "kerneltrail.methods:METHODS")
REGISTRIES.add("study", "kerneltrail.studies.experiments:EXPERIMENTS")


def register(kind: str, name: str, thing: Any) -> Any:
    """Add an atom, an evidence, a move, a method or a study under a name; from then on it is found like a built-in one.

    Args:
        kind: ``atom``, ``evidence``, ``move``, ``method`` or ``study``.
        name: what people write for it: in a kernel's text, in settings, on the command line.
        thing: an `AtomKind`, an evidence class, a move class, a method's builder, or an experiment. The file of any
            built-in one is an example (docs/developing.md).

    Returns:
        The thing itself.

    >>> register("atom", "SE", None)
    Traceback (most recent call last):
        ...
    kerneltrail.errors.KernelError: a kernel called 'SE' is registered already
    """
    declared = getattr(thing, "name", name)
    if declared != name:
        raise KerneltrailError(f"this {kind} calls itself {declared!r}, so it cannot be registered as {name!r}")
    module, _, attribute = REGISTRIES[kind].partition(":")
    return getattr(import_module(module), attribute).add(name, thing)
