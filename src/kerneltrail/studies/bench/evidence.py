"""Seconds for one log evidence (all batches of one user, one hyperparameter vector), beside dpotrf alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Inputs, evidence_of, inputs_for, one_blas_thread
from kerneltrail.gp.dense import covariance
from kerneltrail.gp.evidence import Method
from kerneltrail.kernels import Composition, Hyperparameters, Priors, parse
from kerneltrail.studies.bench.others import contenders
from kerneltrail.studies.bench.rows import Row, row
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed, undisturbed

Array = NDArray[np.float64]

CASES = {
    "LIN+PER": "LIN[x] + PER[x]",
    "SE": "SE[x]",
    "SE+PER": "SE[x] + PER[z]",
    "LIN*PER": "LIN[x]*PER[x]",
    "SE*SE": "SE[x]*SE[z]",
}
SIZES = (30, 100, 187, 450, 1000, 2000)
PAPER_BATCHES = (3, 4, 10, 20, 50, 100)
METHODS = ("auto", "dense", "spectral")
PIECE = 0.003
"""Seconds that one timed call may take; see `undisturbed`."""
LOW, HIGH = -4.0, 4.0
"""Range of the covariates (SPEC §9)."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        cases: label and kernel text.
        sizes: numbers of rows.
        samples: hyperparameter vectors in a call.
        effort: how long to measure each case and size.
    """

    cases: tuple[tuple[str, str], ...] = tuple(CASES.items())
    sizes: tuple[int, ...] = SIZES
    samples: int = 64
    effort: Effort = field(default_factory=Effort)

    @classmethod
    def quick(cls) -> Plan:
        """A minute's worth."""
        return cls(sizes=(30, 187, 450), samples=16, effort=Effort(most=5, seconds=0.5))

    @property
    def steps(self) -> int:
        """How many pairs of case and size there are."""
        return len(self.cases) * len(self.sizes)


def batch_ends(n: int) -> tuple[int, ...]:
    """Six batches: the paper's at 187 rows, equal ones otherwise."""
    if n == sum(PAPER_BATCHES):
        return tuple(np.cumsum(PAPER_BATCHES).tolist())
    return tuple(sorted({max(1, n * t // 6) for t in range(1, 7)}))


def run(plan: Plan, seed: int, tick: Callable[[str], None] = lambda said: None) -> Iterator[Row]:
    """The rows, one case and size after the other; `tick` hears what comes next."""
    with one_blas_thread():
        for label, text in plan.cases:
            for n in plan.sizes:
                tick(f"evidence of {label}, {n} rows")
                yield from _rows(label, parse(text), n, plan, np.random.default_rng([seed, n]))


def _rows(label: str, composition: Composition, n: int, plan: Plan, rng: np.random.Generator) -> Iterator[Row]:
    names = composition.covariates
    thetas = Priors.synthetic().sample(composition, plan.samples, rng)
    # The time does not depend on the target, so noise will do.
    user = User("bench", names, rng.uniform(LOW, HIGH, (n, len(names))), rng.standard_normal(n), batch_ends(n))
    inputs = inputs_for(user, composition)
    few = thetas[: dense_samples(n)]
    chosen = evidence_of(inputs, few).rank
    # Where `auto` takes dense for many vectors, features are not clearly fewer than rows, and at large n the spectral
    # method could take minutes for one of them.
    low_rank = bool((chosen > 0).mean() >= (0.5 if n <= 450 else 1.0))
    sampled: dict[str, Array] = {"auto": thetas if low_rank else few, "dense": few}
    if low_rank:
        sampled["spectral"] = thetas
    work = {method: _pieces(inputs, used, method) for method, used in sampled.items()}
    vectors = [Hyperparameters(composition, tuple(u)) for u in few]
    for library, calls in contenders(user, vectors).items():
        _agree(library, [call() for call in calls], evidence_of(inputs, few, method="dense").log[:, -1])
        work[library], sampled[library] = [timed(call) for call in calls], few
    work["dpotrf"], sampled["dpotrf"] = dpotrf_of(inputs, few[:8]), few[:8]
    found = {name: undisturbed(pieces) / len(sampled[name]) for name, pieces in in_turns(work, plan.effort).items()}
    dpotrf = found.pop("dpotrf")
    for name, seconds in found.items():
        batches = user.batches if name in METHODS else 1
        extra = {
            "kernel": composition.text,
            **({"rank": int(np.median(chosen[chosen > 0]))} if low_rank and name in ("auto", "spectral") else {}),
        }
        samples = len(sampled[name])
        yield row("evidence", label, n, name, seconds, batches=batches, samples=samples, dpotrf=dpotrf, **extra)


def dense_samples(n: int) -> int:
    """Vectors for a method that costs n³ whatever the vector: fewer where each takes long."""
    return 64 if n <= 200 else 16 if n <= 1000 else 4


def _pieces(inputs: Inputs, thetas: Array, method: str) -> list[Work]:
    """Calls of a few milliseconds each that together go through all vectors."""

    def call(some: Array) -> Work:
        return timed(lambda: evidence_of(inputs, some, method=cast("Method", method)))

    call(thetas[:2])()  # compiled code comes from disk on the first call
    each = call(thetas[:2])() / len(thetas[:2])
    size = min(len(thetas), max(1, int(PIECE / each)))
    return [call(thetas[start : start + size]) for start in range(0, len(thetas), size)]


def dpotrf_of(inputs: Inputs, thetas: Array) -> list[Work]:
    """LAPACK's Cholesky factorisation alone, in place; matrices are built and copied outside the clock."""

    def of(matrix: Array) -> Work:
        def run() -> float:
            copy = matrix.copy(order="F")
            start = perf_counter()
            lapack.dpotrf(copy, lower=1, clean=0, overwrite_a=1)
            return perf_counter() - start

        return run

    return [of(np.asfortranarray(covariance(inputs, values))) for values in inputs.layout.constrain(thetas)]


def _agree(library: str, theirs: list[float], ours: Array) -> None:
    """A comparison of times is worth nothing where the values differ."""
    if not np.allclose(theirs, ours, rtol=1e-6, atol=1e-6):
        worst = float(np.abs(np.subtract(theirs, ours)).max())
        raise NumericalError(f"{library} and the dense method differ by {worst:g} in a log evidence")
