"""Random problems for the MAP search: whether it ends at an optimum, at the best one, and at the same one again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from time import process_time
from typing import ClassVar, Self

import numpy as np

from kerneltrail.data import User
from kerneltrail.data.simulate.truth import draw_target
from kerneltrail.engines import one_blas_thread
from kerneltrail.gp import LinearBlock, MapResult, Reward, find_map_path, inputs_for
from kerneltrail.gp.whitened import WhitenedPosterior
from kerneltrail.kernels import Array, Atom, Composition, Hyperparameters, Priors, Product
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, number, silent, text, time
from kerneltrail.studies.sets import PAPER_BATCHES
from kerneltrail.trajectory.map_table import MapSettings

SLOPE = 0.1
"""Largest whitened gradient of an optimum: its value is then within 0.005 nats, or far less where curvature is high."""

NEAR = 0.05
"""Nats by which two log posteriors may differ and still count as the same optimum."""


@dataclass(frozen=True)
class SearchProblem:
    """A user's rows, a kernel to fit to them, and its priors."""

    user: User
    composition: Composition
    priors: Priors
    block: LinearBlock | None

    @property
    def periodic(self) -> bool:
        """Whether the kernel has a period to find."""
        return any(atom.kind == "PER" for product in self.composition for atom in product.atoms)

    def search(self, settings: MapSettings, seed: int) -> tuple[tuple[MapResult, ...], float]:
        """The fits to all batches from random starts of this seed, and their processor seconds."""
        rng = np.random.default_rng([seed, self.user.rows])
        start = process_time()
        with np.errstate(all="ignore"):
            path = find_map_path(
                self.user, self.composition, self.priors, rng=rng, block=self.block, **asdict(settings)
            )
        return path, process_time() - start

    def slope(self, fit: MapResult, batch: int) -> float:
        """The largest whitened gradient at a fit to a batch, computed apart from the search; 0 at an edge.

        At an edge the posterior still rises, and the fit says so.
        """
        if fit.status == "edge":
            return 0.0
        mean, variance = self.priors.moments(self.composition)
        inputs = inputs_for(self.user, self.composition, block=self.block).upto(self.user.ends[batch])
        target = WhitenedPosterior(inputs, mean, np.sqrt(variance), "auto", 1e-8)
        whitened = (fit.hyperparameters.vector - mean) / np.sqrt(variance)
        return float(np.abs(target.slopes(whitened[None])[1]).max())


def _product(rng: np.random.Generator, covariates: tuple[str, ...]) -> Product:
    """One atom, or two of them in a third of the cases."""
    size = 2 if rng.random() < 0.33 else 1
    atoms = {Atom(str(rng.choice(("LIN", "PER", "SE"))), str(rng.choice(covariates))) for _ in range(size)}
    return Product(tuple(atoms))


def _kernel(rng: np.random.Generator, covariates: tuple[str, ...]) -> Composition:
    """Up to three different products."""
    size = int(rng.choice((1, 2, 3), p=(0.4, 0.4, 0.2)))
    return Composition(tuple({_product(rng, covariates) for _ in range(size)}))


def _drawn(
    rng: np.random.Generator, priors: Priors, X: Array, covariates: tuple[str, ...], composition: Composition
) -> Array:
    """A target from the kernel itself, or from another one: half and half."""
    truth = composition if rng.random() < 0.5 else _kernel(rng, covariates)
    theta = Hyperparameters(truth, tuple(priors.sample(truth, 1, rng)[0]))
    return draw_target(theta, X, covariates, rng)


def _curves(rng: np.random.Generator, name: str, batches: tuple[int, ...] = PAPER_BATCHES) -> SearchProblem:
    """Rows as in the paper's synthetic set, over two covariates."""
    covariates, priors = ("x", "z"), Priors.synthetic()
    composition = _kernel(rng, covariates)
    X = rng.uniform(-4.0, 4.0, (sum(batches), 2))
    y = _drawn(rng, priors, X, covariates, composition)
    return SearchProblem(User(name, covariates, X, y, np.cumsum(batches).tolist()), composition, priors, None)


def _tiny(rng: np.random.Generator, name: str) -> SearchProblem:
    """Three rows, one after the other."""
    return _curves(rng, name, (1, 1, 1))


def _reward(rng: np.random.Generator, name: str) -> SearchProblem:
    """Rows of a reward model: covariates in [0, 1], an action, its linear block."""
    covariates, priors, n = ("day", "hour", "temperature"), Priors.heartsteps(), 210
    composition = _kernel(rng, covariates)
    X = np.column_stack([np.linspace(0.0, 1.0, n), rng.integers(0, 5, n) / 4.0, rng.random(n)])
    action = rng.integers(0, 2, n)
    y = _drawn(rng, priors, X, covariates, composition) + action * (0.5 - X[:, 0])
    user = User(name, covariates, X, y, (5, 15, 35, 70, 210), action=action)
    return SearchProblem(user, composition, priors, Reward(("day",)).block(X, covariates, user.assignment))


