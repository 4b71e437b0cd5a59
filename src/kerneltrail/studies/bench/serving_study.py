"""The study that `kerneltrail bench serve` serves: a graph of a given size, participants, and what they ask for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Self

import numpy as np

from kerneltrail.data import simulate
from kerneltrail.errors import DataError, TrialError
from kerneltrail.gp import Reward, one_blas_thread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory.graph import Diagnostics, Node
from kerneltrail.trajectory.map_table import group_of
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.settings import Settings
from kerneltrail.trial.conduct import Trial
from kerneltrail.trial.folder import Folder, make_folder
from kerneltrail.trial.request import Request

TRIAL, KIND = "bench", "decision"
POOL = ("LIN[log_steps30pre]", "SE[hour]", "SE[temperature]", "PER[hour]", "SE[log_steps30pre]")
PILOTS, DAYS, BATCH = 10, 16, 20
ITEMS = 1000
"""Outcomes that are recorded in one commit."""


def model_with(nodes: int, seed: int) -> TrajectoryModel:
    """A model whose graph has exactly so many nodes: how long a decision takes depends on them, not on who learnt them.

    All pilot users begin at the first node, and go on to one of the others each.
    """
    pool = Pool.of(*POOL)
    masks = sorted(pool.masks(2), key=lambda mask: (mask.bit_count(), mask))
    if not 1 <= nodes <= len(masks):
        raise DataError(f"the graph may have 1 to {len(masks)} nodes, not {nodes}")
    pilots, priors = simulate.mhealth(PILOTS, 1, seed, days=DAYS, batch_size=BATCH).train, Priors.heartsteps()
    chosen = masks[:nodes]
    paths = tuple((chosen[0], *([chosen[i % nodes]] * (user.batches - 1))) for i, user in enumerate(pilots.users))
    rng = np.random.default_rng(seed)
    made = []
    for mask in chosen:
        composition = pool.composition(mask)
        mean, variance = priors.moments(composition)
        users = tuple(name for name, path in zip(pilots.names, paths, strict=True) if mask in path)
        thetas = mean + 0.3 * np.sqrt(variance) * rng.standard_normal((max(1, len(users)), len(mean)))
        made.append(Node(mask, composition, thetas, group_of(composition, list(thetas), priors), users))
    edges = {edge for path in paths for edge in pairwise((0, *path))}
    return TrajectoryModel(
        pilots.schema,
        pool,
        priors,
        Settings(seed=seed).resolved(False),
        pilots.names,
        (Structure(paths, 0.0, nodes, len(edges)),),
        tuple(made),
        Reward(("log_steps30pre",)),
        Diagnostics(0, {}, {}, {}, {}, {}),
        {"users": {user.name: user.fingerprint for user in pilots.users}},
    )


@dataclass
class Study:
    """A trial's folder with its ledger, and participants who are asked for in turn; threads may share it.

    Attributes:
        path: the folder.
        ledger: where it lies, if not in the folder.
        operator: a key that starts updates.
        tokens: keys of apps.
        names: of the participants.
    """

    path: Path
    ledger: str | None
    operator: str
    tokens: tuple[str, ...]
    rng: np.random.Generator
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._indices: dict[str, int] = {}
        self._turns = count()
        self._lock = threading.Lock()

    @classmethod
    def begin(cls, path: Path, ledger: str | None, nodes: int, keys: int, seed: int) -> Self:
        """A new trial with its keys, and nobody in it."""
        file = path / "graph.trail"
        model_with(nodes, seed).save(file)
        folder, _ = make_folder(path / "trial", file, trial=TRIAL)
        trial = Folder(folder.path, ledger).open(freeze=True)
        try:
            operator = trial.create_key(["operator", "monitor"], note="bench").token
            tokens = tuple(trial.create_key(["app"], note="bench").token for _ in range(keys))
        finally:
            trial.close()
        return cls(folder.path, ledger, operator, tokens, np.random.default_rng(seed))

    def enrol(self, participants: int, rows: int, new: int = 0) -> None:
        """Enrol until there are so many; the policy knows some rows of each, and others are left for an update."""
        trial = Folder(self.path, self.ledger).open()
        try:
            with one_blas_thread():
                joining = [f"p{number:04d}" for number in range(len(self.names), participants)]
                for name in joining:
                    trial.enrol(name, timezone="UTC", starts_on=(datetime.now(UTC) - timedelta(days=60)).date())
                self.names += joining
                self._live(trial, joining, rows)
                done = trial.update(reason="rows from before")
                if done.state != "done" or done.held:
                    raise TrialError(f"the participants of bench serve could not be followed: {done.words}")
                self._live(trial, self.names, new)
        finally:
            trial.close()

    def _live(self, trial: Trial, names: list[str], rows: int) -> None:
        """Decisions that were made ahead, with an outcome each."""
        now, items = datetime.now(UTC), list[dict[str, object]]()
        for name in names if rows else ():
            asked = [self._request(name, now - timedelta(hours=3 * (rows - row))) for row in range(rows)]
            for answer in trial.schedule(asked):
                items.append(
                    {
                        "client_id": str(answer.value["index"]),
                        "participant": name,
                        "decision": answer.value["decision_id"],
                        "value": float(2.0 + 0.3 * answer.value["action"] + self.rng.standard_normal()),
                        "observed_at": now.isoformat(),
                    }
                )
        for begin in range(0, len(items), ITEMS):
            if refused := [item for item in trial.outcomes(items[begin : begin + ITEMS]) if item.status != "stored"]:
                raise TrialError(f"an outcome of bench serve was refused: {refused[0].reason}")

    def _request(self, name: str, at: datetime) -> Request:
        index = self._indices.get(name, 0)
        self._indices[name] = index + 1
        draws = self.rng.uniform((7.0, 0.0, 5.0), (22.0, 7.0, 25.0))
        context = dict(zip(("hour", "log_steps30pre", "temperature"), map(float, draws), strict=True))
        return Request(name, KIND, index, at, context=context)

    def next(self) -> Request:
        """The next decision of whoever's turn it is, now."""
        with self._lock:
            return self._request(self.names[next(self._turns) % len(self.names)], datetime.now(UTC))
