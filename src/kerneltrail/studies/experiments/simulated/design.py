"""Which simulated set, with which pool, priors and sizes: all that an experiment with a known truth is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kerneltrail.data.simulate import Simulation
from kerneltrail.kernels import Composition, Pool, Priors, parse
from kerneltrail.studies.sets import SETS, SimulatedSet
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
class SimulatedStudy:
    """An experiment on a simulated set.

    Attributes:
        name: of the experiment.
        title: of its page.
        description: what is in it, in a sentence or two.
        simulate: users from ``train=``, ``test=`` and ``seed=``.
        priors: over hyperparameters.
        simple: kernels beside the first true one in the table of log likelihoods.
        full, quick: sizes.
        pool: products on offer.
    """

    name: str
    title: str
    description: str
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
_LATER_SIZES = Sizes(10, 50, table=25, methods=12), Sizes(6, 16, table=8, methods=4, search=1, **_QUICK)


def _study(
    name: str, title: str, users: SimulatedSet, simple: tuple[str, ...], sizes: tuple[Sizes, Sizes] = _LATER_SIZES
) -> SimulatedStudy:
    return SimulatedStudy(name, title, users.description, users.simulate, users.priors, simple, *sizes, pool=users.pool)


STUDIES: tuple[SimulatedStudy, ...] = (
    _study(
        "synthetic",
        "The paper's synthetic experiment",
        SETS["paper"],
        ("LIN[x]",),
        (Sizes(6, 100), Sizes(6, 20, table=10, methods=2, search=1, **_QUICK)),
    ),
    _study("distinct", "Two kernels that are easy to tell apart", SETS["distinct"], ("LIN[x]", "SE[x]")),
    _study("similar", "Two kernels that are hard to tell apart", SETS["similar"], ("LIN[x]", "LIN[x] + SE[x]")),
    _study("complex", "Two kernels with products", SETS["complex"], ("LIN[x]", "LIN[x] + PER[x]")),
)
"""An experiment for each simulated set; the paper's own goes by the name that the paper gives it."""
