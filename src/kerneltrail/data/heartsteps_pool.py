"""The pool of the paper's HeartSteps experiment, for the covariates that are there (SPEC §3; paper, Appendix D.4)."""

from __future__ import annotations

from collections.abc import Iterable

from kerneltrail.kernels import Pool, Product, parse

FAVOURITE = "PER[steps30pre]"
PRELIMINARY = (
    "LIN[min]",
    "SE[steps30pre]",
    "SE[log_steps30pre]",  # the same covariate on the scale that the outcome has
    "PER[hour]",
    "SE[hour]",
    "SE[temperature]",
    "PER[temperature]",
    "SE[weather]",
    "PER[yday]",
    "SE[yday]",
    "SE[hour]*SE[weather]",
    "SE[hour]*SE[temperature]",
)
"""The paper's preliminary set, which it says came from users who are not among its training users."""

PRODUCTS = ("SE[hour]*SE[weather]", "SE[hour]*SE[temperature]")
"""The paper includes "a small selection of multiplicative kernels", and names these."""
OURS = ("SE[hour]*SE[log_steps30pre]",)
"""Added here: whether somebody who moves goes on moving depends on the time of day."""

PAPER_COVARIATES = ("hour", "min", "steps30pre", "temperature", "weather", "precip_chance", "activity", "yday", "dom")
"""Covariates that the paper names, of its 47."""


def heartsteps_pool(covariates: Iterable[str], *, ours: bool = True) -> Pool:
    """Each atom on each covariate and a few products, with the paper's inclusion probabilities.

    0.1 for PER[steps30pre], 0.05 for the preliminary set, 0.03 for one factor, 0.01 otherwise. With `ours`, a product
    that the paper does not name is among them.

    >>> pool = heartsteps_pool(["hour", "steps30pre", "temperature"])
    >>> len(pool), dict(zip(map(str, pool), pool.probabilities))["PER[steps30pre]"]
    (10, 0.1)
    """
    names = tuple(dict.fromkeys(covariates))
    preliminary = {str(parse(text)) for text in PRELIMINARY}

    def probability(product: Product) -> float:
        text = str(product)
        if text == FAVOURITE:
            return 0.1
        if text in preliminary:
            return 0.05
        return 0.03 if product.order == 1 else 0.01

    pool = Pool.atoms(names, probability=probability)
    products = (*PRODUCTS, *OURS) if ours else PRODUCTS
    there = [text for text in products if set(parse(text).covariates) <= set(names)]
    return pool | Pool.of(*there, probability=probability) if there else pool


def absent_covariates(covariates: Iterable[str]) -> tuple[str, ...]:
    """Covariates that the paper names and these are without."""
    there = set(covariates)
    return tuple(name for name in PAPER_COVARIATES if name not in there)
