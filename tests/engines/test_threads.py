"""One BLAS thread in a block, and as many as before after it."""

import json
import subprocess
import sys

from threadpoolctl import threadpool_info

from kerneltrail.engines import one_blas_thread


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_blas_thread():
    before = threads()
    with one_blas_thread():
        assert set(threads()) == {1}
    assert threads() == before


LATER = """
import json
from threadpoolctl import threadpool_info
from kerneltrail.engines import one_blas_thread
with one_blas_thread():
    import scipy.linalg
    print(json.dumps([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]))
"""


def test_it_holds_for_what_is_loaded_inside_the_block():
    """SciPy has a BLAS of its own, and is loaded when it is first used. (A machine with one core cannot tell.)"""
    found = json.loads(subprocess.check_output([sys.executable, "-c", LATER], text=True))
    assert set(found) == {1}
