"""Where the search for the variational factors starts.

The bound has many optima, tens of nats apart: a periodic kernel that begins at a wrong period stays there, and another
one takes its place. Draws of the scales change the bound by less than one nat. So starts are what decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kerneltrail import gp
from kerneltrail.data import User
from kerneltrail.gp import LinearBlock
from kerneltrail.kernels import Composition, Priors, Product, layout_of
from kerneltrail.methods.cks import Effort, Expression, Leaf, PeriodGuard, plus, times
from kerneltrail.methods.cks.expression import numbered
from kerneltrail.methods.cks.fit import FitData as Rows
from kerneltrail.methods.cks.fit import FittedExpression, fit
from kerneltrail.methods.periods import Periods, periods_within
from kerneltrail.methods.protocol import Array
from kerneltrail.methods.shrinkage.elbo import Factors

ASIDE = 4.0
"""By how much, in log w², products that a greedy start leaves out begin below an equal share."""


def start_of(theta: Array, products: int, size: float) -> Factors:
    """Equal weights, a known total of `size`, uncertain to within a factor of e either way."""
    scales = products + 1
    m = np.full(scales, -np.log(products))
    m[0] = np.log(max(size, 1e-12))
    return Factors(m, np.ones(scales), theta)


def periods_of(rows: User) -> Periods:
    """Likely periods on each covariate, from three mean spacings to half the range."""
    spread = dict(zip(rows.covariates, np.ptp(rows.X, axis=0).tolist(), strict=True))
    return periods_within(rows, rows.y, {name: (3.0 * s / rows.rows, 0.5 * s) for name, s in spread.items()})


def own_map(
    rows: User,
    composition: Composition,
    priors: Priors,
    rng: np.random.Generator,
    block: LinearBlock | None,
    periods: Periods | None = None,
) -> Array:
    """All hyperparameters with every product at the MAP it has when it stands alone, noise at the prior's mean.

    One kernel alone finds the best of many modes cheaply, from the likely `periods` among others.
    """
    mean, _ = priors.moments(composition)
    for at, product in zip(layout_of(composition).amplitude_index, composition, strict=True):
        alone = Composition((product,))
        centre, _ = priors.moments(alone)
        warm = [at_periods(centre, alone, periods or {}, shift) for shift in range(_most(alone, periods or {}))]
        theta = coarse_map(rows, alone, priors, rng, block, warm).hyperparameters.vector[:-1]
        mean[at : at + len(theta)] = theta
    return mean


def coarse_map(
    rows: User,
    composition: Composition,
    priors: Priors,
    rng: np.random.Generator,
    block: LinearBlock | None,
    warm: Sequence[Array],
) -> gp.MapResult:
    """A composition's MAP, as exact as starts and comparisons of sums need it."""
    return gp.find_map(
        rows, composition, priors, rng=rng, starts=2, screen=16, warm=warm, block=block, tol=1e-4, accuracy=1e-5
    )


def at_periods(vector: Array, composition: Composition, periods: Periods, shift: int = 0) -> Array:
    """A vector of all hyperparameters with periods at likely ones.

    Within a product, several periods get several; `shift` says which comes first.
    """
    out, taken = vector.copy(), dict[tuple[int, str], int]()
    for i, slot in enumerate(layout_of(composition).slots):
        likely = periods.get(slot.covariate or "", ())
        if slot.spec.kind == "period" and likely:
            key = (slot.product, slot.covariate or "")
            out[i] = np.log(likely[(taken.get(key, 0) + shift) % len(likely)])
            taken[key] = taken.get(key, 0) + 1
    return out


def _most(composition: Composition, periods: Periods) -> int:
    """The largest number of likely periods on a covariate that has a period in the composition."""
    slots = layout_of(composition).slots
    return max((len(periods.get(s.covariate or "", ())) for s in slots if s.spec.kind == "period"), default=0)


def greedy(
    rows: User,
    composition: Composition,
    priors: Priors,
    block: LinearBlock | None,
    periods: Periods,
    most: int,
    *,
    seed: int = 0,
) -> FittedExpression | None:
    """A sum of some of the products, fitted: each step adds the one with the best BIC, while it improves.

    Joint fits find for each product what the others leave to it. `seed` is that of their random starts.
    """
    limits = PeriodGuard(gaps=0.0, spacings=0.0, cycles=0.0).limits(rows.X, rows.covariates)
    data = Rows(rows, priors, limits, periods, block, seed)
    best: FittedExpression | None = None
    left = list(composition)
    for _ in range(min(most, len(left))):
        steps = []
        for product in left:
            child = _joined(best, product)
            parent = None if best is None else best.kernel
            steps.append((fit(data, child, Effort(), parent=parent), product))
        step, product = min(steps, key=lambda each: each[0].bic)
        if step.kernel is None or (best is not None and step.bic >= best.bic):
            break
        best = step
        left.remove(product)
    return best


def _joined(before: FittedExpression | None, product: Product) -> Expression:
    """A sum with one product more, the atoms of the old ones traced back."""
    added = times(*(Leaf(atom) for atom in product.atoms))
    if before is None or before.kernel is None or before.kernel.expression is None:
        return added
    return plus(numbered(before.kernel.expression), added)


def around(fitted: FittedExpression, composition: Composition, theta: Array, size: float) -> Factors:
    """A start at a greedy sum: its products as they were fitted, all others small, with hyperparameters from `theta`.

    `theta` has all hyperparameters of all products; `size` is the variance of the target.
    """
    assert fitted.kernel is not None  # whoever asks has checked it
    layout, kernel = layout_of(composition), fitted.kernel
    vector, inside = theta.copy(), kernel.composition
    start = start_of(theta, len(composition), size)
    m, v = start.m.copy(), start.v.copy()
    m[1:] -= ASIDE
    known = layout_of(inside)
    for q, product in enumerate(inside):
        p = composition.products.index(product)
        amplitude = known.amplitude_index[q]
        count = len([slot for slot in known.slots if slot.product == q])
        at = layout.amplitude_index[p]
        vector[at : at + count] = kernel.vector[amplitude : amplitude + count]
        m[1 + p], v[1 + p] = kernel.vector[amplitude] - m[0], 0.5
    vector[-1] = kernel.vector[-1]
    return replace(start, m=m, v=v, theta=np.delete(vector, layout.amplitude_index))
