"""Linear regression, the population mean and the running mean against textbook formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kerneltrail.data import Cohort, User
from kerneltrail.errors import DataError, NumericalError
from kerneltrail.gp import Reward
from kerneltrail.gp.population import PENALTIES, PopulationMean, design, ridge
from kerneltrail.methods import build
from kerneltrail.methods.linear import LinearRegression, Weights, learn_prior
from kerneltrail.methods.mean import RunningMean

from .common import COVARIATES, REWARD, method, rows, training


def somebody(n=8, seed=1, name="ann"):
    X, y, action = rows(n, seed=seed)
    return User(name, COVARIATES, X, y, (n,), action=action)


def test_posterior_of_the_weights_in_closed_form():
    rng = np.random.default_rng(0)
    B, y = rng.standard_normal((9, 3)), rng.standard_normal(9)
    root = rng.standard_normal((3, 3))
    prior = Weights(rng.standard_normal(3), root @ root.T, 0.7)
    after = prior.given(B, y)
    precision = np.linalg.inv(prior.covariance)
    covariance = np.linalg.inv(precision + B.T @ B / 0.7)
    np.testing.assert_allclose(after.covariance, covariance, rtol=1e-9)
    np.testing.assert_allclose(after.mean, covariance @ (precision @ prior.mean + B.T @ y / 0.7), rtol=1e-9)


def test_rows_one_by_one_are_rows_together():
    rng = np.random.default_rng(1)
    B, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    prior = step = Weights(np.array([1.0, -1.0]), np.diag([2.0, 0.5]), 0.3)
    for row, target in zip(B, y, strict=True):
        step = step.given(row[None], np.array([target]))
    whole = prior.given(B, y)
    np.testing.assert_allclose(step.mean, whole.mean)
    np.testing.assert_allclose(step.covariance, whole.covariance)


def test_a_weight_known_beforehand_stays():
    prior = Weights(np.array([2.0, 0.0]), np.diag([0.0, 1.0]), 0.1)
    after = prior.given(np.ones((5, 2)), np.full(5, 9.0))
    assert after.mean[0] == 2.0
    assert after.covariance[0, 0] == 0.0


def test_learning_the_prior_climbs_the_penalised_likelihood():
    """EM never goes down in log p(y|μ,Σ,σ²) plus the log of the pseudo-observations' terms."""
    rng = np.random.default_rng(2)
    blocks = []
    for _ in range(5):
        B = np.column_stack([np.ones(7), rng.uniform(0, 1, 7)])
        blocks.append((B, B @ (np.array([1.0, -2.0]) + 0.3 * rng.standard_normal(2)) + 0.5 * rng.standard_normal(7)))
    start = Weights(np.zeros(2), 10.0 * np.eye(2), 1.0)

    def objective(w):
        value = -0.5 * np.linalg.slogdet(w.covariance)[1] - 0.5 * np.trace(
            np.linalg.solve(w.covariance, start.covariance)
        )
        value += -0.5 * np.log(w.noise) - 0.5 * start.noise / w.noise
        for B, y in blocks:
            total = B @ w.covariance @ B.T + w.noise * np.eye(len(y))
            value += stats.multivariate_normal.logpdf(y, B @ w.mean, total)
        return value

    found = learn_prior(blocks, start)
    assert objective(found) > objective(start)
    for shift in (0.05, -0.05):
        moved = Weights(found.mean + shift, found.covariance, found.noise)
        assert objective(moved) < objective(found) + 1e-3
        wider = Weights(found.mean, found.covariance * (1 + shift), found.noise)
        assert objective(wider) < objective(found) + 1e-3
        noisier = Weights(found.mean, found.covariance, found.noise * (1 + shift))
        assert objective(noisier) < objective(found) + 1e-3


def test_learning_the_prior_finds_what_many_users_were_drawn_from():
    rng = np.random.default_rng(4)
    truth = np.array([1.0, -2.0]), np.array([[0.5, 0.2], [0.2, 0.3]]), 0.25
    blocks = []
    for w in rng.multivariate_normal(truth[0], truth[1], 300):
        B = np.column_stack([np.ones(12), rng.uniform(-1, 1, 12)])
        blocks.append((B, B @ w + np.sqrt(truth[2]) * rng.standard_normal(12)))
    found = learn_prior(blocks, Weights(np.zeros(2), np.eye(2), 1.0))
    # Standard errors are about sqrt(0.5/300) = 0.04 for means and variances.
    np.testing.assert_allclose(found.mean, truth[0], atol=0.15)
    np.testing.assert_allclose(found.covariance, truth[1], atol=0.15)
    np.testing.assert_allclose(found.noise, truth[2], rtol=0.1)


