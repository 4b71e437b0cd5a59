"""One way to register: every kind is reached, and a thing is known by one name."""

import pytest

from kerneltrail.errors import KerneltrailError
from kerneltrail.plugins import REGISTRIES, register


class Thing:
    name = "thing"


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_kind_refuses_a_name_that_is_taken(kind):
    taken = {"atom": "SE", "evidence": "laplace", "move": "seat", "method": "mean", "study": "synthetic"}
    with pytest.raises(KerneltrailError, match="registered already"):
        register(kind, taken[kind], None)


def test_a_thing_is_known_by_the_name_it_has():
    with pytest.raises(KerneltrailError, match="this move calls itself 'thing'"):
        register("move", "other", Thing)


def test_an_unknown_kind_is_answered_with_the_nearest():
    with pytest.raises(KerneltrailError, match="did you mean 'evidence'"):
        register("evidense", "mine", None)
