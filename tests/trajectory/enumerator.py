"""Runs a move through every outcome of its chance: its exact transition matrix, from the code itself, without noise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.sparse.csgraph import connected_components

from kerneltrail.gp import urn_moves
from kerneltrail.trajectory import Joint, State
from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.moves import Workspace


class Script:
    """Stands in for the generator: at every choice it takes the one that is due, and notes all there were."""

    def __init__(self, due: list[int]) -> None:
        self.due = due
        self.taken: list[int] = []
        self.chances: list[list[float]] = []

    def decide(self, chances: list[float]) -> int:
        total = math.fsum(chances)
        assert abs(total - 1.0) < 1e-9, f"chances add up to {total}"
        place = len(self.taken)
        choice = self.due[place] if place < len(self.due) else next(i for i, p in enumerate(chances) if p > 0.0)
        self.taken.append(choice)
        self.chances.append(chances)
        return choice

    def probability(self) -> float:
        return math.prod(p[i] for p, i in zip(self.chances, self.taken, strict=True))

    def next_due(self) -> list[int] | None:
        for place in range(len(self.taken) - 1, -1, -1):
            for other in range(self.taken[place] + 1, len(self.chances[place])):
                if self.chances[place][other] > 0.0:
                    return [*self.taken[:place], other]
        return None


def install(monkeypatch) -> None:
    """Put the enumerator in the place of chance."""

    def pick(rng, weights):
        total = math.fsum(weights)
        return rng.decide([w / total for w in weights])

    def accept(rng, log_ratio):
        p = math.exp(min(0.0, log_ratio))
        return rng.decide([p, 1.0 - p]) == 0

    monkeypatch.setattr(proposals, "index", lambda rng, n: rng.decide([1.0 / n] * n))
    monkeypatch.setattr(proposals, "pick", pick)
    monkeypatch.setattr(proposals, "accept", accept)


def outcomes(call: Callable[[Script], object]) -> Iterator[tuple[float, object]]:
    """Every result of a call with its probability."""
    due: list[int] | None = []
    while due is not None:
        script = Script(due)
        result = call(script)
        yield script.probability(), result
        due = script.next_due()


def transition_matrix(joint: Joint, states: list, step: Callable[[Script, Workspace], object]) -> np.ndarray:
    """P[i, j] of a step on a workspace, over all states."""
    place = {paths: i for i, paths in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for i, paths in enumerate(states):
        state = State(paths, joint.log_joint(paths))

        def call(script, state=state):
            work = Workspace(joint, state)
            step(script, work)
            return tuple(map(tuple, work.paths))

        for probability, result in outcomes(call):
            matrix[i, place[result]] += probability
    return matrix


def reachable(matrix: np.ndarray) -> bool:
    """Whether every state leads to every other."""
    return bool(connected_components(matrix > 0.0, directed=True, connection="strong")[0] == 1)


class Uniforms:
    """Stands in for uniform numbers: every one of them is the script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def __getitem__(self, place: int) -> Script:
        return self.script


@cache
def plain_moves(scripted: bool = True) -> SimpleNamespace:
    """The compiled moves as plain Python, from the same source; `scripted` puts the enumerator in the place of chance.

    What is shown of these holds for the machine code as far as it does the same with the same numbers, which is tested.
    """
    names: dict = {"__name__": "plain"}
    for part in ("tally", "seat", "path", "plate", "rename"):
        source = (Path(urn_moves.__file__).parent / f"{part}.py").read_text(encoding="utf-8")
        source = re.sub(r"@compiled\(.*\)\n", "", source)
        source = re.sub(r"from kerneltrail\.gp\.urn_moves\.tally import (\([^)]*\)|.*)\n", "", source)
        exec(compile(source, part, "exec"), names)
    if scripted:
        names["index"] = lambda u, n: u.decide([1.0 / n] * n)
        names["pick"] = lambda u, weights: u.decide((weights / math.fsum(weights)).tolist())
        names["pick_log"] = lambda u, weights: names["pick"](u, np.exp(weights - weights.max()))
        names["accept"] = lambda u, ratio: u.decide([math.exp(min(0.0, ratio)), -math.expm1(min(0.0, ratio))]) == 0
        names["take"] = lambda u, need, left: u.decide([need / left, 1.0 - need / left]) == 0
    return SimpleNamespace(**names)


def seat(c, m):
    """One customer of one user seated."""

    def step(moves, tally, script, target):
        logs = moves.logs_of(target, tally)
        moves.reseat(target, tally, logs, np.empty(target.evidence.shape[1]), m, c, script)

    return step


def path(m):
    """One user's path drawn."""

    def step(moves, tally, script, target):
        steps, longest = moves.steps_of(target, tally), int(np.diff(target.starts).max())
        shares = np.empty((longest, longest, target.evidence.shape[1]))
        moves.redraw(target, tally, steps, shares, m, Uniforms(script))

    return step


def plate(runs):
    """One table, or one table of runs, plated."""

    def step(moves, tally, script, target):
        shift, block = np.zeros_like(tally.counts), np.empty_like(tally.codes)
        moves.replate(target, tally, runs, shift, block, Uniforms(script))
        assert not shift.any()

    return step


def rename(moves, tally, script, target):
    """Two compositions renamed."""
    moves.transpose(target, tally, Uniforms(script))


def matrix_of(joint: Joint, states: list, step: Callable[..., None]) -> np.ndarray:
    """P[i, j] of a step of a compiled move, one of the above, over all states."""
    moves, book = plain_moves(), joint.book
    place = {book.encode(paths).tobytes(): i for i, paths in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for i, paths in enumerate(states):
        codes = book.encode(paths).astype(np.int64)

        def call(script, codes=codes):
            tally = moves.tally_of(joint.target, codes.copy())
            step(moves, tally, script, joint.target)
            after = moves.tally_of(joint.target, tally.codes)  # what is counted on the way must be what is there
            assert (tally.counts == after.counts).all()
            assert (tally.totals == after.totals).all()
            return tally.codes.astype(book.dtype).tobytes()

        for probability, result in outcomes(call):
            matrix[i, place[result]] += probability
    return matrix
