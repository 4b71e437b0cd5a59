"""What the page says: facts of nodes, methods compared, embedded data, graphs inside the page."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from kerneltrail.data import in_data_units
from kerneltrail.errors import DataError
from kerneltrail.evaluation import Evaluation
from kerneltrail.kernels import Hyperparameters, Pool
from kerneltrail.report.graph import Graph, graph_layout, inline_svg, key_masks
from kerneltrail.report.model_page import Comparison, GraphBlock, PathsBlock, trail_page
from kerneltrail.report.model_page.axes import brief
from kerneltrail.report.model_page.comparison import comparison_section
from kerneltrail.report.model_page.facts import facts
from kerneltrail.report.model_page.followed_user import follow_users
from kerneltrail.report.model_page.paths import path_table
from kerneltrail.report.templating import ENVIRONMENT, asset
from kerneltrail.trajectory.settings import Settings
from trajectory.small import mean_model, rows, small_model


class TestFacts:
    def test_values_are_in_data_units_with_variances_as_deviations(self):
        model = small_model()
        node, fact = model.nodes[1], facts(model, (2,))[2]
        centre = in_data_units(Hyperparameters(node.composition, tuple(node.group.mean)), model.scaler)
        found = {(value.part, value.name): value.centre for value in fact.values}
        assert found["SE[hour]", "lengthscale"] == f"{centre['SE[hour].lengthscale']:.3g} hours"
        assert found["SE[hour]", "typical size"] == f"±{centre['SE[hour].amplitude'] ** 0.5:.3g}"
        assert found["LIN[steps]", "typical slope"].endswith(" per steps")
        assert found["noise", "typical size"] == f"±{centre['noise'] ** 0.5:.3g}"
        assert fact.key

    def test_the_spread_is_the_groups_interval_in_data_units(self):
        model = small_model()
        node, fact = model.nodes[0], facts(model, ())[1]
        names = Hyperparameters(node.composition, tuple(node.group.mean)).layout.names
        place = names.index("SE[hour].lengthscale")
        hours = [
            np.exp(end[place]) * model.scaler.length("hour", 1.0) for end in node.group.interval(0.9, model.priors)
        ]
        assert list(map(float, fact.values[place].spread.split(" to "))) == pytest.approx(hours, rel=0.05)  # two digits

    def test_who_passed_and_where_they_went(self):
        model = small_model()
        root, a, b, _ = facts(model, ())
        assert [(way.name, way.label) for way in root.ways] == [("SE[hour]", "3/3")]
        assert a.passed == (("pilot 0", "batch 1"), ("pilot 1", "batches 1–2"), ("pilot 2", "batch 1"))
        assert [(way.to, way.label, way.stays) for way in a.ways] == [
            (2, "2/4", False),
            (1, "1/4", True),
            (3, "1/4", False),
        ]
        assert b.passed == (("pilot 0", "batches 2–3"), ("pilot 1", "batch 3"))


class TestSettingsInWords:
    def test_how_a_graph_was_chosen_and_chains_begun_is_as_set(self):
        text = trail_page(None, small_model())
        assert "Chosen is the simplest graph within 2 of the best log joint;" in text
        assert "6 sweeps, begun apart." in text
        text = trail_page(None, small_model(settings=Settings.published()))
        assert "with which the others agree most, of those within 55 of the best log likelihood;" in text
        assert "6 sweeps, begun with kernels drawn at random." in text
        text = trail_page(None, small_model(settings=Settings(start="best")))
        assert "6 sweeps, begun with each pilot user in the kernels that suit it best by itself." in text


def test_chains_agree_only_where_every_rhat_is_below_what_was_asked_for():
    model = small_model()

    def said(**rhat):
        return trail_page(None, replace(model, diagnostics=replace(model.diagnostics, rhat=rhat)))

    assert "1.010, below 1.05: the chains agree." in said(log_joint=1.01, agreement=1.02)
    text = said(log_joint=1.01, agreement=1.06)
    assert "1.010, below 1.05. Not below it: agreement with the chosen paths (1.060)." in text
    assert "1.200, not below 1.05: the chains do not agree" in said(log_joint=1.2, agreement=1.0)


def test_fits_over_rows_need_no_axis_of_their_own():
    model = small_model()
    users = follow_users(model, [rows("new", seed=4)])
    over_rows, over_x = (
        PathsBlock(model, [replace(users[0], by_row=by_row)]).data()["users"][0]["steps"] for by_row in (True, False)
    )
    assert all("x" not in step["fit"] for step in over_rows)
    assert all(len(step["fit"]["x"]) == len(step["fit"]["mean"]) for step in over_x)


class TestGraph:
    def test_every_box_and_arrow_can_be_found(self):
        graph = Graph.of(Pool.paper(), ((1, 3, 3), (1, 1, 3), (2, 4, 4), (2, 2, 4)))
        svg = inline_svg(graph, graph_layout(graph), css_class="drawing", label="a <graph>", box_labels=["<b>"] * 5)
        assert re.findall(r'data-node="(\d)"', svg) == list("01234")
        edges = re.findall(r'<g class="edge" data-edge="(\d \d)"', svg)
        assert edges == [f"{link.parent} {link.child}" for link in graph.links]
        assert "a &lt;graph&gt;" in svg
        assert "<b>" not in svg

    def test_key_compositions_are_those_in_which_many_end(self):
        assert key_masks(((1, 2),) * 5 + ((1, 4),) * 4 + ((1, 8),)) == (2, 4)
        assert key_masks(tuple((mask,) for mask in range(1, 11))) == tuple(range(1, 11))

    def test_a_card_for_every_box(self):
        html = GraphBlock(small_model()).html()
        assert re.findall(r'data-card="(\d)"', html) == list("0123")


def embedded(data):
    """Data as a page carries them for its script."""
    return ENVIRONMENT.from_string("{{ data|tojson }}").render(data=data)


class TestEmbedded:
    def test_it_reads_back_and_cannot_end_its_element(self):
        data = {"name": "</script><!-- & ü", "x": [1.5, None]}
        inside = embedded(data)
        assert "<" not in inside
        assert json.loads(inside) == data

    def test_what_json_does_not_have_is_refused(self):
        with pytest.raises(ValueError, match="JSON"):
            embedded(float("nan"))

    def test_brief(self):
        assert brief(np.array([1.23456, -1e-7, 0.0, 123456.0])) == [1.235, -1e-7, 0.0, 123500.0]

    def test_without_rows_the_learnt_paths_are_there(self):
        users = PathsBlock(small_model()).data()["users"]
        assert [[step["node"] for step in user["steps"]] for user in users] == [[1, 2, 2], [1, 1, 2], [1, 3, 3]]


class TestComparison:
    def test_rows_of_an_experiment(self):
        metrics = [
            {
                "method": "trajectory",
                "t": 0,
                "users": 6,
                "rmse": 2.5,
                "rmse_low": 2.0,
                "rmse_high": 3.0,
                "seconds": None,
            },
            {"method": "mean", "t": 0, "users": 6, "rmse": 2.75},
        ]
        paired = [
            {
                "method": "trajectory",
                "against": "mean",
                "t": 0,
                "metric": "rmse",
                "mean": -0.25,
                "low": -0.5,
                "high": -0.1,
            }
        ]
        found = Comparison.from_results({"metrics": metrics, "paired": paired})
        assert found.methods == ("trajectory", "mean")
        assert found.metrics == ("rmse",)
        assert (found.averages[0].low, found.averages[1].low) == (2.0, 2.75)
        text = comparison_section(found).html()
        assert '<th scope="row">mean</th><td>0</td><td>–</td><td>–</td>' in text
        assert "<td>−0.250 (−0.500 to −0.100) wins</td>" in text

    def test_means_over_fewer_users_are_marked_and_not_drawn(self):
        metrics = [
            {"method": name, "t": t, "users": users - t, "rmse": rmse}
            for name, users, rmse in (("trajectory", 21, 2.5), ("mean", 21, 2.75), ("published", 15, 1.5))
            for t in (0, 1)
        ]
        found = Comparison.from_results({"metrics": metrics})
        assert found.fewer == {"published": 15}
        assert Comparison.from_results({"metrics": [{**metrics[0], "users": 20}, *metrics[1:4]]}).fewer == {}
        text = comparison_section(found).html()
        assert "published (15 users)" in text
        assert "like with like" in text
        assert "Not drawn, for fewer users: published." in text
        assert "for trajectory, mean." in text
        assert "like with like" not in comparison_section(Comparison.from_results({"metrics": metrics[:4]})).html()

    def test_rows_of_an_evaluation(self):
        summary = {
            "method": "us",
            "t": 1,
            "metric": "rmse",
            "mean": 1.0,
            "low": 0.5,
            "high": 1.5,
            "level": 0.9,
            "users": 3,
            "values": 3,
        }
        found = Comparison.from_results({"summary": [summary, {**summary, "metric": "products"}], "paired": []})
        assert found.metrics == ("rmse",)
        assert Comparison.of(Evaluation(())).averages == ()

    def test_results_that_compare_nothing_and_results_that_cannot_be_read(self):
        assert Comparison.from_results({"recovery": {}}) is None
        assert Comparison.from_results({"metrics": []}) is None
        for wrong in ({"metrics": [{"rmse": 1.0}]}, {"metrics": [3]}, {"summary": [{"method": "us"}]}):
            with pytest.raises(DataError, match="cannot be read"):
                Comparison.from_results(wrong)


class TestPage:
    def test_scripts_and_style_are_ours_and_inside(self):
        text = trail_page(None, small_model())
        for name in ("graph.js", "plot.js", "users.js"):
            assert text.count(asset(name)) == 1
        assert not re.search(r'(?:src|href)="(?!data:|#)', text)
        assert "default-src 'none'" in text

    def test_what_is_not_given_is_not_shown(self):
        text = trail_page("Nothing")
        assert "<section" not in text
        assert "<script" not in text


def test_everybodys_kernels_have_headings_and_a_caption_that_says_more():
    model = small_model()
    new = follow_users(model, [rows("new", seed=4)])
    for users, kinds in (((), {"pilot"}), (new, {"pilot", "new"})):
        table = path_table(model, users)
        assert all(table.columns)
        assert {row[1] for row in table.rows} == kinds
        assert "batch by batch" not in table.caption


class TestWhatDescribesThemBest:
    def test_beside_what_users_share_it_is_a_difference_and_not_everybodys(self):
        alone, around = small_model(), mean_model()
        told = [unescape(trail_page(None, model, ())) for model in (alone, around)]
        assert [", besides what users share." in text for text in told] == [False, True]
        said = "A description names what users may differ in. For whom each effect is clear is said above."
        assert [said in text for text in told] == [False, True]
