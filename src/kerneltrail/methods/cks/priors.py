"""Priors wide enough for any series, once its covariates run from 0 to 1 and its target is standardised."""

from __future__ import annotations

import math

from kerneltrail.kernels import Priors, log_normal, normal
from kerneltrail.methods.cks.guard import Limits


def wide_priors(limits: Limits) -> Priors:
    """Priors that say little: what they say is the scale of the data.

    A lengthscale lies within a few factors of ten of a third of the range, the noise below the target's variance, a
    straight line crosses zero in or near the range. A period lies anywhere from the shortest to the longest that
    `limits` allow, or the range: both ends are two standard deviations of the logarithm from the middle.

    Args:
        limits: the shortest and longest period allowed on each scaled covariate.
    """
    by_kind = {
        "lengthscale": log_normal(-1.0, scale=1.5),
        "amplitude": log_normal(0.0, scale=2.0),
        "period": log_normal(-1.0, scale=1.0),
        "noise": log_normal(-3.0, scale=2.0),
        "location": normal(0.5, scale=1.0),
    }
    priors = Priors(by_kind)
    for name, (shortest, longest) in limits.items():
        lowest, highest = max(shortest, 1e-6), min(longest, 1.0)
        if 2.0 * lowest < highest:
            middle, width = 0.5 * math.log(lowest * highest), math.log(highest / lowest)
            priors = priors.override("period", name, log_normal(middle, scale=0.25 * width))
    return priors
