"""The figure of realised shares shows what the tenths say, under the words of who looks."""

import numpy as np
import pytest

from kerneltrail.trial.ratio import tenths
from kerneltrail.trial.realised import Realised, draw_realised

from .test_ratio import point


@pytest.fixture
def split() -> list:
    chances = np.linspace(0.1, 0.9, 200)
    sent = np.random.default_rng(0).random(200) < chances
    return tenths([point(chance, int(action)) for chance, action in zip(chances, sent, strict=True)], level=0.9)


def test_points_stand_at_mean_and_share_with_their_intervals(split):
    figure = draw_realised(Realised.of(split), width=7.0, doing="acting", done="acted")
    (ax,) = figure.axes
    (bars,) = ax.containers
    places = bars.lines[0].get_xydata()
    np.testing.assert_allclose(places, [(each.mean, each.share.mean) for each in split])
    segments = bars.lines[2][0].get_segments()
    np.testing.assert_allclose([part[:, 1] for part in segments], [(each.share.low, each.share.high) for each in split])
    assert ax.get_xlabel() == "mean probability of acting"
    assert ax.get_ylabel() == "share that acted"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["as the probabilities say", "acted, with 90 % interval"]
