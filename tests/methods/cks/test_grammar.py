"""The grammar against a naive enumeration on texts, and the canonical form of expressions."""

import itertools

import pytest

from kerneltrail.errors import KernelError, KernelSyntaxError
from kerneltrail.kernels import parse
from kerneltrail.methods.cks import base_expressions, bic, expand, leaf, parameters, plus, read, times
from kerneltrail.methods.cks.expression import numbered

LIN, PER, SE = (leaf(kind, "x") for kind in ("LIN", "PER", "SE"))


def naive(tree, atoms):
    """All trees one rule away, as plain tuples (operator, left, right) or atoms; nothing is flat, sorted or merged."""
    for atom in atoms:
        yield ("+", tree, atom)
        yield ("*", tree, atom)
    if isinstance(tree, str):
        yield from (atom for atom in atoms if atom.split("[")[1] == tree.split("[")[1])
        return
    operator, left, right = tree
    yield from ((operator, changed, right) for changed in naive(left, atoms))
    yield from ((operator, left, changed) for changed in naive(right, atoms))


def written(tree) -> str:
    return tree if isinstance(tree, str) else f"({written(tree[1])} {tree[0]} {written(tree[2])})"


@pytest.mark.parametrize("covariates", [("x",), ("x", "hour")])
def test_one_and_two_steps_reach_what_a_naive_enumeration_reaches(covariates):
    base = base_expressions(covariates)
    atoms = [each.text for each in base]
    for start in base:
        first = set(naive(start.text, atoms))
        wanted = {read(written(tree)) for tree in first} - {start}
        assert set(expand(start, base)) == wanted
        if len(covariates) == 1:
            second = {read(written(tree)) for one in first for tree in naive(one, atoms)}
            children = (*expand(start, base), start)
            reached = {grown for child in children for grown in expand(child, base)}
            assert reached | set(children) == second | wanted | {start}


def test_children_are_distinct_models_other_than_the_parent():
    parent = times(PER, plus(LIN, SE))
    children = expand(parent, base_expressions(["x"]))
    assert len(set(children)) == len(children)
    assert parent not in children
    assert read("SE[x]*(LIN[x] + SE[x])") in children  # PER replaced
    assert read("PER[x]*(PER[x] + SE[x])") in children  # an inner atom replaced
    assert read("PER[x]*(LIN[x]*PER[x] + SE[x])") in children  # an inner atom multiplied
    assert read("PER[x]*(LIN[x] + SE[x]) + SE[x]") in children  # the whole, plus an atom
    assert read("PER[x]*(LIN[x] + SE[x] + SE[x])") in children  # one more of the same
    assert read("PER[x]*LIN[x] + PER[x]*SE[x]") not in children  # multiplied out it would be another model


def test_atoms_are_traced_through_a_step():
    parent = plus(SE, times(LIN, PER))
    assert [each.origin for each in numbered(parent).leaves] == [0, 1, 2]
    for child in expand(parent, base_expressions(["x"])):
        old = [each for each in child.leaves if each.origin is not None]
        assert len({each.origin for each in old}) == len(old)
        assert len(child.leaves) - len(old) in (0, 1)
        exchanged = sum(parent.leaves[each.origin] != each for each in old)
        assert exchanged == (len(child.leaves) == len(old) == 3)
    grown = next(child for child in expand(SE, base_expressions(["x"])) if child.text == "SE[x] + SE[x]")
    assert sorted(each.origin is None for each in grown.leaves) == [False, True]
    absorbed = times(numbered(SE), SE)
    assert [each.origin for each in absorbed.leaves] == [0]


def test_texts_are_read_as_expressions():
    for text in ("SE[x]", "SE[x] + SE[x]", "SE[x]*(LIN[x] + SE[x]*(PER[x] + SE[x])) + PER[x]"):
        assert read(read(text).text) == read(text)
    assert read("(LIN[x] + SE[x])*PER[x]").text == "PER[x]*(LIN[x] + SE[x])"
    with pytest.raises(KernelSyntaxError):
        read("SE[x] +")
    with pytest.raises(KernelError, match="at least one part"):
        read(" ")


