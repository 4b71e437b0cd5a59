"""The whole analysis: estimates by `wcls` on the exported table, tables with every number, and words."""

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.trial.analysis.analysis import AnalysisSettings, analyse, is_live
from kerneltrail.trial.analysis.effects import (
    EVERYBODY,
    estimate_effects,
    moderated_words,
    primary_words,
    sized,
    verdict,
)
from kerneltrail.trial.analysis.excursion import Estimate
from kerneltrail.trial.analysis.page import analysis_page
from kerneltrail.trial.analysis.record import TIME
from kerneltrail.trial.analysis.tables import Table
from kerneltrail.trial.analysis.wcls import wcls
from kerneltrail.trial.export import table
from kerneltrail.trial.folder import Folder

from ..running import BEGIN, Time, asked, enrol
from .study import agreement, begun_in, read


def read_csv(table):
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_the_effect_over_everybody_is_wcls_on_the_exported_table(state, analysis):
    rows = table(state, "mrt")[1]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    found = wcls(columns)  # nine people are too few for controls
    assert analysis.effects.controls == ()
    line = read_csv(analysis.tables()[0])[0]
    assert line["decisions"] == EVERYBODY
    assert float(line["estimate"]) == found.estimates[0]
    assert float(line["standard_error"]) == found.standard_errors[0]
    assert (int(line["participants"]), int(line["rows"])) == (found.n, found.rows)
    assert analysis.words()[0].startswith(
        "On average over all decisions at which somebody could act, acting changed mood by"
    )


def test_effects_by_moderator(record, analysis):
    by_hour, by_time = analysis.effects.moderated
    assert (by_hour.name, by_time.name) == ("hour", TIME)
    found = wcls(record.columns(), ["hour"])
    np.testing.assert_array_equal(by_hour.fitted.estimates, found.estimates)
    columns = record.columns()
    used = columns["hour"][(columns["availability"] == 1) & ~np.isnan(columns["outcome"])]
    low, high = np.percentile(used, [10, 90])
    assert by_hour.places == (low, high)
    assert by_hour.at(low).value == pytest.approx(found.estimates @ [1, low])
    assert by_hour.change.value == pytest.approx(found.estimates[1] * (high - low))
    words = moderated_words(by_hour, record, 0.95)[0]
    assert words.startswith("Where hour is ")
    assert "The difference is" in words
    assert moderated_words(by_time, record, 0.95)[0].startswith("After 0 days, acting changed mood by")


def _with_hour(record, code):
    return {**record, "arrived": {**record["arrived"], "hour": code}}


def levelled(record, *levels):
    """The record with the hour as levels: morning and evening, or more."""
    section = record.protocol.covariates["hour"].model_copy(update={"levels": list(levels), "low": None, "high": None})
    stated = record.protocol.model_copy(update={"covariates": {**record.protocol.covariates, "hour": section}})
    points = tuple(
        replace(point, record=_with_hour(point.record, int(point.context["hour"]) % len(levels)))
        for point in record.points
    )
    columns = {**record.covariates, "hour": tuple(f"hour: {level}" for level in levels[1:])}
    return replace(record, protocol=stated, points=points, covariates=columns)


def test_a_moderator_of_two_levels_is_told_by_their_names(record):
    two = levelled(record, "early", "late")
    (effect,) = estimate_effects(two, ["hour"]).moderated
    assert effect.places == (0.0, 1.0)
    words = moderated_words(effect, two, 0.95)[0]
    assert words.startswith("Where hour is early, acting changed mood by")
    assert "where hour is late, acting changed mood by" in words
    late = [point for point in two.points if point.context["hour"] == 1]
    alone = wcls(replace(two, points=tuple(late)).columns())
    assert effect.at(1.0).value == pytest.approx(alone["acting"].value, abs=0.2)  # weights differ by p̃ alone


def test_a_moderator_of_three_levels_is_told_beside_the_first(record):
    three = levelled(record, "early", "noon", "late")
    (effect,) = estimate_effects(three, ["hour"]).moderated
    assert effect.fitted.names == ("acting", "hour: noon", "hour: late")
    assert effect.change is None
    assert moderated_words(effect, three, 0.95)[0].startswith("By hour, beside the first level")


