"""Evidence at the edges: degenerate rows, noise below rounding, hyperparameters and targets of any size."""

import numpy as np
import pytest

from kerneltrail.errors import NumericalError
from kerneltrail.gp import evidence, evidence_of, inputs_for, slope_of
from kerneltrail.kernels import layout_of, parse

from . import oracle
from .strategies import METHODS, TEXTS, Problem, true, user_of, vector


def finite_or_named(call, inputs, theta, method):
    """The result, all of it finite, or the message of an error that names user and kernel."""
    try:
        found = call(inputs, theta, method=method)
    except NumericalError as error:
        return None, str(error)
    assert np.isfinite(found.log).all()
    assert np.isfinite(getattr(found, "gradient", 0.0)).all()
    return found, inputs.label


DEGENERATE = {
    "one row": user_of(1),
    "two equal rows": user_of(X=[[0.5, 0.5]] * 2),
    "all rows equal": user_of(X=[[0.5, 0.5]] * 20),
    "duplicate rows": user_of(X=np.repeat(np.random.default_rng(0).uniform(-1, 1, (7, 2)), 5, axis=0)),
    "constant column": user_of(X=np.column_stack([np.full(25, 3.0), np.linspace(0, 1, 25)])),
    "constant target": user_of(25, y=np.full(25, 2.0)),
    "zero target": user_of(25, y=np.zeros(25)),
    "huge target": user_of(25, y=1e6 * np.random.default_rng(1).standard_normal(25)),
    "tiny covariates": user_of(X=1e-9 * np.random.default_rng(0).standard_normal((25, 2))),
    "a batch for every row": user_of(25, ends=tuple(range(1, 26))),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", TEXTS[1:])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_input_is_normal_input(case, text, method):
    user, theta = DEGENERATE[case], vector(text, lengthscale=0.3, noise=-1.0)
    found = evidence(user, parse(text), theta, method=method)
    np.testing.assert_allclose(found.log[0], true(user, text, theta), rtol=1e-9, atol=1e-8)
    slope = slope_of(inputs_for(user, parse(text)), theta, method=method)
    expected = oracle.precise_gradient(user, parse(text), theta)
    scale = max(1.0, np.abs(expected).max())  # of huge targets the gradients cancel to the last digits
    np.testing.assert_allclose(
        slope.gradient[0], expected, rtol=1e-5, atol=1e-5 if case != "huge target" else 1e-7 * scale
    )


@pytest.mark.parametrize("method", ["auto", "dense"])
@pytest.mark.parametrize("noise", [1e-6, 1e-9, 1e-12, 1e-14, 1e-18, 1e-20])
@pytest.mark.parametrize("text", ["SE[x]", "PER[x]", "LIN[x] + PER[x]", "LIN[x] + SE[x]", "LIN[x]", "LIN[x]*SE[x]"])
def test_noise_below_rounding_is_right(text, noise, method):
    """Each row five times, with targets that differ by the noise: a covariance would be singular in doubles."""
    user, theta = DEGENERATE["duplicate rows"], vector(text, noise=np.log(noise))
    rng = np.random.default_rng(0)
    level = user.X[:, 0] * (1.0 if text == "LIN[x]" else np.cos(user.X[:, 0]))  # what the kernel can follow
    user = user.with_y(level + np.sqrt(noise) * rng.standard_normal(user.rows))

    def exact(theta):
        if text == "LIN[x]":  # of rank one: singular however the rows are grouped
            return oracle.Rational(user, parse(text), theta).log_evidence
        return oracle.precise_grouped(user, parse(text), theta, 5)

    expected = exact(theta)
    # Rounding of the target relative to the noise; and of a covariance, where it was factorised.
    allowed = 1e-6 + 4e-14 / np.sqrt(noise) + (1e-14 / noise if noise > 1e-11 else 0.0)
    assert evidence(user, parse(text), theta, method=method).log[0, 0] == pytest.approx(expected, abs=allowed)
    inputs = inputs_for(user, parse(text))
    slope, message = finite_or_named(slope_of, inputs, theta, method)
    assert inputs.label in message
    if slope is None:  # a gradient is spoilt before an evidence is
        assert noise < 1e-9
        return
    assert slope.log[0] == pytest.approx(expected, abs=allowed)
    h = 1e-5
    near = 1e-3 + min(1e-14 / noise, 1e-2)  # what rounding leaves of a gradient that is not refused
    for k in range(len(theta)):
        ahead, behind = (exact(theta + s * h * np.eye(len(theta))[k]) for s in (1.0, -1.0))
        difference = (ahead - behind) / (2 * h)
        assert slope.gradient[0, k] == pytest.approx(difference, rel=near, abs=2e-2 + 100 * allowed), k


def test_unequal_targets_of_equal_rows_with_hardly_any_noise_are_next_to_impossible():
    user = DEGENERATE["duplicate rows"]
    for text in ("SE[x]", "PER[x]", "LIN[x] + PER[x]"):
        theta = vector(text, noise=np.log(1e-20))
        expected = oracle.precise_grouped(user, parse(text), theta, 5)
        assert expected < -1e20
        assert evidence(user, parse(text), theta).log[0, 0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("new_atoms")
@pytest.mark.parametrize("call", [evidence_of, slope_of])
def test_noise_below_rounding_is_refused_where_there_are_no_features(call):
    inputs = inputs_for(DEGENERATE["duplicate rows"], parse("MATERN52[x]"))
    call(inputs, [0.0, 0.0, np.log(1e-9)])
    with pytest.raises(NumericalError, match=r"MATERN52\[x\] for user 'ann'.*the noise variance is too small beside"):
        call(inputs, [0.0, 0.0, np.log(1e-14)])


def drowned(inputs, theta):
    """Largest prior variance over the noise, in more digits than a double's range."""
    problem = Problem(inputs, inputs.composition, np.atleast_2d(theta), None)
    return problem.signal_to_noise


def defined(text, theta):
    """Whether doubles know the kernel: not the phase of a tiny period, nor the rounding of a cosine over a tiny ℓ²."""
    names = layout_of(parse(text)).names
    return all(u > -10.0 for u, name in zip(theta, names, strict=True) if "PER" in name and "amplitude" not in name)


def right_or_named(text, inputs, theta, method):
    """One of the two calls for every row of `theta`: right where the model is defined, or refused by name.

    Returns whether a value was compared.
    """
    ratio = drowned(inputs, theta)
    compared = False
    for call in (evidence_of, slope_of):
        found, message = finite_or_named(call, inputs, theta, method)
        assert inputs.label in message
        if found is not None and ratio < 1e12 and defined(text, theta):
            expected = oracle.precise(inputs, inputs.composition, theta).astype(float)
            np.testing.assert_allclose(
                found.log.reshape(-1)[-1], expected[-1], rtol=1e-7 + 1e-15 * ratio, atol=1e-7 + 1e-13 * ratio
            )
            compared = True
        if found is None:  # nothing is refused that double precision can tell
            assert ratio > 1e8 or np.abs(theta).max() > 250 or method == "spectral", (theta, message)
    return compared


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", TEXTS)
def test_hyperparameters_at_the_end_of_the_numbers_give_the_right_value_or_an_error_by_name(text, method):
    """Warnings are errors in this suite, so none is let through either."""
    user = user_of(8)
    inputs = inputs_for(user, parse(text))
    compared = 0
    for k in range(inputs.layout.size):
        for u in (-800.0, -299.0, -100.0, -30.0, 30.0, 100.0, 299.0, 800.0):
            theta = vector(text)
            theta[k] = u
            if abs(u) < 800:
                compared += right_or_named(text, inputs, theta, method)
            elif inputs.layout.positive[k]:
                for call in (evidence_of, slope_of):
                    found, message = finite_or_named(call, inputs, theta, method)
                    assert found is None
                    assert inputs.label in message
    assert compared >= 3 * inputs.layout.size - (12 if method == "spectral" else 6)


@pytest.mark.parametrize("method", METHODS)
def test_all_hyperparameters_extreme_at_once(method):
    rng = np.random.default_rng(0)
    user = user_of(8)
    compared = 0
    for text in TEXTS:
        inputs = inputs_for(user, parse(text))
        for _ in range(15):
            theta = rng.uniform(-250, 250, inputs.layout.size)
            compared += right_or_named(text, inputs, theta, method)
    assert compared > 15


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e150, 1e170, 1e300])
def test_targets_past_all_numbers_are_refused_by_name(method, size):
    user = user_of(6, y=size * np.ones(6))
    for text in ("", "LIN[x]", "SE[x] + LIN[x]"):
        inputs = inputs_for(user, parse(text))
        for call in (evidence_of, slope_of):
            found, message = finite_or_named(call, inputs, vector(text), method)
            assert inputs.label in message
            assert (found is None) == (size > 1e150)
            assert found is None or (found.log < -1e290).all()
