"""The page: every section with its words, and what a browser makes of it, wide, narrow and on paper."""

from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from re import DOTALL, findall, sub

import axe_core_python
import numpy as np
import pytest

from kerneltrail.trial.analysis.page import analysis_page, how_computed
from kerneltrail.trial.analysis.personal import judged, measured, measures_of, recorded
from report import browser

HEADINGS = [
    "What acting changed", "Did the policy personalise?", "How participants fared", "Who took part", "What is missing",
    "Did the trial do what its protocol says?", "Kernels over time", "How it was computed",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(record, analysis, tmp_path_factory):
    measures = measures_of(["hour"])
    null = np.random.default_rng(0).normal(size=(30, len(measures)))
    personal = judged(measures, measured(recorded(record), measures), null, 0.5, 0)
    path = tmp_path_factory.mktemp("page") / "analysis.html"
    path.write_text(analysis_page(replace(analysis, personal=personal)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    browser.needed()
    running = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


def test_words_come_first_and_everything_is_there(page):
    text = page.read_text(encoding="utf-8")
    assert [text.index(f"<h2>{heading}</h2>") for heading in HEADINGS] == sorted(
        text.index(f"<h2>{heading}</h2>") for heading in HEADINGS
    )
    assert text.index("acting changed mood by") < text.index("<img")
    assert "it is not for people who must stay blinded" in text
    assert "In 30 simulated trials in which acting does the same for everybody" in text
    assert "nan" not in text.lower().replace("data:image", "").split("<img")[0]


def test_missing_outcomes_of_the_section_and_of_the_estimate_are_bridged(page, record, analysis):
    text = " ".join(page.read_text(encoding="utf-8").split())
    left_out = analysis.effects.primary.fitted.missing["outcome"]
    missing = {gap.group: gap.decisions - gap.observed for gap in analysis.gaps}["all"]
    assert 0 < missing < left_out
    assert f"leaves out all {left_out} decisions without one at which somebody could act: these {missing}, and" in text
    assert f"and {left_out - missing} of the last 24 hours of the record" in text
    rows = [each for each in record.points if each.available and each.outcome is None]
    assert left_out == len(rows)


def test_tables_have_headings_for_people_and_covariates_their_labels(page, analysis):
    text = page.read_text(encoding="utf-8")
    heads = [unescape(sub("<[^>]*>", "", each)) for each in findall(r"<th[^>]*>(.*?)</th>", text, DOTALL)]
    assert {"degrees of freedom", "looked for and not found", "share that acted", "actions drawn"} <= set(heads)
    assert not [each for each in heads if "_" in each or each in ("p", "low", "high", "of", "numerator", "rows")]
    called = replace(analysis.record, labels={"hour": "hour of the day"})
    table = next(each for each in replace(analysis, record=called).tables() if each.name == "moderators")
    assert {row[0] for row in table.shown()[1]} >= {"hour of the day"}
    assert "change per unit of hour of the day" in [row[1] for row in table.shown()[1]]
    assert "hour of the day" not in table.csv()
    assert table.csv().startswith("moderator,term,estimate,lower,upper,standard_error,p_value,degrees")


def test_of_a_running_trial_it_says_so_first(analysis):
    text = analysis_page(analysis, running=datetime(2026, 3, 9, 12, 30, tzinfo=UTC))
    title = analysis.record.protocol.title
    assert f"<h1>{title}: so far</h1>" in text
    assert "This is an interim look: the trial was still running on 2026-03-09 12:30 UTC" in text.split("<h2>")[0]
    ended = analysis_page(analysis)
    assert f"<h1>{title}: after the trial</h1>" in ended
    assert "interim" not in ended


def test_without_simulated_trials_it_says_how_to_ask_for_them(analysis):
    text = analysis_page(analysis, "A heading of one's own")
    assert "<h1>A heading of one&#39;s own</h1>" in text
    assert "--resamples 200</code>" in text
    assert "`" not in text.split("<body")[1]
    assert "The degrees of freedom are those of the t distribution" in text


def test_of_a_pooled_policy_it_says_that_errors_are_approximate(analysis):
    stated = analysis.record.protocol.model_copy(update={"pooling": "pooled"})
    pooled = replace(analysis, record=replace(analysis.record, protocol=stated))
    assert not any("approximate" in text for text in how_computed(analysis))
    assert "participants are not independent" in how_computed(pooled)[-1]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_a_network(page, opened, width):
    opened.size(width)
    opened.open(page)
    assert opened.problems() == []
    assert opened.run("document.documentElement.scrollWidth") <= width
    loaded = "Array.from(document.images).every(image => image.complete && image.naturalWidth > 0)"
    assert opened.run(f"new Promise(done => setTimeout(() => done({loaded}), 200))")
    assert opened.run("document.images.length") == 7
    assert opened.run("Array.from(document.images).every(image => image.alt.length > 20)")


def test_on_paper_what_is_behind_a_click_is_open(page, opened):
    opened.size(1280)
    opened.open(page)
    closed = opened.run("document.documentElement.scrollHeight")
    opened.media("print")
    try:
        seen = "Array.from(document.querySelectorAll('details table')).every(each => each.checkVisibility())"
        assert opened.run(seen)
        assert opened.run("document.querySelectorAll('details table').length") >= 6
        assert opened.run("document.documentElement.scrollHeight") > closed
        opened.size(688)  # A4 less its margins
        cut = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 689)"
        assert opened.run(f"{cut}.map(e => e.tagName + ' ' + e.textContent.slice(0, 40))") == []
        assert opened.pdf(paperWidth=8.27, paperHeight=11.7).startswith(b"%PDF-")
    finally:
        opened.media()


def test_tools_for_accessibility_have_nothing_to_say(page, opened):
    axe = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    opened.size(390)
    opened.open(page)
    opened.run(axe + ";0")
    found = opened.run("axe.run().then(done => done.violations.map(each => each.id + ': ' + each.help))")
    assert found == []
