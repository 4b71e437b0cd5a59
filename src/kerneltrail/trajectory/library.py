"""A library: compositions worth offering to every customer, found once from the evidences before any sampling.

Draws from H0 are blind to the data, and in a pool of 70 products nearly all of them are wasted evidences. A library is
a data-informed proposal that keeps the moves exact: it is fixed before the chain begins, so it depends on no state.
"""

from __future__ import annotations

from kerneltrail.trajectory.errors import TrajectoryError
from kerneltrail.trajectory.joint import Joint
from kerneltrail.trajectory.urn import ROOT


def promising(joint: Joint, *, width: int = 2, largest: int = 3, margin: float = 3.0) -> tuple[int, ...]:
    """Beam search per user: the best compositions of one product, then those with one more, and so on.

    A composition is judged by log evidence + log H0, for every batch by itself: what is best with few rows is kept
    beside what is best with many.

    Args:
        joint: the prior and the evidences. About N·(1 + (largest-1)·width·T) of them are asked for, for each user.
        width: compositions per batch that are expanded to the next size.
        largest: number of products at which to stop.
        margin: a composition is kept if it is within so many nats of the best for some customer.

    Returns:
        Masks, fewest products first.
    """
    if width < 1 or largest < 1 or not margin >= 0.0:
        raise TrajectoryError(f"a library needs width and largest ≥ 1 and margin ≥ 0, got {width}, {largest}, {margin}")
    kept: set[int] = set()
    for user, batches in enumerate(joint.customers):
        scores: dict[int, list[float]] = {}
        beam = [0]
        for _ in range(min(largest, len(joint.urn.pool))):
            level = dict.fromkeys(
                mask | 1 << i for mask in beam for i in range(len(joint.urn.pool)) if not mask >> i & 1
            )
            for mask in level:
                log_h0 = joint.urn.log_mass(ROOT, mask)
                scores[mask] = [log_h0 + value for value in joint.row(user, mask)]
            beam = []
            for t in range(batches):
                ranked = sorted(((scores[mask][t], mask) for mask in level), reverse=True)
                beam.extend(mask for _, mask in ranked[:width] if mask not in beam)
        tops = [max(of_mask[t] for of_mask in scores.values()) for t in range(batches)]
        kept.update(
            mask for mask, own in scores.items() if any(s >= top - margin for s, top in zip(own, tops, strict=True))
        )
    return tuple(sorted(kept, key=lambda mask: (mask.bit_count(), mask)))
