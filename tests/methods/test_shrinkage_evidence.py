"""Selection by evidence against the obvious: all sums of a small pool, each fitted by itself."""

from itertools import combinations

import numpy as np
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError
from kerneltrail.gp import find_map
from kerneltrail.kernels import Composition, Pool, Priors, layout_of, parse
from kerneltrail.methods import build
from kerneltrail.methods.preprocessing import own_preprocessor
from kerneltrail.methods.shrinkage import Shrinkage
from kerneltrail.methods.shrinkage.evidence_selection import SumEvidence, exchanged, fewer, more, select_by_evidence

POOL = Pool.of("SE[x]", "LIN[x]", "PER[x]*SE[x]", "PER[x]")  # not in a composition's order
EVERY = Composition(POOL.products)


def wave(rows=40, noise=0.2):
    rng = np.random.default_rng(2)
    x = rng.uniform(-3.0, 3.0, rows)
    y = 1.5 * x + np.sin(2 * np.pi * x / 1.1) + noise * rng.standard_normal(rows)
    return User("ann", ("x",), x[:, None], y, (rows,))


def probable(user, pool=POOL):
    whole = np.arange(layout_of(EVERY).size) / 100.0
    return SumEvidence(user, pool, Priors.synthetic(), None, {"x": (1.1,)}, whole, 0)


def test_neighbours_are_all_sums_one_step_away():
    here = parse("LIN[x] + SE[x]")
    all_sums = [Composition(each) for size in range(5) for each in combinations(POOL.products, size)]

    def steps(gone, new):
        return {s for s in all_sums if (len(set(here) - set(s)), len(set(s) - set(here))) == (gone, new)}

    assert set(fewer(here)) == steps(1, 0)
    assert set(more(here, POOL)) == steps(0, 1)
    assert set(exchanged(here, POOL)) == steps(1, 1)
    assert fewer(Composition(())) == exchanged(Composition(()), POOL) == ()
    assert len(more(Composition(()), POOL)) == 4


def test_a_fit_starts_at_its_own_part_of_the_whole():
    inherited = probable(wave())._inherited(parse("PER[x] + SE[x]"))
    every = layout_of(EVERY).names
    expected = [every.index(name) / 100.0 for name in layout_of(parse("PER[x] + SE[x]")).names]
    np.testing.assert_allclose(inherited, expected)


def test_what_is_compared_is_h0_times_the_evidence():
    user, sums = wave(), probable(wave())
    for text in ("LIN[x]", "LIN[x] + PER[x]"):
        kernel = parse(text)
        alone = find_map(user, kernel, Priors.synthetic(), rng=np.random.default_rng(9), starts=8, screen=64)
        assert sums.of(kernel) == pytest.approx(
            alone.log_laplace + POOL.log_h0(POOL.mask(kernel)) + log_of_any(), abs=0.3
        )
    nothing = find_map(user, Composition(()), Priors.synthetic(), rng=np.random.default_rng(9))
    assert sums.of(Composition(())) == pytest.approx(
        nothing.log_laplace + np.log1p(-np.array(POOL.probabilities)).sum(), abs=2e-3
    )


def log_of_any():
    """H0 of a pool is given that there is a product; here it is not."""
    return np.log1p(-np.exp(np.log1p(-np.array(POOL.probabilities)).sum()))


def test_steps_climb_to_the_most_probable_sum():
    sums = probable(wave())
    best = max((Composition(e) for size in range(5) for e in combinations(POOL.products, size)), key=sums.of)
    assert best == parse("LIN[x] + PER[x]")
    for first in ("SE[x]", "SE[x] + PER[x]*SE[x]", "LIN[x] + PER[x] + SE[x]"):
        assert select_by_evidence(sums, parse(first)) == best
    rng = np.random.default_rng(1)
    noise = probable(wave().with_y(rng.standard_normal(40)))
    assert select_by_evidence(noise, parse("LIN[x] + SE[x]")) == Composition(())


def test_evidence_judges_only_when_asked():
    user = wave()
    options = {"pairs": 2, "iterations": 40, "share": 0.001, "size": 0.0, "clear": 1.0}
    by_share = Shrinkage(own_preprocessor(("x",), "none"), POOL, Priors.synthetic(), **options).fit(user, None)
    by_evidence = Shrinkage(own_preprocessor(("x",), "none"), POOL, Priors.synthetic(), judge="evidence", **options)
    fit = by_evidence.fit(user, None)
    np.testing.assert_array_equal(fit.factors.packed, by_share.factors.packed)
    assert len(by_share.composition) > 2
    assert fit.composition == parse("LIN[x] + PER[x]")
    assert by_evidence.restore(user, fit.to_json()).composition == fit.composition
    with pytest.raises(DataError, match="judge"):
        Shrinkage(own_preprocessor(("x",)), POOL, Priors.synthetic(), judge="vote")


def test_all_of_it_can_be_set_by_name():
    settings = {"greedy": 2, "restarts": 2, "hops": 3, "average": True, "judge": "evidence"}
    method = build("shrinkage", Cohort.from_users([wave()]), settings)
    learner = method.learner
    assert {name: getattr(learner, name) for name in settings} == settings
