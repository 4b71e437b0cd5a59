"""The state of a chain: one path of compositions per user, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kerneltrail.trajectory.sampler.urn import Counts, Paths


@dataclass(frozen=True)
class State:
    """All paths with their log joint; immutable.

    Made by `Joint.state`, so that `log_joint` is a function of the paths alone, whatever moves led here: a chain that
    is stopped and started again from its paths continues bit for bit.

    Attributes:
        paths: the composition of every customer.
        log_joint: log of SPEC §4's joint over all paths, up to the constant p(data).
        tables: a table label per customer, only where the published moves keep explicit tables; a table is a pair
            (restaurant, label). The exact moves have summed them out and drop them.
    """

    paths: Paths
    log_joint: float
    tables: Paths | None = None

    @cached_property
    def nodes(self) -> int:
        """Number of compositions in use."""
        return len({mask for path in self.paths for mask in path})

    @cached_property
    def edges(self) -> int:
        """Number of distinct transitions in use, those from the root included."""
        return Counts.of(self.paths).edges
