"""Presets side by side where the truth is known: who is followed how well, per batch, with paired differences."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kerneltrail.data import Cohort
from kerneltrail.data.simulate import Simulation
from kerneltrail.evaluation.calibration import Bin, reliability
from kerneltrail.evaluation.follow import Followed, follow
from kerneltrail.evaluation.intervals import Interval, paired
from kerneltrail.gp import one_blas_thread
from kerneltrail.kernels import Pool, Priors
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.settings import Settings

Learner = Callable[[Cohort, Pool, Priors, Settings], TrajectoryModel]

MEASURES = ("right", "log_density", "rmse", "products", "hyperparameters", "brier")
"""What is averaged over users and compared in pairs, per batch."""

OF_SELECTION = ("selection", "memory", "refine")
"""Settings that matter for new users only: presets that differ in nothing else share one model."""


@dataclass(frozen=True)
class Learnt:
    """The graph that a preset learnt from one simulation's pilot users.

    Attributes:
        preset, seed: which.
        edges: "parent -> child count/total", root first; the root's text is empty.
        paths: each pilot user's compositions.
        truth: each pilot user's true kernel.
        rhat: of the log joint.
        sweeps: of each chain.
        seconds: for the fit, or 0 where it was shared with an earlier preset.
    """

    preset: str
    seed: int
    edges: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    truth: tuple[str, ...]
    rhat: float
    sweeps: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """One preset over all users and seeds; tuples have one entry per batch unless said otherwise.

    Attributes:
        preset: its name.
        users: how many were followed.
        rows: rows seen after each batch.
        right: share of users whose composition is the truth.
        right_by_seed: the same at the last batch, one entry per seed.
        log_density, rmse: of the batch's rows, predicted before they were seen.
        products, hyperparameters: mean size of the selected composition.
        changed: share of users whose composition is another than after the batch before; nothing for the first.
        recovered: of the users wrong after the first batch, the share right after the last; None if nobody was wrong.
        brier: of the node probabilities.
        bins: reliability of the most probable node, all batches together.
    """

    preset: str
    users: int
    rows: tuple[int, ...]
    right: tuple[float, ...]
    right_by_seed: tuple[float, ...]
    log_density: tuple[float, ...]
    rmse: tuple[float, ...]
    products: tuple[float, ...]
    hyperparameters: tuple[float, ...]
    changed: tuple[float, ...]
    recovered: float | None
    brier: tuple[float, ...]
    bins: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """All that was measured.

    Attributes:
        followed: every user under every preset.
        learnt: every graph.
    """

    followed: tuple[Followed, ...]
    learnt: tuple[Learnt, ...]

    @property
    def presets(self) -> tuple[str, ...]:
        """Their names, in the order given."""
        return tuple(dict.fromkeys(each.preset for each in self.followed))

    def of(self, preset: str) -> tuple[Followed, ...]:
        """The users under one preset, in the same order for every preset."""
        return tuple(each for each in self.followed if each.preset == preset)

    def summary(self, preset: str) -> Summary:
        """Averages over the users of all seeds."""
        own = self.of(preset)
        means = {name: tuple(np.mean([getattr(f, name) for f in own], axis=0).tolist()) for name in MEASURES}
        changed = np.mean([_changes(f) for f in own], axis=0)
        wrong = [f for f in own if not f.right[0]]
        by_seed = {seed: [f.right[-1] for f in own if f.seed == seed] for seed in dict.fromkeys(f.seed for f in own)}
        return Summary(
            preset=preset,
            users=len(own),
            rows=own[0].ends,
            right_by_seed=tuple(float(np.mean(right)) for right in by_seed.values()),
            changed=tuple(changed.tolist()),
            recovered=float(np.mean([f.right[-1] for f in wrong])) if wrong else None,
            bins=reliability((p, right) for f in own for p, right in zip(f.top, f.right, strict=True)),
            **means,
        )

    def difference(self, measure: str, first: str, second: str, *, level: float = 0.9) -> tuple[Interval, ...]:
        """First minus second over the same users, per batch. Measures: those of `MEASURES`, and ``changed``."""
        values = []
        for preset in (first, second):
            own = self.of(preset)
            rows = [_changes(f) if measure == "changed" else getattr(f, measure) for f in own]
            values.append(np.array(rows, dtype=np.float64))
        ours, theirs = values
        return tuple(paired(ours[:, t], theirs[:, t], level=level) for t in range(ours.shape[1]))

    def to_json(self) -> dict[str, Any]:
        """As plain values, with the summaries and the differences of each preset from the first."""
        first, *others = self.presets
        return {
            "summaries": [self.summary(preset).to_json() for preset in self.presets],
            "differences": [
                {
                    "first": first,
                    "second": other,
                    "measure": measure,
                    "per_batch": [interval.to_json() for interval in self.difference(measure, first, other)],
                }
                for other in others
                for measure in (*MEASURES, "changed")
            ],
            "learnt": [each.to_json() for each in self.learnt],
            "followed": [each.to_json() for each in self.followed],
        }


def _changes(followed: Followed) -> list[float]:
    """1 for each batch after which the composition is another than before it; nobody changes at the first."""
    pairs = pairwise(followed.compositions)
    return [0.0, *(float(before != after) for before, after in pairs)]


def learn(cohort: Cohort, pool: Pool, priors: Priors, settings: Settings) -> TrajectoryModel:
    """A model of pilot users; what `compare_presets` learns with unless told otherwise."""
    return fit(cohort, pool=pool, priors=priors, settings=settings)


def compare_presets(
    simulate: Callable[[int], Simulation],
    presets: Mapping[str, Settings],
    seeds: Iterable[int],
    *,
    pool: Pool,
    priors: Priors,
    learner: Learner = learn,
    tick: Callable[[str], None] | None = None,
) -> Comparison:
    """Learn from each seed's training users under each preset, and follow its test users batch by batch.

    Args:
        simulate: a simulation from a seed.
        presets: settings by name; those that differ in selection alone share one model.
        seeds: of the simulations.
        pool: products on offer.
        priors: over hyperparameters.
        learner: makes a model; to replace where fits are to be shared between presets.
        tick: called with what comes next; if None, said on standard error where that is a terminal.
    """
    say = tick or _say
    followed: list[Followed] = []
    learnt: list[Learnt] = []
    for seed in seeds:
        simulation = simulate(seed)
        models: dict[str, TrajectoryModel] = {}
        for preset, settings in presets.items():
            say(f"seed {seed}, {preset}")
            key = repr(replace(settings, **{name: getattr(_PLAIN, name) for name in OF_SELECTION}).to_json())
            began = time.perf_counter()
            if key not in models:
                models[key] = learner(simulation.train, pool, priors, settings)
            model = models[key]
            learnt.append(_learnt(preset, seed, model, simulation, time.perf_counter() - began))
            changes = {name: getattr(settings, name) for name in OF_SELECTION}
            with one_blas_thread():
                followed += [
                    follow(model, user, simulation.truth[user.name], preset=preset, seed=seed, **changes)
                    for user in simulation.test.users
                ]
    return Comparison(tuple(followed), tuple(learnt))


_PLAIN = Settings()


def _learnt(preset: str, seed: int, model: TrajectoryModel, simulation: Simulation, seconds: float) -> Learnt:
    table = model.table()
    return Learnt(
        preset,
        seed,
        tuple(f"{e.parent.text if e.parent else ''} -> {e.child.text} {e.label}".strip() for e in model.edges),
        tuple(tuple(composition.text for composition in path) for _, path in table),
        tuple(simulation.truth[name].text for name, _ in table),
        float(model.diagnostics.rhat["log_joint"]),
        model.diagnostics.sweeps,
        seconds,
    )


def _say(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")
        sys.stderr.flush()


def merged(comparisons: Sequence[Comparison]) -> Comparison:
    """Comparisons of the same presets over other seeds, as one."""
    return Comparison(
        tuple(f for comparison in comparisons for f in comparison.followed),
        tuple(each for comparison in comparisons for each in comparison.learnt),
    )
