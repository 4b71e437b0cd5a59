"""How far a sampler is from the joint, on spaces small enough to list every path of every user."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kerneltrail.errors import TrajectoryError
from kerneltrail.kernels import Pool
from kerneltrail.trajectory.sampler.joint import Joint
from kerneltrail.trajectory.sampler.moves import EXACT, PUBLISHED, Sweep
from kerneltrail.trajectory.sampler.urn import Paths, Urn
from support.sampling import FixedEvidence, draw_prior, run

LARGEST = 250_000
"""States that `enumerate_joint` is willing to list."""

Distribution = Mapping[Hashable, float]


def enumerate_joint(joint: Joint) -> dict[Paths, float]:
    """Every state with its exact probability under the joint (method (9))."""
    masks = list(joint.urn.pool.masks())
    states = len(masks) ** joint.size
    if states > LARGEST:
        raise TrajectoryError(f"{states} states are too many to list; at most {LARGEST}")
    every = (tuple(itertools.product(masks, repeat=length)) for length in joint.customers)
    logs = {paths: joint.log_joint(paths) for paths in itertools.product(*every)}
    top = max(logs.values())
    weights = {paths: math.exp(value - top) for paths, value in logs.items()}
    total = math.fsum(weights.values())
    return {paths: weight / total for paths, weight in weights.items()}


def marginals(distribution: Mapping[Paths, float]) -> dict[str, dict[Hashable, float]]:
    """What is compared: each customer's composition, each user's whole path, and the shape of the graph."""
    found: dict[str, dict[Hashable, float]] = {}

    def add(name: str, value: Hashable, weight: float) -> None:
        of_name = found.setdefault(name, {})
        of_name[value] = of_name.get(value, 0.0) + weight

    for paths, weight in distribution.items():
        for m, path in enumerate(paths):
            add(f"path of user {m}", path, weight)
            for t, mask in enumerate(path):
                add(f"customer ({m}, {t})", mask, weight)
        add("nodes", len({mask for path in paths for mask in path}), weight)
    return found


def total_variation(p: Distribution, q: Distribution) -> float:
    """Half the sum of absolute differences.

    >>> total_variation({1: 0.5, 2: 0.5}, {1: 1.0})
    0.5
    """
    return 0.5 * math.fsum(abs(p.get(x, 0.0) - q.get(x, 0.0)) for x in {**p, **q})


@dataclass(frozen=True)
class Deviation:
    """Total variation between a chain's marginals and the exact ones.

    Attributes:
        sweep: the moves, with their options.
        sweeps: the chain's length.
        customers: the largest over customers' compositions.
        paths: the largest over users' whole paths. Sampling noise is larger here: there are more of them.
        nodes: of the number of compositions in use.
        noise: what `customers` would be, on average and for the noisiest customer, with as many independent draws.
    """

    sweep: str
    sweeps: int
    customers: float
    paths: float
    nodes: float
    noise: float


def deviation(sweep: Sweep, rng: np.random.Generator, sweeps: int, *, exact: Mapping[Paths, float]) -> Deviation:
    """Run a chain from a draw of the prior, and compare all it visits with the exact distribution."""
    seen: Counter[Paths] = Counter()
    for record in run(rng, sweep, draw_prior(sweep.joint, rng), sweeps):
        seen[record.state.paths] += 1
    ours, theirs = marginals({paths: n / sweeps for paths, n in seen.items()}), marginals(exact)

    def largest(kind: str) -> float:
        return max(total_variation(ours[name], theirs[name]) for name in theirs if name.startswith(kind))

    noise = max(_noise(of, sweeps) for name, of in theirs.items() if name.startswith("customer"))
    return Deviation(_text(sweep), sweeps, largest("customer"), largest("path"), largest("nodes"), noise)


def compare_sets(joint: Joint, sweeps: int, *, seed: int = 0) -> list[Deviation]:
    """The exact set and the published one, with its Hastings ratio right and upside down, measured the same way."""
    exact = enumerate_joint(joint)
    sets: list[tuple[tuple[str, ...], dict[str, dict[str, bool]]]] = [
        (EXACT, {}),
        (PUBLISHED, {}),
        (PUBLISHED, {"published_plate": {"inverted": True}}),
        (PUBLISHED[:1], {}),
    ]
    return [
        deviation(Sweep(joint, moves, options), np.random.default_rng(seed), sweeps, exact=exact)
        for moves, options in sets
    ]


def _noise(p: Distribution, n: int) -> float:
    """E|X - p| of a share X of n draws is near sqrt(2p(1-p)/(πn)); half the sum of those."""
    return 0.5 * math.fsum(math.sqrt(2.0 * q * (1.0 - q) / (math.pi * n)) for q in p.values())


def _text(sweep: Sweep) -> str:
    def one(name: str) -> str:
        options = ", ".join(f"{key}={value}" for key, value in sweep.options.get(name, {}).items())
        return f"{name}({options})" if options else name

    return " + ".join(map(one, sweep.moves))


def tiny_problem(
    seed: int,
    customers: Sequence[int] = (3, 2),
    *,
    products: int = 3,
    spread: float = 1.5,
    keep: float | None = None,
    allow_empty: bool = False,
    alpha: float = 1.0,
) -> Joint:
    """A joint over a space that can be listed, with random fixed evidences of standard deviation `spread`."""
    names = ("LIN[x]", "PER[x]", "SE[x]", "LIN[x]*SE[x]")[:products]
    chances = dict(zip(names, (0.3, 0.2, 0.4, 0.1), strict=False))
    pool = Pool.of(*names).with_probabilities(chances).with_empty(allow_empty)
    rng = np.random.default_rng(seed)
    table = {(m, k): spread * rng.standard_normal(t) for m, t in enumerate(customers) for k in range(1 << products)}
    return Joint(Urn(pool, alpha=alpha, keep=keep), FixedEvidence(customers, table))


def deviation_table(results: Iterable[Deviation]) -> str:
    """A markdown table of deviations, for the documentation."""
    lines = ["| sweep | sweeps | customers | (noise) | whole paths | nodes |", "|---|---|---|---|---|---|"]
    for r in results:
        lines.append(
            f"| {r.sweep} | {r.sweeps:,} | {r.customers:.4f} | ({r.noise:.4f}) | {r.paths:.4f} | {r.nodes:.4f} |"
        )
    return "\n".join(lines)
