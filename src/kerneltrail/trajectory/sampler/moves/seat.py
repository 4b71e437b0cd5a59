"""Seat: one customer after the other gets a composition from its conditional given all else, exactly (method (21)).

For customer (m,t) in restaurant K with next customer c = K[m,t+1], method (9) gives, with both transitions taken out,

    p(k | rest) ∝ p(y[m,t] | k) · (N[K→k] + αH0(k|K)) · (N'[k→c] + αH0(c|k)) / (N'[k] + α)

where N' already counts K→k, which matters where k is K itself. The last factor, the next customer moving to another
restaurant, is what the paper's seating formula leaves out.

There are 2^N compositions, so the conditional is not summed over all of them. The candidates are a set E that does not
depend on where the customer sits now (everything in use by the others, and a fixed library) and `fresh` slots
filled from a source q. The trick is that of Neal's algorithm 8 with the discrete H0's ties handled: if the present
composition is outside E it occupies one slot, and the rest is drawn. With the slots as auxiliary variables, the
extended target puts on

    k in E                  w(k) · Π_i q(φ_i)
    slot j, φ_j outside E   w(φ_j)/(fresh·q(φ_j)) · Π_i q(φ_i)
    slot j, φ_j in E        0

so one categorical draw with these weights is a Gibbs step, and p(paths | data) is its marginal, whatever q is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerneltrail.trajectory.sampler import proposals
from kerneltrail.trajectory.sampler.joint import Joint, State
from kerneltrail.trajectory.sampler.moves.base import Move, MoveInfo, Workspace
from kerneltrail.trajectory.sampler.proposals import Fresh


@dataclass(frozen=True)
class Seat(Move):
    """One pass over all customers.

    Attributes:
        fresh: slots for compositions that nobody uses; with none, only E is reached.
        library: compositions that are always candidates. All of the pool's makes each step full Gibbs.
    """

    name = "seat"
    least: ClassVar[Mapping[str, int]] = {"fresh": 0}

    joint: Joint
    fresh: int = 2
    library: tuple[int, ...] = ()

    def __call__(self, rng: np.random.Generator, state: State) -> tuple[State, MoveInfo]:
        """Seat everybody once, user by user, in the order of the batches."""
        work = Workspace(self.joint, state)
        changed = 0
        for m, path in enumerate(work.paths):
            for t in range(len(path)):
                changed += self.reseat(rng, work, m, t)
        return work.state(), MoveInfo(self.joint.size, self.joint.size, changed)

    def reseat(self, rng: np.random.Generator, work: Workspace, m: int, t: int) -> bool:
        """Seat one customer; whether it changed its composition."""
        counts, path = work.counts, work.paths[m]
        parent, old = work.parent(m, t), path[t]
        child = path[t + 1] if t + 1 < len(path) else None
        counts.remove(parent, old)
        if child is not None:
            counts.remove(old, child)

        known = dict.fromkeys(counts.uses)
        if child is not None:
            known[child] = None
        known.update(dict.fromkeys(self.library))
        weigh = self._weigher(work, m, t, parent, child)
        candidates = list(known)
        log_weights = [weigh(mask) for mask in candidates]
        if self.fresh:
            source = Fresh(work.joint.urn, parent, tuple(candidates))
            slots = [] if old in known else [old]
            slots += [proposals.mask(rng, source) for _ in range(self.fresh - len(slots))]
            for mask in slots:
                if mask not in known:
                    candidates.append(mask)
                    log_weights.append(weigh(mask) - source.log_prob(mask) - math.log(self.fresh))
        # Without slots, a composition outside E can neither be left nor be entered: staying is exact.
        stuck = not self.fresh and old not in known
        new = old if stuck else candidates[proposals.pick_log(rng, log_weights)]

        path[t] = new
        counts.add(parent, new)
        if child is not None:
            counts.add(new, child)
        return new != old

    def _weigher(self, work: Workspace, m: int, t: int, parent: int, child: int | None) -> Callable[[int], float]:
        """log w(k) of the docstring above, for one customer whose transitions are taken out."""
        joint, counts = work.joint, work.counts
        log_mass, alpha, row_of = joint.urn.log_mass, joint.urn.alpha, joint.row
        rows, totals = counts.rows, counts.totals
        here = rows.get(parent, {})
        log, exp = math.log, math.exp

        def weigh(mask: int) -> float:
            weight = log_mass(parent, mask)
            if weight == -math.inf:
                return weight
            n = here.get(mask)
            if n is not None:
                weight = log(n + exp(weight))
            if child is not None:
                next_mass = log_mass(mask, child)
                row = rows.get(mask)
                total, n_next = (0, 0) if row is None else (totals[mask], row.get(child, 0))
                if mask == parent:  # the customer's own step K→K is in the restaurant its next step is made from
                    total += 1
                    n_next += mask == child
                weight += (log(n_next + exp(next_mass)) if n_next else next_mass) - log(total + alpha)
            return weight + row_of(m, mask)[t]

        return weigh
