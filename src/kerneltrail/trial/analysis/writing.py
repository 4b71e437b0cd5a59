"""An analysis from a trial's folder into files: the page, the tables, and the package for others."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kerneltrail.errors import TrialError
from kerneltrail.progress import Progress, Tell
from kerneltrail.store.atomic import write
from kerneltrail.trial.analysis.analysis import Analysis, AnalysisSettings, analyse, is_live
from kerneltrail.trial.analysis.package import PAGE, SETTINGS, TABLES, write_package
from kerneltrail.trial.analysis.page import analysis_page
from kerneltrail.trial.analysis.record import chosen_moderators, read_record
from kerneltrail.trial.core import incident_draft
from kerneltrail.trial.draw import PUBLISHED, Draws
from kerneltrail.trial.folder import MODELS, Folder
from kerneltrail.trial.ledger import canonical
from kerneltrail.trial.ledger.entries import Kind
from kerneltrail.trial.ledger.folds import fold
from kerneltrail.trial.ledger.ledger import Ledger
from kerneltrail.trial.models import Models
from kerneltrail.trial.protocol import Protocol

MARKDOWN, LATEX, KEPT = "tables.md", "tables.tex", "resamples"
NOBODY = "somebody at the command line"
"""Who looked, where no name was given."""
DRAWING = "drawing the page"


def analyse_folder(
    study: Folder,
    ledger: Ledger,
    out: Path,
    settings: AnalysisSettings,
    *,
    workers: Any = 1,
    package: Path | None = None,
    draws: Draws | None = None,
    title: str | None = None,
    by: str = "",
    tell: Tell = lambda now: None,
    now: datetime | None = None,
) -> tuple[Analysis, list[str]]:
    """Analyse a trial and write everything; returns the analysis, and what was written, in words.

    Args:
        study: the trial's folder.
        ledger: of the trial.
        out: folder for the page and the tables; simulated trials are kept in it, too.
        settings: what is asked for.
        workers: processes for simulated trials, or an engine.
        package: a zip to write for others.
        draws: whose key is published in it.
        title: of the page.
        by: who asks, for the note in the ledger of a running trial.
        tell: hears how far it is.
        now: the time; the machine's if None.

    Raises:
        TrialError: where there is nothing to analyse, or the key of a running trial would be published.
        DataError: for a name that is none.
    """
    state = fold(ledger.trial, ledger.entries())
    if state.protocol is None:
        raise TrialError(f"the trial {ledger.trial} has no protocol yet, so there is nothing to analyse")
    protocol = Protocol.from_json(state.protocol.payload["protocol"])
    today = (now or datetime.now(UTC)).astimezone(UTC)
    settings = replace(settings, as_of=today)
    record = read_record(state, protocol, settings.kind, today)
    chosen_moderators(record, settings.moderators)
    for name in settings.controls or ():
        record.moderator(name)
    live = is_live(record, today)
    if live and draws is not None:
        raise TrialError(
            "somebody still takes part, and with the key of the draws everybody could compute the draws to come: "
            "publish it when the trial has ended"
        )
    lines = [note_look(ledger, by)] if live else []
    models = Models(study.path / MODELS)
    analysis = analyse(state, protocol, models, settings, workers=workers, folder=out / KEPT, tell=tell)
    tell(Progress(DRAWING))
    page = analysis_page(analysis, title, today if live else None)
    written = write_files(out, analysis, page)
    lines.append(f"Open {written}; the tables are in {out / TABLES}, {out / MARKDOWN} and {out / LATEX}.")
    if package is not None:
        manifest = write_package(package, analysis, ledger, models, page=page, draws=draws)
        lines.append(
            f"Wrote {package}: `kerneltrail trial rerun {package}` runs it again. It holds participants' data"
            + (", and the key of the draws." if manifest["draw_key"] else "; the key of the draws is not in it.")
        )
    if package is not None and draws is not None:
        lines.append(note_publication(ledger, package, today))
    return analysis, lines


def note_publication(ledger: Ledger, package: Path, now: datetime) -> str:
    """Record that the key of the draws is public; returns what must be done now, in words."""
    words = (
        f"the key of the draws was published in {package.name} on {now:%Y-%m-%d}: with it everybody can compute draws "
        "to come and sign in as the team, so nothing may be drawn with it any more"
    )
    if ledger.get(Kind.INCIDENT, PUBLISHED) is None:
        with ledger.transaction() as writer:
            writer.extend([incident_draft(PUBLISHED, words, "error", None, PUBLISHED, {})])
    return (
        "The key of the draws is public now: stop the trial's servers, revoke their keys (`kerneltrail trial key "
        "revoke`), and start no trial with this key. That it is public is noted in the ledger."
    )


def note_look(ledger: Ledger, by: str) -> str:
    """Record that outcomes by action of a running trial are about to be seen; returns that in words."""
    payload = {"by": by or NOBODY, "what": "analysis", "participant": None, "reason": "kerneltrail trial analyse"}
    ledger.append(Kind.LOOK, uuid.uuid4().hex, payload, response=canonical(payload))
    return "The trial is still running: that outcomes by action were looked at is noted in its ledger."


def write_files(out: Path, analysis: Analysis, page: str) -> Path:
    """Write the page and the tables; returns where the page is."""
    tables = analysis.tables()
    for table in tables:
        write(out / TABLES / f"{table.name}.csv", table.csv())
    paper = [table for table in tables if table.name != "personalisation_null"]
    write(out / MARKDOWN, "\n".join(table.markdown() for table in paper))
    write(out / LATEX, "\n".join(table.latex() for table in paper))
    write(out / SETTINGS, json.dumps(analysis.settings.to_json(), indent=2) + "\n")
    return write(out / PAGE, page)
