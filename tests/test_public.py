"""The public interface is in one place, complete, small and lazy."""

import subprocess
import sys

import pytest

import kerneltrail


@pytest.mark.parametrize("name", kerneltrail.__all__)
def test_every_public_name_is_there(name):
    assert getattr(kerneltrail, name) is not None


def test_one_can_remember_them():
    assert len(kerneltrail.__all__) <= 25
    assert set(kerneltrail.__all__) <= set(dir(kerneltrail))


def test_an_unknown_name_is_refused():
    assert not hasattr(kerneltrail, "nonsense")


def test_importing_the_package_loads_no_numerical_library():
    code = "import sys, kerneltrail; print([m for m in ('numpy', 'numba', 'scipy', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    assert callable(kerneltrail.fit)
    assert callable(kerneltrail.evaluate)
    assert kerneltrail.fit.__module__ == "kerneltrail.trajectory.fit"
