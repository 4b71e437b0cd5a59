"""Which simulated set, with which pool, priors and sizes: all that an experiment with a known truth is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kerneltrail.data import simulate
from kerneltrail.data.simulate import Simulation
from kerneltrail.kernels import Composition, Pool, Priors, parse
from kerneltrail.studies.bench.recovery import wide_priors
from kerneltrail.trajectory.settings import Settings

PRESETS = ("default", "published")
"""What is run side by side; the model of the first is the one that is kept beside the page."""


@dataclass(frozen=True)
class Sizes:
    """How large an experiment is.

    Attributes:
        train, test: numbers of users.
        table: of the test users with the first true kernel, how many the table of log likelihoods averages over.
        methods: test users on whom methods are compared, spread over both true kernels; 0 for no comparison.
        search: most products in a kernel for the methods that search as the trajectory model does.
        page: test users followed on the page, half of them of each true kernel.
        default, published: changes of the two presets' settings.
    """

    train: int
    test: int
    table: int = 50
    methods: int = 8
    search: int = 2
    page: int = 24
    default: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, preset: str, seed: int) -> Settings:
        """The settings of a preset."""
        changes = {**getattr(self, preset), "seed": seed}
        return replace(Settings(), **changes) if preset == "default" else Settings.published(**changes)

    def to_json(self) -> dict[str, Any]:
        """Numbers of users as plain values; settings say what they are themselves."""
        return {name: getattr(self, name) for name in ("train", "test", "table", "methods", "search", "page")}


@dataclass(frozen=True)
class Set:
    """A simulated set.

    Attributes:
        name: of the experiment.
        title: of its page.
        said: what is in it, in a sentence or two.
        simulate: users from ``train=``, ``test=`` and ``seed=``.
        priors: over hyperparameters.
        simple: kernels beside the first true one in the table of log likelihoods.
        full, quick: sizes.
        pool: products on offer.
    """

    name: str
    title: str
    said: str
    simulate: Callable[..., Simulation]
    priors: Callable[[], Priors]
    simple: tuple[str, ...]
    full: Sizes
    quick: Sizes
    pool: Callable[[], Pool] = Pool.paper

    def compared(self, truth: Composition) -> tuple[Composition, ...]:
        """Kernels of the table of log likelihoods, simple ones first."""
        return (*(parse(text) for text in self.simple), truth)


_QUICK: Mapping[str, Any] = {"default": {"largest": 2, "sweeps": 300}, "published": {"largest": 2, "sweeps": 100}}
_LATER = (
    "One of the sets of the authors' later work: x ~ U(0, 20), six batches of 5 rows, noise of standard deviation 0.5. "
)
_LATER_FULL, _LATER_QUICK = Sizes(10, 50, table=25, methods=12), Sizes(6, 16, table=8, methods=4, search=1, **_QUICK)

SETS: Mapping[str, Set] = {
    each.name: each
    for each in (
        Set(
            "synthetic",
            "The paper's synthetic experiment",
            "x ~ U(-4, 4); batches of 3, 4, 10, 20, 50 and 100 rows; half of the users follow LIN + PER, half SE. The "
            "paper prints neither the range of x nor the true hyperparameters: ours are medians of its priors, with a "
            "noise variance of 0.15.",
            simulate.paper,
            Priors.synthetic,
            ("LIN[x]",),
            Sizes(6, 100),
            Sizes(6, 20, table=10, methods=2, search=1, **_QUICK),
        ),
        Set(
            "distinct",
            "Two kernels that are easy to tell apart",
            f"{_LATER}Half of the users follow LIN + PER, half SE.",
            simulate.distinct,
            wide_priors,
            ("LIN[x]", "SE[x]"),
            _LATER_FULL,
            _LATER_QUICK,
        ),
        Set(
            "similar",
            "Two kernels that are hard to tell apart",
            f"{_LATER}Half of the users follow LIN + PER, half LIN + SE.",
            simulate.similar,
            wide_priors,
            ("LIN[x]", "LIN[x] + SE[x]"),
            _LATER_FULL,
            _LATER_QUICK,
        ),
        Set(
            "complex",
            "Two kernels with products",
            f"{_LATER}Half of the users follow LIN×PER, half SE×PER + SE.",
            simulate.complex,
            wide_priors,
            ("LIN[x]", "LIN[x] + PER[x]"),
            _LATER_FULL,
            _LATER_QUICK,
        ),
    )
}
"""SPEC §9's simulations by name."""