def test_prediction_by_hand():
    learner = LinearRegression.train(training(), reward=REWARD)
    user, (X, _, action) = somebody(), rows(4, seed=9)
    said = learner.fit(user, None).predict(X, action)
    scaler = learner.preprocessor.schema.scaler

    def features(rows_, a):
        z = scaler.transform(rows_)
        return np.column_stack([np.ones(len(z)), z, a, a * z[:, 0]])

    B, y = features(user.X, user.action), scaler.transform_target(user.y)
    prior = learner.prior
    total = B @ prior.covariance @ B.T + prior.noise * np.eye(len(y))
    new = features(X, action)
    gain = new @ prior.covariance @ B.T @ np.linalg.inv(total)
    mean = new @ prior.mean + gain @ (y - B @ prior.mean)
    variance = np.diag(new @ prior.covariance @ new.T - gain @ B @ prior.covariance @ new.T)
    np.testing.assert_allclose(said.mean, scaler.shift + scaler.scale * mean, rtol=1e-8)
    np.testing.assert_allclose(said.variance, scaler.scale**2 * variance, rtol=1e-7)
    np.testing.assert_allclose(said.noise, scaler.scale**2 * prior.noise)


def test_advantage_is_the_difference_of_predictions():
    fit = LinearRegression.train(training(), reward=REWARD).fit(somebody(), None)
    X = rows(4, seed=9)[0]
    mean, variance = fit.advantage(X)
    difference = fit.predict(X, np.ones(4)).mean - fit.predict(X, np.zeros(4)).mean
    np.testing.assert_allclose(mean, difference, rtol=1e-9)
    assert (variance > 0).all()
    with pytest.raises(DataError, match="no reward"):
        LinearRegression.train(training()).fit(somebody(), None).advantage(X)


def test_vague_prior_and_refusals():
    vague = LinearRegression.train(training(), prior="vague", variance=3.0)
    np.testing.assert_array_equal(vague.prior.covariance, 3.0 * np.eye(3))
    with pytest.raises(DataError, match="vague"):
        LinearRegression.train(training(), prior="flat")


def test_group_prior_predicts_better_at_the_start():
    users = [somebody(20, seed, f"u{seed}") for seed in range(30, 38)]
    cohort = Cohort.from_users(users[:5], target_scaling="standard")
    group = LinearRegression.train(cohort)
    vague = LinearRegression.train(cohort, prior="vague")
    nobody = somebody().upto(0)

    def density(learner):
        fit = learner.fit(nobody, None)
        return np.mean([fit.predict(user.X, None).log_density(user.y).mean() for user in users[5:]])

    assert density(group) > density(vague)


def test_ridge_is_the_minimum():
    rng = np.random.default_rng(3)
    B = np.column_stack([np.ones(12), rng.standard_normal((12, 2))])
    y = 4.0 + rng.standard_normal(12)
    found = ridge(B.T @ B, B.T @ y, 2.5)

    def loss(beta):
        return ((y - B @ beta) ** 2).sum() + 2.5 * (beta[1:] ** 2).sum()

    for step in 1e-4 * np.vstack([np.eye(3), -np.eye(3)]):
        assert loss(found + step) > loss(found)


def test_penalty_by_leaving_users_out():
    users = [somebody(9, seed, f"u{seed}") for seed in range(4)]
    mean = PopulationMean.train(users, None)
    errors = {}
    for penalty in PENALTIES:
        errors[penalty] = 0.0
        for out in users:
            others = [user for user in users if user is not out]
            B = np.vstack([design(user.X, COVARIATES, None, None) for user in others])
            y = np.concatenate([user.y for user in others])
            beta = np.linalg.solve(B.T @ B + penalty * np.diag([0.0, 1.0, 1.0]), B.T @ y)
            errors[penalty] += ((out.y - design(out.X, COVARIATES, None, None) @ beta) ** 2).sum()
    assert mean.penalty == min(errors, key=errors.get)


def test_population_mean_with_the_action():
    users = [somebody(9, seed, f"u{seed}") for seed in range(3)]
    mean = PopulationMean.train(users, Reward(("steps",)))
    X, _, action = rows(5, seed=20)
    w = mean.weights
    expected = w[0] + X @ w[1:3] + action * (w[3] + w[4] * X[:, 1])
    np.testing.assert_allclose(mean.at(X, action), expected)
    with pytest.raises(DataError, match="action"):
        mean.at(X, None)
    with pytest.raises(DataError, match="row"):
        PopulationMean.train([users[0].upto(0)], None)


