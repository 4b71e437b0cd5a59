"""One BLAS thread in a block, and as many as before after it."""

from threadpoolctl import threadpool_info

from kerneltrail.engines import one_blas_thread


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_blas_thread():
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before
