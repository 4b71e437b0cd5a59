"""Chains of a fit: started apart, run in parallel a round at a time, kept, and resumed bit for bit."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerneltrail.engines import Engine, engine_for, results
from kerneltrail.errors import TrajectoryError
from kerneltrail.gp import one_blas_thread
from kerneltrail.progress import Progress
from kerneltrail.store.validate import conform, plain
from kerneltrail.trajectory.evidence import EVIDENCES, PathEvidence
from kerneltrail.trajectory.map_table import MapTable
from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.book import Book, Visited
from kerneltrail.trajectory.sampler.checkpoint import Checkpoint
from kerneltrail.trajectory.sampler.convergence import worst_rhat
from kerneltrail.trajectory.sampler.joint import EvidenceArray, Joint, State
from kerneltrail.trajectory.sampler.moves import MOVES, MoveInfo, Sweep
from kerneltrail.trajectory.sampler.urn import Counts, Paths, Urn
from kerneltrail.trajectory.settings import Settings

SAMPLING = "sampling paths"
"""The stage of a fit in which chains run."""


@dataclass(frozen=True)
class FitProgress(Progress):
    """How far a fit is.

    Attributes:
        stage: ``fitting candidates`` (MAP fits of compositions to users), ``sampling paths`` (chains), or ``learning
            what users share``.
        done, total: fits, in the levels of the search that are known so far; sweeps of each chain, at most; or steps.
        said, bound: as of any `Progress`.
        log_joint, nodes, edges: of the first chain, where it stands.
        rhat: the largest so far, of log joint, number of edges and path agreement.
    """

    log_joint: float | None = None
    nodes: int | None = None
    edges: int | None = None
    rhat: float | None = None

    @classmethod
    def of_chains(cls, chains: Sequence[Chain], sweeps: int, rhat: float | None) -> FitProgress:
        """How far chains are: the sweeps of each, on average, of at most so many, and where the first one stands."""
        done = sum(len(chain.log_joint) for chain in chains) // len(chains)
        first = chains[0]
        if not first.log_joint:
            return cls(SAMPLING, done, sweeps, bound="at most")
        state = State.coded(first.visited.book, first.visited.codes[-1], first.log_joint[-1])
        said = f"log joint {state.log_joint:.1f}, {state.nodes} nodes, {state.edges} edges"
        if rhat is not None and rhat == rhat:  # it is not a number where nothing can be said of it
            said += f", R-hat {rhat:.3f}"
        return cls(SAMPLING, done, sweeps, said, "at most", state.log_joint, state.nodes, state.edges, rhat)


@dataclass(frozen=True)
class Chain:
    """One chain between two looks at it: all that is needed to go on, and what it has seen."""

    number: int
    rng: Mapping[str, Any]
    paths: Paths
    tables: Paths | None
    log_joint: tuple[float, ...]
    visited: Visited
    info: Mapping[str, tuple[int, int, int]]

    @classmethod
    def begin(cls, number: int, rng: np.random.Generator, paths: Paths, book: Book) -> Chain:
        """A chain that has seen nothing yet."""
        return cls(number, rng.bit_generator.state, paths, None, (), Visited.of([], book), {})

    @property
    def standing(self) -> Chain:
        """Where it stands, without what it has seen: what goes to the process that runs it on."""
        return replace(self, log_joint=(), visited=self.visited.since(len(self.visited)), info={})

    def then(self, leg: Chain) -> Chain:
        """The chain after a leg, which began where it stands."""
        info = {
            name: MoveInfo(*each).plus(MoveInfo(*self.info.get(name, (0, 0, 0)))) for name, each in leg.info.items()
        }
        return replace(leg, log_joint=self.log_joint + leg.log_joint, visited=self.visited.then(leg.visited), info=info)

    def to_json(self) -> dict[str, Any]:
        """As plain values; what was visited as a text of compressed bytes."""
        seen = zlib.compress(self.visited.codes.tobytes(), 1)
        return {**self.__dict__, "rng": plain(self.rng), "visited": base64.b64encode(seen).decode()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], target: ChainTarget) -> Chain:
        """From plain values; refused where they are no chain of that target."""
        layout = {"number": int, "log_joint": list[float], "info": dict[str, list[int]], "visited": str}
        conform(stored, layout, "a chain")
        book, log_joint = target.book, tuple(stored["log_joint"])
        try:
            seen = zlib.decompress(base64.b64decode(stored["visited"], validate=True))
            codes = np.frombuffer(seen, dtype=book.dtype).reshape(len(log_joint), int(book.starts[-1]))
        except (ValueError, zlib.error):
            raise TrajectoryError("it is no chain of this fit") from None
        chain = cls(
            stored["number"],
            stored["rng"],
            _paths(stored["paths"]),
            None if stored["tables"] is None else _paths(stored["tables"]),
            log_joint,
            Visited(book, codes),
            {name: tuple(info) for name, info in stored["info"].items()},
        )
        lengths = {tuple(map(len, paths)) for paths in (chain.paths, chain.tables or chain.paths)}
        known = {mask for path in chain.paths for mask in path} <= set(target.candidates)
        counted = all(len(each) == len(MoveInfo._fields) for each in chain.info.values())
        if (
            lengths != {book.lengths}
            or not (known and counted and codes.max(initial=0) < len(book.masks))
            or not np.isfinite(np.array(log_joint, dtype=np.float64)).all()
        ):
            raise TrajectoryError("it is no chain of this fit")
        rng_from(chain.rng)  # refuses what is no state of a generator
        return chain


def _paths(stored: Sequence[Sequence[int]]) -> Paths:
    return tuple(tuple(path) for path in stored)


@dataclass(frozen=True)
class ChainTarget:
    """What chains sample from, with the settings they do it by: all that a worker needs to run one.

    Attributes:
        table: MAP fits of every (user, candidate).
        urn: the prior over paths.
        settings: of evidence, moves and chains.
        candidates: the compositions that chains are restricted to.
        begin: paths from which some users go on, by user: those of a model that is being extended.
    """

    table: MapTable
    urn: Urn
    settings: Settings
    candidates: tuple[int, ...]
    begin: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def sweep(self, joint: Joint) -> Sweep:
        """The configured sweep on a target, every candidate on offer."""
        settings, few = self.settings, self.settings.scope == "together"
        options = {
            name: MOVES[name].with_candidates(settings.options.get(name, {}), self.candidates, few=few)
            for name in settings.moves
        }
        return Sweep(joint, settings.moves, options)

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes one array of evidences; and where these learn from paths, the fits instead."""
        evidences = "table" if self.evidence.learns else "array"
        return {name: getattr(self, name) for name in ("urn", "settings", "candidates", "begin", "book", evidences)}

    @cached_property
    def book(self) -> Book:
        """The candidates as codes, and how many batches each user has."""
        return Book(self.candidates, tuple(user.batches for user in self.table.users))

    @cached_property
    def evidence(self) -> CandidateEvidence:
        """The evidence of the candidates; in one process, what it has computed serves all chains and rounds."""
        kind = EVIDENCES[self.settings.evidence]
        return CandidateEvidence(kind(self.table, self.settings.largest), self.candidates)

    def restricted(self, candidates: tuple[int, ...]) -> ChainTarget:
        """The same on some of the candidates alone, with the evidences that are known; paths to go on from may go."""
        begin = {user: path for user, path in self.begin.items() if set(path) <= set(candidates)}
        target = replace(self, candidates=candidates, begin=begin)
        vars(target)["evidence"] = self.evidence.restricted(candidates)  # as its cached property
        return target

    @cached_property
    def array(self) -> EvidenceArray:
        """The same as one array, where it does not depend on paths."""
        return EvidenceArray.of(self.evidence, self.book, self.urn.pool)

    def joint(self, paths: Paths) -> Joint:
        """The joint, with evidences as they are where customers are assigned as in `paths`."""
        learns = EVIDENCES[self.settings.evidence].learns
        return Joint(self.urn, self.evidence.for_paths(paths) if learns else self.array, self.candidates)

    def rescore(self, paths: Paths) -> tuple[float, float]:
        """Log joint and log likelihood of paths, judged by what they themselves say of hyperparameters.

        An evidence that learns from the paths is one sweep behind them in a chain: there a state is scored by the
        hyperparameters of the one before it.
        """
        log_joint = self.joint(paths).log_joint(paths)
        return log_joint, log_joint - self.urn.log_prior(Counts.of(paths))

    def advance(self, chain: Chain, sweeps: int) -> Chain:
        """The next leg of a chain: so many sweeps from where it stands."""
        learns = EVIDENCES[self.settings.evidence].learns
        with one_blas_thread():
            rng = rng_from(chain.rng)
            joint = self.joint(chain.paths)
            sweep = self.sweep(joint)
            state = joint.state(chain.paths, tables=chain.tables)
            log_joint, visited, info = [], [], dict[str, MoveInfo]()
            for _ in range(sweeps):
                if learns:  # paper, step 3: p(θ|K) follows the assignments
                    joint = self.joint(state.paths)
                    sweep = sweep.on(joint)
                    state = joint.state(state.paths, tables=state.tables)
                state, sweep_info = sweep.step(rng, state)
                log_joint.append(state.log_joint)
                visited.append(state.codes(joint.book))
                for name, each in sweep_info.items():
                    info[name] = each.plus(info.get(name, MoveInfo(0, 0, 0)))
        codes = np.array(visited, dtype=self.book.dtype).reshape(sweeps, -1)
        return Chain(
            chain.number,
            rng.bit_generator.state,
            state.paths,
            state.tables,
            tuple(log_joint),
            Visited(self.book, codes),
            info,
        )


