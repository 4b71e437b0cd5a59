"""Learn a trajectory model from pilot users: fits of candidate compositions, then chains, then one structure."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import joblib
import numpy as np

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.gp import Reward, one_blas_thread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory.candidates import support
from kerneltrail.trajectory.chain import Sweep, rng_from, rng_state, spawn
from kerneltrail.trajectory.checkpoint import Checkpoint
from kerneltrail.trajectory.diagnostics import bulk_ess, path_agreement, split_rhat
from kerneltrail.trajectory.evidences import LearningEvidence, last_use, make_evidence, node_group
from kerneltrail.trajectory.joint import Joint
from kerneltrail.trajectory.maps import MapTable
from kerneltrail.trajectory.model import Diagnostics, Node, TrajectoryModel
from kerneltrail.trajectory.moves import MoveInfo
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trajectory.state import State
from kerneltrail.trajectory.structure import Structure, choose
from kerneltrail.trajectory.urn import Paths, Urn


@dataclass(frozen=True)
class FitProgress:
    """How far a fit is.

    Attributes:
        stage: ``fits`` (MAP fits of candidates) or ``chains``.
        done, total: fits, or sweeps of each chain.
        log_joint, nodes, edges: of the first chain, where it stands.
        rhat: of the log joint, so far.
    """

    stage: str
    done: int
    total: int
    log_joint: float | None = None
    nodes: int | None = None
    edges: int | None = None
    rhat: float | None = None


@dataclass(frozen=True)
class _Chain:
    """One chain between two looks at it: all that is needed to go on, and what it has seen."""

    number: int
    rng: Mapping[str, Any]
    paths: Paths
    tables: Paths | None
    log_joint: tuple[float, ...]
    visited: tuple[Paths, ...]
    info: Mapping[str, tuple[int, int, int]]

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> _Chain:
        return cls(
            stored["number"],
            stored["rng"],
            _paths(stored["paths"]),
            None if stored["tables"] is None else _paths(stored["tables"]),
            tuple(stored["log_joint"]),
            tuple(_paths(paths) for paths in stored["visited"]),
            {name: tuple(info) for name, info in stored["info"].items()},
        )


def _paths(stored: Sequence[Sequence[int]]) -> Paths:
    return tuple(tuple(path) for path in stored)


@dataclass(frozen=True)
class _Problem:
    """What a worker needs to run a chain."""

    table: MapTable
    urn: Urn
    settings: Settings
    candidates: tuple[int, ...]

    def sweep(self, joint: Joint) -> Sweep:
        options: dict[str, dict[str, Any]] = {}
        for name in self.settings.moves:
            own = dict(self.settings.options.get(name, {}))
            if name in ("seat", "path", "rename") and "library" not in own:
                own["library"] = self.candidates
                if name != "rename":
                    own.setdefault("fresh", 0)  # the candidates are all on offer already
            options[name] = own
        return Sweep(joint, self.settings.moves, options)

    def advance(self, chain: _Chain, sweeps: int) -> _Chain:
        """Run a chain on by so many sweeps."""
        with one_blas_thread():
            rng = rng_from(chain.rng)
            evidence = _Within(
                make_evidence(self.settings.evidence, self.table, self.settings.largest), self.candidates
            )
            learning = self.settings.evidence != "laplace"
            current = evidence.for_paths(chain.paths)
            joint = Joint(self.urn, current)
            sweep = self.sweep(joint)
            state = joint.state(chain.paths, tables=chain.tables)
            log_joint, visited, info = list(chain.log_joint), list(chain.visited), dict(chain.info)
            for _ in range(sweeps):
                if learning:  # paper, step 3: p(θ|K) follows the assignments
                    joint = Joint(self.urn, evidence.for_paths(state.paths))
                    sweep = sweep.on(joint)
                    state = joint.state(state.paths, tables=state.tables)
                state, made = sweep.step(rng, state)
                log_joint.append(state.log_joint)
                visited.append(state.paths)
                for name, each in made.items():
                    before = MoveInfo(*info.get(name, (0, 0, 0)))
                    info[name] = (
                        before.proposed + each.proposed,
                        before.accepted + each.accepted,
                        before.changed + each.changed,
                    )
        return _Chain(chain.number, rng_state(rng), state.paths, state.tables, tuple(log_joint), tuple(visited), info)


class _Within:
    """An evidence restricted to the candidates: nothing else is ever fitted, or visited."""

    def __init__(self, evidence: LearningEvidence, candidates: tuple[int, ...]) -> None:
        self._evidence = evidence
        self._candidates = frozenset(candidates)
        self._all = candidates
        self.customers = evidence.customers

    def for_paths(self, paths: Paths) -> _Within:
        return _Within(self._evidence.for_paths(paths), self._all)

    def log_evidence(self, user: int, mask: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        if mask not in self._candidates:
            return np.full(self.customers[user], -np.inf)
        return self._evidence.log_evidence(user, mask)


def fit(
    cohort: Cohort,
    *,
    pool: Pool | None = None,
    priors: Priors | None = None,
    settings: Settings | None = None,
    reward: Reward | None = None,
    workers: int | None = None,
    progress: Callable[[FitProgress], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> TrajectoryModel:
    """Learn from pilot users how compositions evolve as data accrues.

    Args:
        cohort: the pilot users, scaled for the group or not at all.
        pool: products on offer; every atom on every covariate if None.
        priors: over hyperparameters; if None the paper's: HeartSteps' where covariates are scaled, else the synthetic.
        settings: of evidence, moves and chains; the measured default if None.
        reward: adds an action's linear advantage and a constant mean to every composition (SPEC §8).
        workers: processes; all cores if None.
        progress: called as the fit goes on.
        checkpoint: folder from which a fit that was stopped goes on, to the same result.
    """
    began = time.perf_counter()
    settings = settings or Settings()
    pool = Pool.atoms(cohort.covariates) if pool is None else pool
    if priors is None:
        priors = Priors.synthetic() if cohort.schema.scaling == "none" else Priors.heartsteps()
    _check(cohort, pool)
    count = workers if workers is not None else (os.cpu_count() or 1)
    table = MapTable(cohort.users, pool, priors, settings.maps, reward)
    keeper = None if checkpoint is None else Checkpoint(checkpoint, _key(cohort.users, pool, priors, settings, reward))
    if keeper is not None:
        keeper.read_fits(table)
        table.on_new = keeper.add_fits

    def fitting(done: int, total: int) -> None:
        if progress is not None:
            progress(FitProgress("fits", done, total))

    candidates = support(table, settings.largest, settings.width, workers=count, progress=fitting)
    fitted = time.perf_counter()
    urn = Urn(pool, alpha=settings.alpha, keep=settings.keep)
    problem = _Problem(table, urn, settings, candidates)
    chains = _run(problem, count, progress, keeper)
    model = _conclude(cohort, problem, priors, reward, chains)
    seconds = {"fits": fitted - began, "chains": time.perf_counter() - fitted}
    return replace(model, diagnostics=replace(model.diagnostics, seconds=seconds))


def _check(cohort: Cohort, pool: Pool) -> None:
    if not len(cohort):
        raise DataError("a fit needs at least one pilot user")
    missing = [name for name in pool.covariates if name not in cohort.covariates]
    if missing:
        raise DataError(
            f"the pool reads {', '.join(missing)}, which the cohort does not have; its covariates are "
            f"{', '.join(cohort.covariates)}"
        )


def _key(users: Sequence[User], pool: Pool, priors: Priors, settings: Settings, reward: Reward | None) -> str:
    """What a fit depends on, as a digest: a checkpoint of one must not serve another."""
    parts = [user.fingerprint for user in users]
    parts += [f"{product}:{p!r}" for product, p in zip(pool.products, pool.probabilities, strict=True)]
    parts += [repr(sorted(priors.by_kind.items())), repr(sorted(priors.by_covariate.items())), repr(reward)]
    parts += [str(pool.allow_empty), json.dumps(settings.to_json(), sort_keys=True)]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _start(problem: _Problem, number: int, rng: np.random.Generator) -> _Chain:
    """Where a chain begins (`Settings.start`)."""
    table = problem.table
    paths: list[tuple[int, ...]] = []
    for user in range(len(table.users)):
        if problem.settings.start == "best":
            own = {m: table.get(user, m).log_laplace + table.pool.log_h0(m) for m in problem.candidates}
            paths.append(
                tuple(max(own, key=lambda m, t=t: (own[m][t], -m)) for t in range(table.users[user].batches))  # type: ignore[misc]
            )
            continue
        score = [float(table.get(user, mask).log_laplace[-1]) for mask in problem.candidates]
        ranked = [mask for _, mask in sorted(zip(score, problem.candidates, strict=True), reverse=True)]
        better = ranked[: max(1, (len(ranked) + 1) // 2)]
        paths.append((better[int(rng.integers(len(better)))],) * table.users[user].batches)
    return _Chain(number, rng_state(rng), tuple(paths), None, (), (), {})


def _run(
    problem: _Problem, workers: int, progress: Callable[[FitProgress], None] | None, keeper: Checkpoint | None
) -> list[_Chain]:
    """All chains, a round of sweeps at a time, until they agree or the sweeps are used up."""
    settings = problem.settings
    chains = []
    for number, rng in enumerate(spawn(settings.seed, settings.chains)):
        stored = None if keeper is None else keeper.read_chain(number)
        chains.append(_start(problem, number, rng) if stored is None else _Chain.from_json(stored))
    parallel = joblib.Parallel(n_jobs=min(workers, len(chains)))
    done = min(len(chain.log_joint) for chain in chains)
    while True:
        ready = {len(chain.log_joint) for chain in chains} == {done}
        rhat = _rhat(chains, done) if ready and done else float("nan")
        if progress is not None and done:
            first = _state(chains[0])
            progress(FitProgress("chains", done, settings.sweeps, first.log_joint, first.nodes, first.edges, rhat))
        if ready and (done >= settings.sweeps or (done >= 2 * settings.check and rhat < settings.rhat)):
            return chains
        # A chain that was kept further on than the others waits for them: looks happen at the same sweeps always.
        goal = done if not ready else min(done + settings.check, settings.sweeps)
        if not ready:
            goal = max(len(chain.log_joint) for chain in chains)
        late = [chain for chain in chains if len(chain.log_joint) < goal]
        advanced = parallel(joblib.delayed(problem.advance)(chain, goal - len(chain.log_joint)) for chain in late)
        for chain in advanced:
            chains[chain.number] = chain
            if keeper is not None:
                keeper.write_chain(chain.number, chain.to_json())
        done = goal


def _rhat(chains: Sequence[_Chain], done: int) -> float:
    """R-hat of the log joint over the second half of the sweeps; 1 where nothing moves and all agree."""
    draws = np.array([chain.log_joint[done // 2 : done] for chain in chains])
    if np.ptp(draws) < 1e-9:
        return 1.0
    return float(split_rhat(draws))


def _state(chain: _Chain) -> State:
    return State(chain.paths, chain.log_joint[-1], chain.tables)


def _conclude(
    cohort: Cohort, problem: _Problem, priors: Priors, reward: Reward | None, chains: Sequence[_Chain]
) -> TrajectoryModel:
    settings, table = problem.settings, problem.table
    sweeps = len(chains[0].log_joint)
    half = sweeps // 2
    samples = [
        State(paths, log)
        for chain in chains
        for paths, log in zip(chain.visited[half:], chain.log_joint[half:], strict=True)
    ]
    structures = choose(samples, margin=settings.margin)
    chosen = structures[0]
    traces = {
        "log_joint": np.array([chain.log_joint[half:] for chain in chains]),
        "edges": np.array([[float(State(p, 0.0).edges) for p in chain.visited[half:]] for chain in chains]),
        "agreement": np.array([[path_agreement(p, chosen.paths) for p in chain.visited[half:]] for chain in chains]),
    }
    moved = {name: np.ptp(values) > 1e-9 for name, values in traces.items()}
    info: dict[str, list[int]] = {}
    for chain in chains:
        for name, (proposed, accepted, _) in chain.info.items():
            total = info.setdefault(name, [0, 0])
            total[0] += proposed
            total[1] += accepted
    diagnostics = Diagnostics(
        sweeps,
        {name: float(split_rhat(values)) if moved[name] else 1.0 for name, values in traces.items()},
        {name: float(bulk_ess(values)) if moved[name] else float(values.size) for name, values in traces.items()},
        {name: accepted / max(proposed, 1) for name, (proposed, accepted) in info.items()},
        np.array([chain.log_joint for chain in chains]),
        {},
    )
    names = tuple(user.name for user in table.users)
    return TrajectoryModel(
        cohort.schema,
        table.pool,
        priors,
        settings,
        names,
        structures,
        _nodes(table, chosen, names),
        reward,
        diagnostics,
        {
            "version": version("kerneltrail"),
            "users": {user.name: user.fingerprint for user in table.users},
            "candidates": [table.pool.composition(mask).text for mask in problem.candidates],
        },
    )


def _nodes(table: MapTable, chosen: Structure, names: tuple[str, ...]) -> tuple[Node, ...]:
    """The compositions in use, in order of first use: by batch, then by user."""
    longest = max(map(len, chosen.paths))
    order = dict.fromkeys(path[t] for t in range(longest) for path in chosen.paths if t < len(path))
    passed = last_use(chosen.paths)
    nodes = []
    for mask in order:
        thetas = [
            table.get(m, mask).theta[t]
            for m, path in enumerate(chosen.paths)
            for t, own in enumerate(path)
            if own == mask
        ]
        users = tuple(names[m] for m in sorted(passed[mask]))
        group = node_group(table, mask, chosen.paths)
        nodes.append(Node(mask, table.pool.composition(mask), np.array(thetas), group, users))
    return tuple(nodes)
