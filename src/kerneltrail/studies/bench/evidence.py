"""Seconds for one log evidence (all batches of one user, one hyperparameter vector), beside dpotrf alone.

Other libraries compute the same on the same matrices: scikit-learn, and GPyTorch where installed. Both get every
advantage that costs them no accuracy: kernels are built and data handed over outside the clock, no gradient is asked
for, and nothing is cloned. They return the evidence of all rows; kerneltrail that of every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from kerneltrail.adapters.gpytorch import to_gpytorch
from kerneltrail.adapters.sklearn import to_sklearn
from kerneltrail.data import User
from kerneltrail.errors import NumericalError
from kerneltrail.gp import Inputs, evidence_of, inputs_for, one_blas_thread
from kerneltrail.gp.dense import covariance
from kerneltrail.gp.evidence import Method
from kerneltrail.kernels import Composition, Hyperparameters, Priors, parse
from kerneltrail.studies.bench.benchmark import Benchmark, Row, Tick, duration, number, ratio, silent, text, time
from kerneltrail.studies.bench.timing import Effort, Work, in_turns, timed, undisturbed
from kerneltrail.studies.sets import PAPER_BATCHES

Array = NDArray[np.float64]

CASES = {
    "LIN+PER": "LIN[x] + PER[x]",
    "SE": "SE[x]",
    "SE+PER": "SE[x] + PER[z]",
    "LIN*PER": "LIN[x]*PER[x]",
    "SE*SE": "SE[x]*SE[z]",
}
METHODS = ("auto", "dense", "spectral")
PIECE = 0.003
"""Seconds that one timed call may take; see `undisturbed`."""
LOW, HIGH = -4.0, 4.0
"""Range of the covariates (method §9.1)."""
IN_MARKDOWN = (187, 1000, 2000)
"""Sizes shown in a document."""


@dataclass(frozen=True)
class EvidenceBenchmark(Benchmark):
    """Log evidences of five kernels.

    Attributes:
        cases: label and kernel text.
        sizes: numbers of rows.
        samples: hyperparameter vectors in a call.
        effort: how long to measure each case and size.
    """

    cases: tuple[tuple[str, str], ...] = tuple(CASES.items())
    sizes: tuple[int, ...] = (30, 100, 187, 450, 1000, 2000)
    samples: int = 64
    effort: Effort = field(default_factory=Effort)

    name = "evidence"
    title = "Log evidence for one hyperparameter vector, beside LAPACK's dpotrf alone"
    columns: ClassVar = {
        "case": text("case"), "n": number("n"), "batches": text("batches"), "method": text("method"),
        "seconds": time(), "dpotrf": time("dpotrf_seconds"), "ratio": lambda row: ratio(row["ratio_to_dpotrf"]),
        "rank": text("rank"),
    }  # fmt: skip
    sections = ("case",)

    @classmethod
    def quick(cls) -> Self:
        """A minute's worth."""
        return cls(sizes=(30, 187, 450), samples=16, effort=Effort(most=5, seconds=0.5))

    @property
    def steps(self) -> int:
        """How many pairs of case and size there are."""
        return len(self.cases) * len(self.sizes)

    def run(self, seed: int, tick: Tick = silent) -> Iterator[Row]:
        """The rows, one case and size after the other."""
        with one_blas_thread():
            for label, kernel in self.cases:
                for n in self.sizes:
                    tick(f"evidence of {label}, {n} rows")
                    yield from self._rows(label, parse(kernel), n, np.random.default_rng([seed, n]))

    def _rows(self, label: str, composition: Composition, n: int, rng: np.random.Generator) -> Iterator[Row]:
        names = composition.covariates
        thetas = Priors.synthetic().sample(composition, self.samples, rng)
        # The time does not depend on the target, so noise will do.
        user = User("bench", names, rng.uniform(LOW, HIGH, (n, len(names))), rng.standard_normal(n), batch_ends(n))
        inputs = inputs_for(user, composition)
        few = thetas[: dense_samples(n)]
        chosen = evidence_of(inputs, few).rank
        # Where `auto` takes dense for many vectors, features are not clearly fewer than rows, and at large n the
        # spectral method could take minutes for one of them.
        low_rank = bool((chosen > 0).mean() >= (0.5 if n <= 450 else 1.0))
        sampled: dict[str, Array] = {"auto": thetas if low_rank else few, "dense": few}
        if low_rank:
            sampled["spectral"] = thetas
        work = {method: _pieces(inputs, used, method) for method, used in sampled.items()}
        vectors = [Hyperparameters(composition, tuple(u)) for u in few]
        for library, calls in other_libraries(user, vectors).items():
            check_agreement(library, [call() for call in calls], evidence_of(inputs, few, method="dense").log[:, -1])
            work[library], sampled[library] = [timed(call) for call in calls], few
        work["dpotrf"], sampled["dpotrf"] = dpotrf_of(inputs, few[:8]), few[:8]
        rounds = in_turns(work, self.effort)
        each = {name: undisturbed(pieces) / len(sampled[name]) for name, pieces in rounds.items()}
        dpotrf = each.pop("dpotrf")
        for name, seconds in each.items():
            rank = {"rank": int(np.median(chosen[chosen > 0]))} if low_rank and name in ("auto", "spectral") else {}
            yield self.row(
                label,
                n,
                name,
                seconds,
                batches=user.batches if name in METHODS else 1,
                samples=len(sampled[name]),
                dpotrf=dpotrf,
                kernel=composition.text,
                **rank,
            )

    @classmethod
    def style(cls, row: Row) -> str:
        """What is used by default stands out."""
        return "bold" if row["method"] == "auto" else ""

    @classmethod
    def markdown(cls, rows: Sequence[Row]) -> list[str]:
        """A table of the default method beside others."""
        shown = [row for row in rows if row["n"] in IN_MARKDOWN]
        lines = [
            "| kernel | n | `auto` (6 batches) | `dense` (6) | `dpotrf` alone | scikit-learn (1) | `auto` / `dpotrf` |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        for case, n in dict.fromkeys((row["case"], row["n"]) for row in shown):
            by_method = {row["method"]: row for row in shown if (row["case"], row["n"]) == (case, n)}
            others = duration(by_method["sklearn"]["seconds"]) if "sklearn" in by_method else "–"
            auto = by_method["auto"]
            lines.append(
                f"| {auto['kernel'].replace('*', '·')} | {n} | **{duration(auto['seconds'])}** "
                f"| {duration(by_method['dense']['seconds'])} | {duration(auto['dpotrf_seconds'])} | {others} "
                f"| {ratio(auto['ratio_to_dpotrf'])} |"
            )
        return ["\n".join(lines)] if shown else []


def batch_ends(n: int) -> tuple[int, ...]:
    """Six batches: the paper's at 187 rows, equal ones otherwise."""
    if n == sum(PAPER_BATCHES):
        return tuple(np.cumsum(PAPER_BATCHES).tolist())
    return tuple(sorted({max(1, n * t // 6) for t in range(1, 7)}))


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


def check_agreement(library: str, theirs: list[float], ours: Array) -> None:
    """A comparison of times is worth nothing where the values differ."""
    if not np.allclose(theirs, ours, rtol=1e-6, atol=1e-6):
        worst = float(np.abs(np.subtract(theirs, ours)).max())
        raise NumericalError(f"{library} and the dense method differ by {worst:g} in a log evidence")


EvidenceCalls = list[Callable[[], float]]
"""For each hyperparameter vector the call that returns the log evidence of all rows."""


def other_libraries(user: User, hyperparameters: Sequence[Hyperparameters]) -> dict[str, EvidenceCalls]:
    """The libraries that are installed, by name."""
    makers = {"sklearn": _sklearn, "gpytorch": _gpytorch}
    return {name: make(user, hyperparameters) for name, make in makers.items() if find_spec(name) is not None}


def _sklearn(user: User, hyperparameters: Sequence[Hyperparameters]) -> EvidenceCalls:
    from sklearn.gaussian_process import GaussianProcessRegressor

    # alpha is a second noise beside the kernel's own, and it would change the matrix. One regressor serves all vectors,
    # as in an optimiser's loop.
    kernels = [to_sklearn(values, user.covariates) for values in hyperparameters]
    regressor = GaussianProcessRegressor(kernels[0], alpha=0.0, optimizer=None).fit(user.X, user.y)
    return [partial(regressor.log_marginal_likelihood, kernel.theta, clone_kernel=False) for kernel in kernels]


def _gpytorch(user: User, hyperparameters: Sequence[Hyperparameters]) -> EvidenceCalls:
    import gpytorch
    import torch

    torch.set_num_threads(1)
    X, y = torch.tensor(np.array(user.X)), torch.tensor(np.array(user.y))

    def evidence(kernel: Any, noise: float) -> float:
        settings = gpytorch.settings
        # Exact, by Cholesky: from 800 rows on conjugate gradients would take over, which are not.
        with torch.no_grad(), settings.fast_computations(False, False, False), settings.max_cholesky_size(10**6):
            matrix = kernel(X).add_diagonal(torch.full_like(y, noise))
            return float(gpytorch.distributions.MultivariateNormal(torch.zeros_like(y), matrix).log_prob(y))

    return [partial(evidence, *to_gpytorch(values, user.covariates)) for values in hyperparameters]
