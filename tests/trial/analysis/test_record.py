"""The record as points and columns, beside the exported tables."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import DataError, TrialError
from kerneltrail.trial.analysis.effects import estimate_effects
from kerneltrail.trial.analysis.record import TIME, chosen_moderators, column_of, end_of, read_record
from kerneltrail.trial.export import table
from kerneltrail.trial.ledger import State
from kerneltrail.trial.ledger.entries import instant
from kerneltrail.trial.protocol import Protocol

from ..study import protocol
from .study import read


def test_columns_are_those_of_the_exported_table(state, record):
    columns, rows = record.columns(), table(state, "mrt")[1]
    assert len(rows) == len(record.points) > 50
    for name in ("id", "treatment", "rand_prob", "availability", "hour", "steps"):
        assert columns[name].tolist() == [row[name] for row in rows]
    missing = [row["outcome"] is None for row in rows]
    np.testing.assert_array_equal(np.isnan(columns["outcome"]), missing)
    assert 0 < sum(missing) < len(missing)


def test_days_count_from_the_first_day_on_the_participants_clock(state, record):
    for row, day in zip(table(state, "decisions")[1], record.columns()[TIME], strict=True):
        assert day == int(row["decided_at"][8:10]) - 1  # the trial begins on 1 March


def test_it_ends_with_the_newest_entry_about_a_participant(state, record):
    assert record.until == end_of(state)
    removal = state.participants["p05"].changes[-1]
    assert record.until == instant(removal.received_at)  # it was the last thing that happened to anybody


def test_what_was_looked_for_and_not_found_is_told_from_what_nobody_recorded(state, record):
    lost = [point for point in record.points if point.outcome is None]
    found = {row["decision_id"] for row in table(state, "outcomes")[1] if row["value"] is None}
    assert 0 < sum(point.looked_for for point in lost) == len(found) < len(lost)


def test_names_that_are_none_are_refused(record, ended):
    with pytest.raises(DataError, match=r"'hours' is no covariate of the trial.*'hour'"):
        record.moderator("hours")
    assert record.moderator("time") == (TIME,)
    with pytest.raises(DataError, match="no decision of the kind 'rest'"):
        read_record(*read(ended), kind="rest")


def test_a_level_is_a_column_for_each_but_the_first(record):
    three = replace(record, covariates={"hour": ("hour: b", "hour: c")})
    columns = three.columns()
    hours = [point.context["hour"] for point in record.points]
    assert columns["hour: b"].tolist() == [float(each == 1) for each in hours]
    assert columns["hour: c"].tolist() == [float(each == 2) for each in hours]
    assert three.moderator("hour") == ("hour: b", "hour: c")


def renamed(record, names):
    """The record of a trial whose covariates are called otherwise."""
    text = json.dumps(record.protocol.to_json())
    points = record.points
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    for place, point in enumerate(points):
        context = {names[name]: value for name, value in point.context.items()}
        points = (*points[:place], replace(point, record={**point.record, "arrived": context}), *points[place + 1 :])
    protocol = Protocol.from_json(json.loads(text))
    covariates = {name: (column_of(name, protocol.covariates),) for name in protocol.covariates}
    return replace(record, protocol=protocol, points=points, covariates=covariates)


@pytest.mark.parametrize("name", ["time", "outcome", "treatment", "id", "availability", "acting", "self"])
def test_a_covariate_may_be_called_as_anything_else_is_and_nothing_changes(record, name):
    other = renamed(record, {"hour": name, "steps": "steps"})
    assert chosen_moderators(other, None)[0] == name
    before, after = (
        estimate_effects(each, chosen_moderators(each, None), controls=("steps",)) for each in (record, other)
    )
    for one, two in zip((before.primary, *before.moderated), (after.primary, *after.moderated), strict=True):
        assert one.fitted is not None
        np.testing.assert_array_equal(one.fitted.estimates, two.fitted.estimates)
        assert one.places == two.places
    assert [each.name for each in after.moderated] == [name, TIME]
    assert [other.label(each) for each in after.moderated[0].moderators] == [name]


def test_without_decisions_there_is_nothing_to_analyse():
    with pytest.raises(TrialError, match="nothing to analyse"):
        read_record(State("walks"), protocol())
