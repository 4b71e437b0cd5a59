"""Settings for all tests: the same examples everywhere, and one BLAS thread.

Hypothesis draws the same examples in every run and takes its time, so that a failure is one for everybody. With more
BLAS threads than idle cores a factorisation waits for its own threads, some hundred times longer than it computes.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from kerneltrail.gp import one_blas_thread
from support.new_atoms import registered

settings.register_profile(
    "kerneltrail",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.load_profile("kerneltrail")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with slow tests come first: a long test that begins last would leave the other cores idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with one_blas_thread():
        yield


@pytest.fixture
def new_atoms() -> Iterator[None]:
    """RQ and MATERN52, registered from outside."""
    with registered():
        yield
