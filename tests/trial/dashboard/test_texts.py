"""Times as pages write them: in one format, each with its clock."""

from re import findall, search

import pytest

from .test_pages import read

TIME = r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d"
ZONED = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {TIME} \([A-Za-z/_]+\)"


@pytest.mark.parametrize(
    "path", ["", "/participants/p02", "/participants/p03", "/participants/p04", "/incidents", "/policies", "/data"]
)
def test_every_time_on_a_page_says_on_which_clock_it_is(team, path):
    text = read(team, path).split("The newest decisions as a table")[0]  # whose caption says it for all rows
    assert findall(ZONED, text)
    assert len(findall(ZONED, text)) == len(findall(TIME, text))
    assert search(r"\d{4}-\d\d-\d\d", text) is None
