"""The page: self-contained, escaped, readable without its pictures."""

from html.parser import HTMLParser

from kerneltrail.report.page import Expert, Lines, Paragraph, Picture, Section, Sentences, Table, page

NASTY = "<script>alert('x')</script> & \"quotes\""


class Reader(HTMLParser):
    """Collects tags, attributes and text; complains about tags that are closed out of order."""

    EMPTY = frozenset({"meta", "img", "source"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def whole():
    blocks = [
        Paragraph(NASTY),
        Sentences(NASTY, [NASTY]),
        Table(NASTY, [NASTY, "b"], [[NASTY, "1"], ["two", "2"]], marked=(1,)),
        Picture(b"<svg/>", b"<svg></svg>", NASTY, NASTY),
    ]
    return page(NASTY, NASTY, [Section(NASTY, blocks)], footer=NASTY)


def test_tags_match_and_nothing_given_becomes_markup():
    reader = Reader(whole())
    assert "script" not in reader.tags
    assert "".join(reader.text).count(NASTY) == 12


def test_nothing_is_fetched():
    for name, value in Reader(whole()).attributes:
        if name in ("src", "srcset", "href"):
            assert value.startswith("data:image/svg+xml;base64,")


def test_pictures_have_words_and_a_narrow_version():
    reader = Reader(whole())
    assert ("alt", NASTY) in reader.attributes
    assert ("media", "(max-width: 640px)") in reader.attributes


def test_tables_say_what_their_headers_are_of():
    reader = Reader(whole())
    assert reader.attributes.count(("scope", "col")) == 2
    assert reader.attributes.count(("scope", "row")) == 2
    assert reader.attributes.count(("class", "marked")) == 1


def test_tables_of_words_and_preformatted_lines():
    reader = Reader(
        page("t", "l", [Section("s", [Table("c", ["a"], [["b"]], words=True), Lines("h", ["a", "  <b>"])])])
    )
    assert ("class", "words") in reader.attributes
    assert "a\n  <b>" in reader.text
    assert ("class", "words") not in Reader(whole()).attributes


def test_what_is_behind_a_click_is_on_the_page_with_the_scripts_that_it_needs():
    reader = Reader(page("t", "l", [Section("s", [Expert("Why?", [Paragraph("because")])])]))
    assert reader.tags.count("details") == reader.tags.count("summary") == 1
    assert "because" in reader.text


def test_no_line_breaks_before_a_percent_sign():
    text = page("t", "90 % of rows", [Section("s", [Paragraph("50 % & more"), Table("c", ["a"], [["7 %"]])])])
    assert text.count("\u00a0%") == 3
    assert " %" not in Reader(text).text
