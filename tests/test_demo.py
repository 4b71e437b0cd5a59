"""The demonstration: it runs, its page stands alone, and what it claims is computed."""

import re

import pytest

from kerneltrail import demo


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "deep"
    said = []
    return demo.run(out, seed=0, tick=said.append), said


def test_every_step_is_announced(made):
    assert len(made[1]) == demo.STEPS


def test_the_page_and_its_pictures_are_there_and_nothing_else(made):
    path, _ = made
    names = {file.name for file in path.parent.iterdir()}
    assert names == {"index.html", "fit.png", "parts.png", "period.png", "effects.png", "forecast.png"}
    assert all((path.parent / name).stat().st_size < 250_000 for name in names - {"index.html"})


def test_the_page_stands_alone_and_has_words_for_every_picture(made):
    text = made[0].read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|srcset|href)="([^"]{0,40})', text)
    assert len(sources) == 10  # five figures, wide and narrow
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert len(re.findall(r'alt="[^"]{20,}"', text)) == 5


def test_the_true_kernel_is_chosen_and_said_in_words(made):
    text = made[0].read_text(encoding="utf-8")
    assert '<tr class="marked"><th scope="row">LIN[log_steps30pre] + SE[hour] (the truth)</th>' in text
    assert "similar to what was observed at a similar hour" in text
    assert "repeats with period 2.97" in text  # truth 2.98


def test_other_seeds_work(tmp_path):
    page = demo.run(tmp_path, seed=3)
    assert page.exists()
