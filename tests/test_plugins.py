"""One way to register: every kind is reached, and a thing is known by one name."""

import pytest

from kerneltrail import kernels, methods, trajectory
from kerneltrail.errors import KerneltrailError
from kerneltrail.plugins import REGISTRIES, outside, register, registry_of
from support.new_atoms import NEW_ATOMS


class Thing:
    name = "thing"


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_kind_refuses_a_name_that_is_taken(kind):
    taken = {"atom": "SE", "evidence": "laplace", "move": "seat", "method": "mean", "study": "synthetic"}
    taken |= {"allocation": "fixed", "people": "brushing", "policy": "fixed"}
    with pytest.raises(KerneltrailError, match="registered already"):
        register(kind, taken[kind], None)


@pytest.mark.parametrize("kind", REGISTRIES)
def test_of_the_packages_own_nothing_comes_from_outside(kind):
    registry = registry_of(kind)
    assert registry
    assert registry.outside == {}


def test_what_was_registered_from_outside_is_listed():
    with registry_of("method").temporarily("mine", len), registry_of("atom").temporarily("RQ", NEW_ATOMS[0]):
        assert list(outside()) == [("atom", "RQ", NEW_ATOMS[0]), ("method", "mine", len)]


def test_a_thing_is_known_by_the_name_it_has():
    with pytest.raises(KerneltrailError, match="this move calls itself 'thing'"):
        register("move", "other", Thing)


def test_an_unknown_kind_is_answered_with_the_nearest():
    with pytest.raises(KerneltrailError, match="did you mean 'evidence'"):
        register("evidense", "mine", None)


def test_what_a_plug_in_is_made_from_is_where_its_author_looks():
    """And there is one function that registers."""
    for room, names in {
        kernels: ("AtomKind", "Hyperparameter", "Phrase", "Series", "likeness"),
        trajectory: ("PathEvidence", "NodeEstimate", "Move", "MoveInfo", "Joint", "State"),
        methods: ("MethodBuilder",),
    }.items():
        assert set(names) <= set(room.__all__)
        assert not hasattr(room, "register")
