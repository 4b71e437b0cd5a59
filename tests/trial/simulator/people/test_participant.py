import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kerneltrail.errors import DataError
from kerneltrail.trial.simulator.people import POPULATIONS, StepCountGame, population_of

from ..made import source

HOURS = np.tile([8.5, 12.5, 15.5, 18.5, 21.0], 6)
KINDS = ("model", "pilot", "heartsteps", "brushing", "stepcount")


def drawn(kind, *seed, effect=None):
    return population_of(kind, source(), effect).drawn(HOURS, 5, *seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*Box observation space")
def test_a_participant_is_an_environment(kind):
    check_env(population_of(kind, source()).participant(HOURS, 5), skip_render_check=True)


def test_the_game_is_an_environment():
    check_env(StepCountGame(0.4), skip_render_check=True)


def test_every_kind_is_tried():
    assert set(KINDS) == set(POPULATIONS)


def lived(kind, action, effect=None):
    """What a participant meets and gives under one rule, point by point."""
    person = drawn(kind, 3, 7, effect=effect)
    rows = []
    while True:
        potential = person.potential
        rows.append((*person.context, person.available, potential.without, potential.acted, potential.effect))
        _, outcome, left, over, _ = person.step(action)
        assert outcome == potential.outcome(action if rows[-1][-4] else 0)
        if left or over:
            return np.array(rows, dtype=float)


@pytest.mark.parametrize("kind", ["model", "pilot", "heartsteps"])
def test_what_chance_brings_is_the_same_whatever_is_done(kind):
    assert np.array_equal(lived(kind, 0), lived(kind, 1))


def test_what_actions_leave_behind_shows_and_chance_is_still_the_same():
    never, always = lived("brushing", 0), lived("brushing", 1)
    assert not np.array_equal(never[:, 2], always[:, 2])
    assert np.array_equal(never[0], always[0])
    game = [drawn("stepcount", 3, 7), drawn("stepcount", 3, 7)]
    game[0].step(0)
    game[1].step(1)
    assert game[0].context[0] == game[1].context[0]  # how sure the context is
    assert game[0].context[1] < game[1].context[1]  # habituation


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_draw_the_same_person_and_others_another(kind):
    first, same, other = (drawn(kind, *seed) for seed in ((0, 1), (0, 1), (0, 2)))
    for person in (first, same, other):
        person.step(1)
    assert np.array_equal(first.context, same.context)
    assert first.potential == same.potential
    assert first.potential != other.potential or not np.array_equal(first.context, other.context)


@pytest.mark.parametrize("kind", KINDS)
def test_an_imposed_effect_is_that_effect_always(kind):
    rows = lived(kind, 1, effect=0.0)
    assert np.array_equal(rows[:, -3], rows[:, -2])
    assert not rows[:, -1].any()
    assert np.allclose(lived(kind, 1, effect=2.5)[:, -2] - lived(kind, 1, effect=2.5)[:, -3], 2.5)


def test_people_made_from_rows_have_the_baseline_and_the_spread_of_the_pilot_users():
    population = population_of("pilot", source())
    assert len(population.everybody) == 5
    for each, user in zip(population.everybody, source().pilot.raw, strict=True):
        assert abs(each.residuals.mean()) < 1e-9
        assert np.std(each.residuals) < np.std(user.y)
        assert np.array_equal(each.rows, user.X)


def test_people_drawn_from_a_model_vary_as_its_noise_says():
    """The noise of one person is at least that of the least node's group; of 30 people it differs."""
    spreads = [np.std([row[-3] for row in _life(drawn("model", 11, number))]) for number in range(30)]
    assert 0.3 < np.median(spreads) < 6.0
    assert np.std(spreads) > 0.01


def _life(person):
    rows = []
    over = False
    while not over:
        rows.append((person.potential.without, 0, 0))
        over = person.step(0)[3]
    return rows


def test_who_acts_where_nobody_can_changes_nothing():
    person = drawn("heartsteps", 0, 0)
    while person.available:
        person.step(0)
    without = person.potential.without
    assert person.step(1)[1] == without


@pytest.mark.parametrize("kind", ["model", "heartsteps"])
def test_the_share_of_points_at_which_somebody_can_act_is_a_parameter(kind):
    """Of 4000 points, within 5 standard errors of the share: one false alarm in more than a million."""
    for text, share in ((kind, 0.8), (f"{kind}:available=0.3", 0.3), (f"{kind}:available=1", 1.0)):
        population = population_of(text, source())
        people = [population.participant(np.tile([9.0, 18.0], 20), 2) for _ in range(100)]
        for seed, person in enumerate(people):
            person.reset(seed=seed)
        could = np.mean([person._could for person in people])
        assert abs(could - share) <= 5 * np.sqrt(share * (1 - share) / 4000)
        assert f"at {100 * share:g} % of the decision points" in population.availability
        assert "assumption" in population.availability
    with pytest.raises(DataError, match=r"above 0 and up to 1, got 1\.2"):
        population_of(f"{kind}:available=1.2", source())


def test_refusals_name_what_is_wrong():
    with pytest.raises(DataError, match=r"no parameter 'sigmaa'.*sigma"):
        population_of("stepcount:sigmaa=1")
    with pytest.raises(DataError, match="no such parameter"):
        population_of("stepcount:sigma")
    with pytest.raises(DataError, match="must not be below 0"):
        population_of("stepcount:sigma=-1")
    with pytest.raises(DataError, match="did you mean 'brushing'"):
        population_of("brushin")
    with pytest.raises(DataError, match="pilot users' rows"):
        _ = population_of("pilot").everybody
    with pytest.raises(DataError, match="call reset first"):
        population_of("brushing").participant(HOURS, 5).step(1)
