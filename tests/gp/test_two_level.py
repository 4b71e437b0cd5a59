"""A function that users share and one of each user: against the joint covariance of all rows, written as loops."""

import numpy as np
import pytest

from kerneltrail.gp.two_level import LevelRows, Levels, TwoLevelEvidence, TwoLevelModel, bumps, grid_around

LINES, SMOOTH = 4, 2
SIZE = 2 * (LINES + SMOOTH) + SMOOTH + 1


def rows(n, seed):
    rng = np.random.default_rng([11, seed])
    X = rng.normal(size=(n, SMOOTH))
    lines = np.column_stack([np.ones(n), X, rng.integers(0, 2, n)])
    return LevelRows(lines, X, np.sin(2.0 * X[:, 0]) + rng.normal() + 0.4 * rng.normal(size=n))


USERS = [rows(n, seed) for seed, n in enumerate((7, 12, 1, 20))]
DEVIATIONS = np.array([0.3, -0.5, 0.0, 0.2])
THETA = np.log(np.random.default_rng(5).uniform(0.1, 0.9, SIZE))


def kernel(one, other, amplitudes, lengthscale):
    out = np.empty((len(one.y), len(other.y)))
    for i in range(len(one.y)):
        for j in range(len(other.y)):
            value = sum(amplitudes[g] * one.lines[i, g] * other.lines[j, g] for g in range(LINES))
            for c in range(SMOOTH):
                far = (one.X[i, c] - other.X[j, c]) / lengthscale[c]
                value += amplitudes[LINES + c] * np.exp(-0.5 * far**2)
            out[i, j] = value
    return out


def between(theta, one, other, *, same):
    levels = Levels.from_vector(theta, LINES)
    shared = kernel(one, other, levels.population, levels.lengthscale)
    return shared + kernel(one, other, levels.user, levels.lengthscale) if same else shared


def joint(theta, users, deviations):
    """Covariance of all users' rows."""
    noise = np.exp(theta[-1] + np.repeat(deviations, [len(user.y) for user in users]))
    blocks = [[between(theta, one, other, same=one is other) for other in users] for one in users]
    return np.block(blocks) + np.diag(noise)


def naive_evidence(theta, deviations):
    covariance, y = joint(theta, USERS, deviations), np.concatenate([user.y for user in USERS])
    logdet = np.linalg.slogdet(covariance)[1]
    return -0.5 * (y @ np.linalg.solve(covariance, y) + logdet + len(y) * np.log(2.0 * np.pi))


def naive_prediction(theta, new, deviation, at):
    users = [*USERS, new]
    covariance = joint(theta, users, np.append(DEVIATIONS, deviation))
    across = np.hstack([between(theta, at, user, same=user is new) for user in users])
    y = np.concatenate([user.y for user in users])
    alone = between(theta, at, at, same=True)
    return across @ np.linalg.solve(covariance, y), np.diag(alone - across @ np.linalg.solve(covariance, across.T))


def test_bumps_make_a_squared_exponential_wherever_the_points_lie():
    z = np.array([-3.0, 0.0, 0.1, 2.5, 1000.0, 1000.7])
    phi = bumps(z, grid_around(z))
    np.testing.assert_allclose(phi @ phi.T, np.exp(-0.5 * (z[:, None] - z) ** 2), atol=2e-10)


