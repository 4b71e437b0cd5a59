"""Users on the page, in a headless Chromium: rows in time, effects, what acting adds, and what is behind a click."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest


def test_rows_in_time_have_dates_and_no_line_joins_them(browser, brushing):
    browser.size(1280)
    browser.open(brushing)
    ticks = browser.run("[...document.querySelectorAll('[data-fit] .axes text')].map(t => t.textContent)")
    assert [tick for tick in ticks if re.fullmatch(r"\d+ Mar", tick)]
    assert "time" in ticks
    assert browser.run("document.querySelectorAll('[data-fit] path[stroke-linejoin]').length") == 0
    bars = browser.run(
        "[...document.querySelectorAll('[data-fit] path')].map(p => p.getAttribute('d').split('M').length - 1)"
    )
    assert bars.count(28) == 4  # two intervals, the fit and the row itself, for each of 28 rows


def test_a_long_date_at_the_right_end_is_not_cut_off(browser, brushing):
    browser.size(390)
    browser.open(brushing)
    months = [1_738_368_000, 1_746_057_600]  # February and May 2025 begin, the latter where the axis ends
    layers = [{"kind": "dots", "x": months, "y": [0.0, 1.0]}]
    options = {"label": "", "layers": layers, "xrange": months, "dates": True, "width": 360}
    drawn = f"""(() => {{
      const svg = document.body.appendChild(kerneltrail.plot({json.dumps(options)}));
      const whole = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter(text => text.textContent.endsWith("2025"))
        .map(text => [text.textContent, whole.right - text.getBoundingClientRect().right]);
    }})()"""
    room = dict(browser.run(drawn))
    assert "May 2025" in room
    assert min(room.values()) >= 0


def test_two_levels_are_two_points_with_intervals_and_a_product_is_a_table(browser, brushing):
    browser.size(1280)
    browser.open(brushing)
    named = (
        "[...document.querySelectorAll('[data-effects] figure')].find(f => f.querySelector('h4').textContent === '{}')"
    )
    levels = named.format("part")
    ticks = browser.run(f"[...({levels}).querySelectorAll('.axes text')].map(t => t.textContent)")
    assert "morning" in ticks
    assert "evening" in ticks
    assert browser.run(f"({levels}).querySelectorAll('path[stroke-linejoin]').length") == 0
    assert browser.run(f"({named.format('day')}).querySelectorAll('path[stroke-linejoin]').length") == 1
    together = named.format("day and part together")
    assert browser.run(f"({together}).querySelectorAll('rect').length") == 10
    assert "morning" in browser.run(f"({together}).querySelector('svg').textContent")
    assert "part" in browser.run(f"({together}).querySelector('figcaption').textContent")


def test_what_acting_adds_is_drawn_on_average_and_along_every_feature(browser, several):
    browser.size(1280)
    browser.open(several)
    titles = browser.run("[...document.querySelectorAll('[data-treatment] h4')].map(h => h.textContent)")
    assert titles == ["on average", "hour"]
    assert browser.run("[...document.querySelectorAll('[data-treatment] figcaption')].every(c => c.textContent)")
    assert browser.run("document.querySelector('#treatment img').offsetHeight") > 50


def test_words_stand_beside_the_picture_on_a_laptop_and_below_it_on_a_telephone(browser, brushing):
    place = "(n => { const b = document.querySelector(n).getBoundingClientRect(); return [b.left, b.right, b.top]; })"
    for width, beside in ((1280, True), (390, False)):
        browser.size(width)
        browser.open(brushing)
        fit, words = browser.run(f"{place}('[data-fit]')"), browser.run(f"{place}('[data-found]')")
        assert (words[0] > fit[1]) is beside
        assert (words[2] > fit[2] + 100) is not beside


def test_what_is_behind_a_click_opens_from_the_keyboard_and_for_printing(browser, brushing):
    browser.size(1280)
    browser.open(brushing)
    browser.run("document.querySelector('#everybody summary').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('#everybody details').open")
    browser.press("Tab")  # a table that may scroll sideways can be reached
    assert browser.run("document.activeElement.getAttribute('role')") == "region"
    assert "gradient" in browser.run("getComputedStyle(document.activeElement).backgroundImage")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.run("[...document.querySelectorAll('details')].every(d => d.open)")
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run("[...document.querySelectorAll('details')].filter(d => d.open).length") == 1


BOXES = (
    "[...document.querySelectorAll('{}')].map(e => e.getBoundingClientRect())"
    ".map(b => [b.left, b.right, b.top, b.bottom])"
)


def test_below_the_picture_the_effects_take_the_whole_breadth(browser, brushing, several):
    browser.size(1280)
    for page in (brushing, several):
        browser.open(page)
        ((left, right, _, bottom),) = browser.run(BOXES.format("[data-findings] .first"))
        panels = browser.run(BOXES.format("[data-effects] .effect"))
        assert (panels[0][0], panels[-1][1]) == pytest.approx((left, right), abs=1)
        assert 0 < panels[0][2] - bottom < 50
        assert len({panel[2] for panel in panels}) == 1
    # What acting adds has few panels here, and its words stand beside the pictures.
    (picture, words) = (browser.run(BOXES.format(f"[data-treatment] {name}"))[0] for name in ("svg", "figcaption"))
    assert words[0] > picture[1]


EFFECT = {
    "title": "carbs", "xlabel": "carbs (g)", "column": 0, "sentence": "", "x": [0, 56, 69, 75], "low": [-2, 2, 3, 3],
    "names": ["0", "56", "69", "75"], "mean": [-1, 4, 5, 6], "high": [0, 6, 8, 9], "fitted": [-1, 4, 5, 6],
}  # fmt: skip


def test_levels_stand_side_by_side_whatever_lies_between_their_values(browser, brushing):
    browser.size(390)
    browser.open(brushing)
    step = {"effects": [EFFECT], "interactions": [], "rest": [0.5, -0.5, 0.5], "rows": 3}
    drawn = f"""(() => {{
      const [card] = kerneltrail.effects.effects({{ columns: [[0, 69, 75]] }}, {json.dumps(step)}, "glucose");
      document.body.append(card);
      const box = (one) => one.getBoundingClientRect();
      const texts = [...card.querySelectorAll(".axes line.tick + text")];
      const starts = (path) => path.getAttribute("d").match(/M[^,]+/g).map(at => Number(at.slice(1)));
      const [left, broad] = ["x", "width"].map(name => Number(card.querySelector("clipPath rect").getAttribute(name)));
      return {{
        ends: [left, left + broad],
        paths: [...card.querySelectorAll("path")].map(starts),
        texts: texts.map(text => [box(text).left, box(text).right]),
      }};
    }})()"""
    found = browser.run(drawn)
    assert len(found["texts"]) == 4
    assert all(right + 10 < left for (_, right), (left, _) in pairwise(found["texts"]))
    rows, bars, dots = found["paths"]
    assert bars == dots
    gap = bars[1] - bars[0]
    assert np.diff(bars) == pytest.approx([gap] * 3, abs=0.2)
    assert min(bars[0] - found["ends"][0], found["ends"][1] - bars[-1]) > 0.5 * gap
    assert [min(range(4), key=lambda level: abs(bars[level] - row)) for row in rows] == [0, 2, 3]
    assert max(abs(bars[level] - row) for level, row in zip((0, 2, 3), rows, strict=True)) < 0.2 * gap


DAY = 86_400


@pytest.mark.parametrize("length", [0.05, 0.2, 0.5, 1, 2, 5, 8, 10, 14, 17, 20, 30, 45, 90, 200, 400, 800, 1500])
@pytest.mark.parametrize("width", [360, 720])
def test_an_axis_of_times_has_three_ticks_or_more_that_keep_apart(browser, brushing, length, width):
    browser.size(2 * width)
    browser.open(brushing)
    start = 1_741_000_000
    ends = [start, start + round(length * DAY)]
    layers = [{"kind": "dots", "x": ends, "y": [100.0, 200.0]}]
    options = {"label": "", "layers": layers, "dates": True, "width": width}
    drawn = f"""(() => {{
      const svg = document.body.appendChild(kerneltrail.plot({json.dumps(options)}));
      svg.style.width = "{width}px";
      return [...svg.querySelectorAll(".axes line.tick + text")].map(text => text.getBoundingClientRect())
        .map(b => [b.left, b.right]);
    }})()"""
    found = browser.run(drawn)
    assert len(found) >= 3
    assert min(left - right for (_, right), (left, _) in pairwise(found)) > 2


def test_on_a_telephone_the_interval_stands_with_its_estimate(browser, brushing, several):
    browser.size(390)
    for page in (brushing, several):
        browser.open(page)
        browser.run("document.querySelectorAll('#everybody details').forEach(d => { d.open = true; })")
        ((_, edge, _, _),) = browser.run(BOXES.format("#everybody .wide"))
        cells = browser.run(BOXES.format("#everybody td:nth-child(4)"))
        assert max(right for _, right, _, _ in cells) < edge
        texts = browser.run("[...document.querySelectorAll('#everybody td:nth-child(4)')].map(c => c.textContent)")
        assert all(re.fullmatch(r"\S+ \(\S+\sto\s\S+\)|–", text) for text in texts)


def test_on_a_telephone_a_long_name_of_a_covariate_takes_three_lines_at_most(browser, brushing):
    browser.size(390)
    browser.open(brushing)
    browser.run("document.querySelectorAll('#everybody details').forEach(d => { d.open = true; })")
    cell = "document.querySelector('#everybody tbody td')"
    browser.run(f"{cell}.textContent = 'brushing of the week before'")
    lines = browser.run(
        f"(() => {{ const range = document.createRange(); range.selectNodeContents({cell}); "
        "return new Set([...range.getClientRects()].map(b => Math.round(b.top))).size; })()"
    )
    assert lines <= 3
