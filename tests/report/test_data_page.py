"""The page about a table: escaped, in words, and readable on a desk and on a telephone."""

import pytest

from data.checks.study import look, put, study
from kerneltrail.data import Cohort, DataCheck
from kerneltrail.report.data_page import data_page
from report.browser import Browser, needed
from report.test_page import NASTY, Reader

LEVELS = ("home", "work & more", "<b>other</b>")


@pytest.fixture(scope="module")
def checked() -> DataCheck:
    rows = put(put(study(), "temp", (3, 70, 200), -999), "mood", (9,), None)
    rows = put({**rows, "place": [LEVELS[i % 3] for i in range(480)]}, "pulse", (8,), "fast")
    return look(rows, covariates=("hour", "temp", "pulse", "place"), levels={"place": LEVELS}, units={"temp": "°C"})


def test_it_says_all_that_the_terminal_says(checked):
    reader = Reader(data_page(checked))
    text = " ".join("".join(reader.text).split())
    for finding in checked.findings:
        assert finding.message[1:] in text
        assert finding.advice in text
    assert "What cannot be used" in text
    assert "What is probably a mistake" in text
    assert "temp (3 far)" not in text  # that is drawn
    assert ("alt", "Histograms of mood, hour, temp, pulse, place, sent, free, chance") in reader.attributes
    assert all(
        value.startswith(("data:image/svg+xml", "#")) for name, value in reader.attributes if name in ("src", "href")
    )


def test_names_are_no_markup():
    rows = {NASTY if name == "who" else name: values for name, values in study().items()}
    check = look({**rows, NASTY: [NASTY] * 480}, user=NASTY)
    assert check.of("warning")
    assert "script" not in Reader(data_page(check, title=NASTY)).tags


def test_a_clean_table_and_one_without_a_drawing():
    assert "Nothing stands out." in data_page(look(study()))
    many = {f"x$_{i}$": study(i)["temp"] for i in range(14)}
    page = data_page(look({**study(), **many}, covariates=tuple(many)))
    assert page.count("<img ") == 2  # a dozen histograms each
    one = {"who": ["a"], "when": [1], "x": [1.0], "y": [2.0]}
    cohort = Cohort.from_table(one, user="who", order="when", target="y", covariates=["x"], batch_size=1)
    assert "there is only one user" in data_page(cohort.check(one)).replace("There", "there")


@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_complaint_and_fits_the_screen(tmp_path, checked, width):
    needed()
    path = tmp_path / "page.html"
    path.write_text(data_page(checked), encoding="utf-8")
    browser = Browser(tmp_path / "profile")
    try:
        browser.size(width)
        browser.open(path)
        assert browser.problems() == []
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    finally:
        browser.close()