def test_evidence_is_that_of_the_joint_covariance():
    log = TwoLevelEvidence(USERS)(THETA, DEVIATIONS).log
    np.testing.assert_allclose(log, naive_evidence(THETA, DEVIATIONS), rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("i", range(SIZE))
def test_gradient_by_differences(i):
    step = 1e-4 * np.eye(SIZE)[i]
    gradient = TwoLevelEvidence(USERS)(THETA, DEVIATIONS).gradient
    up, down = (naive_evidence(THETA + sign * step, DEVIATIONS) for sign in (1.0, -1.0))
    np.testing.assert_allclose(gradient[i], (up - down) / 2e-4, rtol=1e-5, atol=1e-5)


def test_gradient_by_users_noise():
    gradient = TwoLevelEvidence(USERS)(THETA, DEVIATIONS).by_noise
    for m in range(len(USERS)):
        step = 1e-4 * np.eye(len(USERS))[m]
        up, down = (naive_evidence(THETA, DEVIATIONS + sign * step) for sign in (1.0, -1.0))
        np.testing.assert_allclose(gradient[m], (up - down) / 2e-4, rtol=1e-5, atol=1e-5)


def test_what_is_left_of_the_rows():
    slopes = TwoLevelEvidence(USERS)(THETA, DEVIATIONS)
    inverse = np.linalg.inv(joint(THETA, USERS, DEVIATIONS))
    alpha = inverse @ np.concatenate([user.y for user in USERS])
    ends = np.cumsum([len(user.y) for user in USERS])
    noise = np.exp(THETA[-1] + DEVIATIONS)
    fourth = 0.0
    for m, end in enumerate(ends):
        rows = slice(end - len(USERS[m].y), end)
        residual, trace = noise[m] * alpha[rows], np.trace(inverse[rows, rows])
        np.testing.assert_allclose(slopes.residual[m], residual, atol=1e-8)
        np.testing.assert_allclose(slopes.freedom[m], noise[m] * trace, rtol=1e-7)
        np.testing.assert_allclose(slopes.ratio[m], alpha[rows] @ alpha[rows] / trace, rtol=1e-7)
        fourth += np.sum(residual**4) / np.mean(residual**2) ** 2
    assert slopes.kurtosis == pytest.approx(fourth / ends[-1])


@pytest.mark.parametrize("n", [0, 1, 15])
@pytest.mark.parametrize("deviation", [0.0, 0.7])
def test_prediction_is_that_of_the_joint_covariance(n, deviation):
    new, at = rows(n, 20), rows(10, 21)
    if n > 5:
        new.X[3, 0], new.X[4, 0] = 9.0, 1e4  # where no pilot user was
        at.X[0, 0], at.X[1, 0] = 9.3, 1e4
    at.X[2, 1] = -8.0
    levels = Levels.from_vector(THETA, LINES)
    model = TwoLevelModel.train(USERS, levels, DEVIATIONS)
    posterior = model.given(new, levels.noise * np.exp([deviation]), np.zeros(1))
    mean, variance, noise = posterior.moments(at.lines, at.X)
    expected = naive_prediction(THETA, new, deviation, at)
    np.testing.assert_allclose(mean, expected[0], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(variance, expected[1], rtol=0.0, atol=1e-8)
    assert noise == pytest.approx(levels.noise * np.exp(deviation))


@pytest.mark.parametrize("worth", [1.0, 0.4])
def test_an_unknown_noise_is_averaged_by_its_evidence(worth):
    new, at = rows(15, 20), rows(4, 21)
    levels = Levels.from_vector(THETA, LINES)
    model = TwoLevelModel.train(USERS, levels, DEVIATIONS)
    deviations, log_prior = np.array([-0.6, 0.1, 0.9]), np.array([-0.5, 0.0, -0.9])
    posterior = model.given(new, levels.noise * np.exp(deviations), log_prior, worth)

    def evidence(deviation):
        every = [*USERS, new]
        covariance, y = joint(THETA, every, np.append(DEVIATIONS, deviation)), np.concatenate([u.y for u in every])
        return -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(covariance)[1])

    weights = np.exp(log_prior + worth * np.array([evidence(deviation) for deviation in deviations]))
    weights /= weights.sum()
    np.testing.assert_allclose(posterior.weights, weights, rtol=1e-7)
    parts = [naive_prediction(THETA, new, deviation, at) for deviation in deviations]
    mean = sum(w * part[0] for w, part in zip(weights, parts, strict=True))
    variance = sum(w * (part[1] + (part[0] - mean) ** 2) for w, part in zip(weights, parts, strict=True))
    moments = posterior.moments(at.lines, at.X)
    np.testing.assert_allclose(moments[0], mean, atol=1e-8)
    np.testing.assert_allclose(moments[1], variance, atol=1e-8)
    assert moments[2] == pytest.approx(float(weights @ (levels.noise * np.exp(deviations))))
