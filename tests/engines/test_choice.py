"""One function knows which engine is meant, and refuses what is none."""

import os

import pytest

from kerneltrail.engines import Local, Serial, engine_for
from kerneltrail.errors import KerneltrailError


@pytest.mark.parametrize(
    ("asked", "engine"),
    [
        (1, Serial()),
        (3, Local(3)),
        ("serial", Serial()),
        ("local:1", Serial()),
        ("local:4", Local(4)),
        (Local(2), Local(2)),
    ],
)
def test_an_engine_by_number_by_text_or_itself(asked, engine):
    assert engine_for(asked) == engine


def test_all_cores_unless_something_is_asked_for():
    assert engine_for().workers == engine_for("local").workers == (os.cpu_count() or 1)


def test_no_more_processes_than_jobs():
    assert engine_for(8, most=3) == engine_for("local:8", most=3) == Local(3)
    assert engine_for(8, most=1) == Serial()


@pytest.mark.parametrize("asked", ["locla", "local:0", "local:x", "dask", "dask://", "http://host", 0, -1, 2.5])
def test_what_is_no_engine_is_refused_with_what_is(asked):
    with pytest.raises(KerneltrailError, match="'local:4', 'dask://host:8786'"):
        engine_for(asked)


def test_an_engine_and_a_number_of_workers_are_refused():
    with pytest.raises(KerneltrailError, match="not both: 'local:4' and 2"):
        engine_for("local:4", workers=2)


class Own:
    """An engine from outside."""

    workers = 7

    def run(self, function, jobs, shared=None):
        for key, arguments in jobs:
            yield key, function(shared, *arguments)


def test_an_engine_of_one_s_own_is_taken_as_it_is():
    own = Own()
    assert engine_for(own, most=1) is own
