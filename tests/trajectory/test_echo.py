"""Whether neighbouring rows are alike: one user by itself, and shrunk to the pilot users where it is so for them."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import ModelFileError
from kerneltrail.trajectory.echo import AUDIBLE, DIFFERENT, PilotEcho, correlation_of, echo_of
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes

from .small import follow, rows, small_model


def left_over(correlation, n=200, seed=0):
    rng = np.random.default_rng(seed)
    rest = rng.standard_normal(n)
    for i in range(1, n):
        rest[i] = correlation * rest[i - 1] + np.sqrt(1 - correlation**2) * rest[i]
    return rest


def test_an_echo_is_heard_where_neighbouring_rows_are_alike():
    assert echo_of(left_over(0.6)) == pytest.approx(0.6, abs=0.2)  # three standard errors of 0.06
    assert echo_of(left_over(-0.6)) == 0.0
    assert echo_of(left_over(0.6, n=20)) == 0.0  # too few rows to tell
    assert echo_of(np.empty(0)) == 0.0
    assert echo_of(np.ones(40)) == 0.0


def test_an_echo_is_hardly_ever_heard_where_there_is_none():
    """Three standard errors to one side are a false alarm in 0.1 %: of 300 people two or more in 4 % of all seeds."""
    assert sum(echo_of(left_over(0.0, seed=seed)) > 0.0 for seed in range(300)) <= 1


def test_pilot_users_are_heard_together_though_none_is_by_itself():
    rests = [left_over(0.45, n=25, seed=seed) for seed in range(12)]
    assert all(echo_of(rest) == 0.0 for rest in rests)
    heard = PilotEcho.of(rests)
    # The mean of twelve has a standard error of 0.05, and each is too small by some (1 + 3·0.45)/25.
    assert heard.mean == pytest.approx(0.36, abs=0.15)
    assert heard.variance >= DIFFERENT
    assert PilotEcho.of([left_over(0.0, n=25, seed=seed) for seed in range(12)]) is None
    assert PilotEcho.of([]) is None
    assert PilotEcho.of([np.ones(2)] * 50) is None


def test_pilot_users_who_differ_say_less_of_a_new_one():
    rests = [left_over(0.1 if seed % 2 else 0.8, seed=seed) for seed in range(10)]
    heard = PilotEcho.of(rests)
    assert heard.variance == pytest.approx(0.35**2, rel=0.4)
    quiet = left_over(0.0, n=10, seed=4)
    assert echo_of(quiet, heard) < echo_of(quiet, replace(heard, variance=DIFFERENT))


def test_a_users_own_rows_count_by_how_many_they_are():
    """By the formula, written out; without any row it is the pilot users'."""
    pilots = PilotEcho(0.5, 0.02)
    assert echo_of(np.empty(0), pilots) == 0.5
    for n in (5, 40, 400):
        rest = left_over(0.3, n=n, seed=3)
        weight = 0.02 / (0.02 + 0.75 / n)
        expected = (1.0 - weight) * 0.5 + weight * correlation_of(rest)
        assert echo_of(rest, pilots) == pytest.approx(expected if expected > AUDIBLE else 0.0)
    assert echo_of(left_over(-0.5, n=400), pilots) == 0.0


def test_a_file_keeps_it_and_following_does_not_hang_on_it():
    model = replace(small_model(), echo=PilotEcho(0.4, 0.0123))
    again = from_bytes(to_bytes(model), type(model))
    assert again.echo == model.echo
    assert fingerprint(again) == fingerprint(small_model())
    assert from_bytes(to_bytes(small_model()), type(model)).echo is None


@pytest.mark.parametrize("mean", [0.0, 1.0, float("nan")])
def test_what_is_no_correlation_is_refused(mean):
    with pytest.raises(ModelFileError, match="neighbouring rows"):
        from_bytes(to_bytes(replace(small_model(), echo=PilotEcho(mean, 0.01))), type(small_model()))


def test_intervals_of_first_rows_allow_for_what_is_heard_in_pilot_users():
    person, deaf = rows("ann", 12, seed=3), small_model()
    found = {}
    for model in (deaf, replace(deaf, echo=PilotEcho(0.6, DIFFERENT))):
        user = model.new_user("ann")
        follow(user, person)
        found[model.echo is None] = user.effects()
    assert (found[True].echo, found[False].echo > 0.4) == (0.0, True)
    assert [each.size for each in found[True]] == [each.size for each in found[False]]
    assert [float(each.change.sd[0]) for each in found[True]] != [float(each.change.sd[0]) for each in found[False]]
