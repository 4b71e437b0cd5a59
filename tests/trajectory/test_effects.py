"""Effects of a followed user: signs, sizes, permutations, mixtures, and what holds before any row."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kerneltrail.data import Cohort, User
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.gp.population import PopulationMean
from kerneltrail.trajectory.effect_search import effects_of
from kerneltrail.trajectory.effects import Effect
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.kernel_posterior import KernelPosterior
from kerneltrail.trajectory.new_user import NewUser

from .small import COVARIATES, follow, mean_model, rewarded_model, rows, small_model

NAMES = ("stress", "evening", "hour", "idle")


def person(name, slope, seed, n=120, *, evening=0.0, bump=0.0):
    """Somebody whose effects are known: a line, two levels, a curve over the hour, and nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(5, 2, n), rng.integers(0, 2, n), rng.uniform(8, 21, n), rng.normal(0, 1, n)])
    y = 50.0 + slope * (X[:, 0] - 5) + evening * X[:, 1] + bump * np.exp(-0.5 * ((X[:, 2] - 15) / 2.5) ** 2)
    return User(name, NAMES, X, y + rng.standard_normal(n), tuple(range(40, n + 1, 40)))


@pytest.fixture(scope="module")
def model():
    pilots = [person(f"pilot {i}", (-1) ** i * 0.6, i, evening=1.0 + 0.5 * (i % 3 - 1), bump=2.0) for i in range(6)]
    cohort = Cohort.from_users(pilots, target="mood", target_scaling="standard")
    return fit(cohort, chains=1, sweeps=40, check=20, largest=2, workers=1)


@pytest.mark.parametrize("slope", [0.6, -0.6])
def test_an_effect_has_the_sign_and_the_size_of_this_user(model, slope):
    """Twelve statements at 99.9 %, so a false alarm has a chance of about 1 in 80."""
    user, truth = model.new_user("ann"), person("ann", slope, 100, evening=1.2, bump=2.0)
    for t in range(1, 4):
        user.update(truth.batch(t).X, truth.batch(t).y)
    effects = user.effects()
    assert {effect.covariate for effect in effects} == set(NAMES)
    assert [abs(effect.size) for effect in effects] == sorted((abs(effect.size) for effect in effects), reverse=True)
    line = effects["stress"]
    assert np.sign(line.size) == np.sign(slope)
    assert line.clear
    low, high = line.change.interval(0.999)
    assert low[0] <= slope * (line.end - line.start) <= high[0]
    levels = effects["evening"]
    assert (levels.shape, levels.start, levels.end) == ("levels", 0.0, 1.0)
    assert levels.change.interval(0.999)[0][0] <= 1.2 <= levels.change.interval(0.999)[1][0]
    hour = effects["hour"]
    assert hour.shape == "curve"
    assert abs(hour.end - 15.0) < 2.5  # the peak
    idle = effects["idle"]
    low, high = idle.change.interval(0.999)
    assert low[0] <= 0.0 <= high[0]
    assert effects.rows == 120
    assert 0.8 < effects.noise < 1.3


def test_the_curve_is_centred_over_the_users_rows_and_holds_the_change(model):
    user, truth = model.new_user("ann"), person("ann", 0.6, 101, bump=2.0)
    user.update(truth.X, truth.y)
    for effect in user.effects():
        start, end = (int(np.abs(effect.x - value).argmin()) for value in (effect.start, effect.end))
        assert effect.curve.mean[end] - effect.curve.mean[start] == pytest.approx(effect.size, abs=1e-9)
        assert effect.curve.mean.min() <= 0.0 <= effect.curve.mean.max()
    frame = user.effects().to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["covariate"]) == set(NAMES)


def test_permuted_columns_of_a_frame_give_identical_numbers(model):
    truth = person("ann", 0.6, 102, bump=2.0)
    frame = pd.DataFrame(truth.X, columns=list(NAMES)).assign(mood=truth.y, other="x")
    users = []
    for names in (list(frame), list(reversed(list(frame)))):
        user = model.new_user("ann")
        user.update(frame[names].iloc[:60])
        user.update(frame[names].iloc[60:].drop(columns="mood"), frame["mood"].iloc[60:])
        users.append(user)
    plain = model.new_user("ann")
    plain.update(truth.X[:60], truth.y[:60])
    plain.update(truth.X[60:], truth.y[60:])
    for user in users:
        np.testing.assert_array_equal(user.predict(frame).mean, plain.predict(truth.X).mean)
        assert user.effects().to_json() == plain.effects().to_json()
    table = users[0].predict(frame.iloc[3:5]).to_frame()
    assert list(table.index) == [3, 4]
    assert list(table) == ["mean", "sd", "lower", "upper"]
    with pytest.raises(Exception, match="no column 'stress'; did you mean 'Stress'"):
        users[0].predict(frame.rename(columns={"stress": "Stress"}))


