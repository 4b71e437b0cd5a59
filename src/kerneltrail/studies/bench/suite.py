"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerneltrail.errors import KerneltrailError
from kerneltrail.studies.bench import evidence, map, methods, nested, recovery, select, train, update
from kerneltrail.studies.bench.rows import Row

BENCHES = {"evidence": evidence, "map": map, "update": update, "train": train, "select": select}

LONG = {"methods": methods, "nested": nested, "recovery": recovery}
"""Minutes each, and about other methods or about quality: only when asked for by name, not part of `all`."""


def _chosen(which: str) -> list[str]:
    if which != "all" and which not in BENCHES | LONG:
        raise KerneltrailError(f"there is no benchmark {which!r}; there are {', '.join(BENCHES | LONG)} and all")
    return list(BENCHES) if which == "all" else [which]


def steps(which: str, *, quick: bool = False) -> int:
    """How many times `run` will call `tick`."""
    modules = [(BENCHES | LONG)[name] for name in _chosen(which)]
    plans = [(module.Plan.quick if quick else module.Plan)() for module in modules]
    return sum(plan.steps for plan in plans)


def run(
    which: str, *, seed: int = 0, quick: bool = False, tick: Callable[[str], None] = lambda said: None
) -> Iterator[Row]:
    """Rows of one benchmark, or of all.

    Args:
        which: a name in `BENCHES`, or ``all``.
        seed: of data and hyperparameters.
        quick: fewer sizes and users; ratios are rougher.
        tick: called with what comes next.
    """
    for name in _chosen(which):
        module = (BENCHES | LONG)[name]
        yield from module.run(module.Plan.quick() if quick else module.Plan(), seed, tick)
