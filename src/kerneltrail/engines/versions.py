"""What must be the same wherever jobs of one run are done: versions that decide the bits of a result."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from kerneltrail.store.digest import LAYERS, code

PACKAGES = ("kerneltrail", "numpy", "scipy", "numba")


def versions() -> dict[str, str]:
    """Versions here, by name; the code is that of the rooms that compute, since a version may be worked on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the package runs from its sources
            found[name] = "none"
    return {**found, "code": code(LAYERS[-1])}


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """What differs, for people; empty where nothing does.

    >>> difference({"numpy": "2.4.6", "numba": "0.68"}, {"numpy": "2.3.0", "numba": "0.68"})
    'numpy 2.3.0 instead of 2.4.6'
    """
    other = {name: there.get(name) for name in here if there.get(name) != here[name]}
    return ", ".join(f"{name} {found} instead of {here[name]}" for name, found in other.items())
