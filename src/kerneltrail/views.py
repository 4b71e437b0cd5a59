"""Views by name: how a cohort, a model, a user and effects show themselves in a notebook; a trial's decision and desk.

HTML and figures are made in `report`, one of the last rooms, and decisions in `trial`; what they show comes from rooms
before those, which must not import them. So a view is kept here as text, "module:function", and its module is loaded
when the view is first asked for, as pandas does with plotting backends. Who never looks never loads Matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kerneltrail.registry import Registry

VIEWS: Registry[str] = Registry("view")
"""Where each view is made: module and function."""

for _what in ("cohort", "model", "user", "effects"):
    VIEWS.add(f"{_what}.html", f"kerneltrail.report.notebook:{_what}_html")
for _what in ("model", "user", "effects"):
    VIEWS.add(f"{_what}.figure", f"kerneltrail.report.notebook:{_what}_figure")
VIEWS.add("user.decision", "kerneltrail.trial.notebook:decide_for")
VIEWS.add("service.desk", "kerneltrail.trial.dashboard.desk:mount")


def show(view: str, thing: Any, **options: Any) -> Any:
    """A thing, as the view of that name shows it.

    >>> show("user.htm", None)
    Traceback (most recent call last):
        ...
    kerneltrail.errors.KerneltrailError: no view is called 'user.htm'; did you mean 'user.html'?
    """
    module, _, function = VIEWS[view].partition(":")
    return getattr(import_module(module), function)(thing, **options)
