"""What was registered from outside arrives in worker processes, whatever its kind, and is forgotten there too."""

import threading

import pytest

from kerneltrail.engines import Local, results
from kerneltrail.engines.carried import adopt, carried
from kerneltrail.errors import KerneltrailError
from kerneltrail.methods import METHODS
from kerneltrail.plugins import REGISTRIES, registry_of


def known(shared, kind):
    return list(registry_of(kind).outside)


def looked_up(shared, kind, name):
    return registry_of(kind)[name](1)


def in_workers(function, *arguments):
    return dict(results(Local(2), function, [(number, arguments) for number in range(4)]))


@pytest.mark.parametrize("kind", REGISTRIES)
def test_nothing_from_outside_where_nothing_was_registered(kind):
    assert in_workers(known, kind) == {key: [] for key in range(4)}


def test_workers_that_are_kept_have_what_is_registered_now():
    for factor in (2, 3):
        with METHODS.temporarily("times", lambda number, factor=factor: factor * number):
            assert in_workers(looked_up, "method", "times") == dict.fromkeys(range(4), factor)
    assert in_workers(known, "method") == {key: [] for key in range(4)}


def test_what_cannot_travel_is_named_to_who_asks_for_it_only():
    lock = threading.Lock()
    with METHODS.temporarily("locked", lambda number: lock), METHODS.temporarily("plain", lambda number: number):
        assert in_workers(looked_up, "method", "plain") == dict.fromkeys(range(4), 1)
        failures = dict(Local(2).run(looked_up, [(number, ("method", "locked")) for number in range(4)]))
    for failure in failures.values():
        assert str(failure.error).startswith("the method 'locked' cannot be sent to another process (TypeError: ")


def test_what_cannot_be_read_there_is_named_too():
    with METHODS.temporarily("odd", len):
        (sent,) = carried()
    try:
        adopt([sent._replace(content=b"no pickle")])
        with pytest.raises(KerneltrailError, match=r"the method 'odd' cannot be sent .*UnpicklingError"):
            METHODS["odd"]
    finally:
        adopt([])
