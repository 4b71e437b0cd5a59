"""Probabilities that actions contradict are found in their levels, hardly ever by chance; empty cells are counted."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kerneltrail.data.checks.probabilities import FALSE_ALARMS, Level, contradicted, levels, log_ratio

from .study import look, one, study
from .test_mistakes import only

CLEAN = study()
COUNT = len(CLEAN["who"])


def drawn(seed: int = 0, chances: tuple[float, ...] = (0.4, 0.6)) -> dict[str, list[Any]]:
    """The clean table with actions drawn at the first probability in one row, at the second in the next, and so on."""
    chance = np.tile(chances, COUNT)[:COUNT] * np.array(CLEAN["free"])
    sent = np.random.default_rng(seed).random(COUNT) < chance
    return {**CLEAN, "chance": chance.tolist(), "sent": sent.astype(float).tolist()}


def turned(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """With the probability of not acting in place of that of acting."""
    chance = [1.0 - p if free else 0.0 for p, free in zip(rows["chance"], rows["free"], strict=True)]
    return {**rows, "chance": np.round(chance, 9).tolist()}


@pytest.mark.parametrize("chances", [(0.4, 0.6), (0.3, 0.5, 0.7), tuple(np.linspace(0.25, 0.75, 37).tolist())])
def test_the_probability_of_not_acting_is_recognised_though_the_mean_is_right(chances: tuple[float, ...]) -> None:
    """Of tables that a person would miss it in: with 1 − p as many actions are expected altogether."""
    rows = drawn(chances=chances)
    assert look(rows).findings == ()
    found = only(look(turned(rows)), "probability", "warning")
    assert found.message.startswith("action 'sent' does not follow probability 'chance': it is 1 in ")
    assert found.advice == "That is no chance, and 1 less the probability fits: it is that of not acting."


def test_levels_are_told_with_their_shares() -> None:
    found = one(look(turned(drawn())), "probability")
    action, chance, free = (np.array(turned(drawn())[name]) for name in ("sent", "chance", "free"))
    said = [
        f"in {100 * action[level].mean():.0f} % of {level.sum()} rows with {p}"
        for p in (0.4, 0.6)
        if (level := (chance == p) & (free == 1.0)).any()
    ]
    assert found.message.endswith(f"it is 1 {' and '.join(said)}")


def test_actions_that_ignore_the_probability_are_found_within_levels() -> None:
    rows = drawn(chances=(0.1, 0.5, 0.9))
    other = np.random.default_rng(1).random(COUNT) < 0.5
    ignoring = {**rows, "sent": [float(a and f) for a, f in zip(other, rows["free"], strict=True)]}
    found = only(look(ignoring), "probability", "warning")
    assert "rows with 0.1" in found.message
    assert "rows with 0.9" in found.message
    assert "rows with 0.5" not in found.message
    assert "of another action" in found.advice


def test_a_wrong_share_altogether_is_told_once() -> None:
    rows = drawn()
    low = {**rows, "chance": [0.25 * value for value in rows["chance"]]}
    found = only(look(low), "probability", "warning")
    assert "of the rows, where probability 'chance' says 13 %" in found.message


def mixed(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Few rows, and probabilities near 0 and 1, where the bell curve is far off."""
    rows = int(rng.integers(1, 60))
    kind = rng.integers(3)
    if kind == 0:
        return np.full(rows, rng.choice([0.01, 0.05, 0.3, 0.5, 0.95]))
    return rng.choice([0.02, 0.4, 0.9], rows) if kind == 1 else rng.beta(0.5, 0.5, rows).clip(0.001, 0.999)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_the_false_alarms_are_no_more_than_is_said(alpha: float) -> None:
    """Both rules at rates that 4000 tables can show; by Chernoff and Markov they hold at one in a million, too."""
    rng, tables, told, turned_told = np.random.default_rng(5), 4000, 0, 0
    for _ in range(tables):
        chance = mixed(rng)
        action = (rng.random(len(chance)) < chance).astype(float)
        told += Level.of(chance, action).log_bound < np.log(alpha)
        turned_told += log_ratio(chance, action) > -np.log(alpha)
        assert not contradicted(chance, action)  # at most 4000 in a million by chance
        assert log_ratio(chance, action) < np.log(2.0 / FALSE_ALARMS)
    limit = alpha * tables + 4.0 * np.sqrt(alpha * tables)
    assert told <= limit
    assert turned_told <= limit


def test_probabilities_that_depend_on_earlier_draws_raise_no_alarm() -> None:
    """Who was prompted often is prompted less: 500 trials, of which at most 0.0005 are told on average."""
    rng = np.random.default_rng(6)
    for _ in range(500):
        chance, action = np.empty(200), np.empty(200)
        for i in range(200):
            chance[i] = 0.7 if action[max(0, i - 5) : i].sum() < 2.0 else 0.2
            action[i] = float(rng.random() < chance[i])
        assert not contradicted(chance, action)
        assert log_ratio(chance, action) < np.log(2.0 / FALSE_ALARMS)


def test_of_many_probabilities_neighbouring_ones_are_taken_together() -> None:
    chance = np.random.default_rng(0).random(500)
    parts = levels(chance, np.zeros(500))
    assert [each.rows for each in parts] == [50] * 10
    assert all(a.high < b.low for a, b in pairwise(parts))
    assert len(levels(np.round(chance, 1).clip(0.1, 1.0), np.zeros(500))) == 10


def test_cells_that_are_empty_where_nobody_could_act_are_counted_as_the_table_has_them() -> None:
    away = [not free for free in CLEAN["free"]]
    rows = drawn()
    rows["chance"] = [None if gone else value for gone, value in zip(away, rows["chance"], strict=True)]
    found = only(look(rows), "missing", "note")
    share = f"{sum(away)} rows ({100 * sum(away) / COUNT:.0f} %)"
    assert found.message == f"column 'chance' is missing in {share} at which the user was not available"
    assert found.advice == "Nothing was drawn there, so that they are taken as 0."
    assert len(found.rows) == sum(away)
    check = look({**rows, "sent": [None if gone else v for gone, v in zip(away, rows["sent"], strict=True)]})
    assert one(check, "missing").columns == ("sent", "chance")
    columns = {column.name: column for column in check.columns}
    assert columns["chance"].missing == columns["sent"].missing == pytest.approx(sum(away) / COUNT)
    assert (columns["chance"].rows, columns["chance"].distinct) == (COUNT - sum(away), 2)
    assert columns["chance"].quantiles[0] == 0.4  # what was filled in is no probability that anybody logged
    assert columns["free"].missing == 0.0
    assert "missing values" not in check.fine