class CandidateEvidence:
    """An evidence restricted to the candidates: nothing else is ever fitted, or visited."""

    def __init__(self, evidence: PathEvidence, candidates: Iterable[int]) -> None:
        self._evidence = evidence
        self._candidates = frozenset(candidates)
        self.customers = evidence.customers
        self.learns = evidence.learns

    def for_paths(self, paths: Paths) -> CandidateEvidence:
        """The evidence when customers are assigned as in `paths`."""
        return CandidateEvidence(self._evidence.for_paths(paths), self._candidates)

    def restricted(self, candidates: Iterable[int]) -> CandidateEvidence:
        """The same evidence, of other candidates."""
        return CandidateEvidence(self._evidence, candidates)

    def prepare(self, workers: Engine | int, progress: Callable[[int, int], None]) -> None:
        """Compute ahead, in parallel, what chains will ask for of every (user, candidate)."""
        pairs = [(user, mask) for user in range(len(self.customers)) for mask in sorted(self._candidates)]
        self._evidence.prepare(pairs, workers=workers, progress=progress)

    @property
    def about(self) -> Mapping[str, float]:
        """What a model should keep of how its evidences came about."""
        return self._evidence.about

    def log_evidence(self, user: int, mask: int) -> NDArray[np.float64]:
        """Log evidences for all batches of one user, (T,)."""
        if mask not in self._candidates:
            return np.full(self.customers[user], -np.inf)
        return self._evidence.log_evidence(user, mask)


