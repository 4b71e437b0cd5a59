"""A page that stands alone: one HTML file with its pictures inside, for screens of any width and for paper."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from kerneltrail.report.assets import asset

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What a browser lets the page do: nothing but to show what is inside it."""


class Block(Protocol):
    """Something that a section holds.

    A block that needs scripts names them in an attribute ``scripts``: files in the assets folder, in order.
    """

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
    """A figure, drawn twice: for a desktop page and for a telephone, unless one drawing serves both.

    Attributes:
        wide, narrow: SVG; None where the wide one serves a telephone, too.
        alt: what it shows, for those who cannot see it.
        caption: below it.
    """

    wide: bytes
    narrow: bytes | None
    alt: str
    caption: str

    def html(self) -> str:
        """A figure whose pictures are inside the page."""
        narrow = ""
        if self.narrow is not None:
            narrow = f'<source media="(max-width: 640px)" srcset="{_inside(self.narrow)}">'
        image = f'<img src="{_inside(self.wide)}" alt="{escape(self.alt)}">'
        caption = f"<figcaption>{escape(self.caption)}</figcaption>"
        return f"<figure><picture>{narrow}{image}</picture>{caption}</figure>"


@dataclass(frozen=True)
class Beside:
    """Blocks side by side where there is room, else one below the other."""

    blocks: Sequence[Block]

    def html(self) -> str:
        """A grid."""
        return f'<div class="beside">{"".join(block.html() for block in self.blocks)}</div>'


@dataclass(frozen=True)
class Static:
    """Blocks for paper and for readers without scripts: hidden where a script shows the same in another way."""

    blocks: Sequence[Block]

    def html(self) -> str:
        """A part that the style sheet hides on a screen with scripts."""
        return f'<div class="static">{"".join(block.html() for block in self.blocks)}</div>'


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; one with a name can be linked to."""

    heading: str
    blocks: Sequence[Block]
    name: str = ""

    def html(self) -> str:
        """A section."""
        inside = "\n".join(block.html() for block in self.blocks)
        name = f' id="{escape(self.name)}"' if self.name else ""
        return f"<section{name}>\n<h2>{escape(self.heading)}</h2>\n{inside}\n</section>"


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    footer: str = "",
    broad: bool = False,
) -> str:
    """The whole page as HTML, with the scripts that its blocks need. It may fetch nothing: browsers are told so.

    Args:
        title: heading.
        lead: what it is about, below the heading.
        sections: the content; those with names are listed at the top.
        footer: at the end.
        broad: whether the page uses more of a wide screen, for things that stand side by side.
    """
    inside = "\n".join(section.html() for section in sections)
    named = [section for section in sections if section.name]
    links = "".join(f'<a href="#{escape(section.name)}">{escape(section.heading)}</a>' for section in named)
    menu = f'<nav aria-label="On this page">{links}</nav>' if len(named) > 1 else ""
    code = "".join(f"<script>{asset(name)}</script>\n" for name in _scripts(sections))
    return f"""<!doctype html>
<html lang="en"{' class="broad"' if broad else ""}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>{asset("page.css")}</style>
</head>
<body>
<main>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{menu}
</header>
{inside}
<footer>{escape(footer)}</footer>
</main>
{code}</body>
</html>
"""


def _scripts(sections: Sequence[Section]) -> tuple[str, ...]:
    """Every script that some block needs, once."""
    return tuple(dict.fromkeys(name for section in sections for block in section.blocks for name in _needed(block)))


def _needed(block: Block) -> tuple[str, ...]:
    inner: Sequence[Block] = getattr(block, "blocks", ())
    own: tuple[str, ...] = getattr(block, "scripts", ())
    return (*own, *(name for each in inner for name in _needed(each)))


def _inside(picture: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"


__all__ = [
    "Beside",
    "Block",
    "Lines",
    "Paragraph",
    "Picture",
    "Section",
    "Sentences",
    "Static",
    "Table",
    "page",
]