def test_an_atom_is_replaced_on_its_own_covariate_only():
    base = base_expressions(["x", "hour"])
    single = {child.text for child in expand(LIN, base) if child.size == 1}
    assert single == {"PER[x]", "SE[x]"}


def test_the_order_and_nesting_in_which_it_was_written_do_not_matter():
    parts = [LIN, PER, SE]
    for a, b, c in itertools.permutations(parts):
        assert plus(plus(a, b), c) == plus(LIN, PER, SE)
        assert times(a, times(b, c)) == times(LIN, PER, SE)
        assert hash(plus(a, plus(b, c))) == hash(plus(LIN, PER, SE))


def test_simplification():
    assert times(SE, SE) == SE
    assert times(SE, PER, SE) == times(PER, SE)
    assert times(SE, leaf("SE", "hour")) != SE
    assert plus(SE, SE).text == "SE[x] + SE[x]"  # two smooth parts, of two lengthscales
    assert plus(times(LIN, SE), times(SE, LIN)).size == 4
    assert times(LIN, LIN).text == "LIN[x]*LIN[x]"  # a parabola, not a line


@pytest.mark.parametrize(
    ("expression", "text", "multiplied"),
    [
        (times(PER, plus(LIN, SE)), "PER[x]*(LIN[x] + SE[x])", "LIN[x]*PER[x] + PER[x]*SE[x]"),
        (
            plus(SE, times(LIN, plus(PER, SE))),
            "SE[x] + LIN[x]*(PER[x] + SE[x])",
            "SE[x] + LIN[x]*PER[x] + LIN[x]*SE[x]",
        ),
        (times(SE, plus(LIN, SE)), "SE[x]*(LIN[x] + SE[x])", "SE[x] + LIN[x]*SE[x]"),
        (
            times(plus(LIN, SE), plus(PER, SE)),
            "(LIN[x] + SE[x])*(PER[x] + SE[x])",
            "SE[x] + LIN[x]*PER[x] + LIN[x]*SE[x] + PER[x]*SE[x]",
        ),
    ],
)
def test_the_nested_text_parses_to_what_the_expression_multiplies_out_to(expression, text, multiplied):
    assert expression.text == text
    assert parse(text) == expression.composition == parse(multiplied)


def test_every_expression_of_two_steps_says_its_composition_in_text():
    base = base_expressions(["x", "hour"])
    for child in expand(times(PER, plus(LIN, leaf("SE", "hour"))), base):
        assert parse(child.text) == child.composition


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("LIN[x]", 2),  # amplitude, location
        ("SE[x]", 2),  # amplitude, lengthscale
        ("PER[x]", 3),  # amplitude, lengthscale, period
        ("LIN[x] + PER[x]", 5),
        ("PER[x]*SE[x]", 4),  # one amplitude for two factors
        ("LIN[x]*LIN[x]*SE[x]", 4),
        ("PER[x]*(LIN[x] + SE[x])", 6),  # one period; two amplitudes
        ("(LIN[x] + SE[x])*(PER[x] + SE[x])", 8),  # three amplitudes and five of the atoms
        ("SE[x] + SE[x]", 4),
        ("SE[x]*SE[hour] + LIN[x]", 5),
    ],
)
def test_hyperparameters_counted_by_hand(text, count):
    assert parameters(read(text)) == count
    assert bic(-10.0, read(text), 1) == 20.0  # log 1 = 0
    assert bic(-10.0, read(text), 100) == pytest.approx(20.0 + count * 4.605170185988092)


def test_an_empty_sum_or_product_is_refused():
    for operation in (plus, times):
        with pytest.raises(KernelError, match="at least one part"):
            operation()


def test_parts_of_an_atom():
    assert LIN.parts == ()
    assert LIN.composition == parse("LIN[x]")
    assert repr(plus(LIN, SE)) == "Sum('LIN[x] + SE[x]')"
