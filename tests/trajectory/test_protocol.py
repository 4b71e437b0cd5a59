"""A followed user obeys the written protocol of all methods: the same names, the same signatures."""

import inspect

import pytest

from kerneltrail.methods.protocol import FollowedUser
from kerneltrail.trajectory.new_user import NewUser

from .small import small_model

ASKED = [name for name, value in vars(FollowedUser).items() if isinstance(value, property)]
CALLED = [name for name, value in vars(FollowedUser).items() if inspect.isfunction(value) and not name.startswith("_")]


def test_the_protocol_says_what_is_expected():
    assert {"name", "rows", "batches", "composition"} <= set(ASKED)
    assert {"update", "predict", "copy"} <= set(CALLED)
    assert isinstance(small_model().new_user(), FollowedUser)


@pytest.mark.parametrize("name", CALLED)
def test_methods_take_what_the_protocol_says(name):
    written, own = (inspect.signature(getattr(kind, name)) for kind in (FollowedUser, NewUser))
    shape = [[(p.name, p.kind, p.default) for p in each.parameters.values()] for each in (written, own)]
    assert shape[0] == shape[1]


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_cannot_be_assigned(name):
    assert isinstance(getattr(NewUser, name), property)
    with pytest.raises(AttributeError):
        setattr(small_model().new_user(), name, None)
