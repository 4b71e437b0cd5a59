"""Effects and what is left of the rows fit together: they add up to the target."""

import numpy as np
import pytest

from kerneltrail.data import User
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


def echoing(echo, seed=8, n=60):
    """A user whose x moves slowly and whose hour jumps, with noise that lasts some rows."""
    rng, noise, x = np.random.default_rng(seed), np.zeros(n), np.zeros(n)
    for i in range(n):
        noise[i] = echo * noise[i - 1] + np.sqrt(1.0 - echo**2) * rng.standard_normal()
        x[i] = 0.9 * x[i - 1] + rng.standard_normal()
    X = np.column_stack([4.0 + 0.5 * x, rng.uniform(0.0, 24.0, n)])
    return User("ann", ("x", "hour"), X, 3.0 + 0.8 * X[:, 0] + noise, (n // 2, n))


def width(effect):
    return float(np.ptp(effect.interval()))


def deaf_to(user, monkeypatch):
    """What effects are where nobody hears an echo."""
    with monkeypatch.context() as patched:
        patched.setattr("kerneltrail.trajectory.effect_search.echo_of", lambda *given: 0.0)
        return user.effects()


@pytest.mark.parametrize("mean", ["none", "population"])
@pytest.mark.parametrize("refine", [400, 40])
def test_intervals_allow_for_noise_that_lasts_where_a_covariate_moves_slowly(mean, refine, monkeypatch):
    """As long as rows are kept, and where sums have replaced them."""
    user = after(lines(mean), echoing(0.8), refine=refine)
    assert (user.state.kept is None) == (refine == 40)
    found, deaf = user.effects(), deaf_to(user, monkeypatch)
    assert found.echo > 0.5
    assert found["x"].size == deaf["x"].size
    slow = width(found["x"]) / width(deaf["x"])
    assert slow > 1.4
    assert width(found["hour"]) <= slow * width(deaf["hour"])


def test_more_rows_make_no_effect_clear_by_losing_what_was_allowed_for(monkeypatch):
    """The same rows, once kept and once as sums: intervals are widened by about as much."""
    one = echoing(0.7, n=180)
    kept, sums = (after(lines("none"), one, refine=refine) for refine in (400, 60))
    factors = [width(user.effects()["x"]) / width(deaf_to(user, monkeypatch)["x"]) for user in (kept, sums)]
    assert factors[1] == pytest.approx(factors[0], rel=0.1)
    assert factors[0] > 1.3


def test_without_an_echo_nothing_is_allowed_for(monkeypatch):
    user = after(lines("population"), echoing(0.0))
    assert user.effects().echo == 0.0
    assert [width(each) for each in user.effects()] == [width(each) for each in deaf_to(user, monkeypatch)]


def test_before_any_row_nothing_is_left_over():
    assert lines("population").new_user("ann").effects().rest is None


def test_an_effect_is_no_surer_than_the_picking_of_its_places_allows():
    found = after(lines("none"), person("ann", 0.8, seed=5)).effects()
    for effect in found:
        assert (effect.picked > 0.0) <= (effect.shape in ("curve", "rhythm", "levels"))
        assert effect.sign <= 1.0 - 0.5 * effect.picked
        assert (effect.stretch > 1.0) <= (effect.picked > 0.0 or effect.clear)
        low, high = (float(end[0]) for end in effect.change.interval())
        assert np.ptp(effect.interval()) == pytest.approx(effect.stretch * (high - low))
