import numpy as np
import pytest

from kerneltrail.data import Scaler, in_data_units, in_scaled_units
from kerneltrail.data.simulate.truth import covariance
from kerneltrail.kernels import Hyperparameters, Priors, parse

SCALER = Scaler(("hour", "steps"), (8.0, -3.0), (20.0, 900.0), shift=2.0, scale=3.0)


@pytest.mark.parametrize(
    "text",
    ["", "LIN[hour]", "PER[steps]", "SE[hour] + LIN[hour]*LIN[steps]*PER[hour]", "LIN[hour]*LIN[hour] + SE[steps]"],
)
def test_the_kernel_is_the_same_in_both_units(text: str) -> None:
    rng = np.random.default_rng(0)
    composition = parse(text)
    scaled = Hyperparameters(composition, tuple(Priors.heartsteps().sample(composition, 1, rng)[0]))
    X = SCALER.inverse(rng.uniform(-0.2, 1.3, (9, 2)))
    data = in_data_units(scaled, SCALER)
    expected = SCALER.inverse_variance(covariance(scaled, SCALER.transform(X), SCALER.covariates))
    np.testing.assert_allclose(covariance(data, X, SCALER.covariates), expected, rtol=1e-9, atol=1e-12)
    assert data["noise"] == pytest.approx(9.0 * scaled["noise"])
    np.testing.assert_allclose(in_scaled_units(data, SCALER).vector, scaled.vector, rtol=1e-12, atol=1e-12)


def test_lengths_locations_and_the_periodic_lengthscale() -> None:
    text = "PER[hour] + LIN[hour]"
    scaled = Hyperparameters.from_values(
        parse(text),
        {
            "LIN[hour].amplitude": 1.0,
            "LIN[hour].location": 0.5,
            "PER[hour].amplitude": 1.0,
            "PER[hour].lengthscale": 0.7,
            "PER[hour].period": 0.25,
            "noise": 1.0,
        },
    )
    data = in_data_units(scaled, Scaler(("hour",), (8.0,), (20.0,)))
    assert data["LIN[hour].location"] == 14.0
    assert data["PER[hour].period"] == pytest.approx(3.0)
    assert data["PER[hour].lengthscale"] == pytest.approx(0.7), "it measures angles, not hours"
    assert data["LIN[hour].amplitude"] == pytest.approx(1.0 / 144.0)
