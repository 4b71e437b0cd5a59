"""The page about a model, opened in a headless Chromium: what a reader does must work, and nothing may be fetched."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kerneltrail.data import simulate
from kerneltrail.kernels import Pool
from kerneltrail.report.effect_words import effect_sentence
from kerneltrail.report.model_page import Comparison, follow_users, trail_page
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings
from trajectory.small import rows, small_model

A4, LETTER = 8.27, 8.5
MARGINS = 2 * 14 / 25.4
"""Inches, as in the style sheet."""

RESULTS = {
    "metrics": [
        {"method": method, "t": t, "users": 6, "rmse": 2.7 + 0.1 * m - 0.02 * t, "rmse_low": 2.5, "rmse_high": 2.9}
        for m, method in enumerate(("trajectory", "cks", "shrinkage")) for t in (1, 2, 3)
    ],
    "paired": [
        {"method": "trajectory", "against": "cks", "t": t, "metric": "rmse", "mean": -0.1, "low": -0.2,
         "high": 0.1 * t - 0.15}
        for t in (1, 2, 3)
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def simulated():
    simulation = simulate.paper(train=4, test=2, seed=0, batches=(4, 8, 24))
    settings = Settings(chains=2, sweeps=32, check=8, largest=2, maps=MapSettings(starts=1, screen=4))
    model = fit(simulation.train, pool=Pool.of("LIN[x]", "PER[x]", "SE[x]"), settings=settings, workers=1)
    return model, follow_users(model, [*simulation.train.raw[:1], *simulation.test.raw])


@pytest.fixture(scope="module")
def page(simulated, tmp_path_factory):
    """One covariate, pilot and new users, methods compared."""
    path = tmp_path_factory.mktemp("page") / "index.html"
    model, users = simulated
    path.write_text(trail_page(None, model, users, Comparison.from_results(RESULTS)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A model alone."""
    path = tmp_path_factory.mktemp("page") / "bare.html"
    path.write_text(trail_page(None, small_model()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A target in the millions, one that hardly varies, and somebody with a single row."""
    path = tmp_path_factory.mktemp("page") / "large.html"
    millions = rows("millions", seed=1).with_y(3e6 * rows("millions", seed=1).y)
    still = rows("still", seed=2).with_y(np.full(12, 0.25))
    one = rows("one row", n=1, seed=3)
    path.write_text(
        trail_page(None, small_model(), follow_users(small_model(), [millions, still, one])), encoding="utf-8"
    )
    return path


PAGES = ("page", "several", "bare", "large", "brushing")
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
"""Opens all that stands behind a click."""
OUTSIDE = """
[...document.querySelectorAll('.plot text')].filter(text => {
  const [a, b] = [text, text.closest('svg')].map(e => e.getBoundingClientRect());
  return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
}).map(text => text.textContent)"""
"""Labels of plots that are cut."""
SPILT = """
[...document.querySelectorAll('.drawing .node')].filter(node => {
  const [a, b] = ['text', 'rect'].map(name => node.querySelector(name).getBoundingClientRect());
  return a.left < b.left || a.right > b.right || a.top < b.top || a.bottom > b.bottom;
}).map(node => node.textContent)"""
"""Names of kernels that do not fit their boxes."""
CHOOSE = (
    "(s => {{ s.selectedIndex = {}; s.dispatchEvent(new Event('change')); }})(document.querySelector('[data-user]'))"
)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_complaint_draws_the_graph_and_fits_the_screen(browser, request, name, width):
    browser.size(width)
    browser.open(request.getfixturevalue(name))
    assert browser.problems() == []
    shown = browser.run(
        "[...document.querySelectorAll('.stage svg')].filter(s => s.getBoundingClientRect().width > 100)"
        ".map(s => s.querySelectorAll('.node').length)"
    )
    assert len(shown) == 1
    assert shown[0] >= 2
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.run(OPEN)
    assert browser.run("document.documentElement.scrollWidth") <= width
    for place in range(browser.run("document.querySelector('[data-user]').length")):
        browser.run(CHOOSE.format(place))
        assert browser.run(OUTSIDE) == []
    assert browser.run(SPILT) == []
    assert browser.run("document.querySelector('[data-words] li').textContent.length") > 20


def test_a_node_that_is_clicked_shows_its_words_and_who_passed(browser, bare):
    browser.size(1280)
    browser.open(bare)
    model = small_model()
    for number, node in enumerate(model.nodes, start=1):
        browser.click(f"svg.wide-only [data-node='{number}']")
        shown = browser.run(
            "[...document.querySelectorAll('.card')].filter(c => c.offsetHeight > 0).map(c => c.innerText).join('|')"
        )
        assert "|" not in shown
        assert node.composition.text in shown
        assert "Mood will" in shown
        assert "noise" in shown
        for user in node.users:
            assert user in shown
        pressed = browser.run(
            "[...document.querySelectorAll('svg.wide-only [aria-pressed=true]')].map(n => n.dataset.node)"
        )
        assert pressed == [str(number)]
    assert browser.problems() == []


def test_the_keyboard_reaches_the_boxes_opens_and_closes_cards_and_zooms(browser, bare):
    browser.size(1280)
    browser.open(bare)
    browser.run("document.querySelector('.stage').focus()")
    before = browser.run("document.querySelector('svg.wide-only').getAttribute('viewBox')")
    browser.press("+")
    assert browser.run("document.querySelector('svg.wide-only').getAttribute('viewBox')") != before
    browser.press("0")
    assert browser.run("document.querySelector('svg.wide-only').getAttribute('viewBox')") == before
    browser.press("Tab")  # the root
    browser.press("Tab")
    browser.press("Tab")
    assert browser.run("document.activeElement.dataset.node") == "2"
    browser.press("Enter")
    assert browser.run("document.activeElement.dataset.card") == "2"
    browser.press("Escape")
    assert browser.run("[...document.querySelectorAll('.card')].every(c => c.offsetHeight === 0)")
    assert browser.run("document.activeElement.dataset.node") == "2"


def test_the_buttons_zoom_and_a_drag_moves_but_chooses_nothing(browser, bare):
    browser.size(1280)
    browser.open(bare)
    view = "document.querySelector('svg.wide-only').getAttribute('viewBox').split(' ').map(Number)"
    whole = browser.run(view)
    browser.click("[data-zoom=in]")
    near = browser.run(view)
    assert near[2] == pytest.approx(whole[2] / 1.4)
    browser.click("svg.wide-only [data-node='1']")
    x, y = browser.run(
        "(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('.stage').getBoundingClientRect())"
    )
    browser.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 30, y=y, button="left", buttons=1)
    browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=x - 30, y=y, button="left", clickCount=1)
    assert browser.run(view)[0] > near[0]
    assert browser.run("document.querySelector('.card:not([hidden])').dataset.card") == "1"
    browser.click("[data-zoom=fit]")
    assert browser.run(view) == whole
    x, y = browser.run("(b => [b.x + 30, b.y + 30])(document.querySelector('.stage').getBoundingClientRect())")
    wheel = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -100}
    browser.call("Input.dispatchMouseEvent", **wheel)
    assert browser.run(view) == whole  # a plain wheel scrolls the page
    browser.run("new Promise(requestAnimationFrame)")
    browser.run(
        "document.querySelector('.stage').dispatchEvent(new WheelEvent('wheel', {deltaY: -100, ctrlKey: true, "
        "cancelable: true, bubbles: true}))"
    )
    assert browser.run(view)[2] < whole[2]


def test_a_user_is_followed_batch_by_batch(browser, page, simulated):
    model, users = simulated
    browser.size(1280)
    browser.open(page)
    one = users[0]
    browser.click("[data-expert] > summary")
    assert browser.run("document.querySelector('[data-user]').selectedOptions[0].textContent") == one.user.name
    assert browser.run("document.querySelector('[data-standing]').textContent") == "batch 3 of 3, 36 rows"
    browser.run("document.querySelector('[data-batch]').focus()")
    browser.press("ArrowLeft")
    browser.press("ArrowLeft")
    assert browser.run("document.querySelector('[data-standing]').textContent") == "batch 1 of 3, 4 rows"
    assert browser.run("document.querySelector('[data-step=\"-1\"]').disabled")
    for t, step in enumerate(one.steps):
        words = browser.run("document.querySelector('[data-words]').innerText")
        assert words.startswith(f"After {step.rows} rows: {step.composition.text}")
        assert step.words[0] in words
        dots = browser.run(
            "document.querySelector('[data-fit] svg path[stroke=\"#222222\"]').getAttribute('d').split('M').length - 1"
        )
        assert dots == step.rows
        assert browser.run("document.querySelectorAll('[data-parts] svg').length") == len(step.parts)
        said = browser.run("[...document.querySelectorAll('[data-effects] figcaption')].map(c => c.textContent)")
        assert [text.replace("\u00a0", " ") for text in said] == [
            effect_sentence(effect, model.schema) for effect in step.findings.effects
        ]
        assert browser.run("document.querySelector('[data-found]').textContent").endswith(one.user.name)
        assert browser.run("document.querySelector('[data-lead]').textContent") == step.lead
        nodes = [0, *(1 + [n.composition for n in model.nodes].index(s.composition) for s in one.steps[: t + 1])]
        on = browser.run(
            "[...document.querySelectorAll('[data-mini] svg.wide-only .edge.on')].map(e => e.dataset.edge)"
        )
        assert set(on) == {f"{a} {b}" for a, b in pairwise(nodes)}
        if t + 1 < len(one.steps):
            browser.click('[data-step="1"]')
    browser.run(CHOOSE.format(1))
    assert "How probable each kernel is" in browser.run("document.querySelector('[data-words]').innerText")
    browser.click("[data-strip] button")
    assert browser.run("document.querySelector('[data-standing]').textContent") == "batch 1 of 3, 4 rows"
    assert browser.problems() == []


def test_a_step_that_nobody_took_is_dashed_and_keeps_off_the_counts(browser, tmp_path):
    model = small_model()
    one = follow_users(model, [rows("new", seed=4)])[0]
    nodes = [node.composition for node in model.nodes]  # from the second to the third no pilot user went
    jumping = replace(one, steps=tuple(replace(s, composition=c) for s, c in zip(one.steps, nodes, strict=True)))
    path = tmp_path / "jump.html"
    path.write_text(trail_page(None, model, [jumping]), encoding="utf-8")
    browser.size(1280)
    browser.open(path)
    drawn = "document.querySelector('[data-mini] svg.wide-only')"
    assert browser.run(f"{drawn}.querySelectorAll('.jump').length") == 1
    # The counts' white paper is drawn after the dashes, and lets nothing through.
    later = f"[...{drawn}.querySelectorAll('.jump ~ .count')]"
    assert browser.run(f"{later}.length === {drawn}.querySelectorAll('.count').length")
    opaque = "[c, c.querySelector('rect')].every(e => getComputedStyle(e).opacity === '1')"
    assert browser.run(f"{later}.every(c => {opaque})")
    faint = browser.run(f"{later}.map(c => getComputedStyle(c.querySelector('text')).opacity)")
    assert set(faint) == {"0.3", "1"}  # those on the path stand out
    assert browser.problems() == []


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_everything_is_shown_and_nothing_is_cut(browser, request, name):
    browser.size(round((A4 - MARGINS) * 96))
    browser.open(request.getfixturevalue(name))
    browser.media("print")
    browser.run(OPEN)
    try:
        room = browser.run("document.documentElement.clientWidth")
        cut = browser.run(
            "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('svg') && "
            f"e.getBoundingClientRect().right > {room} + 1).map(e => e.tagName + '.' + e.className)"
        )
        assert cut == []
        cards = "[...document.querySelectorAll('.card:not(.root)')]"
        assert browser.run(f"{cards}.every(c => c.offsetHeight > 0)")
        assert browser.run("document.querySelector('.controls').offsetHeight") == 0
    finally:
        browser.media()
    for paper in (A4, LETTER):
        pdf = browser.pdf(paperWidth=paper, paperHeight=11.0, preferCSSPageSize=False)
        assert pdf.startswith(b"%PDF")
        boxes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf))
        assert {round(float(wide) / 72, 1) for wide, _ in boxes} == {round(paper, 1)}


def test_without_scripts_the_graph_the_words_and_the_fits_are_there(browser, page, simulated):
    browser.size(1280)
    browser.open(page, scripts=False)
    try:
        tree = browser.call("DOMSnapshot.captureSnapshot", computedStyles=["display"])
        texts = " ".join(tree["strings"])
        for node in simulated[0].nodes:
            assert node.composition.text in texts
        shown = browser.run("[...document.querySelectorAll('.card')].filter(c => c.offsetHeight > 0).length")
        assert shown == len(simulated[0].nodes) + 1
        assert browser.run("document.querySelector('.static img').offsetHeight") > 100
        said = browser.run("document.querySelector('.static .said').innerText").replace("\u00a0", " ")
        one = simulated[1][0]
        assert effect_sentence(one.findings.effects[0], simulated[0].schema) in said
        assert browser.run("document.querySelector('.explorer').offsetHeight") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_less_motion_where_that_is_asked_for(browser, bare):
    browser.size(390)
    browser.open(bare)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    browser.run("window.scrollTo(0, 0)")
    browser.run("document.querySelector('svg.narrow-only [data-node=\"3\"]').dispatchEvent(new MouseEvent('click'))")
    top = browser.run("document.querySelector('.card:not([hidden])').getBoundingClientRect().top")
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert top < 800  # there at once
