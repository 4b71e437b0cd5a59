"""Templates of the desk, over those of reports: the same blocks, escaped in the same way."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, PackageLoader

from kerneltrail.report.templating import ENVIRONMENT
from kerneltrail.report.templating import asset as report_asset

DESK = ENVIRONMENT.overlay(
    loader=ChoiceLoader([PackageLoader("kerneltrail.trial.dashboard", "templates"), ENVIRONMENT.loader])  # type: ignore[list-item]
)


def render(template: str, **values: Any) -> str:
    """A page of the desk."""
    return DESK.get_template(template).render(values)


@cache
def asset(name: str) -> bytes:
    """The desk's style sheet, which goes on from that of reports, or its script; a `KeyError` for anything else."""
    if name not in ("desk.css", "desk.js"):
        raise KeyError(name)
    ours = files("kerneltrail.trial.dashboard").joinpath("assets", name).read_text(encoding="utf-8")
    return (f"{report_asset('page.css')}\n{ours}" if name == "desk.css" else ours).encode()
