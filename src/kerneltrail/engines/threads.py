"""How many threads linear algebra may use."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run a block with one BLAS thread: at these sizes more make it slower, and the last bits depend on them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of other libraries' thread pools, which do not matter here
        limits = threadpool_limits(limits=1, user_api="blas")
    with limits:
        yield
