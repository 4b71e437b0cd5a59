"""The demonstration: simulated users, kernels fitted as their data grow, and a page that shows and explains it all."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from kerneltrail.demo.growing import growing_user
from kerneltrail.demo.parts import Tick
from kerneltrail.demo.trial import trial_user
from kerneltrail.gp import one_blas_thread
from kerneltrail.report import figures
from kerneltrail.report.files import write
from kerneltrail.report.page import page

SECTIONS = (growing_user, trial_user)
"""What the page shows, in order: functions of a seed and of `tick`, which each calls twice."""
STEPS = 2 * len(SECTIONS) + 1
"""How many times `run` calls `tick`."""

TITLE = "Kernels that grow with a user's data"
LEAD = (
    "A Gaussian process predicts what a user will do next, and its kernel says why: a trend, a rhythm, a resemblance "
    "between similar hours. The users on this page are simulated, so the truth is known and can be compared with."
)


def run(out: Path, *, seed: int = 0, tick: Tick = lambda said: None) -> Path:
    """Write ``index.html`` and the figures as PNG into a folder; returns the page's path."""
    with one_blas_thread():
        parts = [section(seed, tick) for section in SECTIONS]
    tick("page")
    for drawn in (drawn for part in parts for drawn in part.drawn):
        write(out / f"{drawn.name}.png", figures.png(drawn.wide))
    footer = f"Written by kerneltrail {version('kerneltrail')} with seed {seed}; every number is computed in this run."
    return write(out / "index.html", page(TITLE, LEAD, [part.section for part in parts], footer=footer))


__all__ = ["SECTIONS", "STEPS", "run"]
