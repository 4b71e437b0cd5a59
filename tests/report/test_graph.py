"""Drawings of graphs: nothing overlaps, nothing is missing, the same input gives the same file."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltrail.kernels import Pool
from kerneltrail.report import figures
from kerneltrail.report.figures import NARROW, WIDE
from kerneltrail.report.graph import Graph, draw, graph_layout, name_of, wrapped
from kerneltrail.report.graph.layers import Extent, arrange, crossings

POOL = Pool.paper()


def drawn(seed, users, batches, size):
    """Users who wander among `size` compositions, later ones from later batches on."""
    rng = np.random.default_rng(seed)
    masks = rng.permutation([mask for mask in range(1, 256) if mask.bit_count() <= 3])[:size].tolist()
    paths = []
    for _ in range(users):
        path = [masks[rng.integers(max(size // 3, 1))]]
        for t in range(1, batches):
            fresh = masks[rng.integers(max(size * (t + 1) // batches, 1))]
            path.append(path[-1] if rng.random() < 0.5 else fresh)
        paths.append(tuple(path))
    return tuple(paths)


CASES = {
    "one node": ((3, 3),),
    "two nodes": ((3,) * 6, (4,) * 6),
    "the paper's": ((1, 3, 3), (1, 1, 3), (2, 4, 4), (2, 2, 4)),
    "to and fro": ((1, 2, 1, 2, 3), (2, 1, 3, 1, 2), (4, 1, 1, 2, 2)),
    "one batch": tuple((mask,) for mask in range(1, 13)),
    "middling": drawn(0, 8, 6, 9),
    "large": drawn(2, 14, 6, 25),
}


@pytest.fixture(scope="module", params=[WIDE, NARROW], ids=["wide", "narrow"])
def plans(request):
    return {name: graph_layout(Graph.of(POOL, paths), width=request.param) for name, paths in CASES.items()}


@pytest.mark.parametrize("name", CASES)
class TestPlans:
    def test_no_two_boxes_overlap(self, plans, name):
        assert not any(a.overlaps(b) for a, b in combinations(plans[name].boxes, 2))

    def test_labels_overlap_neither_boxes_nor_each_other(self, plans, name):
        plan = plans[name]
        labels = [arrow.label for arrow in plan.arrows]
        assert plan.clear
        assert not any(a.overlaps(b) for a, b in combinations(labels, 2))
        assert not any(label.overlaps(box) for label in labels for box in plan.boxes)

    def test_no_label_lies_on_another_arrow(self, plans, name):
        arrows = plans[name].arrows
        assert plans[name].crossed == 0
        for a, b in combinations(arrows, 2):
            assert not a.label.holds(b.points) + b.label.holds(a.points)
        assert not any(a.label.holds(b.head) for a in arrows for b in arrows)

    def test_every_link_has_an_arrow_from_box_to_box(self, plans, name):
        plan, graph = plans[name], Graph.of(POOL, CASES[name])
        assert [arrow.link for arrow in plan.arrows] == list(graph.links)
        for arrow in plan.arrows:
            assert on_the_edge(plan.boxes[arrow.link.parent], arrow.curve[0])
            assert on_the_edge(plan.boxes[arrow.link.child], arrow.head[0])

    def test_arrows_pass_no_box(self, plans, name):
        plan = plans[name]
        for arrow in plan.arrows:
            assert not any(inner(box).holds(arrow.points) for box in plan.boxes)

    def test_all_is_on_the_paper(self, plans, name):
        plan = plans[name]
        for box in (*plan.boxes, *(arrow.label for arrow in plan.arrows)):
            assert 0 <= box.x - box.width / 2 < box.x + box.width / 2 <= plan.width
            assert 0 <= box.y - box.height / 2 < box.y + box.height / 2 <= plan.height
        for arrow in plan.arrows:
            assert (arrow.points >= 0).all()
            assert (arrow.points <= [plan.width, plan.height]).all()

    def test_letters_stay_readable(self, plans, name):
        assert plans[name].size >= 7.0


def inner(box):
    """Without its edge, on which arrows begin and end."""
    return replace(box, width=box.width - 1e-6, height=box.height - 1e-6)


def on_the_edge(box, point):
    x, y = abs(point[0] - box.x) - box.width / 2, abs(point[1] - box.y) - box.height / 2
    return max(x, y) == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 10), st.integers(1, 6), st.integers(1, 14))
def test_no_boxes_overlap_in_any_graph(seed, users, batches, size):
    plan = graph_layout(Graph.of(POOL, drawn(seed, users, batches, size)))
    assert not any(a.overlaps(b) for a, b in combinations(plan.boxes, 2))
    assert not any(inner(box).holds(arrow.points) for arrow in plan.arrows for box in plan.boxes)


def test_the_figure_says_names_fractions_and_batches():
    figure = draw(Graph.of(POOL, CASES["the paper's"]))
    said = [text.get_text() for text in figure.axes[0].texts]
    for name in ("root", "LIN[x]", "PER[x]", "LIN[x]\n+ PER[x]", "SE[x]", "from batch 1", "from batch 2"):
        assert name in said
    assert said.count("2/4") == 2  # both roads from the root
    assert said.count("1/3") == 2  # LIN and PER, once each, stay
    assert said.count("2/3") == 2
    assert {patch.get_gid() for patch in figure.axes[0].patches} >= {"edge 0 1", "edge 1 1", "edge 1 3"}


def test_what_is_taken_more_often_is_broader():
    figure = draw(Graph.of(POOL, ((1, 3), (1, 3), (1, 3), (4, 4))))
    width = {patch.get_gid(): patch.get_linewidth() for patch in figure.axes[0].patches if patch.get_gid()}
    assert width["edge 0 1"] > width["edge 0 2"]


def test_layers_are_the_batches_of_first_use():
    graph = Graph.of(POOL, ((1, 1, 3, 1), (2, 1, 1, 4)))
    assert dict(zip(graph.names, graph.batch, strict=True)) == {
        "root": 0, "LIN[x]": 1, "PER[x]": 1, "LIN[x] + PER[x]": 3, "SE[x]": 4,
    }  # fmt: skip
    places = {name: box.x for name, box in zip(graph.names, graph_layout(graph).boxes, strict=True)}
    assert places["root"] < places["LIN[x]"] == places["PER[x]"] < places["LIN[x] + PER[x]"] < places["SE[x]"]


def test_the_empty_composition_is_a_node_like_any_other():
    graph = Graph.of(Pool.of("LIN[x]", "SE[x]"), ((0, 1), (2, 2)))
    assert graph.names == ("root", "noise alone", "SE[x]", "LIN[x]")


def test_files_are_the_same_every_time():
    for paths in (CASES["to and fro"], CASES["middling"]):
        graph = Graph.of(POOL, paths)
        assert figures.svg(draw(graph)) == figures.svg(draw(graph))
        assert figures.png(draw(graph)) == figures.png(draw(graph))


def test_long_products_are_broken():
    assert wrapped("SE[x] + PER[steps30pre]*SE[temperature]") == "SE[x]\n+ PER[steps30pre]\n  * SE[temperature]"
    assert name_of(POOL.composition(3)) == "LIN[x] + PER[x]"


def test_crossings_that_can_be_avoided_are():
    # Two layers in opposite order: as given every pair crosses, and there is an order in which none does.
    edges = [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)]
    positions = arrange([Extent(1.0)] * 7, [0, 1, 1, 1, 2, 2, 2], edges, apart=0.2, slack=0.2)
    upper = sorted((1, 2, 3), key=positions.boxes.__getitem__)
    lower = sorted((4, 5, 6), key=positions.boxes.__getitem__)
    assert crossings(upper, lower, edges) == 0


def test_long_edges_go_around_the_boxes_between():
    positions = arrange([Extent(1.0)] * 3, [0, 1, 2], [(0, 1), (1, 2), (0, 2)], apart=0.2, slack=0.2)
    (between,) = positions.routes[0, 2]
    assert abs(between - positions.boxes[1]) >= 0.5 + 0.2 + 0.1 - 1e-9
