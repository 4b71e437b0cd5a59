"""The compositions that a fit considers: all small ones where there are few, else what a beam search finds promising.

The chains then target the joint (method (9)) restricted to this set. It is fixed before sampling begins, so the moves
stay exact on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kerneltrail.engines import Engine
from kerneltrail.kernels import Array, Pool
from kerneltrail.progress import Bound, Progress, Tell
from kerneltrail.trajectory.map_table import MapTable

Scope = Literal["each", "together"]
"""Whose best compositions are expanded: each customer's own, or those of all customers taken together."""

FITTING = "fitting candidates"
"""The stage of a fit in which compositions are fitted to users."""

FEW = 40
"""Up to so many compositions of a size are all fitted: a search would save nothing."""

PROMISING = 6.0
"""A composition is a candidate if it is within so many nats of the best for some customer, by evidence and H0."""

PARTNERS = 8
"""With the scope ``together``, how many products, the best by themselves, are tried as the next one of a sum."""


def levels(table: MapTable, largest: int, width: int, scope: Scope = "each") -> Iterator[list[tuple[int, int]]]:
    """The (user, mask) pairs to fit, one size after the other; each level is chosen by the fits of the one before.

    Level 1 is every product; before it comes the empty composition where the pool allows it. From then on, all
    compositions of the size where they are few; else, for every customer, the `width` best of the level before (log
    Laplace evidence + log H0) with each further product. With the scope ``together``, the `width` best by the summed
    log evidence of all customers instead, with each of the `PARTNERS` best products: where noise is high no customer
    alone can tell compositions apart, each one's best is another, and a product that gains little for everybody is
    found by nobody.
    """
    pool, users = table.pool, range(len(table.users))
    beams = {user: [0] for user in users}
    tops = {user: [-math.inf] * table.users[user].batches for user in users}
    top, partners = -math.inf, list(range(len(pool)))
    for size in _sizes(pool, largest):
        if math.comb(len(pool), size) <= FEW:
            masks = [mask for mask in pool.masks(size) if mask.bit_count() == size]
            chosen = dict.fromkeys(users, masks)
        else:
            chosen = {
                user: list(dict.fromkeys(beam | 1 << i for beam in beams[user] for i in partners if not beam >> i & 1))
                for user in users
            }
        yield [(user, mask) for user in users for mask in chosen[user]]
        if scope == "together":
            score = _together(table, chosen[0])
            if size == 1:
                partners = [mask.bit_length() - 1 for mask in list(score)[:PARTNERS]]
            best = [mask for mask in score if score[mask] > top][:width]
            beams, top = dict.fromkeys(users, best), max(top, *score.values(), -math.inf)
            continue
        beams = {user: _best(table, user, chosen[user], width, tops[user]) for user in users}


def _sizes(pool: Pool, largest: int) -> range:
    """Numbers of products, a level for each."""
    return range(0 if pool.allow_empty else 1, min(largest, len(pool)) + 1)


def _scores(table: MapTable, user: int, masks: list[int]) -> Array:
    """Log Laplace evidence + log H0 of some compositions for each batch of a user, (masks, T)."""
    return np.array([table.get(user, mask).log_laplace + table.pool.log_h0(mask) for mask in masks])


def _below(table: MapTable, user: int, masks: list[int]) -> Array:
    """By how much the scores of some compositions lie below the best of them at each batch of a user, (masks, T)."""
    scores = _scores(table, user, masks)
    return np.asarray(scores - scores.max(axis=0))


def _chances(below: Array) -> Array:
    """Probabilities of compositions, by evidence and H0 among them, added up over a user's batches, (masks,)."""
    chances = np.exp(below)
    return np.asarray((chances / chances.sum(axis=0)).sum(axis=1))


def _best(table: MapTable, user: int, masks: list[int], width: int, tops: list[float]) -> list[int]:
    """The `width` best masks of every batch that has gained over `tops`, which are then raised; each mask once."""
    best: dict[int, None] = {}
    ordered = sorted(masks)  # of equals the first
    for t, score in enumerate(_scores(table, user, ordered).T if masks else ()):
        ranked = np.argsort(-score, kind="stable")[:width]
        if score[ranked[0]] > tops[t]:
            tops[t] = float(score[ranked[0]])
            best.update(dict.fromkeys(ordered[i] for i in ranked))
    return list(best)


def _together(table: MapTable, masks: list[int]) -> dict[int, float]:
    """Log evidence of all customers together + log H0, best first."""
    users = range(len(table.users))
    score = {
        mask: sum(float(table.get(user, mask).log_laplace.sum()) for user in users) + table.pool.log_h0(mask)
        for mask in masks
    }
    return {mask: score[mask] for mask in sorted(masks, key=lambda mask: (-score[mask], mask))}