def _sensor(rng: np.random.Generator, name: str) -> SearchProblem:
    """Hourly values over some weeks: cycles of a day and a week, and what lasts some hours, short on that range."""
    covariates, n = ("hour", "time"), int(rng.integers(200, 601))
    hours = np.arange(n)
    lasting, noise = np.empty(n), rng.standard_normal(n)
    memory = rng.uniform(0.5, 0.95)
    lasting[0] = noise[0]
    for i in range(1, n):
        lasting[i] = memory * lasting[i - 1] + np.sqrt(1.0 - memory**2) * noise[i]
    cycles = rng.normal() * np.sin(2 * np.pi * hours / 24) + rng.normal() * np.sin(2 * np.pi * hours / 168)
    y = cycles + lasting + 0.2 * rng.standard_normal(n)
    X = np.column_stack([(hours % 24) / 24.0, hours / n])
    user = User(name, covariates, X, (y - y.mean()) / y.std(), (n // 4, n))
    return SearchProblem(user, _kernel(rng, covariates), Priors.standardised(), None)


KINDS: dict[str, tuple[Callable[[np.random.Generator, str], SearchProblem], float]] = {
    "curves": (_curves, 0.5),
    "tiny": (_tiny, 0.2),
    "reward": (_reward, 0.2),
    "sensor": (_sensor, 0.1),
}
"""How problems of each kind are made, and their share."""


@dataclass(frozen=True)
class SearchesBenchmark(Benchmark):
    """MAP searches on random problems, all batches of each, with two seeds of their random starts.

    Attributes:
        problems: how many.
        settings: of the search that is measured.
        thorough: of the search it is compared with.
    """

    problems: int = 500
    settings: MapSettings = field(default_factory=MapSettings)
    thorough: MapSettings = field(default_factory=lambda: MapSettings(starts=10, screen=200))

    name = "searches"
    title = "MAP searches on random problems: shares of all fits; processor time of all batches of a problem"
    in_all = False
    columns: ClassVar = {
        "case": text("case"), "fits": number("fits"), "ended": number("ended", ".1%"),
        "false": number("false", ".1%"), "handed": number("handed_over", ".1%"), "worse": number("worse", ".1%"),
        "moved": number("moved", ".1%"), "by": number("farthest", ".2f"), "time": time(),
    }  # fmt: skip

    @classmethod
    def quick(cls) -> Self:
        """Half a minute's worth."""
        return cls(problems=20, thorough=MapSettings(starts=4, screen=40))

    @property
    def steps(self) -> int:
        """How many problems there are."""
        return sum(self._count(kind) for kind in KINDS)

    def _count(self, kind: str) -> int:
        """How many of a kind; one at least."""
        return max(1, round(KINDS[kind][1] * self.problems))

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """A row for each kind of problem, and two for all: with and without a period.

        Of all fits to batches, ``ended`` is the share that converged with a gradient of at most `SLOPE`, ``false`` that
        of those that say so with more, ``handed_over`` that in which a compiled search was finished by the general one,
        ``worse`` that more than `NEAR` below the best known optimum, ``moved`` that which another seed moves by more,
        ``farthest`` how far at most.
        """
        rows: list[Row] = []
        with one_blas_thread():
            for kind, (make, _) in KINDS.items():
                for i in range(self._count(kind)):
                    name = f"{kind} {i}"
                    tick(f"searches for {name}")
                    problem = make(np.random.default_rng([seed, list(KINDS).index(kind), i]), name)
                    rows += self._measured(problem, kind)
        cases = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
        cases["no period"] = [row for row in rows if not row["periodic"]]
        cases["period"] = [row for row in rows if row["periodic"]]
        for case, part in cases.items():
            if part:
                yield self._summary(case, part)

    def _measured(self, problem: SearchProblem, kind: str) -> Iterator[Row]:
        """What is found of every batch."""
        (first, seconds), (second, _) = (problem.search(self.settings, seed) for seed in (0, 1))
        best, _ = problem.search(self.thorough, 2)
        for batch, fits in enumerate(zip(first, second, best, strict=True)):
            values = [fit.log_posterior for fit in fits]
            slope = problem.slope(fits[0], batch)
            yield {
                "kind": kind,
                "user": problem.user.name,
                "n": problem.user.ends[batch],
                "periodic": problem.periodic,
                "ended": fits[0].converged and slope <= SLOPE,
                "false": fits[0].converged and slope > SLOPE,
                "handed_over": fits[0].handed_over > 0,
                "worse": max(values) - values[0],
                "moved": abs(values[0] - values[1]),
                "seconds": seconds / len(first),
            }

    def _summary(self, case: str, rows: list[Row]) -> Row:
        """Shares of all fits of a case."""
        problems = len({row["user"] for row in rows})
        return self.row(
            case,
            max(row["n"] for row in rows),
            "find_map_path",
            sum(row["seconds"] for row in rows) / problems,
            batches=max(1, round(len(rows) / problems)),
            samples=problems,
            fits=len(rows),
            **{key: float(np.mean([row[key] for row in rows])) for key in ("ended", "false", "handed_over")},
            **{key: float(np.mean([row[key] > NEAR for row in rows])) for key in ("worse", "moved")},
            farthest=max(row["moved"] for row in rows),
        )
