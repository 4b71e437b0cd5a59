"""What evidence is computed from, and how what cannot be used is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from kerneltrail.data.user import User
from kerneltrail.errors import DataError, KernelError, NumericalError
from kerneltrail.gp import LinearBlock, evidence, inputs_for
from kerneltrail.kernels import layout_of, parse

USER = User("ann", ("x", "z"), [[0.0, 1.0], [0.5, 2.0], [1.0, 4.0]], [1.0, 2.0, 0.0], (2, 3))


def rows(**changes):
    """Rows that never met the checks of `User`."""
    base = {"name": "ann", "covariates": ("x", "z"), "X": USER.X.copy(), "y": USER.y.copy(), "ends": (2, 3)}
    return SimpleNamespace(**(base | changes))


def test_atoms_find_their_columns_and_their_hyperparameters():
    inputs = inputs_for(USER, parse("SE[z] + LIN[x]*PER[z]"))
    found = [[(kind.name, column, place) for kind, column, place in atoms] for atoms in inputs.atoms]
    assert found == [[("SE", 1, slice(1, 2))], [("LIN", 0, slice(3, 4)), ("PER", 1, slice(4, 6))]]
    assert inputs.label == "SE[z] + LIN[x]*PER[z] for user 'ann' (3 rows)"
    assert inputs_for(USER, parse("")).label == "noise alone for user 'ann' (3 rows)"


def test_upto_is_the_first_rows_as_one_batch():
    block = LinearBlock(np.arange(3.0)[:, None], np.eye(1), ("t",))
    inputs = inputs_for(USER, parse("SE[x]"), block=block).upto(2)
    assert inputs.rows == 2
    assert inputs.ends.tolist() == [2]
    np.testing.assert_array_equal(inputs.block.features, [[0.0], [1.0]])
    np.testing.assert_array_equal(inputs.reach, [[0.0, 1.0], [0.5, 2.0]])
    for count in (0, 4):
        with pytest.raises(DataError, match=f"'ann' has 2 rows; asked for the first {count}"):
            inputs.upto(count)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"X": np.array([[0.0, 1.0], [np.nan, 2.0], [1.0, 4.0]])}, "'ann': covariates: x of row 1 is not finite"),
        ({"y": np.array([1.0, 2.0, np.inf])}, "'ann': target: row 2 is not finite"),
        ({"X": USER.X[:2]}, "do not fit 3 targets"),
        ({"ends": (3, 2)}, r"'ann': batch ends \[3, 2\]"),
        ({"ends": ()}, "'ann': batch ends"),
        ({"ends": (0, 3)}, "'ann': batch ends"),
        ({"X": np.empty((0, 2)), "y": np.empty(0), "ends": ()}, "'ann' has no rows"),
    ],
)
def test_unusable_rows_are_refused_by_name(changes, problem):
    with pytest.raises(DataError, match=problem):
        inputs_for(rows(**changes), parse("SE[x]"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_users_refuse_what_is_not_finite_already(bad):
    with pytest.raises(DataError, match="'ann'"):
        User("ann", ("x",), [[bad]], [1.0], (1,))
    with pytest.raises(DataError, match="'ann'"):
        User("ann", ("x",), [[1.0]], [bad], (1,))


def test_an_unknown_covariate_is_refused_by_name():
    with pytest.raises(DataError, match=r"SE\[w\] reads w, which user 'ann' does not have; its covariates are x, z"):
        inputs_for(USER, parse("SE[w]"))


def test_a_user_without_rows_is_refused_by_name():
    with pytest.raises(DataError, match="'new' has no rows"):
        evidence(User("new", ("x",), [], [], ()), parse("SE[x]"), np.zeros(3))


def test_a_block_of_other_rows_is_refused():
    with pytest.raises(DataError, match="'ann': a linear block of 2 rows for 3 targets"):
        inputs_for(USER, parse("SE[x]"), block=LinearBlock(np.ones((2, 1)), np.eye(1), ("one",)))


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 2), (2, 4), (3, 1), (1, 1, 3), ()])
def test_vectors_of_a_wrong_length_are_refused_with_the_names_wanted(shape):
    with pytest.raises(KernelError, match=r"has 3 hyperparameters \(SE\[x\].amplitude, SE\[x\].lengthscale, noise\)"):
        evidence(USER, parse("SE[x]"), np.zeros(shape))


@pytest.mark.parametrize("method", ["auto", "dense", "spectral"])
def test_a_hyperparameter_that_is_no_number_is_named(method):
    thetas = np.zeros((2, 3))
    thetas[1, 1] = np.nan
    with pytest.raises(KernelError, match=r"SE\[x\].lengthscale of SE\[x\] is nan in vector 1"):
        evidence(USER, parse("SE[x]"), thetas, method=method)
    with pytest.raises(KernelError, match="noise of noise alone is inf"):
        evidence(USER, parse(""), [np.inf], method=method)


@pytest.mark.parametrize("method", ["auto", "dense", "spectral"])
@pytest.mark.parametrize("u", [-800.0, 800.0])
def test_a_positive_hyperparameter_past_all_numbers_is_named(method, u):
    composition = parse("LIN[x]*PER[x] + SE[z]")
    layout = layout_of(composition)
    for k, name in enumerate(layout.names):
        if layout.positive[k]:
            theta = np.zeros(layout.size)
            theta[k] = u
            with pytest.raises(NumericalError) as caught:
                evidence(USER, composition, theta, method=method)
            assert name in str(caught.value)
            assert "'ann'" in str(caught.value)