def test_controls_are_those_named_or_all_where_there_are_many_people(record):
    named = estimate_effects(record, [], controls=["steps"])
    assert named.controls == ("steps",)
    assert named.primary.fitted.controls.keys() == {"(intercept)", "steps"}
    many = tuple(
        replace(point, participant=f"{point.participant}-{place % 3}") for place, point in enumerate(record.points)
    )
    assert estimate_effects(replace(record, points=many), []).controls == ("hour", "steps")


def test_what_cannot_be_estimated_is_said_and_the_rest_goes_on(ended, record):
    two = replace(record, points=tuple(point for point in record.points if point.participant in ("p01", "p06")))
    effects = estimate_effects(two, ["hour"])
    assert effects.primary.fitted is None
    assert effects.moderated[0].problem.startswith("2 participants cannot tell 4 coefficients")
    assert "could not be estimated. 2 participants" in moderated_words(effects.moderated[0], two, 0.95)[0]
    with pytest.raises(DataError, match="'mood' is no covariate"):
        analyse(*read(ended), settings=AnalysisSettings(moderators=("mood",)))


def test_kinds_of_decisions_are_told_apart(record, ended):
    kinds = tuple(replace(point, kind="rest" if point.day % 2 else "walk") for point in record.points)
    both = replace(record, points=kinds)
    effects = estimate_effects(both, [])
    assert {each.name for each in effects.by_kind} == {"walk", "rest"}
    for each in effects.by_kind:
        rows = {name: column[[p.kind == each.name for p in kinds]] for name, column in record.columns().items()}
        np.testing.assert_array_equal(each.fitted.estimates, wcls(rows).estimates)
    assert any(line.startswith("Over decisions of the kind rest at which") for line in primary_words(effects, both))
    assert estimate_effects(record, []).by_kind == ()
    assert len(analyse(*read(ended), settings=AnalysisSettings(kind="walk")).record.points) == len(record.points)


@pytest.mark.parametrize("shut", [True, False])
def test_a_trial_of_which_hardly_anything_is_there_is_still_described(tmp_path, shut):
    """One participant with two decisions, at which nobody could act, or nobody has an outcome."""
    time = Time(BEGIN)
    trial = begun_in(tmp_path / "walks", agreement(), time)
    enrol(trial, "p01")
    for index in range(2):
        reasons = ("driving",) if shut else ()
        trial.decide(asked(index=index, at=time.go(hours=1), hour=9.0, available=not shut, reasons=reasons))
    trial.close()
    found = analyse(*read(Folder(tmp_path / "walks")), settings=AnalysisSettings(resamples=5))
    assert found.effects.primary.fitted is None
    assert "could not be computed" in found.no_personal
    assert (found.flow.started, found.flow.analysed, found.flow.ongoing) == (1, 0, 1)
    assert "could not be estimated" in " ".join(found.words())
    assert "<h2>What acting changed</h2>" in analysis_page(found)
    assert all(table.csv() and table.markdown() and table.latex() for table in found.tables())


def test_every_table_has_every_number(analysis):
    tables = {each.name: each for each in analysis.tables()}
    assert list(tables) == [
        "effects", "moderators", "flow", "missing", "outcome", "kernels", "draws", "versions", "conduct", "incidents",
    ]  # fmt: skip
    assert {row["step"]: int(row["participants"]) for row in read_csv(tables["flow"])}["analysed"] == 7
    assert float(read_csv(tables["outcome"])[1]["estimate"]) == analysis.fared.quarter.mean
    shares = [float(row["share"]) for row in read_csv(tables["missing"])]
    assert shares == [gap.share.mean for gap in analysis.gaps]
    draws = read_csv(tables["draws"])
    assert [float(row["share_upper"]) for row in draws] == [each.share.high for each in analysis.fidelity.tenths]
    conduct = {row["what"]: int(row["number"]) for row in read_csv(tables["conduct"])}
    assert conduct["decisions by policy"] == analysis.fidelity.rungs["policy"]
    kernels = read_csv(tables["kernels"])
    assert [int(row[analysis.kernels.names[0]]) for row in kernels] == analysis.kernels.counts[:, 0].tolist()
    assert tables["incidents"].csv() == "incident,severity,number\n"