@dataclass(frozen=True)
class Candidates:
    """The compositions that chains are restricted to.

    Attributes:
        masks: fewest products first.
        cut: promising compositions that were left out, since there were more than a fit is to consider.
        share: of the customers' probability, by evidence and H0 among what was fitted to each, that is on those.
    """

    masks: tuple[int, ...]
    cut: int = 0
    share: float = 0.0


def support(table: MapTable, largest: int, width: int, scope: Scope = "each", **others: Any) -> tuple[int, ...]:
    """The masks of `find_candidates`, whose other arguments it takes."""
    return find_candidates(table, largest, width, scope, **others).masks


def find_candidates(
    table: MapTable,
    largest: int,
    width: int,
    scope: Scope = "each",
    *,
    most: int | None = None,
    always: Iterable[int] = (),
    negligible: float = 0.0,
    workers: Engine | int = 1,
    tell: Tell = lambda now: None,
) -> Candidates:
    """The candidates, with every one of them fitted to every user.

    What the search found promising for one user is offered to all: that is what transfer needs. Some may be candidates
    `always`, whatever the search finds. There are at most so many, if `most` is given: of more, those that are best
    with all rows of some user stay first, then those of the highest worth, method (62). Once all are fitted to all, the
    least probable go that together hold no more than a `negligible` share, method (82). `tell` hears of every fit. What
    a level needs is known when it begins, so the count of fits grows from level to level; the last one fits what is
    promising to those who did not ask for it.
    """
    last, fitted = len(_sizes(table.pool, largest)) + 1, 0

    def compute(number: int, pairs: list[tuple[int, int]]) -> None:
        nonlocal fitted
        bound: Bound = "about" if number == last else "at least"

        def count(done: int, total: int) -> None:
            tell(Progress(FITTING, fitted + done, fitted + total, f"level {number} of {last}", bound))

        fitted += len(table.compute(pairs, workers=workers, progress=count))

    # What the search asked for, not what is known: a table may hold more, from another fit or a checkpoint.
    asked: dict[int, list[int]] = {user: [] for user in range(len(table.users))}
    for number, level in enumerate(levels(table, largest, width, scope), start=1):
        compute(number, level)
        for user, mask in level:
            asked[user].append(mask)
    found = _limited(table, asked, set(always), most)
    compute(last, [(user, mask) for user in asked for mask in found.masks])
    return replace(found, masks=_worth_sampling(table, found.masks, set(always), negligible)) if negligible else found


def _limited(table: MapTable, asked: Mapping[int, list[int]], always: set[int], most: int | None) -> Candidates:
    """What is promising for somebody, and of more than `most` those worth most (method (62))."""
    worth, share, best = dict[int, float](), dict[int, float](), set[int]()
    for user, masks in asked.items():
        below = _below(table, user, masks)
        gains = np.maximum(PROMISING + below, 0.0).sum(axis=1)  # method (62)
        promising = (below.max(axis=1) >= -PROMISING).tolist()
        best.add(masks[int(below[:, -1].argmax())])
        for mask, some, gain, chance in zip(masks, promising, gains.tolist(), _chances(below).tolist(), strict=True):
            if some:
                worth[mask] = worth.get(mask, 0.0) + gain
            share[mask] = share.get(mask, 0.0) + chance
    keep = {*worth, *always}
    ranked = sorted(keep, key=lambda mask: (mask not in always, mask not in best, -worth.get(mask, 0.0), mask))
    cut = ranked[max(most, len(always)) :] if most is not None else []
    chosen = sorted(keep - set(cut), key=lambda mask: (mask.bit_count(), mask))
    customers = sum(user.batches for user in table.users)
    return Candidates(tuple(chosen), len(cut), sum(share[mask] for mask in cut) / customers)


def _worth_sampling(table: MapTable, masks: tuple[int, ...], always: set[int], negligible: float) -> tuple[int, ...]:
    """The candidates without the least probable, which hold at most a negligible share together (method (82))."""
    share, keep = np.zeros(len(masks)), set(always)
    for user in range(len(table.users)):
        below = _below(table, user, list(masks))
        share += _chances(below)
        keep.add(masks[int(below[:, -1].argmax())])
    share /= sum(user.batches for user in table.users)
    order = np.argsort(share, kind="stable")
    least = {masks[i] for i in order[np.cumsum(share[order]) <= negligible]}
    return tuple(mask for mask in masks if mask in keep or mask not in least)
