"""Forecasts: numbers are those of a followed user, rows join back, and whatever is odd is said."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from kerneltrail.data import Batching, Cohort
from kerneltrail.data.assignment import Assignment
from kerneltrail.errors import DataError
from kerneltrail.evaluation import forecast
from kerneltrail.gp import Reward
from kerneltrail.trajectory.new_user import NewUser
from trajectory.small import follow, mean_model, rewarded_model, rows, small_model


def centred_model():
    """A reward model in the centred coding, whose tables say who was available and how probable the action was."""
    model = small_model(reward=Reward(("hour",), advantage_variance=0.3, constant_variance=2.0, typical=0.4))
    return replace(model, schema=replace(model.schema, availability="free", probability="chance"))


def history(*names, **more):
    """Rows so far, a dict of columns, of users drawn with their position as seed."""
    return Cohort.from_users([rows(name, seed=10 + i, **more) for i, name in enumerate(names)], target="mood").to_rows()


def future(*names, n=5):
    """Rows to be predicted, users interleaved, without outcome and action."""
    rng = np.random.default_rng(99)
    count = n * len(names)
    return {
        "user": list(names) * n,
        "order": [100 + i // len(names) for i in range(count)],
        "hour": rng.uniform(0, 24, count).tolist(),
        "steps": rng.uniform(0, 500, count).tolist(),
    }


def inputs(table, name):
    of = [i for i, user in enumerate(table["user"]) if user == name]
    return of, np.column_stack([np.array(table[covariate])[of] for covariate in ("hour", "steps")])


def followed(model, name, seed):
    user = model.new_user(name)
    follow(user, rows(name, seed=seed))
    return user


def column(table, name, of):
    return [table[name][i] for i in of]


def test_numbers_are_those_of_the_users_followed_by_hand():
    model, table = small_model(), future("ann", "bob")
    predicted = forecast(model, history("ann", "bob"), table).to_rows()
    for name, seed in (("ann", 10), ("bob", 11)):
        of, X = inputs(table, name)
        ahead = followed(model, name, seed).predict(X)
        assert column(predicted, "mean", of) == pytest.approx(ahead.mean.tolist(), rel=1e-12)
        assert column(predicted, "sd", of) == pytest.approx(np.sqrt(ahead.total).tolist(), rel=1e-12)
        for level in (50, 90):
            low, high = ahead.interval(level / 100)
            assert column(predicted, f"lower_{level}", of) == pytest.approx(low.tolist(), rel=1e-12)
            assert column(predicted, f"upper_{level}", of) == pytest.approx(high.tolist(), rel=1e-12)
        assert column(predicted, "rows_seen", of) == [12] * 5
    assert predicted["table_row"] == list(range(1, 11))
    assert (predicted["user"], predicted["order"]) == (table["user"], table["order"])
    assert not {"advantage", "y", "action"} & set(predicted)


@pytest.mark.parametrize("make", [rewarded_model, mean_model, centred_model])
def test_with_an_action_both_means_and_their_difference(make):
    model, table = make(), future("ann")
    person = rows("ann", seed=10)
    past = {**history("ann"), "free": [1] * 12, "chance": [0.3] * 12}
    user = model.new_user("ann")
    for t in (1, 2, 3):
        batch = person.batch(t)
        user.update(batch.X, batch.y, action=Assignment(batch.action, np.full(batch.rows, 0.3), np.ones(batch.rows)))
    _, X = inputs(table, "ann")
    table = {**table, "action": [0, 1, 0, 1, 1], "chance": [0.2, 0.3, 0.4, 0.5, 0.6]}
    predicted = forecast(model, past, table).to_rows()
    chance = np.array(table["chance"])
    without, acted = (user.predict(X, action=np.full(5, a), probability=chance).mean for a in (0.0, 1.0))
    taken = user.predict(X, action=np.array(table["action"]), probability=chance)
    advantage = user.advantage(X)
    for name, values in {
        "mean": taken.mean, "sd": taken.sd, "upper_90": taken.interval(0.9)[1], "mean_action_0": without,
        "mean_action_1": acted, "advantage": advantage.mean, "advantage_lower_90": advantage.interval(0.9)[0],
        "advantage_upper_90": advantage.interval(0.9)[1], "advantage_positive": advantage.positive,
    }.items():  # fmt: skip
        assert predicted[name] == pytest.approx(values.tolist(), rel=1e-9), name
    difference = np.array(predicted["mean_action_1"]) - np.array(predicted["mean_action_0"])
    assert difference == pytest.approx(predicted["advantage"], abs=1e-9)
    assert predicted["action"] == table["action"]


def test_an_action_that_is_not_known_is_averaged_over():
    """Mean and variance are those of drawing the action, then the outcome.

    With 10⁶ draws and a fixed seed; at 5 standard errors a right mean fails at less than one seed in a million.
    """
    model = centred_model()
    past = {**history("ann"), "free": [1] * 12, "chance": [0.4] * 12}
    table = {**future("ann"), "action": [None, None, None, 1, None], "chance": [0.7, None, 0.7, 0.7, 0.0]}
    table["free"] = [1, 1, 0, 1, 1]
    result = forecast(model, past, table)
    predicted = result.to_rows()
    _, X = inputs(table, "ann")
    user = model.new_user("ann")
    for t in (1, 2, 3):
        batch = rows("ann", seed=10).batch(t)
        user.update(batch.X, batch.y, action=Assignment(batch.action, np.full(batch.rows, 0.4), np.ones(batch.rows)))

    def under(action, chance):
        return user.predict(X, action=Assignment(np.full(5, action), np.full(5, chance), np.ones(5)))

    rng = np.random.default_rng(0)
    for row, chance in ((0, 0.7), (1, 0.4)):  # the second has the typical probability
        off, on = under(0.0, chance), under(1.0, chance)
        drawn = rng.random(1_000_000) < chance
        mean, spread = np.where(drawn, on.mean[row], off.mean[row]), np.where(drawn, on.sd[row], off.sd[row])
        y = mean + spread * rng.standard_normal(len(drawn))
        assert predicted["mean"][row] == pytest.approx(y.mean(), abs=5 * y.std() / 1000)
        assert predicted["sd"][row] == pytest.approx(y.std(), rel=0.01)
        exact = (1 - chance) * off.mean[row] + chance * on.mean[row]
        assert predicted["mean"][row] == pytest.approx(exact, rel=1e-9)
    away = user.predict(X, action=Assignment(np.zeros(5), np.zeros(5), np.zeros(5)))
    assert predicted["mean"][2] == predicted["mean_action_0"][2] == pytest.approx(away.mean[2])
    assert [predicted[name][2] for name in ("mean_action_1", "advantage", "advantage_positive")] == [None] * 3
    assert predicted["mean"][3] == pytest.approx(under(1.0, 0.7).mean[3])
    assert predicted["mean"][4] == pytest.approx(under(0.0, 0.0).mean[4])
    [note] = [note for note in result.notes if "not known" in note]
    assert "action not known: 3 rows" in note
    assert "(0.40 where it is not given)" in note


def test_without_any_probability_only_both_means_are_given():
    result = forecast(rewarded_model(), history("ann"), future("ann"))
    predicted = result.to_rows()
    assert predicted["mean"] == predicted["upper_90"] == [None] * 5
    assert None not in predicted["mean_action_0"] + predicted["advantage_positive"]
    assert any("nor its probability: 5 rows; mean, sd and intervals are empty" in note for note in result.notes)


def test_the_order_of_columns_does_not_matter():
    model, past, table = rewarded_model(), history("ann", "bob"), future("ann", "bob")
    one = forecast(model, past, table).to_rows()
    turned = [{name: given[name] for name in reversed(given)} for given in (past, table)]
    assert forecast(model, *turned).to_rows() == one


def test_rows_join_back_when_some_are_dropped_and_none_are_sorted():
    model = small_model()
    table, past = future("ann", "bob"), history("ann", "bob")
    whole = forecast(model, past, table).to_rows()
    mixed = np.random.default_rng(1).permutation(10)
    shuffled = {name: [values[i] for i in mixed] for name, values in table.items()}
    gap = 4
    shuffled["steps"][gap] = None
    back = np.random.default_rng(2).permutation(24)
    past = {name: [values[i] for i in back] for name, values in past.items()}
    with pytest.raises(DataError, match=rf"'steps' of the table is missing in row {gap + 1}, user"):
        forecast(model, past, shuffled)
    result = forecast(model, past, shuffled, missing="drop")
    part = result.to_rows()
    assert part["table_row"] == [i + 1 for i in range(10) if i != gap]
    for place, number in enumerate(part["table_row"]):
        original = int(mixed[number - 1])
        assert part["mean"][place] == pytest.approx(whole["mean"][original], rel=1e-9)
        assert (part["user"][place], part["order"][place]) == (table["user"][original], table["order"][original])
    assert "dropped, steps missing: 1 row" in str(result.reports["the table"])


def test_users_without_rows_so_far_are_new_users_and_said_to_be():
    model, table = small_model(), future("ann", "eve")
    result = forecast(model, history("ann"), table)
    assert "no rows so far, predicted as a new user: eve" in result.notes
    predicted = result.to_rows()
    of, X = inputs(table, "eve")
    assert column(predicted, "mean", of) == pytest.approx(model.new_user().predict(X).mean.tolist())
    assert column(predicted, "rows_seen", of) == [0] * 5
    everybody = forecast(model, None, table)
    assert everybody.notes[0] == "no rows so far, predicted as new users: ann, eve"
    assert not any("suspicious" in note for note in everybody.notes)
    strangers = forecast(model, history("Ann"), future("ann"))
    assert any("are users named alike in both tables?" in note for note in strangers.notes)


@pytest.mark.parametrize("known", ["history", "saved"])
def test_who_is_left_out_is_no_stranger(known):
    """Ann was known before, but one of her rows cannot be used: that nobody has rows so far would be a false lead."""
    model, table = small_model(), future("ann", "eve")
    table["hour"] = ["late", *map(str, table["hour"][1:])]
    if known == "history":
        result = forecast(model, history("ann"), table, skip_refused=True)
    else:
        result = forecast(model, history("bob"), table, users=[followed(model, "ann", 10)], skip_refused=True)
    assert set(result.to_rows()["user"]) == {"eve"}
    assert "'late' in row 1" in result.left_out[0]
    assert not any("named alike" in note for note in result.notes)


def test_a_saved_user_stands_for_its_history(tmp_path):
    model, table = small_model(), future("ann")
    followed(model, "ann", 10).save(tmp_path / "ann.user")
    ann = model.load_user(tmp_path / "ann.user")
    by_rows, by_file = forecast(model, history("ann"), table), forecast(model, None, table, users=[ann])
    assert by_file.to_rows()["mean"] == pytest.approx(by_rows.to_rows()["mean"], rel=1e-12)
    assert by_file.to_rows()["rows_seen"] == [12] * 5
    with pytest.raises(DataError, match="would count twice"):
        forecast(model, history("ann"), table, users=[ann])
    with pytest.raises(DataError, match="'ann' is given twice"):
        forecast(model, None, table, users=[ann, ann])
    with pytest.raises(DataError, match="has no rows of user 'ann'; did you mean 'anna'"):
        forecast(model, None, future("anna"), users=[ann])


def test_values_that_no_pilot_user_had_are_named():
    model, table = small_model(), future("ann")
    low, high = model.scaler.low, model.scaler.high
    table["hour"] = [low[0], high[0], high[0] + 0.01, low[0] - 5, 12.0]
    table["steps"] = [low[1], high[1], low[1], high[1] + 1, 100.0]
    result = forecast(model, None, table)
    assert result.to_rows()["outside"] == [[], [], ["hour"], ["hour", "steps"], []]
    assert "outside the pilot users' range: 2 rows (hour 2, steps 1)" in result.notes


def test_unscaled_covariates_have_no_known_range():
    result = forecast(small_model(scaling="none"), None, future("ann"))
    assert result.to_rows()["outside"] == [[]] * 5
    assert any("ranges are not known" in note for note in result.notes)


def test_outcomes_are_carried_along_where_they_are_known():
    table = {**future("ann"), "mood": [1.0, None, 0.5, None, 2.0]}
    assert forecast(small_model(), None, table).to_rows()["y"] == [1.0, None, 0.5, None, 2.0]


def test_rows_that_are_not_later_than_the_history_are_suspicious():
    table = {**future("ann"), "order": [11, 12, 13, 14, 15]}  # the history is 1 to 12
    result = forecast(small_model(), history("ann"), table)
    assert "suspicious, not later than the user's last row so far: 2 rows (ann 2)" in result.notes
    times = [datetime(2024, 1, 1) + timedelta(days=i) for i in range(5)]
    result = forecast(small_model(), history("ann"), {**table, "order": times})  # numbers and times do not compare
    assert not any("suspicious" in note for note in result.notes)


def test_further_columns_are_kept_and_unknown_ones_refused():
    table = {**future("ann"), "batch": [1, 1, 2, 2, 3], "site": list("abcde"), "mean": list("vwxyz")}
    predicted = forecast(small_model(), None, table, keep=["site", "mean", "site"]).to_rows()
    assert list(predicted)[:6] == ["table_row", "user", "order", "batch", "site", "mean_"]
    assert (predicted["batch"], predicted["site"], predicted["mean_"]) == (table["batch"], list("abcde"), list("vwxyz"))
    assert all(isinstance(mean, float) for mean in predicted["mean"])
    both = forecast(small_model(), None, {**table, "mean_": list("klmno")}, keep=["mean", "mean_"])
    assert (both.to_rows()["mean_"], both.to_rows()["mean__"]) == (list("klmno"), list("vwxyz"))
    assert "written under another name, since a column of the forecast has it: mean as mean__" in both.notes
    with pytest.raises(DataError, match="has no column 'sight'; did you mean 'site'"):
        forecast(small_model(), None, table, keep=["sight"])


def test_what_a_table_lacks_is_named():
    model, table = small_model(), future("ann")
    with pytest.raises(DataError, match="has no column 'steps'"):
        forecast(model, None, {name: table[name] for name in ("user", "order", "hour")})
    with pytest.raises(DataError, match="has no columns 'hour', 'steps', which the model predicts from; it has user"):
        forecast(model, None, {name: table[name] for name in ("user", "order")})
    with pytest.raises(DataError, match="has no column 'order'"):
        forecast(model, None, {name: table[name] for name in ("user", "hour", "steps")})
    past = history("ann")
    del past["mood"]
    with pytest.raises(DataError, match=r"has no column 'mood', so nobody can be followed .*kerneltrail predict"):
        forecast(model, past, table)


def test_who_cannot_be_used_is_left_out_or_stops_everything(monkeypatch):
    model, past, table = small_model(), history("ann", "bob", "eve"), future("ann", "bob", "eve")
    past["mood"][0] = "much"  # ann's
    table["hour"][1] = "noon"  # bob's
    with pytest.raises(DataError, match="'noon'"):
        forecast(model, past, table)
    result = forecast(model, past, table, skip_refused=True)
    assert set(result.to_rows()["user"]) == {"eve"}
    assert [line.split(" is ")[0] for line in result.left_out] == ["user 'bob'", "user 'ann'"]
    real = NewUser.update

    def update(self, *arguments, **more):
        if self.name == "bob" and self.batches == 1:
            raise ZeroDivisionError("division by zero")
        return real(self, *arguments, **more)

    monkeypatch.setattr(NewUser, "update", update)
    sound = forecast(model, history("ann", "bob"), future("ann", "bob"), skip_refused=True)
    assert set(sound.to_rows()["user"]) == {"ann"}
    assert "user 'bob' is left out, for rows 5 to 8 (batch 2): ZeroDivisionError" in sound.left_out[0]
    with pytest.raises(ZeroDivisionError):
        forecast(model, history("ann", "bob"), future("ann", "bob"))
    with pytest.raises(DataError, match=r"no row of the table can be predicted(.|\n)*'bob' is left out"):
        forecast(model, history("bob"), future("bob"), skip_refused=True)


def test_batches_and_selection_may_be_others_than_the_model_s():
    model, table = small_model(), future("ann")
    by_two = forecast(model, history("ann"), table, batching=Batching(size=2), changes={"selection": "greedy"})
    user, person = model.new_user("ann", selection="greedy"), rows("ann", seed=10, size=2)
    follow(user, person)
    assert by_two.to_rows()["mean"] == pytest.approx(user.predict(inputs(table, "ann")[1]).mean.tolist(), rel=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_any_kind_come_back_as_their_kind(library):
    frames = pytest.importorskip(library)
    model, past, table = small_model(), history("ann"), future("ann")
    table = {**table, "hour": [*table["hour"][:4], None], "mood": [None, 1.0, None, None, None]}
    make = frames.table if library == "pyarrow" else frames.DataFrame
    given = make(table)
    if library == "pandas":
        given.index = [f"r{i}" for i in range(5)]
    result = forecast(model, make(past), given, missing="drop")
    frame = result.to_frame()
    assert isinstance(frame, type(given))
    assert np.asarray(frame["mean"]).tolist() == result.to_rows()["mean"]
    assert np.asarray(frame["table_row"]).tolist() == [1, 2, 3, 4]
    assert result.to_rows()["y"] == [None, 1.0, None, None]
    if library == "pandas":
        assert list(frame.index) == ["r0", "r1", "r2", "r3"]
        assert given.join(frame["mean"])["mean"].notna().tolist() == [True, True, True, True, False]


def test_another_unit_is_told_of_rows_so_far_and_else_of_rows_to_predict():
    model, hot = small_model(), {"hour": [40.0 + i for i in range(60)]}
    past = Cohort.from_users([rows("ann", seed=10)], target="mood").to_rows()
    both = forecast(model, {**past, "hour": hot["hour"][:12]}, {**future("ann"), "hour": hot["hour"][:5]})
    (found,) = both.odd  # once, though it holds of both tables
    assert (found.code, found.columns, found.users) == ("pilot-range", ("hour",), ("ann",))
    assert found.message.startswith("covariate 'hour' of user 'ann' lies between 40 and 51")
    (found,) = forecast(model, None, {**future("ann", "bob"), "hour": hot["hour"][:10]}).odd
    assert found.message.startswith("in the table, covariate 'hour' of all users lies between 40 and 49")
    assert found.rows == tuple(range(1, 11))
    # A row or two of somebody say nothing of a unit: such values are counted as outside of the range, and no more.
    assert forecast(model, None, {**future("ann", n=4), "hour": hot["hour"][:4]}).odd == ()
    assert forecast(model, past, future("ann")).odd == ()
