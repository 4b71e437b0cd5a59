import numpy as np
import pytest
from scipy import stats

from kerneltrail.data import simulate
from kerneltrail.data.simulate.truth import covariance, draw_target
from kerneltrail.errors import DataError
from kerneltrail.kernels import ATOMS, Hyperparameters, Priors, parse

TEXT = "LIN[a]*PER[b] + SE[a] + SE[a]*SE[b]"


def hyperparameters(text: str = TEXT, seed: int = 0) -> Hyperparameters:
    composition = parse(text)
    return Hyperparameters(
        composition, tuple(Priors.synthetic().sample(composition, 1, np.random.default_rng(seed))[0])
    )


def test_covariance_is_the_sum_of_products_written_out() -> None:
    h = hyperparameters()
    X = np.random.default_rng(1).normal(size=(5, 2))
    lin, per, se = ATOMS["LIN"], ATOMS["PER"], ATOMS["SE"]
    product = "LIN[a]*PER[b]"
    expected = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            (a, b), (c, d) = X[i : i + 1].T, X[j : j + 1].T

            def value(name: str) -> np.ndarray:
                return np.array([h[name]])

            expected[i, j] = (
                h[f"{product}.amplitude"]
                * lin.covariance(a, c, value(f"{product}: LIN[a].location")).item()
                * per.covariance(
                    b, d, np.array([h[f"{product}: PER[b].lengthscale"], h[f"{product}: PER[b].period"]])
                ).item()
                + h["SE[a].amplitude"] * se.covariance(a, c, value("SE[a].lengthscale")).item()
                + h["SE[a]*SE[b].amplitude"]
                * se.covariance(a, c, value("SE[a]*SE[b]: SE[a].lengthscale")).item()
                * se.covariance(b, d, value("SE[a]*SE[b]: SE[b].lengthscale")).item()
            )
    np.testing.assert_allclose(covariance(h, X, ("a", "b")), expected, rtol=1e-12)
    np.testing.assert_allclose(covariance(h, X[:, ::-1], ("b", "a")), expected, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.3, 1e-300])
def test_sample_moments_agree_with_the_kernel(noise: float) -> None:
    """Sums of squares along random directions are χ²: 40 two-sided tests at 1e-6 each, false-alarm rate below 4e-5."""
    h = hyperparameters("LIN[a] + SE[a]")
    h = Hyperparameters.from_values(h.composition, {**h, "noise": noise})
    rng = np.random.default_rng(7)
    X = np.sort(rng.uniform(-2, 2, (12, 1)), axis=0)
    draws = np.array([draw_target(h, X, ("a",), rng) for _ in range(3000)])
    K = covariance(h, X, ("a",)) + noise * np.eye(12)
    for direction in rng.normal(size=(40, 12)):
        variance = direction @ K @ direction
        total = np.sum((draws @ direction) ** 2) / variance
        tail = stats.chi2.cdf(total, df=3000)
        assert min(tail, 1.0 - tail) > 5e-7


def test_a_seed_gives_the_same_user_and_another_seed_another() -> None:
    h = hyperparameters()
    first = simulate.user(h.composition, h, 20, 3)
    assert first == simulate.user(h.composition, h, 20, np.random.default_rng(3))
    assert first != simulate.user(h.composition, h, 20, 4)
    assert (first.covariates, first.ends, first.X.shape) == (("a", "b"), (20,), (20, 2))


def test_covariates_batches_and_noise_alone() -> None:
    h = hyperparameters("SE[b]")
    X = np.random.default_rng(0).normal(size=(6, 3))
    user = simulate.user(h.composition, h, X, 0, name="eve", covariates=("a", "b", "c"), ends=(2, 6))
    assert (user.name, user.covariates, user.ends) == ("eve", ("a", "b", "c"), (2, 6))
    assert np.array_equal(user.X, X)
    noise = hyperparameters("")
    assert simulate.user(parse(""), noise, 4, 0).covariates == ("x",)
    assert simulate.user(parse(""), noise, 0, 0).rows == 0


def test_what_is_refused() -> None:
    h = hyperparameters("SE[b]")
    with pytest.raises(DataError, match=r"those of SE\[b\], not of LIN\[b\]"):
        simulate.user(parse("LIN[b]"), h, 3, 0)
    with pytest.raises(DataError, match="no column 'b'"):
        simulate.user(h.composition, h, [[1.0]], 0, covariates=("a",))
    with pytest.raises(DataError, match=r"shape \(rows, 1\) for b, got \(2,\)"):
        simulate.user(h.composition, h, [1.0, 2.0], 0)
