"""The demonstration: pilot users teach a graph of kernels, new users are followed on it, and a page explains it all."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from kerneltrail.gp import one_blas_thread
from kerneltrail.progress import Progress, Tell
from kerneltrail.report import figures
from kerneltrail.report.page import page
from kerneltrail.store.atomic import check_writable, write
from kerneltrail.studies.demo.growing import growing_user
from kerneltrail.studies.demo.pilot import STAGES as PILOT_STAGES
from kerneltrail.studies.demo.pilot import Study, pilot_users
from kerneltrail.studies.demo.trial import trial_user

SINGLE = {"a user with a trend and a rhythm": growing_user, "a user of a trial": trial_user}
"""What the page shows of single users, after the group: functions of a seed."""
SINGLE_USERS, WRITING = "single users", "writing the page"
STAGES = (SINGLE_USERS, *PILOT_STAGES, WRITING)
"""What `run` tells of, one after the other."""
MODEL = "pilot.trail"
"""The file beside the page that holds the model learnt from the pilot users."""

TITLE = "Kernels that grow with a user's data"
LEAD = (
    "A Gaussian process predicts what a user will do next, and its kernel says why: a trend, a rhythm, a resemblance "
    "between similar hours. The users on this page are simulated, so the truth is known and can be compared with."
)


def run(out: Path, *, seed: int = 0, tell: Tell = lambda now: None, study: Study | None = None) -> Path:
    """Write ``index.html``, the figures as PNG and the pilot users' model into a folder; returns the page's path.

    `study` says how many users the story has; the default takes well under a minute on two cores.
    """
    check_writable(out / "index.html")
    with one_blas_thread():
        # First, though shown last: what these compile on a first run, the workers of the fit find on disk.
        singles = []
        for number, (name, single) in enumerate(SINGLE.items()):
            tell(Progress(SINGLE_USERS, number, len(SINGLE), name))
            singles.append(single(seed))
        parts = [*pilot_users(seed, tell, study), *singles]
    tell(Progress(WRITING))
    for part in parts:
        for drawn in part.drawn:
            write(out / f"{drawn.name}.png", figures.png(drawn.wide))
        if part.model is not None:
            part.model.save(out / MODEL)
    footer = f"Written by kerneltrail {version('kerneltrail')} with seed {seed}; every number is computed in this run."
    return write(out / "index.html", page(TITLE, LEAD, [part.section for part in parts], footer=footer, broad=True))


__all__ = ["MODEL", "STAGES", "Study", "run"]
