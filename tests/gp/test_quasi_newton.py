"""The batched search finds known minima, and says how it ended."""

import numpy as np
import pytest

from kerneltrail.gp.quasi_newton import FARTHEST, minimise


def quadratic(centre, curvature, turn=None):
    """½(x-c)'A(x-c) with A = Q diag(curvature) Q'."""
    centre, A = np.asarray(centre), np.diag(curvature)
    if turn is not None:
        A = turn @ A @ turn.T

    def objective(points):
        away = points - centre
        return 0.5 * np.einsum("si,ij,sj->s", away, A, away), away @ A

    return objective


def rosenbrock(points):
    """Sum over neighbours of 100(b - a²)² + (1 - a)²; its least value is 0, at ones."""
    a, b = points[:, :-1], points[:, 1:]
    value = (100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2).sum(axis=1)
    gradient = np.zeros_like(points)
    gradient[:, :-1] += -400.0 * a * (b - a * a) - 2.0 * (1.0 - a)
    gradient[:, 1:] += 200.0 * (b - a * a)
    return value, gradient


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


@pytest.mark.parametrize("size", [1, 2, 6, 12])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_a_quadratic_of_any_conditioning_is_minimised(size, condition):
    rng = np.random.default_rng(size)
    centre = rng.uniform(-3.0, 3.0, size)
    curvature = np.geomspace(1.0, condition, size) / np.sqrt(condition)
    found = minimise(
        quadratic(centre, curvature, rotation(size, 1)), rng.uniform(-4.0, 4.0, (5, size)), value_tolerance=0.0
    )
    assert (found.status == "converged").all()
    assert np.abs(found.gradient).max() < 1e-4
    # |A(x-c)| < 1e-4 in every coordinate bounds the distance by that over the least curvature.
    assert np.abs(found.point - centre).max() <= 1e-4 * np.sqrt(size) / curvature.min() + 1e-12
    assert (found.value < 1e-8 * size / curvature.min()).all()


def test_rosenbrock_is_minimised_from_many_starts():
    starts = np.random.default_rng(0).uniform(-3.0, 3.0, (60, 2))
    found = minimise(rosenbrock, starts, iterations=500)
    assert (found.value < 1e-8).all()
    assert np.abs(found.point - 1.0).max() < 1e-3
    assert set(found.status) <= {"converged", "flat"}


def test_rosenbrock_in_five_dimensions_ends_in_one_of_its_two_minima():
    found = minimise(rosenbrock, np.random.default_rng(1).uniform(-2.0, 2.0, (20, 5)), iterations=500)
    # From n = 4 on there is a second minimum near (-1, 1, …, 1), with the value 3.93 in five dimensions.
    best, other = found.value < 1e-6, np.abs(found.value - 3.930839) < 1e-5
    assert (best | other).all()
    assert best.sum() >= 10
    assert np.abs(found.gradient).max() < 0.05


def fenced(points):
    """A quadratic about 2, infinite below 0 and not a number above 5: where a matrix could not be factorised."""
    value, gradient = quadratic([2.0, 2.0], [1.0, 30.0])(points)
    value[(points < 0.0).any(axis=1)] = np.inf
    value[(points > 5.0).any(axis=1)] = np.nan
    return value, gradient


def test_regions_without_a_value_are_walked_around():
    starts = np.random.default_rng(2).uniform(0.01, 4.99, (30, 2))
    found = minimise(fenced, starts)
    assert np.abs(found.point - 2.0).max() < 1e-3
    assert np.isfinite(found.value).all()


def test_a_gradient_that_is_not_finite_counts_as_no_value():
    def objective(points):
        value, gradient = quadratic([2.0], [1.0])(points)
        gradient[points[:, 0] > 3.0] = np.nan
        return value, gradient

    found = minimise(objective, np.array([[-1.0], [3.5]]))
    assert found.point[0, 0] == pytest.approx(2.0, abs=1e-4)
    assert found.value[1] == np.inf
    assert found.status.tolist() == ["converged", "stuck"]


def test_a_start_without_a_value_is_stuck_and_spoils_no_other():
    starts = np.array([[np.nan, 1.0], [1.0, 1.0], [-1.0, 1.0]])
    found = minimise(fenced, starts)
    assert found.status.tolist() == ["stuck", "converged", "stuck"]
    assert found.value[[0, 2]].tolist() == [np.inf, np.inf]
    assert found.iterations[[0, 2]].tolist() == [0, 0]
    assert np.abs(found.point[1] - 2.0).max() < 1e-3
    assert np.argmin(found.value) == 1


@pytest.mark.parametrize("objective", [rosenbrock, fenced, quadratic([1.0, -2.0], [1e-2, 1e3])])
def test_together_is_as_each_alone(objective):
    starts = np.random.default_rng(3).uniform(-2.0, 4.5, (12, 2))
    together = minimise(objective, starts)
    alone = [minimise(objective, start[None]) for start in starts]
    for name in ("point", "value", "gradient", "status", "iterations"):
        each = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(getattr(together, name), each, err_msg=name)
    assert together.evaluations == sum(one.evaluations for one in alone)


def test_evaluations_are_those_made_and_ended_searches_drop_out():
    sizes = []

    def counted(points):
        sizes.append(len(points))
        return rosenbrock(points)

    found = minimise(counted, np.vstack([np.ones((3, 2)), np.random.default_rng(4).uniform(-2.0, 2.0, (5, 2))]))
    assert found.evaluations == sum(sizes)
    assert found.iterations[:3].tolist() == [0, 0, 0]
    assert sizes[0] == 8
    assert max(sizes[1:]) <= 5
    assert sizes[-1] < 5


