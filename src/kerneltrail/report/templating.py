"""Templates of pages, escaped by default, with the style and the scripts that go into them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

PERCENT = re.compile(r"(\d) %")


def _unbroken(value: Any) -> Any:
    """Text in which no line breaks before a percent sign; markup, and what a script reads, is left alone."""
    return PERCENT.sub("\\1\u00a0%", value) if isinstance(value, str) and not isinstance(value, Markup) else value


ENVIRONMENT = Environment(
    loader=PackageLoader("kerneltrail.report", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    finalize=_unbroken,
)
# No "<" is left in data that a page carries for its script, so nothing in them can end the element early; and what
# JSON does not have, such as NaN, is an error rather than a page that does not work.
ENVIRONMENT.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}


def render(template: str, **values: Any) -> Markup:
    """A template of this folder's ``templates`` with values put in."""
    return Markup(ENVIRONMENT.get_template(template).render(values))


@cache
def asset(name: str) -> Markup:
    """The text of a style sheet or a script of ours, which needs no escaping."""
    return Markup(files("kerneltrail.report").joinpath("assets", name).read_text(encoding="utf-8"))


ENVIRONMENT.globals["asset"] = asset
