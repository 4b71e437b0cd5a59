"""The public interface is in one place, complete, and lazy."""

import subprocess
import sys

import kerneltrail


def test_every_public_name_is_there():
    for name in kerneltrail.__all__:
        assert getattr(kerneltrail, name) is not None


def test_the_list_and_the_homes_agree():
    assert sorted(kerneltrail._HOME) == sorted(kerneltrail.__all__)


def test_an_unknown_name_is_refused():
    assert not hasattr(kerneltrail, "nonsense")


def test_importing_the_package_loads_no_numerical_library():
    code = "import sys, kerneltrail; print([m for m in ('numpy', 'numba', 'scipy', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
