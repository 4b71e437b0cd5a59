"""A page that stands alone: one HTML file with its pictures inside, for screens of any width and for paper."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol


class Block(Protocol):
    """Something that a section holds."""

    def html(self) -> str:
        """Its markup, with everything that is not markup escaped."""
        ...


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str

    def html(self) -> str:
        """A paragraph."""
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Sentences:
    """Statements, one below the other, that deserve to stand out; the heading says whose they are."""

    heading: str
    items: Sequence[str]

    def html(self) -> str:
        """A list inside a frame."""
        items = "".join(f"<li>{escape(item)}</li>" for item in self.items)
        return f'<div class="said"><h3>{escape(self.heading)}</h3><ul>{items}</ul></div>'


@dataclass(frozen=True)
class Lines:
    """Text whose spaces and line breaks mean something, under a heading."""

    heading: str
    lines: Sequence[str]

    def html(self) -> str:
        """Preformatted text that scrolls sideways where the screen is narrow."""
        text = escape("\n".join(self.lines))
        return f'<div class="lines"><h3>{escape(self.heading)}</h3><pre>{text}</pre></div>'


@dataclass(frozen=True)
class Table:
    """Rows of text. The first column is left-aligned, the others right-aligned unless they are words.

    Attributes:
        caption: above it.
        columns: their names.
        rows: cells as they are to be read.
        marked: numbers of rows to set in bold.
        words: whether the cells are words, which may take several lines, rather than numbers.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: Sequence[int] = ()
    words: bool = False

    def html(self) -> str:
        """A table that scrolls sideways where the screen is narrow."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(self._row(place, cells) for place, cells in enumerate(self.rows))
        kind = ' class="words"' if self.words else ""
        table = f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        caption = f"<figcaption>{escape(self.caption)}</figcaption>"  # outside of what scrolls, unlike <caption>
        return f'<figure class="table">{caption}<div class="wide">{table}</div></figure>'

    def _row(self, place: int, cells: Sequence[str]) -> str:
        first, *others = cells
        inside = f'<th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in others)
        return f'<tr class="marked">{inside}</tr>' if place in self.marked else f"<tr>{inside}</tr>"


@dataclass(frozen=True)
class Picture:
    """A figure, drawn twice: for a desktop page and for a telephone.

    Attributes:
        wide, narrow: SVG.
        alt: what it shows, for those who cannot see it.
        caption: below it.
    """

    wide: bytes
    narrow: bytes
    alt: str
    caption: str

    def html(self) -> str:
        """A figure whose pictures are inside the page."""
        narrow = f'<source media="(max-width: 640px)" srcset="{_inside(self.narrow)}">'
        image = f'<img src="{_inside(self.wide)}" alt="{escape(self.alt)}">'
        caption = f"<figcaption>{escape(self.caption)}</figcaption>"
        return f"<figure><picture>{narrow}{image}</picture>{caption}</figure>"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """A section."""
        inside = "\n".join(block.html() for block in self.blocks)
        return f"<section>\n<h2>{escape(self.heading)}</h2>\n{inside}\n</section>"


def page(title: str, lead: str, sections: Sequence[Section], *, footer: str = "") -> str:
    """The whole page as HTML."""
    inside = "\n".join(section.html() for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
<main>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
</header>
{inside}
<footer>{escape(footer)}</footer>
</main>
</body>
</html>
"""


def _inside(picture: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"


CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #222; font: 1rem/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 2.5rem 0 .75rem; padding-top: 1.25rem; border-top: 1px solid #ddd; }
h3 { font-size: 1rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { max-width: 46rem; margin: 0 0 1rem; }
.lead { font-size: 1.1rem; color: #444; }
.said { margin: 1.25rem 0; padding: .9rem 1.1rem; background: #f2f7fb; border-left: 4px solid #0072b2; }
.said ul { margin: 0; padding-left: 1.1rem; }
.said li { margin: .25rem 0; }
.lines { margin: 1.25rem 0; }
pre { margin: 0; padding: .7rem .9rem; background: #f6f6f6; overflow-x: auto; }
pre { font: .85rem/1.45 "DejaVu Sans Mono", monospace; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figure img { display: block; width: 100%; height: auto; }
figcaption { font-size: .92rem; color: #555; max-width: 46rem; margin: .4rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:first-child { text-align: left; }
thead th { white-space: normal; vertical-align: bottom; }
tbody th { font-weight: normal; white-space: normal; min-width: 4.5rem; }
.words th, .words td { text-align: left; vertical-align: top; white-space: normal; }
.marked th, .marked td { font-weight: 700; }
@media (max-width: 640px) {
  main { padding-top: 1.25rem; }
  th, td { padding-right: .5rem; font-size: .85rem; }
}
footer { margin-top: 3rem; font-size: .88rem; color: #666; }
@media print {
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  .said, .lines, table { break-inside: avoid; }
}
"""

__all__ = ["Block", "Lines", "Paragraph", "Picture", "Section", "Sentences", "Table", "page"]
