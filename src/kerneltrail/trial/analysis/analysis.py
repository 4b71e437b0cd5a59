"""The analysis of a trial: everything that is estimated and counted, as one object, with its tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from kerneltrail.errors import TrialError, UnknownName
from kerneltrail.kernels.phrases import counted, number, rounded
from kerneltrail.progress import Progress, Tell
from kerneltrail.trial.analysis.course import Fared, Flow, Gap, Kernels, fared, flow_of, gaps_of, kernels_of, may_go_on
from kerneltrail.trial.analysis.effects import (
    ActingEffect,
    ActingEffects,
    estimate_effects,
    moderated_words,
    primary_words,
)
from kerneltrail.trial.analysis.fidelity import Fidelity, fidelity_of
from kerneltrail.trial.analysis.personal import Personalisation, personalisation
from kerneltrail.trial.analysis.record import FOREVER, Record, chosen_moderators, read_record
from kerneltrail.trial.analysis.tables import Table
from kerneltrail.trial.decided import present
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.ledger.folds import State
from kerneltrail.trial.models import Models
from kerneltrail.trial.protocol import Protocol
from kerneltrail.trial.versions import Versions

ESTIMATING, COUNTING = "estimating effects", "counting"
EFFECT = ("estimate", "lower", "upper")
SHARE = ("share", "share_lower", "share_upper")


@dataclass(frozen=True)
class AnalysisSettings:
    """What was asked for, so that it can be repeated.

    Attributes:
        moderators: covariates, or `days in the study`; None for those of the policy's advantage and the time.
        controls: covariates; None for all of them where there are enough participants.
        kind: of decisions; None for all.
        level: of intervals.
        resamples: simulated trials under the null, for whether the policy personalised; 0 for none.
        seed: of their draws.
        as_of: when it is analysed; at the end of the record if None.
    """

    moderators: tuple[str, ...] | None = None
    controls: tuple[str, ...] | None = None
    kind: str | None = None
    level: float = 0.95
    resamples: int = 0
    seed: int = 0
    as_of: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {**plain, "as_of": None if self.as_of is None else self.as_of.isoformat()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> AnalysisSettings:
        """From plain values."""
        several = {name: stored[name] for name in ("moderators", "controls")}
        named = {name: None if value is None else tuple(value) for name, value in several.items()}
        as_of = stored.get("as_of")
        return cls(**{**stored, **named, "as_of": None if as_of is None else instant(as_of)})


@dataclass(frozen=True)
class Analysis:
    """A trial, analysed.

    Attributes:
        record: what was analysed.
        settings: how.
        effects: what acting changed.
        flow: of participants.
        gaps: missing outcomes.
        fared: how participants fared.
        kernels: over time.
        fidelity: whether the trial did what its protocol says.
        personal: whether the policy personalised; None where nobody asked, or it cannot be computed.
        no_personal: why not, in words.
    """

    record: Record
    settings: AnalysisSettings
    effects: ActingEffects
    flow: Flow
    gaps: tuple[Gap, ...]
    fared: Fared | None
    kernels: Kernels | None
    fidelity: Fidelity
    personal: Personalisation | None = None
    no_personal: str = ""

    def words(self) -> list[str]:
        """What was found, the effect first."""
        record, level = self.record, self.settings.level
        lines = primary_words(self.effects, record)
        for effect in self.effects.moderated:
            lines += moderated_words(effect, record, level)
        lines += [self.no_personal] if self.personal is None else self.personal.words()
        lines += self.fared_words()
        return [*lines, self.flow.words(), *self.fidelity.words()]

    def fared_words(self) -> list[str]:
        """How participants fared, in a sentence."""
        if self.fared is None:
            return []
        unit = f" {self.record.unit}" if self.record.unit else ""
        if self.fared.mean.users < 2:
            words = f"The mean {self.record.outcome} of the one participant was {number(self.fared.mean.mean)}{unit}."
            return [words, *self.fared.notes()]
        mean, quarter = (
            f"{rounded(each.mean, each.high - each.low)}{unit} ({100 * each.level:g} % interval "
            f"{rounded(each.low, each.high - each.low)} to {rounded(each.high, each.high - each.low)})"
            for each in (self.fared.mean, self.fared.quarter)
        )
        side = self.fared.worst.side
        words = f"Participants' mean {self.record.outcome} was {mean}; a quarter of them lay {side} {quarter}."
        return [words, *self.fared.notes()[1:]]

    def tables(self) -> list[Table]:
        """All numbers."""
        tables = [
            self._effect_table(),
            self._moderator_table(),
            Table.of("flow", "Participants", self.flow.table()),
            Table.of(
                "missing",
                "Missing outcomes, where somebody could act and the outcome was due",
                [_gap(gap) for gap in self.gaps],
                [SHARE],
            ),
            self._outcome_table(),
            self._kernel_table(),
            *_fidelity_tables(self.fidelity),
        ]
        tables = [replace(table, level=self.settings.level) for table in tables]
        return tables if self.personal is None else [*tables, *_personal_tables(self.personal)]

    def _effect_table(self) -> Table:
        rows = [_effect(each) for each in (self.effects.primary, *self.effects.by_kind)]
        caption = f"Causal excursion effect of acting on {self.record.outcome}{self._unit()}"
        return Table.of("effects", caption, rows, [EFFECT])

    def _unit(self) -> str:
        return f" ({self.record.unit})" if self.record.unit else ""

    def _moderator_table(self) -> Table:
        rows, label = [], self.record.label
        labels: dict[str, str] = {}
        for effect in self.effects.moderated:
            labels[effect.name] = label(effect.name)
            if effect.fitted is None:
                rows.append({"moderator": effect.name, "term": effect.problem, **_empty()})
                continue
            for each in effect.fitted.table():
                term = "acting, where it is 0" if each["name"] == "acting" else f"change per unit of {each['name']}"
                labels[f"change per unit of {each['name']}"] = f"change per unit of {label(each['name'])}"
                rows.append({"moderator": effect.name, "term": term, **_numbers(each, effect.fitted.degrees)})
            for place in effect.places:
                found = effect.at(place)
                values = {**vars(found), "estimate": found.value}
                rows.append(
                    {"moderator": effect.name, "term": f"at {place:.6g}", **_numbers(values, effect.fitted.degrees)}
                )
        columns = ("moderator", "term", *_empty())
        caption = f"How the effect of acting on {self.record.outcome}{self._unit()} changes"
        return Table.of("moderators", caption, rows, [EFFECT], columns, labels)

    def _outcome_table(self) -> Table:
        rows = []
        if self.fared is not None:
            names = ("mean", self.fared.worst.name)
            rows = [
                {
                    "of": name,
                    "estimate": each.mean,
                    "lower": each.low if each.users > 1 else None,
                    "upper": each.high if each.users > 1 else None,
                    "participants": each.users,
                }
                for name, each in zip(names, (self.fared.mean, self.fared.quarter), strict=True)
            ]
        caption = f"Participants' mean {self.record.outcome}{self._unit()}"
        return Table.of("outcome", caption, rows, [EFFECT], ("of", *EFFECT, "participants"))

    def _kernel_table(self) -> Table:
        rows = []
        if self.kernels is not None:
            for place, period in enumerate(self.kernels.periods):
                counts = self.kernels.counts[place].tolist()
                rows.append({"period": period, **dict(zip(self.kernels.names, counts, strict=True))})
        return Table.of("kernels", "Kernels over time, by participants", rows, columns=("period",))


def _empty() -> dict[str, Any]:
    return dict.fromkeys((*EFFECT, "standard_error", "p_value", "degrees"))


def _numbers(values: Mapping[str, Any], degrees: int) -> dict[str, Any]:
    return {**{name: values[name] for name in (*EFFECT, "standard_error", "p_value")}, "degrees": degrees}


def _effect(effect: ActingEffect) -> dict[str, Any]:
    found = effect.fitted
    if found is None:
        return {"decisions": effect.name, **_empty(), "participants": None, "rows": None, "numerator": None}
    beside = {"participants": found.n, "rows": found.rows, "numerator": found.numerator}
    return {"decisions": effect.name, **_numbers(found.table()[0], found.degrees), **beside}


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "decisions": gap.group,
        "number": gap.decisions,
        "observed": gap.observed,
        "looked_for_in_vain": gap.looked_for,
        "share": gap.share.mean,
        "share_lower": gap.share.low,
        "share_upper": gap.share.high,
    }


def _fidelity_tables(fidelity: Fidelity) -> list[Table]:
    tenths = [
        {
            "probability": f"{each.low:.3g} to {each.high:.3g}",
            "decisions": each.decisions,
            "expected": each.mean,
            "share": each.share.mean,
            "share_lower": each.share.low,
            "share_upper": each.share.high,
        }
        for each in fidelity.tenths
    ]
    ratios = [{"version": name, **vars(each)} for name, each in fidelity.ratios.items()]
    incidents = [
        {"incident": kind, "severity": severity, "number": count}
        for (kind, severity), count in fidelity.incidents.items()
    ]
    updates = fidelity.updates
    conduct = [
        *({"what": f"decisions by {rung}", "number": count} for rung, count in fidelity.rungs.items()),
        *({"what": f"updates {state}", "number": count} for state, count in updates.states.items()),
        {"what": "updates planned", "number": updates.planned},
        {"what": "updates late or not made", "number": updates.late},
        {"what": "rows that entered late", "number": updates.rows_late},
        {"what": "decisions to act", "number": fidelity.acted},
        {"what": "of these not delivered", "number": fidelity.undelivered},
        {"what": "of these not reported", "number": fidelity.unreported},
    ]
    return [
        Table.of("draws", "Share that acted, by probability of acting", tenths, [SHARE]),
        Table.of("versions", "Draws by policy version", ratios),
        Table.of("conduct", "Conduct", conduct),
        Table.of("incidents", "Incidents", incidents, columns=("incident", "severity", "number")),
    ]


def _personal_tables(personal: Personalisation) -> list[Table]:
    rows = [
        {
            "measure": each.measure.name,
            "observed": each.observed,
            "null_median": float(np.nanmedian(each.null)),
            "against_the_null": each.measure.tail,
            "p_value": each.p_value,
            "p_lower": each.low,
            "p_upper": each.high,
        }
        for each in personal.statistics
    ]
    every = [
        {"trial": place, **{each.measure.name: each.null[place] for each in personal.statistics}}
        for place in range(personal.resamples)
    ]
    caption = f"What the policy did, beside {counted(personal.resamples, 'simulated trial')} under the null"
    interval = [("p_value", "p_lower", "p_upper")]
    return [
        Table.of("personalisation", caption, rows, interval),
        Table.of("personalisation_null", "Measures in each simulated trial", every),
    ]


def analyse(
    state: State,
    protocol: Protocol,
    models: Models | None = None,
    settings: AnalysisSettings | None = None,
    *,
    workers: Any = 1,
    folder: str | os.PathLike[str] | None = None,
    tell: Tell = lambda now: None,
) -> Analysis:
    """Analyse a trial.

    Args:
        state: all that its ledger comes to.
        protocol: in force.
        models: of the trial; needed for simulated trials alone.
        settings: what is asked for.
        workers: processes for simulated trials, or an engine.
        folder: keeps simulated trials, so that a stopped computation goes on.
        tell: hears how far it is.

    Raises:
        DataError: for a moderator, control or kind that is none.
        TrialError: where there is nothing to analyse.
    """
    settings = settings or AnalysisSettings()
    record = read_record(state, protocol, settings.kind, settings.as_of)
    record = replace(record, labels=labels_of(state, models))
    moderators = chosen_moderators(record, settings.moderators)
    tell(Progress(ESTIMATING))
    effects = estimate_effects(record, moderators, controls=settings.controls, level=settings.level)
    tell(Progress(COUNTING))
    personal, problem = None, "Whether the policy personalised was not looked at: no simulated trials were asked for."
    if settings.resamples:
        try:
            whole = read_record(state, protocol, now=FOREVER)  # what was drawn ahead is the policy's work, too
            personal = _personal(whole, models, settings, workers, folder, tell)
        except TrialError as reason:
            problem = f"Whether the policy personalised could not be computed: {reason}."
    return Analysis(
        record=record,
        settings=settings,
        effects=effects,
        flow=flow_of(record),
        gaps=tuple(gaps_of(record, settings.level)),
        fared=fared(record, settings.level),
        kernels=kernels_of(record),
        fidelity=fidelity_of(record, settings.level),
        personal=personal,
        no_personal="" if personal is not None else problem,
    )


def labels_of(state: State, models: Models | None) -> Mapping[str, str]:
    """What people call covariates, by the model of the newest policy; nothing where there is none."""
    versions = Versions(state).by_name
    if models is None or not versions:
        return {}
    newest = max(versions.values(), key=lambda each: each.sequence)
    try:
        return models.get(newest.model_id).schema.labels
    except UnknownName:  # its name will do
        return {}


def _personal(
    whole: Record,
    models: Models | None,
    settings: AnalysisSettings,
    workers: Any,
    folder: str | os.PathLike[str] | None,
    tell: Tell,
) -> Personalisation:
    if models is None:
        raise TrialError("the models of the trial are needed for that")
    return personalisation(
        whole,
        models,
        null_effect(whole, settings),
        resamples=settings.resamples,
        seed=settings.seed,
        workers=workers,
        folder=folder,
        tell=tell,
    )


def null_effect(whole: Record, settings: AnalysisSettings) -> float:
    """The effect over all decisions, of whatever kind: what acting adds for everybody in simulated trials.

    Raises:
        TrialError: if it cannot be estimated.
    """
    found = estimate_effects(whole, (), controls=settings.controls, level=settings.level).primary
    if found.fitted is None:
        raise TrialError(f"the effect over all decisions could not be estimated: {found.problem}")
    return found.fitted["acting"].value


def is_live(record: Record, now: datetime) -> bool:
    """Whether somebody still takes part at a time: then an analysis shows outcomes by action of a running trial."""
    return any(may_go_on(person, max(now, record.until)) for person in present(record.state))
