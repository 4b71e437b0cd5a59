"""What an action adds, per context, with its uncertainty: r(s,1) - r(s,0) of a reward model (method (33))."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltrail.gp.mixture import NormalMixture


@dataclass(frozen=True)
class Advantage(NormalMixture):
    """The advantage of acting at m contexts, in the target's units: one Normal for each kernel that counts.

    `positive` is the probability that acting raises the target: that of the mixture, not of one Normal in its place.
    """