def test_the_limit_of_iterations_is_kept_and_said():
    start = np.array([[-1.2, 1.0]])
    found = minimise(rosenbrock, start, iterations=3)
    assert found.status.tolist() == ["iterations"]
    assert found.iterations.tolist() == [3]
    assert found.value[0] < rosenbrock(start)[0][0]
    whole = minimise(rosenbrock, start, value_tolerance=0.0)
    assert whole.status.tolist() == ["converged"]
    # The limit reached in the very step that converges is no failure.
    same = minimise(rosenbrock, start, value_tolerance=0.0, iterations=int(whole.iterations[0]))
    assert same.status.tolist() == ["converged"]


def test_no_more_decrease_is_said_to_be_flat():
    # Its gradient does not vanish, but past some point steps gain less than the tolerance.
    found = minimise(lambda p: (1e6 + 1e-3 * np.abs(p[:, 0]), 1e-3 * np.sign(p)), np.array([[5.0]]))
    assert found.status[0] in ("flat", "stuck")
    assert found.value[0] <= 1e6 + 5e-3


def test_small_steps_on_a_steep_slope_are_no_end():
    # Infinite past 1, where the slope is still 10: steps shrink against the wall and gain less and less.
    def walled(points):
        return np.where(points[:, 0] < 1.0, -10.0 * points[:, 0], np.inf), np.full_like(points, -10.0)

    found = minimise(walled, np.array([[0.0]]))
    assert found.point[0, 0] > 0.9
    assert found.status.tolist() == ["stuck"]


def test_a_search_that_goes_on_is_the_search_that_was_not_interrupted():
    start = np.array([[-1.2, 1.0], [0.5, 2.0]])
    whole, begun = minimise(rosenbrock, start), minimise(rosenbrock, start, iterations=5)
    rest = minimise(rosenbrock, begun.point, inverse=begun.inverse)
    np.testing.assert_allclose(rest.point, whole.point, atol=1e-8)
    np.testing.assert_array_equal(begun.iterations + rest.iterations, whole.iterations)


def test_a_gradient_that_points_the_wrong_way_ends_stuck():
    found = minimise(lambda p: ((p**2).sum(axis=1), -2.0 * p), np.array([[1.0, 1.0]]))
    assert found.status.tolist() == ["stuck"]
    np.testing.assert_array_equal(found.point, [[1.0, 1.0]])


def test_starts_are_left_as_they_were():
    starts = np.random.default_rng(5).uniform(-30.0, 30.0, (6, 2))
    before = starts.copy()
    found = minimise(rosenbrock, starts)
    np.testing.assert_array_equal(starts, before)
    assert not np.shares_memory(found.point, starts)
    at_rest = minimise(quadratic([0.0, 0.0], [1.0, 1.0]), np.zeros((1, 2)))
    assert at_rest.evaluations == 1
    assert at_rest.status.tolist() == ["converged"]


def test_an_objective_may_keep_the_points_it_was_given():
    kept = []

    def keeper(points):
        kept.append((points, points.copy()))
        return rosenbrock(points)

    minimise(keeper, np.random.default_rng(6).uniform(-2.0, 2.0, (4, 2)))
    # All but the starting points, which the search itself moves, stay what they were.
    for given, copy in kept[1:]:
        np.testing.assert_array_equal(given, copy)


@pytest.mark.parametrize("pull", [1.0, 1e3, 1e8])
def test_at_the_edge_the_other_coordinates_are_still_minimised(pull):
    # The first coordinate wants to go far past the edge, and pulls much harder than the others.
    objective = quadratic([50.0, 1.0, -2.0], [pull, 1.0, 10.0])
    found = minimise(objective, np.random.default_rng(7).uniform(-4.0, 4.0, (6, 3)), value_tolerance=0.0)
    assert (found.point[:, 0] == FARTHEST).all()
    assert np.abs(found.point[:, 1:] - [1.0, -2.0]).max() < (1e-3 if pull < 1e6 else 0.1)
    if pull < 1e6:
        assert set(found.status) == {"edge"}


def test_a_search_that_starts_past_the_edge_comes_back():
    found = minimise(quadratic([1.0, 1.0], [1.0, 5.0]), np.array([[1e9, -1e9]]))
    assert found.status.tolist() == ["converged"]
    assert np.abs(found.point - 1.0).max() < 1e-3


def test_an_edge_that_is_touched_is_left_again():
    # The way to the minimum bends: the first steps run into the edge in x, the minimum lies inside.
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    found = minimise(quadratic([6.5, -6.0], [1e3, 1.0], turn), np.array([[7.9, 7.9], [-7.9, 7.9], [7.9, -7.9]]))
    assert np.abs(found.point - [6.5, -6.0]).max() < 1e-2
    assert set(found.status) <= {"converged", "flat"}


def test_values_of_any_size_raise_no_warning():
    # Warnings are errors here: nothing may overflow.
    for size in (1e-100, 1e-12, 1e12, 1e100):
        found = minimise(
            lambda p, size=size: (size * (p**2).sum(axis=1), 2.0 * size * p), np.array([[1.0, -2.0], [3.0, 0.5]])
        )
        assert np.isfinite(found.point).all()
        assert (found.value <= size * 9.25).all()
