"""What a notebook shows: short texts, HTML in which every name is escaped, and figures."""

import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from data.tables import ROLES, ROWS, read
from kerneltrail.data import Cohort, User
from kerneltrail.gp import Prediction
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.report.figures import NotebookFigure
from kerneltrail.trajectory.effects import Effect, Effects
from kerneltrail.views import VIEWS, show
from trajectory.small import follow, mean_model, rows, small_model

EVIL = "<script>alert('&')</script>"


class Tags(HTMLParser):
    """The tags of a text, and the text between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells, self.open, self.text = [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in ("img", "source"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.cells:
            self.cells[-1] += data.strip()


def followed(model, name="anna", batches=None):
    user = model.new_user(name)
    follow(user, rows(name, n=20, seed=5), batches)
    return user


def renamed(cohort_name=EVIL):
    rows_of_one = {**ROWS, "who": [cohort_name if name == "ann" else name for name in ROWS["who"]]}
    return read(rows_of_one)


def test_reprs_are_short():
    model = small_model()
    user = followed(model)
    assert repr(model) == (
        "TrajectoryModel of 3 pilot users: mood from hour, steps; 3 kernels: SE[hour], LIN[steps] + SE[hour], "
        "LIN[steps] + PER[hour]*SE[steps]"
    )
    kernel, probability = user.composition.text, user.probabilities[user.composition]
    assert repr(user).startswith(f"NewUser 'anna': 20 rows in 5 batches, {kernel} (")
    assert repr(user.history[1]).startswith("SelectionStep: batch 2, 8 rows so far, ")
    assert ("> 0.99" if probability > 0.99 else f"{probability:.2f}") in repr(user)
    assert repr(model.new_user("bob")) == "NewUser 'bob': no rows yet"
    assert repr(read()) == "Cohort: 2 users, 7 rows, steps from hour, activity"


def test_greedy_selection_states_no_probability():
    user = small_model().new_user("anna", selection="greedy")
    follow(user, rows("anna", seed=5))
    assert repr(user).endswith("(greedy)")
    assert "its probability" not in Tags(user._repr_html_()).cells


@pytest.mark.parametrize(
    ("means", "text"),
    [
        ([], "Prediction at 0 rows"),
        ([1.5], "Prediction at 1 row: mean 1.5, sd 2"),
        ([1.5, -3.0], "Prediction at 2 rows: mean -3 to 1.5, sd 2"),
    ],
)
def test_a_prediction_states_its_range(means, text):
    assert repr(Prediction(np.array(means), np.full(len(means), 3.0), 1.0)) == text


def test_effects_print_as_a_table():
    effects = followed(mean_model()).effects()
    head, columns, *lines = repr(effects).splitlines()
    assert head == "Effects on mood after 20 rows"
    assert columns.split("  ")[0] == "covariate"
    assert [line.split()[0] for line in lines] == [effect.covariate for effect in effects]
    change = columns.index("change")
    for line, effect in zip(lines, effects, strict=True):
        # Two digits of the interval's width are shown: within 6 % of it (half a unit of the second digit).
        shown = float(line[change:].split()[0].replace("−", "-"))
        assert abs(shown - effect.size) <= 0.06 * float(np.ptp(effect.interval()))


def test_a_cohort_is_a_table_of_its_users():
    cohort = read()
    cells = Tags(cohort._repr_html_()).cells
    assert cells[:7] == ["user", "rows", "batches", "mean steps", "sd", "from", "to"]
    assert cells[7:14] == ["ann", "4", "2", "2.50", "1.29", "1", "4"]
    assert cells[14:] == ["bob", "3", "2", "6.00", "1.00", "1", "3"]


def test_times_are_shown_to_the_minute_and_users_without_order_have_none():
    times = np.array(["2024-03-04T08:12:54", "2024-03-05T10:00:01"], dtype="datetime64[us]")
    users = [User("a", ["x"], [[0.0], [1.0]], [1.0, 2.0], [2], order=times), User("b", ["x"], [[0.0]], [1.0], [1])]
    cells = Tags(Cohort.from_users(users)._repr_html_()).cells
    assert cells[12:14] == ["2024-03-04 08:12", "2024-03-05 10:00"]
    assert cells[18:] == ["–", "–", "–"]  # one row has no spread


def test_a_large_cohort_is_cut_and_says_so():
    users = [User(f"u{i}", ["x"], [[float(i)]], [1.0], [1]) for i in range(40)]
    html = Cohort.from_users(users)._repr_html_()
    assert "the first 30 of 40 users" in html
    assert "u29" in html
    assert "u30" not in html


def test_dropped_rows_are_mentioned():
    gap = {**ROWS, "hour": [None, *ROWS["hour"][1:]]}
    assert "dropped, hour missing" in read(gap, missing="drop")._repr_html_()
    assert "dropped" not in read()._repr_html_()


def test_a_model_is_its_graph_with_words():
    html = Tags(small_model()._repr_html_())
    assert "picture" in html.tags
    assert "LIN[steps] + SE[hour]: 2 pilot users of 3" in html.text
    assert "What remains unexplained" in html.text


def test_a_user_is_a_path_and_effects():
    user = followed(mean_model())
    html = Tags(user._repr_html_())
    kernels = [step.composition.text for step in user.history]
    runs = sum(a != b for a, b in zip(kernels, ["", *kernels], strict=False))
    assert html.cells[:4] == ["batch", "rows seen", "kernel", "its probability"]
    assert html.cells[4 : 4 + 4 * runs : 4][0].startswith("1")
    assert html.cells[4 + 4 * runs] == "covariate"
    assert "What was found of anna" in html.text


def test_a_user_before_any_row_says_what_is_known():
    assert "Nothing is known before the first rows" in small_model().new_user("bob")._repr_html_()
    assert "Expected, from the pilot users" in mean_model().new_user("bob")._repr_html_()


def test_effects_without_a_schema_are_a_table_and_a_figure():
    effects = replace(followed(mean_model()).effects(), schema=None)
    assert "li" not in Tags(effects._repr_html_()).tags
    assert len([ax for ax in effects.plot().axes if ax.get_title(loc="left")]) == len(effects)


def evil_model():
    """A model whose target, users and label of a covariate are written as markup."""
    model = mean_model()
    schema = replace(model.schema, target=EVIL, units={EVIL: EVIL, "hour": EVIL}, labels={"hour": EVIL})
    return replace(model, schema=schema, users=(EVIL, *model.users[1:]))


@pytest.mark.parametrize(
    "thing",
    [renamed, evil_model, lambda: followed(evil_model(), EVIL), lambda: followed(evil_model(), EVIL).effects()],
    ids=["cohort", "model", "user", "effects"],
)
def test_names_that_look_like_markup_stay_text(thing):
    html = thing()._repr_html_()
    seen = Tags(html)
    assert "script" not in seen.tags
    assert EVIL in seen.text


def test_every_tag_is_closed():
    for thing in (read(), small_model(), followed(mean_model()), followed(mean_model()).effects()):
        assert Tags(thing._repr_html_()).open == []


def test_plots_are_figures_that_a_notebook_shows():
    user = followed(mean_model(), "a $ b $")  # dollars are not mathematics
    for figure in (user.plot(), user.plot(width=4.2), user.model.plot(), user.effects().plot()):
        assert isinstance(figure, Figure)
        assert isinstance(figure, NotebookFigure)
        assert figure._repr_png_().startswith(b"\x89PNG")
        buffer = io.BytesIO()
        figure.savefig(buffer)
        assert buffer.getvalue()


def test_a_panel_shows_the_curve_and_its_band_in_data_units():
    effects = followed(mean_model()).effects()
    for effect, ax in zip(effects, effects.plot().axes, strict=False):
        assert ax.get_title(loc="left") == effect.covariate
        line = next(line for line in ax.lines if len(line.get_xdata()) == len(effect.x))
        np.testing.assert_allclose(line.get_ydata(), effect.curve.mean)
        np.testing.assert_allclose(line.get_xdata(), effect.x)
        low, high = effect.curve.interval(0.9)
        corners = ax.collections[0].get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose((corners.min(), corners.max()), (low.min(), high.max()))


def test_levels_stand_side_by_side_with_their_names():
    curve = NormalMixture([1.0], [[-1.0, 0.0, 1.0]], [[0.04, 0.04, 0.04]])
    change = NormalMixture([1.0], [[2.0]], [[0.08]])
    levels = Effect("activity", "levels", np.arange(3.0), curve, 0.0, 2.0, change, 1.0)
    effects = Effects((levels,), (), 24, 1.0, schema=read().schema)
    (ax,) = effects.plot().axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["still", "active", "unknown"]
    (bars,) = [each for each in ax.collections if len(each.get_paths()) == 3]
    ends = np.array([path.vertices[:, 1] for path in bars.get_paths()])
    np.testing.assert_allclose(ends.T, curve.interval(0.9))
    assert "still" in repr(effects)
    assert "unknown" in repr(effects)


# A service's desk is opened in tests/trial/dashboard.
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "service.desk"])
def test_every_view_can_be_loaded(name):
    things = {"cohort": read, "model": mean_model, "user": lambda: followed(mean_model())}
    things["effects"] = lambda: followed(mean_model()).effects()
    options = {"context": {"hour": 9.0, "steps": 100.0}} if name == "user.decision" else {}
    assert show(name, things[name.partition(".")[0]](), **options)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (
            lambda: Cohort.from_table(ROWS, **{k: v for k, v in ROLES.items() if k != "target"}, targte="steps"),
            "target",
        ),
        (lambda: small_model().new_user("anna", selectoin="greedy"), "selection"),
    ],
    ids=["from_table", "new_user"],
)
def test_a_misspelt_option_is_answered_with_the_nearest(call, hint):
    with pytest.raises(ValueError, match=rf"did you mean '{hint}'\?"):
        call()
