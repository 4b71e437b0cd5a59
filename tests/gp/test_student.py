"""Student-t rows read as Normal ones."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t as student

from kerneltrail.gp.student import REACH, Drawing


@pytest.mark.parametrize("freedom", [2.5, 3.0, 4.7, 11.0, 200.0])
def test_moments_are_the_integrals(freedom):
    density = student(freedom).pdf
    inside = 2.0 * quad(density, 0.0, REACH)[0]
    squares = 2.0 * quad(lambda z: z**2 * density(z), 0.0, REACH)[0] + REACH**2 * (1.0 - inside)
    drawing = Drawing(freedom)
    assert drawing.inside == pytest.approx(inside, rel=1e-8)
    assert drawing.variance == pytest.approx(squares / inside**2, rel=1e-8)
    assert drawing.widening == pytest.approx(student(freedom).var() / drawing.variance, rel=1e-8)


def test_drawn_noise_has_the_variance_that_it_is_said_to_have():
    """400,000 draws: their variance is known to 0.3 %."""
    drawing, scale = Drawing(3.0), 0.7
    z = scale * np.random.default_rng(0).standard_t(3.0, 400_000)
    variance = drawing.variance * scale**2
    assert float(np.var(drawing.drawn(z, variance))) == pytest.approx(variance, rel=0.01)


def test_nearly_all_is_known_that_the_student_t_says():
    """Of a location: the information of the Student-t is (ν+1)/(ν+3) for a scale of 1, that of its variance 1/3."""
    drawing = Drawing(3.0)
    assert 0.9 < (1.0 / drawing.variance) / (4.0 / 6.0) < 1.0


def test_near_rows_keep_their_order_and_far_ones_stop():
    drawing = Drawing(3.0)
    r = np.linspace(-50.0, 50.0, 1001)
    drawn = drawing.drawn(r, 2.0)
    assert (np.diff(drawn) >= 0.0).all()
    np.testing.assert_allclose(drawn, -drawn[::-1])
    assert drawn.max() == pytest.approx(REACH * np.sqrt(2.0 / drawing.variance) / drawing.inside)
    assert drawing.drawn(np.array([0.01]), 2.0)[0] == pytest.approx(0.01 / drawing.inside)
