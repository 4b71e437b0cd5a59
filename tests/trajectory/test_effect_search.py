"""Effects and what is left of the rows fit together: they add up to the target."""

import numpy as np
import pytest

from trajectory.lines import after, lines, person


@pytest.mark.parametrize("mean", ["none", "population"])
def test_effects_in_the_kernels_and_the_rest_add_up_to_the_target(mean):
    """All kernels are sums of one covariate's products, so there is nothing else but a level."""
    one = person("ann", 0.8, seed=5)
    found = after(lines(mean), one).effects()
    assert found.rest.shape == (60,)
    explained = one.y - found.rest
    inside = np.ones(60, dtype=bool)
    for effect in found:
        column = one.X[:, one.column_index(effect.covariate)]
        explained = explained - np.interp(column, effect.x, effect.fitted)
        inside &= (column >= effect.x[0]) & (column <= effect.x[-1])
    assert inside.sum() > 50
    # Between the 31 points of a curve it is interpolated.
    assert np.ptp(explained[inside]) < 0.02 * np.ptp(one.y)


def test_what_users_differ_by_is_in_the_curve_and_its_line_in_predictions():
    """A user who falls with hour, which no kernel reads: the curve sees it, predictions at most by a slope."""
    one = person("ann", 0.8, seed=6)
    falling = one.with_y(one.y - 0.08 * one.X[:, 1])
    effect = after(lines("population"), falling).effects()["hour"]
    assert effect.read == 0.0
    assert np.ptp(effect.curve.mean) > 0.5
    slope = np.polyfit(effect.x, effect.fitted, 1)
    np.testing.assert_allclose(effect.fitted, np.polyval(slope, effect.x), atol=1e-6)
    assert after(lines("population"), one).effects()["x"].fitted == pytest.approx(
        after(lines("population"), one).effects()["x"].curve.mean
    )


def test_before_any_row_nothing_is_left_over():
    assert lines("population").new_user("ann").effects().rest is None