def test_nodes_that_read_and_nodes_that_do_not_are_mixed():
    """The change is the mixture of each kernel's own: one that does not read a covariate adds a point at nothing."""
    model = small_model()
    user = model.new_user()
    follow(user, rows("new", 12, seed=21))
    kernels = user._kernels()
    effects = user.effects()
    alone = [effects_of(model, [KernelPosterior(1.0, k.posterior)], user.state.recent, 12)["steps"] for k in kernels]
    assert effects["steps"].read == pytest.approx(sum(k.weight for k in kernels if k.reads("steps")), abs=1e-3)
    without = [each for each, kernel in zip(alone, kernels, strict=True) if not kernel.reads("steps")]
    for each in without:
        assert (each.size, float(each.change.variance[0])) == (0.0, 0.0)


@pytest.mark.parametrize(("probability", "said"), [(0.03, False), (0.49, False), (0.51, True), (1.0, True)])
def test_a_rhythm_is_said_where_kernels_with_a_period_are_likely(probability, said):
    model = small_model()
    user = model.new_user()
    follow(user, rows("new", 12, seed=21))
    curve, rhythm = (user.node_posterior(model.nodes[i].composition).posterior for i in (0, 2))
    kernels = [KernelPosterior(probability, rhythm)]
    if probability < 1.0:
        kernels.append(KernelPosterior(1.0 - probability, curve))
    found = effects_of(model, kernels, user.state.recent, 12)["hour"]
    (period,) = KernelPosterior(1.0, rhythm).periods("hour")
    assert (found.shape == "rhythm") == said
    assert found.period == (model.scaler.length("hour", period) if said else None)


def test_without_a_kernel_that_reads_it_the_users_own_rows_still_count():
    """d_j of method (43) against the joint Gaussian of residuals, by plain matrices."""
    model, truth = mean_model(), rows("new", 12, seed=3)
    between = np.array([[0.3, 0.2], [0.5, 0.1]])
    mean = PopulationMean(model.mean.weights, COVARIATES, model.mean.reward, 0.1, between=between)
    changed = type(model)(**{**{f: getattr(model, f) for f in model.__dataclass_fields__}, "mean": mean})
    user = changed.new_user()
    follow(user, truth)
    kernel = next(each for each in user._kernels() if not each.reads("steps"))
    effect = effects_of(changed, [KernelPosterior(1.0, kernel.posterior)], user.state.recent, 12)["steps"]
    recent = user.state.recent
    design = changed.reward.design(recent.X, COVARIATES, recent.assignment)
    rest = recent.y - kernel.posterior.predict(recent.X, linear=design).mean
    x = np.array([changed.scaler.scaled_location("steps", value) for value in (effect.start, effect.end)])
    unread = [j for j, name in enumerate(COVARIATES) if not kernel.reads(name)]
    G = kernel.noise * np.eye(12) + sum(mean.difference(j, recent.X[:, j], recent.X[:, j]) for j in unread)
    cross = mean.difference(1, recent.X[:, 1], x)
    contrast = np.array([-1.0, 1.0])
    m = mean.along(1, x) + cross.T @ np.linalg.solve(G, rest)
    C = mean.difference(1, x, x) - cross.T @ np.linalg.solve(G, cross)
    assert effect.size == pytest.approx(changed.scaler.scale * contrast @ m, rel=1e-9)
    assert float(effect.change.variance[0]) == pytest.approx(
        changed.scaler.scale**2 * contrast @ C @ contrast, rel=1e-8
    )


def test_before_any_row_effects_are_those_of_the_population(model):
    effects = model.new_user().effects()
    assert effects.rows == 0
    shared = model.mean.along(0, np.array([0.0, 1.0]))
    stress = effects["stress"]
    assert np.sign(stress.size) == np.sign(float(shared[1] - shared[0])) or abs(stress.size) < 0.5
    assert not effects["idle"].clear


