"""Pools and H0: builders, masks, and probabilities by enumeration and by sampling."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kerneltrail.errors import KernelError
from kerneltrail.kernels import ATOMS, Composition, Pool, by_order, parse

FALSE_ALARM = 1e-4  # probability that a correct sampler fails one of the chi-square tests; their seeds are fixed


def one(text):
    (product,) = parse(text)
    return product


@st.composite
def pools(draw):
    products = ["LIN[x]", "PER[x]", "SE[x]", "LIN[x]*PER[x]", "PER[x]*PER[x]"][: draw(st.integers(1, 5))]
    probabilities = draw(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=len(products), max_size=len(products)).map(tuple))
    return Pool(tuple(map(one, products)), probabilities, draw(st.booleans()))


def test_the_papers_pool():
    pool = Pool.paper()
    assert [str(p) for p in pool] == [
        "LIN[x]",
        "PER[x]",
        "SE[x]",
        "LIN[x]*LIN[x]",
        "LIN[x]*PER[x]",
        "LIN[x]*SE[x]",
        "PER[x]*SE[x]",
        "PER[x]*PER[x]",
    ]
    assert pool.probabilities == (0.1,) * 3 + (0.025,) * 5
    assert Pool.paper("hour", compound=0.25).probabilities[-1] == 0.25  # as printed
    assert Pool.paper("hour").covariates == ("hour",)


def test_builders():
    assert [str(p) for p in Pool.atoms(["a", "b"])] == ["LIN[a]", "PER[a]", "SE[a]", "LIN[b]", "PER[b]", "SE[b]"]
    assert [str(p) for p in Pool.atoms(["a"], kinds=["SE"])] == ["SE[a]"]
    assert len(Pool.atoms(["a", "b"], kinds=(kind for kind in ("SE", "LIN")))) == 4  # generators too
    assert len(Pool.atoms(["a", "a"])) == 3
    assert set(Pool.products_up_to(2, ["x"])) == set(Pool.paper())
    # 6 atoms; 21 pairs less SE×SE on each covariate; and none that only repeats another.
    assert len(Pool.products_up_to(2, ["a", "b"])) == 6 + 21 - 2
    assert all(str(p).count("SE[x]") <= 1 for p in Pool.products_up_to(3, ["x"]))
    assert Pool.of("SE[x] + LIN[x]*PER[x]", one("SE[z]"), parse("LIN[z]"), "SE[x]").products == (
        one("SE[x]"),
        one("LIN[x]*PER[x]"),
        one("SE[z]"),
        one("LIN[z]"),
    )


def test_probabilities_by_number_and_by_rule():
    assert Pool.of("SE[x]", "LIN[x]*PER[x]").probabilities == (0.1, 0.025)
    assert Pool.of("SE[x]", "LIN[x]*PER[x]", probability=0.3).probabilities == (0.3, 0.3)
    assert Pool.of("SE[x]", "LIN[x]*PER[x]", probability=by_order(0.1, 0.02)).probabilities == (0.1, 0.02)
    pool = Pool.of("SE[x]", "LIN[x]").with_empty().with_probabilities({"SE[x]": 0.7})
    assert pool.probabilities == (0.7, 0.1)
    assert pool.allow_empty
    assert pool.with_probabilities(lambda p: 0.2).probabilities == (0.2, 0.2)
    for text in ("SE[z]", "SE[x] + LIN[x]", ""):
        with pytest.raises(KernelError, match="not one product of this pool"):
            pool.with_probabilities({text: 0.5})


def test_heartsteps_probabilities_are_expressible():
    preliminary = {"SE[hour]": 0.05, "SE[hour]*SE[temperature]": 0.05, "PER[steps30pre]": 0.1}
    pool = Pool.products_up_to(
        2, ["hour", "temperature", "steps30pre"], probability=by_order(0.03, 0.01)
    ).with_probabilities(preliminary)
    found = dict(zip(map(str, pool), pool.probabilities, strict=True))
    assert found["PER[steps30pre]"] == 0.1
    assert found["SE[hour]*SE[temperature]"] == 0.05
    assert found["LIN[hour]"] == 0.03
    assert found["LIN[hour]*SE[temperature]"] == 0.01


def test_union_keeps_the_first_probability():
    both = Pool.of("SE[x]", probability=0.4) | Pool.of("SE[x]", "LIN[x]", probability=0.2).with_empty()
    assert both.products == (one("SE[x]"), one("LIN[x]"))
    assert both.probabilities == (0.4, 0.2)
    assert both.allow_empty


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Pool((), ()), "at least one product"),
        (lambda: Pool((one("SE[x]"),), (0.1, 0.2)), "1 products but 2"),
        (lambda: Pool((one("SE[x]"), one("SE[x]")), (0.1, 0.2)), "each product once"),
        (lambda: Pool.of("SE[x]", probability=1.0), "strictly between 0 and 1"),
        (lambda: Pool.of("SE[x]", probability=float("nan")), "strictly between 0 and 1"),
        (lambda: Pool.atoms("hour"), "list of names"),
        (lambda: Pool.products_up_to(0, ["x"]), "at least 1"),
        (lambda: Pool.atoms([]), "at least one product"),
        (lambda: Pool.paper().mask(parse("SE[z]")), r"SE\[z\] is not in the pool"),
        (lambda: Pool.paper().composition(256), "outside a pool of 8"),
        (lambda: Pool.paper().composition(-1), "outside a pool of 8"),
        (lambda: Pool.paper().log_h0(1, parent=1, keep=1.0), "keep must lie"),
        (lambda: Pool.paper().sample_h0(np.random.default_rng(0), parent=1, keep=0.0), "keep must lie"),
    ],
)
def test_refusals(build, problem):
    with pytest.raises(KernelError, match=problem):
        build()


def test_masks_round_trip():
    pool = Pool.paper()
    for mask in range(256):
        assert pool.mask(pool.composition(mask)) == mask
    assert pool.composition(0) == Composition()
    assert parse("SE[x] + LIN[x]") in pool
    assert one("SE[x]") in pool
    assert one("SE[z]") not in pool
    assert parse("SE[z]") not in pool
    assert pickle.loads(pickle.dumps(pool)) == pool


def test_masks_come_fewest_first():
    pool = Pool.of("LIN[x]", "PER[x]", "SE[x]")
    assert list(pool.masks()) == [0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]
    assert list(pool.with_empty().masks(1)) == [0, 0b001, 0b010, 0b100]
    assert len(list(Pool.paper().masks(2))) == 8 + 28
    assert list(pool.masks(9)) == list(pool.masks())


def test_large_pools_have_large_masks():
    pool = Pool.products_up_to(2, [f"c{i}" for i in range(6)])
    last = Composition((pool.products[-1],))
    assert len(pool) > 64
    assert pool.composition(pool.mask(last)) == last
    assert math.isfinite(pool.log_h0(pool.mask(last)))


@settings(max_examples=60, deadline=None)
@given(pools(), st.integers(0, 31), st.one_of(st.none(), st.floats(0.01, 0.99)))
def test_log_h0_is_a_distribution_and_is_the_definition(pool, parent, keep):
    parent %= 1 << len(pool)

    def naive(mask):
        total = 1.0
        for i, p in enumerate(pool.probabilities):
            p = keep if keep is not None and parent >> i & 1 else p
            total *= p if mask >> i & 1 else 1.0 - p
        return total

    masks = range(1 << len(pool))
    found = {mask: math.exp(pool.log_h0(mask, parent=parent, keep=keep)) for mask in masks}
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
    whole = 1.0 if pool.allow_empty else sum(naive(mask) for mask in masks if mask)
    for mask in masks:
        expected = 0.0 if mask == 0 and not pool.allow_empty else naive(mask) / whole
        assert found[mask] == pytest.approx(expected, rel=1e-6, abs=1e-12)


SAMPLED = list(itertools.product([False, True], [None, 0.9], [0b000, 0b101]))


@pytest.mark.parametrize(("empty", "keep", "parent"), SAMPLED)
def test_samples_follow_log_h0(empty, keep, parent):
    pool = Pool(tuple(map(one, ["LIN[x]", "PER[x]", "SE[x]"])), (0.1, 0.25, 0.03), empty)
    rng = np.random.default_rng(7)
    draws = 4000
    counts = np.bincount([pool.sample_h0(rng, parent=parent, keep=keep) for _ in range(draws)], minlength=8)
    expected = draws * np.exp([pool.log_h0(mask, parent=parent, keep=keep) for mask in range(8)])
    if not empty:
        assert counts[0] == 0
    # Cells too small for the chi-square law are put together.
    small = expected < 5.0
    observed = [*counts[~small], counts[small].sum()]
    wanted = [*expected[~small], expected[small].sum()]
    if wanted[-1] == 0.0:
        observed, wanted = observed[:-1], wanted[:-1]
    assert chisquare(observed, wanted).pvalue > FALSE_ALARM / len(SAMPLED)


def test_sampling_ends_however_rare_the_products_are():
    pool = Pool(tuple(map(one, ["LIN[x]", "PER[x]", "SE[x]"])), (1e-12, 2e-12, 1e-12))
    rng = np.random.default_rng(8)
    counts = np.bincount([pool.sample_h0(rng) for _ in range(2000)], minlength=8)
    assert counts[[0, 3, 5, 6, 7]].sum() == 0
    assert chisquare(counts[[1, 2, 4]], [500, 1000, 500]).pvalue > FALSE_ALARM


def test_an_order_that_makes_too_many_products_is_refused():
    with pytest.raises(KernelError, match="up to 255 of 6 atoms have more than 100000 factors"):
        Pool.products_up_to(255, ["x", "z"])
    assert len(Pool.products_up_to(400, ["x"], kinds=["LIN"])) == 400


def test_pools_are_built_from_the_kinds_of_the_default_grammar(monkeypatch):
    monkeypatch.setattr(type(ATOMS["PER"]), "in_default_grammar", False)
    assert [str(product) for product in Pool.atoms(["x"])] == ["LIN[x]", "SE[x]"]


def test_noise_alone_is_no_product_of_a_pool():
    for nothing in ("noise alone", Composition()):
        with pytest.raises(KernelError, match="allow_empty"):
            Pool.of(nothing, "SE[x]")