def test_running_mean():
    cohort = training()
    learner = RunningMean.train(cohort)
    y = np.concatenate([user.y for user in cohort.raw])
    before = learner.fit(somebody().upto(0), None).predict(np.zeros((2, 2)), None)
    np.testing.assert_allclose(before.mean, y.mean())
    user = somebody()
    said = learner.fit(user, None).predict(np.zeros((2, 2)), None)
    np.testing.assert_allclose(said.mean, user.y.mean())
    within = np.mean(np.concatenate([u.y - u.y.mean() for u in cohort.raw]) ** 2)
    noise = (((user.y - user.y.mean()) ** 2).sum() + within) / 9
    np.testing.assert_allclose(said.noise, noise)
    np.testing.assert_allclose(said.variance, noise / 8)


def test_where_nobody_could_act_no_action_need_be_there():
    plain = method("linear", reward=True)
    prepared = plain.learner.preprocessor
    schema = replace(prepared.schema, action="sent", availability="free")
    made = replace(plain, learner=replace(plain.learner, preprocessor=replace(prepared, schema=schema)))
    X, y, action = rows(6, seed=4)
    action[2] = 0.0
    frame = {**dict(zip(COVARIATES, X.T, strict=True)), schema.target: y, "free": [1, 1, 0, 1, 1, 1]}
    whole, partly = made(), made()
    whole.update({**frame, "sent": action})
    action[2] = np.nan
    partly.update({**frame, "sent": action})
    assert partly.seen == whole.seen
    np.testing.assert_array_equal(
        partly.predict({**frame, "sent": action}).mean, whole.predict(X, action=whole.seen.action).mean
    )
    partly.update(X, y, action=action, available=frame["free"])
    np.testing.assert_array_equal(partly.seen.action[6:], whole.seen.action)


def test_who_was_given_no_name_takes_that_of_the_rows():
    cohort = training()
    user, schema = method("linear")(), cohort.schema
    X, y, _ = rows(6, seed=4)
    frame = {**dict(zip(COVARIATES, X.T, strict=True)), schema.target: y}
    user.update({**frame, schema.user: ["ann"] * 6})
    assert (user.name, user.rows) == ("ann", 6)
    with pytest.raises(DataError, match="user 'ann': row 1 is bob's"):
        user.update({**frame, schema.user: ["bob"] * 6})
    user.update(frame)  # rows that name nobody are taken
    assert (user.name, user.seen.name, user.rows) == ("ann", "ann", 12)


def mixed(**changes):
    users = []
    for m in range(12):
        rng = np.random.default_rng([5, m])
        X = np.column_stack([rng.normal(size=40), rng.uniform(size=40)])
        if changes.get("far"):
            X[rng.uniform(size=40) < 0.02, 0] *= 15.0
        f = rng.normal(0.0, 0.5) + (0.3 + rng.normal(0.0, 0.6)) * X[:, 0]
        users.append(User(f"u{m}", COVARIATES, X, changes.get("offset", 0.0) + f + 0.7 * rng.normal(size=40), (40,)))
    cohort = Cohort.from_users(users, scaling=changes.get("scaling", "group"))
    return LinearRegression.train(cohort, prior="mixed")


def test_rows_far_out_do_not_hide_from_the_mixed_model_how_users_differ_in_a_slope():
    """The truth is 0.6; over the whole range, which such rows decide, a usual slope would be far out in its prior."""
    prior = mixed(far=True, scaling="none").prior
    assert np.sqrt(prior.covariance[1, 1]) == pytest.approx(0.6, rel=0.4)


def test_where_the_target_lies_does_not_matter_to_the_mixed_model():
    near, far = mixed().prior, mixed(offset=1e6).prior
    np.testing.assert_allclose(far.noise, near.noise, rtol=1e-5)
    np.testing.assert_allclose(far.covariance, near.covariance, rtol=1e-3, atol=1e-5)
    assert far.mean[0] - 1e6 == pytest.approx(near.mean[0], abs=1e-4)


def test_one_row_leaves_the_mixed_model_uncertain():
    alone = Cohort.from_users([User("ann", COVARIATES, [[0.3, 1.0]], [0.7], (1,))])
    somebody = build("lmm", alone)("bob")
    assert somebody.predict([[0.3, 1.0]]).sd[0] > 0.5
    somebody.update([[0.3, 1.0]] * 3, [1.7, 0.2, 0.9])
    assert somebody.predict([[0.3, 1.0]]).sd[0] > 0.3


def test_a_prediction_past_all_numbers_is_refused_by_name():
    with pytest.raises(NumericalError, match="hour"):
        method("linear")("bob").predict([[1e200, 1.0]])


def test_equal_targets_in_millions_do_not_widen_the_running_mean():
    y = 1e6 + np.random.default_rng(0).normal(0.0, 0.8, 60)
    users = [User(f"u{m}", COVARIATES, np.zeros((20, 2)), y[20 * m : 20 * m + 20], (20,)) for m in range(3)]
    assert RunningMean.train(Cohort.from_users(users)).within == pytest.approx(0.64, rel=0.4)
