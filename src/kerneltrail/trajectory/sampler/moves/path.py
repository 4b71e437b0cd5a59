"""Path: a user's whole path is drawn at once, by forward filtering and backward sampling.

The other users' counts are held fixed. Candidates at every batch are the compositions they use, a fixed library, and
`fresh` slots; of those, a path is drawn from the chain

    p̃(path) = Π_t p(y[m,t] | k_t) · p̃(k_t | k_{t-1}, run)

whose steps are the urn's, where the user's own *run* of r self transitions has been added to restaurant k's counts
(method (22)):

    stay:  (N[k→k] + r + αH0(k|k)) / (N[k] + r + α)        leave for j:  (N[k→j] + αH0(j|k)) / (N[k] + r + α)

This is the joint itself for every path that never comes back to a composition it has left. Where it does, the user's
transitions interact in a way no chain has, and a Metropolis correction p(path')p̃(path) / (p(path)p̃(path')) makes the
move exact.

Fresh slots: let D be the d compositions of the path that nobody else uses. They are put into d of the slots, all
arrangements equally likely, and the rest is drawn from q. If φ fills r_φ slots, the auxiliary slots have density

    P(slots | path) ∝ (fresh-d)! · Π_{φ in D} r_φ/q(φ)

whose ratio enters the acceptance. To have it near 1, p̃ counts r_φ/(fresh·q(φ)) whenever φ is entered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo, Workspace
from kerneltrail.trajectory.sampler.proposals import Fresh
from kerneltrail.trajectory.sampler.urn import ROOT

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Path(Move):
    """One pass over all users.

    Attributes:
        fresh: slots for compositions that nobody else uses. A path with more such compositions stays as it is, so alone
            the move reaches everything only with as many slots as batches.
        library: compositions that are always candidates. With all of the pool's, no slots are needed.
    """

    name = "path"
    least: ClassVar[Mapping[str, int]] = {"fresh": 0}

    joint: Joint
    fresh: int = 4
    library: tuple[int, ...] = ()

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Draw every user's path once."""
        work = Workspace(self.joint, state)
        accepted = sum(self.redraw(rng, work, m) for m in range(len(work.paths)))
        changed = sum(tuple(new) != old for new, old in zip(work.paths, state.paths, strict=True))
        return work.state(), MoveInfo(len(work.paths), accepted, changed)

    def redraw(self, rng: np.random.Generator, work: Workspace, m: int) -> bool:
        """One user's path; whether the proposal was accepted (it may be the same path)."""
        joint, counts, path = work.joint, work.counts, work.paths[m]
        counts.remove_path(path)
        known = dict.fromkeys(counts.uses)
        known.update(dict.fromkeys(self.library))
        unshared = [mask for mask in dict.fromkeys(path) if mask not in known]  # D, in order of appearance
        new = path
        if len(unshared) <= self.fresh:
            source = Fresh(joint.urn, ROOT, tuple(known))
            slots = unshared + [proposals.mask(rng, source) for _ in range(self.fresh - len(unshared))]
            chain = _PathChain(work, m, known, slots, source)
            proposal = chain.sample(rng)
            log_ratio = (
                joint.urn.log_path(counts, proposal)
                - joint.urn.log_path(counts, path)
                - chain.log_steps(proposal)
                + chain.log_steps(path)
                + chain.log_slots(proposal)
                - chain.log_slots(path)
            )  # the evidences are the same in the joint and in p̃, and cancel
            if proposals.accept(rng, log_ratio):
                new = proposal
        accepted = new is not path
        work.paths[m] = new
        counts.add_path(new)
        return accepted


class _PathChain:
    """p̃ for one user, over the candidates of one proposals."""

    def __init__(self, work: Workspace, m: int, known: dict[int, None], slots: Sequence[int], source: Fresh) -> None:
        urn = work.joint.urn
        self.slots = len(slots)
        self.log_entry: dict[int, float] = {}  # log r_φ/q(φ) of the compositions in slots only
        for mask in slots:
            if mask not in known and mask not in self.log_entry and urn.log_mass(ROOT, mask) > -math.inf:
                self.log_entry[mask] = math.log(slots.count(mask)) - source.log_prob(mask)
        self.masks = (*known, *self.log_entry)
        self.index = {mask: i for i, mask in enumerate(self.masks)}
        self.log_evidence = np.array([work.joint.row(m, mask) for mask in self.masks]).T  # [T, S]
        self.tops, self.bottoms = urn.step_matrix(work.counts, self.masks)  # [1+S, S], [1+S]
        # Entering a composition that only a slot offers; 1 for all others.
        log_entry = [self.log_entry[mask] - math.log(self.slots) for mask in self.masks[len(known) :]]
        self.entry = np.ones(len(self.masks))
        self.entry[len(known) :] = np.exp(log_entry)

    def sample(self, rng: np.random.Generator) -> list[int]:
        """A path from p̃."""
        filtered, leave = self._filter()
        last = len(filtered) - 1
        size = len(self.masks)
        # A state is (composition i, self transitions r so far in its run), flat in [r, i].
        r, i = divmod(proposals.pick(rng, filtered[last].ravel().tolist()), size)
        path = [i]
        for t in range(last - 1, -1, -1):
            if r:
                r -= 1
            else:
                weights = filtered[t] / self._bottoms(t + 1) * leave[:, i]
                r, i = divmod(proposals.pick(rng, weights.ravel().tolist()), size)
            path.append(i)
        return [self.masks[i] for i in reversed(path)]

    def _bottoms(self, runs: int) -> Floats:
        """N[k] + r + α for r = 0, …, runs-1: shape [runs, S]."""
        return self.bottoms[1:] + np.arange(runs)[:, None]

    def _filter(self) -> tuple[list[Floats], Floats]:
        """Forward messages [t+1, S] over (r, k), each scaled to a maximum of one, and the steps that leave [S, S].

        Scaling comes after the evidence is multiplied in by its logarithm, so a message underflows only where the
        composition is hopeless *after* the step to it: H0 bounds from below what a later step can lose by that.
        """
        steps, size = self.log_evidence.shape
        stay = np.diagonal(self.tops[1:])
        leave = self.tops[1:].copy()
        np.fill_diagonal(leave, 0.0)
        leave *= self.entry
        message = (self.tops[0] * self.entry)[None, :]
        filtered: list[Floats] = []
        for t in range(steps):
            if t:
                shares = filtered[-1] / self._bottoms(t)
                message = np.empty((t + 1, size))
                message[0] = shares.sum(axis=0) @ leave
                message[1:] = shares * (stay + np.arange(t)[:, None])
            with np.errstate(divide="ignore"):
                log_message = np.log(message) + self.log_evidence[t]
            filtered.append(np.exp(log_message - log_message.max()))
        return filtered, leave

    def log_steps(self, path: Sequence[int]) -> float:
        """log p̃(path) without evidences, up to the constant of the first step."""
        total = 0.0
        before, run = -1, 0
        for mask in path:
            i = self.index[mask]
            if i == before:
                total += math.log(self.tops[1 + i, i] + run) - math.log(self.bottoms[1 + i] + run)
                run += 1
            else:
                total += math.log(self.tops[1 + before, i]) + math.log(self.entry[i])
                if before >= 0:
                    total -= math.log(self.bottoms[1 + before] + run)
                before, run = i, 0
        return total

    def log_slots(self, path: Sequence[int]) -> float:
        """log P(slots | path), up to what does not depend on the path."""
        entries = [self.log_entry[mask] for mask in dict.fromkeys(path) if mask in self.log_entry]
        return math.lgamma(self.slots - len(entries) + 1) + math.fsum(entries)