def test_an_interaction_is_a_difference_of_differences():
    model = small_model()
    user = model.new_user()
    follow(user, rows("new", 24, seed=5))
    kernels = [KernelPosterior(1.0, k.posterior) for k in user._kernels() if k.reads("hour", "steps")]
    if not kernels:
        kernels = [KernelPosterior(1.0, user.node_posterior(model.nodes[2].composition).posterior)]
    (interaction,) = effects_of(model, kernels, user.state.recent, 24).interactions
    i, j = (int(np.abs(interaction.x - value).argmin()) for value in interaction.first)
    k, m = (int(np.abs(interaction.z - value).argmin()) for value in interaction.second)
    s = interaction.surface
    assert s[j, m] - s[i, m] - s[j, k] + s[i, k] == pytest.approx(float(interaction.change.mean[0]), abs=1e-9)
    np.testing.assert_allclose(s.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(s.mean(axis=1), 0.0, atol=1e-9)
    assert interaction.sign >= 0.5


def test_effects_survive_a_file(model):
    user, truth = model.new_user("ann", refine=50), person("ann", 0.6, 103)
    for t in range(1, 4):
        user.update(truth.batch(t).X, truth.batch(t).y)
    assert user.state.kept is None  # sums have replaced the rows
    back = NewUser.from_bytes(user.to_bytes(), model)
    assert back.effects().to_json() == user.effects().to_json()


def test_the_treatment_effect_averages_the_advantage():
    model, truth = rewarded_model(), rows("new", 24, seed=23)
    user = model.new_user()
    with pytest.raises(Exception, match="no rows of new"):
        user.treatment()
    follow(user, truth)
    effect = user.treatment()
    advantage = user.advantage(truth.X)
    assert float(effect.average.mean[0]) == pytest.approx(float(advantage.mean.mean()), rel=1e-9)
    (hour,) = effect.features
    assert hour.feature == "hour"
    at = np.column_stack([hour.x, np.full(len(hour.x), truth.X[:, 1].mean())])
    np.testing.assert_allclose(hour.advantage.mean, user.advantage(at).mean, rtol=1e-9)
    np.testing.assert_allclose(hour.advantage.variance, user.advantage(at).variance, rtol=1e-9)
    assert float(hour.change.mean[0]) == pytest.approx(float(np.diff(hour.advantage.mean[[0, -1]])[0]))
    assert effect.to_json()[0]["feature"] == "average"
    title, head, average, *places = repr(effect).splitlines()
    assert title == "What action adds to mood, after 24 rows"
    assert repr(user.effects()).startswith("Effects on mood after 24 rows")
    assert head.split("  ")[0] == "where"
    assert [line.split()[0] for line in places] == ["hour"] * len(hour.x)
    low, high = (float(end[0]) for end in effect.average.interval(0.9))
    said = average.replace("−", "-").removeprefix("on average").split()
    assert [float(said[0]), float(said[1]), float(said[3])] == pytest.approx(
        [float(effect.average.mean[0]), low, high], abs=0.05 * (high - low)
    )
    with pytest.raises(Exception, match="no reward model"):
        small_model().new_user().treatment()


def lasting(echo, rng, n=120):
    noise = np.array(rng.standard_normal(n))
    for i in range(1, n):
        noise[i] = echo * noise[i - 1] + np.sqrt(1.0 - echo**2) * noise[i]
    return noise


@pytest.mark.parametrize("refine", [400, 40])
def test_what_acting_adds_allows_for_noise_that_lasts(refine, monkeypatch):
    """Where the action lasts, too, and by the covariance of the weights; where it changes at every row not at all."""
    rng = np.random.default_rng(4)
    person = rows("ann", 120, seed=2, size=60)
    noisy = person.with_y(person.y + 1.5 * lasting(0.8, rng))
    factors = {}
    for name, action in (("blocks", np.arange(120) // 12 % 2), ("turns", np.arange(120) % 2)):
        user = rewarded_model().new_user("ann", refine=refine)
        follow(user, replace(noisy, action=action.astype(float)))
        heard = user.treatment()
        assert user.effects().echo > 0.4
        with monkeypatch.context() as patched:
            patched.setattr("kerneltrail.trajectory.treatment.echo_of", lambda *given: 0.0)
            deaf = user.treatment()
        np.testing.assert_array_equal(heard.average.mean, deaf.average.mean)
        factors[name] = float(heard.average.sd[0] / deaf.average.sd[0])
    assert factors["blocks"] > 1.3
    assert factors["turns"] < 1.0


def test_an_interval_that_is_widened_holds_the_one_it_widens():
    """One kernel that hardly counts sees a large change, all others none: the mean lies outside the 90 % interval."""
    for weight in (0.005, 0.04, 0.06, 0.3):
        change = NormalMixture([weight, 1.0 - weight], [[2.0], [0.0]], [[0.01], [0.0]])
        curve = NormalMixture([1.0], np.zeros((1, 3)), np.ones((1, 3)))
        plain = Effect("hour", "curve", np.arange(3.0), curve, 0.0, 2.0, change, weight)
        low, high = plain.interval()
        wide = replace(plain, stretch=1.7).interval()
        assert wide[0] <= low + 1e-12
        assert high <= wide[1] + 1e-12
        assert replace(plain, stretch=1.0).interval() == (low, high)
    assert low == pytest.approx(0.0, abs=1e-12)


def test_an_unknown_covariate_is_answered_with_the_nearest_and_a_label_with_its_column():
    plain = small_model()
    labelled = replace(plain, schema=replace(plain.schema, labels={"steps": "steps so far"}))
    effects = follow_all(labelled).effects()
    assert effects["steps"].covariate == "steps"
    for key, said in (
        ("steps so far", "there is no effect of 'steps so far'; did you mean 'steps'?"),
        ("huor", "there is no effect of 'huor'; did you mean 'hour'?"),
        ("zzz", "there is no effect of 'zzz'; known are "),
    ):
        with pytest.raises(KeyError, match=re.escape(said)):
            effects[key]


def follow_all(model):
    user = model.new_user("ann")
    follow(user, rows("ann", 12, seed=9))
    return user
