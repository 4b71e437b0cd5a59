"""Constant paths: one composition for each user at all times, and every row counted once (method (47)).

Somebody of one batch makes one transition, from the root. So the joint over paths (method (9)) of users who brought all
their rows at once is the joint over constant paths, and every move, chain and choice that serves the one serves the
other: `seat` is Gibbs over users, `rename` moves all users of a composition together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from kerneltrail.trajectory.map_table import Fits, MapTable
from kerneltrail.trajectory.sampler.joint import Structure
from kerneltrail.trajectory.sampler.urn import Counts, Paths


def whole_table(table: MapTable) -> MapTable:
    """The table of the same users with all rows in one batch: of the fits that are known, those to all rows."""
    users = [user.with_ends((user.rows,)) for user in table.users]
    of_all = MapTable(users, table.pool, table.prior, table.settings, table.reward)
    for user, mask in table.pairs:
        of_all.put(user, mask, whole(table.get(user, mask)))
    return of_all


def whole(fits: Fits) -> Fits:
    """The fit to all rows, of those to each batch."""
    return Fits(**{each.name: getattr(fits, each.name)[-1:] for each in fields(Fits)})


def stretched(structure: Structure, batches: Sequence[int]) -> Structure:
    """A structure of users of one batch each, with the composition kept through so many batches of each user.

    >>> stretched(Structure(((1,), (3,)), -2.0, 2, 2), [3, 1]).paths
    ((1, 1, 1), (3,))
    """
    paths: Paths = tuple(path * count for path, count in zip(structure.paths, batches, strict=True))
    return replace(structure, paths=paths, edges=Counts.of(paths).edges)
