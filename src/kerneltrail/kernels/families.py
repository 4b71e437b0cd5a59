"""Families of cosine series, and how long one may be: what plain and compiled code both know."""

LONGEST = 1 << 14
"""No series is longer: it would cost more than the dense method for any number of rows that can be held.

A lengthscale that wants more (below some 1e-4 of the period or range) gets this length and is *not* exact; its `count`
tells the caller that dense is cheaper. Without the limit one such sample would fill the memory of all batched with it.
"""

NO_FAMILY, GAUSSIAN, BESSEL = 0, 1, 2
"""Families of series that compiled code can make by itself (`compiled.one_series`).

GAUSSIAN: exp(-τ²/(2ℓ²)), whose one hyperparameter is the lengthscale. BESSEL: exp(-2 sin²(πτ/p)/ℓ²), lengthscale and
period. An atom kind without a family works all the same, by its `series` method.
"""