def rng_from(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator in a state, as numpy gives it or as `Chain.to_json` keeps it.

    >>> rng = np.random.default_rng(1)
    >>> kept = rng.bit_generator.state
    >>> rng.random() == rng_from(kept).random()
    True
    """
    name = state.get("bit_generator")
    if name not in ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"):
        raise TrajectoryError(f"no random generator is called {name!r}")
    bits = getattr(np.random, name)()
    bits.state = dict(state)
    return np.random.Generator(bits)


def spawn(seed: int, chains: int) -> Sequence[np.random.Generator]:
    """Independent generators, one per chain, from one seed."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]


def _start(target: ChainTarget, number: int, rng: np.random.Generator) -> Chain:
    """Where a chain begins (`Settings.start`)."""
    table = target.table
    paths: list[tuple[int, ...]] = []
    for user in range(len(table.users)):
        if user in target.begin:
            paths.append(target.begin[user])
        elif target.settings.start == "best":
            paths.append(_best_path(target, user))
        elif target.settings.start == "drawn":
            paths.append(_drawn_path(target, user, rng))
        else:
            score = [float(table.get(user, mask).log_laplace[-1]) for mask in target.candidates]
            ranked = [mask for _, mask in sorted(zip(score, target.candidates, strict=True), reverse=True)]
            better = ranked[: max(1, (len(ranked) + 1) // 2)]
            paths.append((better[int(rng.integers(len(better)))],) * table.users[user].batches)
    return Chain.begin(number, rng, tuple(paths), target.book)


def _best_path(target: ChainTarget, user: int) -> tuple[int, ...]:
    """Each customer's best candidate by Laplace evidence and H0."""
    table = target.table
    score = np.array([table.get(user, m).log_laplace + table.pool.log_h0(m) for m in target.candidates])
    return tuple(target.candidates[int(i)] for i in score.argmax(axis=0))


def _drawn_path(target: ChainTarget, user: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A candidate for each customer, drawn from H0."""
    log_h0 = [target.table.pool.log_h0(mask) for mask in target.candidates]
    batches = target.table.users[user].batches
    return tuple(target.candidates[proposals.pick_log(rng, log_h0)] for _ in range(batches))


def run_chains(
    target: ChainTarget, workers: Engine | int, tell: Callable[[FitProgress], None], keeper: Checkpoint | None
) -> list[Chain]:
    """All chains, a round of sweeps at a time, until they agree or the sweeps are used up."""
    settings = target.settings
    chains = []
    for number, rng in enumerate(spawn(settings.seed, settings.chains)):
        chain = _start(target, number, rng)
        for leg in () if keeper is None else keeper.read_legs(number, lambda stored: Chain.from_json(stored, target)):
            chain = chain.then(leg)
        chains.append(chain)
    engine = engine_for(workers, most=len(chains))
    prior = (lambda paths: target.urn.log_prior(Counts.of(paths))) if settings.margin_of == "likelihood" else None
    done = min(len(chain.log_joint) for chain in chains)
    rhat: float | None = None
    while True:
        ready = {len(chain.log_joint) for chain in chains} == {done}
        if ready and done:
            rhat = worst_rhat(chains, settings.margin, prior, settings.choice)
        tell(FitProgress.of_chains(chains, settings.sweeps, rhat))
        agreed = rhat is not None and rhat < settings.rhat
        if ready and (done >= settings.sweeps or (done >= 2 * settings.check and agreed)):
            return chains
        # A chain that was kept further on than the others waits for them: looks happen at the same sweeps always.
        ahead = max(len(chain.log_joint) for chain in chains)
        goal = min(done + settings.check, settings.sweeps) if ready else ahead
        late = [chain for chain in chains if len(chain.log_joint) < goal]
        jobs = ((chain.number, (chain.standing, goal - len(chain.log_joint))) for chain in late)
        for number, leg in results(engine, ChainTarget.advance, jobs, target):
            chains[number] = chains[number].then(leg)
            if keeper is not None:
                keeper.add_leg(number, leg.to_json())
            tell(FitProgress.of_chains(chains, settings.sweeps, rhat))
        done = goal