@pytest.mark.parametrize(("low", "written"), [(-0.004, "−0.004"), (0.004, "0.004"), (0.0, "0")])
def test_a_limit_reads_as_0_only_if_it_is_0(low, written):
    """The verdict hangs on its sign."""
    each = Estimate(0.8, 0.4, low, 1.6, 0.05)
    assert sized(each, "steps", 0.95) == f"0.8 steps (95 % interval {written} to 1.6)"
    assert ("do not tell" in verdict(each)) == (low <= 0)
    row = {"estimate": 0.8, "lower": low, "upper": 1.6}
    shown = Table.of("one", "One", [row], [("estimate", "lower", "upper")]).shown()
    assert shown[1] == [["0.8", f"{written} to 1.6"]]


def test_words_have_the_labels_of_covariates(record, analysis):
    labelled = replace(record, labels={"hour": "time of day"})
    effect = next(each for each in analysis.effects.moderated if each.name == "hour")
    assert "here time of day is" in moderated_words(effect, labelled, 0.95)[0]
    assert labelled.label("hour: late") == "time of day: late"
    assert labelled.label("steps") == "steps"


def test_tables_for_a_paper():
    rows = [{"name_of": "a_b & c|d", "estimate": 1.23456, "lower": 1.0, "upper": 1.5, "p_value": None, "ok": True}]
    made = Table.of("t", "50 % of π", rows, [("estimate", "lower", "upper")])
    assert made.csv() == "name_of,estimate,lower,upper,p_value,ok\na_b & c|d,1.23456,1.0,1.5,,True\n"
    assert made.shown() == (
        ["name of", "estimate", "95 % interval of the estimate", "p value", "ok"],
        [["a_b & c|d", "1.23", "1 to 1.5", "–", "yes"]],
    )
    assert "| a_b & c\\|d | 1.23 | 1 to 1.5 | – | yes |" in made.markdown()
    latex = made.latex()
    assert r"\caption{50 \% of $\pi$}" in latex
    assert r"a\_b \& c|d & 1.23 & 1 to 1.5 & – & yes \\" in latex
    assert r"\begin{tabular}{lrrrr}" in latex


def test_every_interval_has_the_level_that_was_asked_for_and_says_so(state, record, ended):
    found = analyse(*read(ended), settings=AnalysisSettings(level=0.8))
    levels = [found.gaps[0].share.level, found.fidelity.tenths[0].share.level, found.fared.mean.level]
    assert levels == [0.8] * 3
    heads = [head for table in found.tables() for head in table.shown()[0] if "interval" in head]
    assert len(heads) == 5
    assert all(head.startswith("80 % interval of the ") for head in heads)


def test_tables_for_latex_have_no_sign_that_it_refuses(ended, models):
    """What is not ASCII there is a dash or a letter with an accent, which pdfLaTeX reads."""
    rows = [{"name": "6.16×10⁻⁶ µg/m² ≤ Δ at 20 °C, “café”", "estimate": 6.16e-6}]
    latex = Table.of("t", "λ", rows).latex()
    assert (
        r"6.16$\times$10$^{-6}$ $\mu$g/m$^{2}$ $\le$ $\Delta$ at 20 $^\circ$C, “café” & 6.16$\times$10$^{-6}$" in latex
    )
    found = analyse(*read(ended), models, AnalysisSettings(resamples=2))
    assert set("".join(table.latex() for table in found.tables())) - set(map(chr, range(128))) <= set("–")


def test_settings_come_back_as_they_were():
    settings = AnalysisSettings(("hour", "time"), None, "walk", 0.9, 10, 3, BEGIN)
    assert AnalysisSettings.from_json(settings.to_json()) == settings


def test_simulated_trials_are_part_of_it(ended, models):
    found = analyse(*read(ended), models, AnalysisSettings(resamples=2))
    assert found.personal.effect == found.effects.primary.fitted["acting"].value
    tables = {each.name: each for each in found.tables()}
    null = read_csv(tables["personalisation_null"])
    names = [each.measure.name for each in found.personal.statistics]
    assert [[float(row[name]) for name in names] for row in null] == [
        [each.null[place] for each in found.personal.statistics] for place in range(2)
    ]
    without = analyse(*read(ended), None, AnalysisSettings(resamples=2))
    assert without.personal is None
    assert "the models of the trial are needed" in without.no_personal


def test_a_trial_is_live_until_everybody_has_reached_their_last_day(record):
    assert not is_live(record, datetime(2027, 1, 1, tzinfo=UTC))
    early = replace(record, until=min(point.at for point in record.points))
    assert is_live(early, early.until + timedelta(days=1))
