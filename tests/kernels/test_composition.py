"""Products and compositions as values: canonical, order-free, with an algebra that multiplies out."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerneltrail.errors import KernelError
from kerneltrail.kernels import Atom, Composition, Product, parse

from .drawing import atoms, compositions, products


def product(text):
    (found,) = parse(text)
    return found


@given(st.lists(atoms, min_size=1, max_size=5), st.randoms())
def test_the_order_of_factors_never_matters(found, random):
    shuffled = random.sample(found, len(found))
    one, two = Product(tuple(found)), Product(tuple(shuffled))
    assert one == two
    assert hash(one) == hash(two)
    assert str(one) == str(two)


@given(st.lists(products, max_size=5), st.randoms())
def test_the_order_of_products_never_matters(found, random):
    shuffled = random.sample(found, len(found)) + found[:1]
    one, two = Composition(tuple(found)), Composition(tuple(shuffled))
    assert one == two
    assert hash(one) == hash(two)
    assert one.text == two.text == str(two)


def test_se_times_se_is_absorbed_and_others_are_not():
    assert product("SE[x]*SE[x]") == product("SE[x]")
    assert product("SE[x]*LIN[x]*SE[x]").order == 2
    assert product("SE[x]*SE[z]").order == 2
    assert product("PER[x]*PER[x]").order == 2
    assert product("LIN[x]*LIN[x]*LIN[x]").order == 3


def test_a_product_needs_an_atom():
    with pytest.raises(KernelError, match="at least one atom"):
        Product(())


def test_covariates_are_listed_once_and_sorted():
    composition = parse("SE[z]*LIN[a] + PER[z] + SE[m]")
    assert composition.covariates == ("a", "m", "z")
    assert product("SE[z]*LIN[a]*PER[z]").covariates == ("a", "z")
    assert Composition().covariates == ()


def test_algebra_of_products():
    lin, per = product("LIN[x]"), product("PER[x]")
    assert lin * per == product("LIN[x]*PER[x]")
    assert lin + per == parse("LIN[x] + PER[x]")
    assert lin * parse("SE[z] + PER[z]") == parse("LIN[x]*SE[z] + LIN[x]*PER[z]")
    assert lin + parse("PER[x]") == lin + per


def test_algebra_of_compositions():
    one, two = parse("LIN[x] + SE[x]"), parse("PER[x]")
    assert one + two == parse("LIN[x] + SE[x] + PER[x]")
    assert one + one == one
    assert one * two == parse("LIN[x]*PER[x] + SE[x]*PER[x]")
    assert one * one == parse("LIN[x]*LIN[x] + LIN[x]*SE[x] + SE[x]")
    assert one * product("PER[x]") == one * two
    assert one + product("PER[x]") == one + two
    assert one - two == one
    assert one - parse("SE[x] + PER[z]") == parse("LIN[x]")
    assert one - product("SE[x]") == parse("LIN[x]")
    assert one * Composition() == Composition()


@given(compositions, compositions, compositions)
def test_sums_and_products_are_commutative_and_distribute(a, b, c):
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) * c == a * c + b * c
    assert (a + b) - b == a - b


@pytest.mark.parametrize("value", [Composition(), product("SE[x]")])
def test_what_is_no_kernel_is_refused(value):
    with pytest.raises(TypeError):
        value + 1
    with pytest.raises(TypeError):
        value * 2.0
    with pytest.raises(TypeError):
        value - "SE[x]"


def test_a_composition_is_a_container():
    composition = parse("SE[x] + LIN[x]*PER[x]")
    assert len(composition) == 2
    assert list(composition) == [product("SE[x]"), product("LIN[x]*PER[x]")]
    assert product("SE[x]") in composition
    assert product("SE[z]") not in composition
    assert composition
    assert not Composition()


def test_fewest_factors_come_first():
    assert parse("LIN[a]*PER[a] + SE[z]").text == "SE[z] + LIN[a]*PER[a]"
    assert sorted([parse("SE[x] + LIN[x]"), parse("SE[z]"), Composition()])[0] == Composition()
    assert repr(parse("SE[x]")) == "Composition('SE[x]')"
    assert repr(product("SE[x]")) == "Product('SE[x]')"


def test_sums_and_products_of_many_are_those_of_two_repeated():
    parts = [parse("SE[x] + LIN[x]"), parse("PER[x]"), parse("SE[z]"), parse("LIN[z] + SE[x]")]
    assert Composition.sum(*parts) == parse("LIN[x] + PER[x] + SE[x] + SE[z] + LIN[z]")
    assert Composition.sum() == Composition()
    assert Composition.product(*parts) == parts[0] * parts[1] * parts[2] * parts[3]
    assert Composition((Product((Atom("SE", "x"),)),)) == parse("SE[x]")


@given(compositions)
def test_pickling_keeps_equality(composition):
    hash(composition)  # fill the cache
    assert pickle.loads(pickle.dumps(composition)) == composition


def test_pickles_are_found_in_the_dictionaries_of_another_process():
    composition = parse("SE[x] + LIN[x]*PER[x]")
    hash(composition)
    code = (
        "import pickle, sys; from kerneltrail.kernels import parse; "
        "found = pickle.loads(sys.stdin.buffer.read()); assert found in {parse('LIN[x]*PER[x] + SE[x]'): 1}"
    )
    for seed in ("1", "2"):  # texts hash by this seed
        subprocess.run(
            [sys.executable, "-c", code], input=pickle.dumps(composition), env={"PYTHONHASHSEED": seed}, check=True
        )
