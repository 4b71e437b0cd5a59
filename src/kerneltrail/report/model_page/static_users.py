"""Every user after the last batch, for paper and for readers without scripts: words, rows with the fit, effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.dates import date2num

from kerneltrail.data import Schema
from kerneltrail.report import figures
from kerneltrail.report.effect_words import found_description
from kerneltrail.report.figures import Curve, Dots, Panel
from kerneltrail.report.model_page.axes import Array, times_of, value_names, with_unit
from kerneltrail.report.model_page.effect_data import effect_curve, is_drawn
from kerneltrail.report.model_page.followed_user import UserView
from kerneltrail.report.page import Block, Picture, Sentences

PRINTED = 12
"""Users whose last fit is drawn on paper."""
MOST_PANELS = 36
"""Effects drawn on paper."""
COLUMNS = 3


def static_users(users: Sequence[UserView], schema: Schema) -> list[Block]:
    """The blocks; none where no rows are known."""
    shown = [one for one in users if one.steps][:PRINTED]
    if not shown:
        return []
    blocks: list[Block] = [
        Sentences(f"{one.user.name}, after {one.user.rows} rows", _words(one, schema)) for one in shown
    ]
    some = shown[: max(1, MOST_PANELS // len(schema.covariates))]
    panels = [panel for one in some for panel in _effects(one, schema)]
    if panels:
        drawn = figures.grid(panels, columns=COLUMNS, share=False, height=1.9)
        names = ", ".join(one.user.name for one in some)
        alt = f"Effects on {schema.label(schema.target)} of {names}."
        blocks.append(Picture(figures.svg(drawn), None, alt, f"Effects with 90 % intervals, of {names}."))
    return [*blocks, _fits(shown, len(users), schema)]


def _words(one: UserView, schema: Schema) -> list[str]:
    findings = one.steps[-1].findings
    return [sentence.text for sentence in found_description(findings.effects, findings.treatment, schema)]


def _effects(one: UserView, schema: Schema) -> Iterator[Panel]:
    """One for each covariate of which anything is known."""
    for effect in one.steps[-1].findings.effects:
        if is_drawn(effect, schema):
            name, leveled = effect.covariate, effect.shape == "levels"
            curve = effect_curve(effect)
            if leveled:  # side by side, whatever lies between their values, so that names do not run into each other
                curve = replace(curve, x=np.arange(float(len(effect.x))))
            names = zip(curve.x.tolist(), value_names(name, effect.x, schema), strict=True) if leveled else ()
            yield Panel(
                f"{one.user.name}: {schema.label(name)}",
                with_unit(name, schema),
                with_unit(schema.target, schema),
                curve,
                zero=True,
                mean_label="effect",
                band_label="90 % interval",
                apart=leveled,
                names=tuple(names),
            )


def _fits(shown: Sequence[UserView], total: int, schema: Schema) -> Picture:
    """Each user's rows and fit after the last batch."""
    # On a telephone the script draws them one by one, so there is no narrow drawing.
    panels = [_panel(one, schema) for one in shown]
    drawn = figures.grid(panels, columns=min(COLUMNS, len(shown)), share=True, height=2.1)
    some = f" (the first {len(shown)} of {total} users)" if len(shown) < total else ""
    return Picture(
        figures.svg(drawn),
        None,
        f"Observations and fits of {', '.join(one.user.name for one in shown)} after their last batch.",
        f"Each user after the last batch: what was observed and what the fit says{some}.",
    )


def _panel(one: UserView, schema: Schema) -> Panel:
    fit, times = one.steps[-1].fit, times_of(one.user) if one.by_row else None
    if times is not None:
        x, label = np.asarray(date2num(times)), "time"
    elif one.by_row:
        x, label = np.arange(1.0, one.user.rows + 1.0), "row"
    else:
        x, label = one.user.X[:, 0], with_unit(one.user.covariates[0], schema)
    return Panel(
        one.user.name,
        label,
        with_unit(schema.target, schema),
        _placed(fit, x) if one.by_row else fit,
        (Dots(x, one.user.y, "observed"),),
        mean_label="fit",
        band_label="90 % of the function",
        total_label="90 % of new observations",
        reach=figures.WITHIN_90,
        apart=one.by_row,
        dates=times is not None,
    )


def _placed(curve: Curve, x: Array) -> Curve:
    """A fit over rows at the places of the rows on the axis."""
    return Curve(x, curve.mean, curve.sd, curve.total)
