import math

import numpy as np
import pytest

from kerneltrail.errors import DataError
from kerneltrail.kernels import parse
from kerneltrail.trajectory import ROOT
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import load

from . import oracle, tiny
from .small import small_model


@pytest.fixture(scope="module")
def model():
    return small_model()  # paths (a,b,b), (a,a,b), (a,c,c); α=0.7, keep=0.9


def test_transitions_are_the_urns_renormalised_over_the_nodes(model):
    masks = [node.mask for node in model.nodes]
    steps = [(parent, child) for path in model.paths for parent, child in zip((ROOT, *path), path, strict=False)]
    wanted = []
    for parent in (ROOT, *masks):
        total = sum(1 for p, _ in steps if p == parent)
        row = [
            (steps.count((parent, child)) + 0.7 * oracle.h0(model.pool, child, parent, 0.9)) / (total + 0.7)
            for child in masks
        ]
        wanted.append([value / sum(row) for value in row])
    np.testing.assert_allclose(model.transitions, wanted, rtol=1e-12)
    np.testing.assert_allclose(model.transitions.sum(axis=1), 1.0)
    assert (model.transitions > 0).all()  # an unseen transition keeps its share


def test_edges_are_labelled_with_fractions_as_in_the_papers_figure(model):
    a, b, c = (node.composition for node in model.nodes)
    found = [(edge.parent, edge.child, edge.label) for edge in model.edges]
    assert found == [
        (None, a, "3/3"),
        (a, b, "2/4"),
        (a, a, "1/4"),
        (a, c, "1/4"),
        (b, b, "1/1"),
        (c, c, "1/1"),
    ]
    for parent in {edge.parent for edge in model.edges}:
        own = [edge for edge in model.edges if edge.parent == parent]
        assert sum(edge.count for edge in own) == own[0].total


def test_children_are_where_customers_went(model):
    a, b, c = (node.mask for node in model.nodes)
    assert model.children(ROOT) == (a,)
    assert set(model.children(a)) == {a, b, c}
    assert model.children(12345) == ()


def test_the_table_has_every_user_at_every_batch(model):
    a, b, c = (node.composition for node in model.nodes)
    assert model.table() == [("pilot 0", (a, b, b)), ("pilot 1", (a, a, b)), ("pilot 2", (a, c, c))]


def test_nodes_are_found_by_composition(model):
    assert model.node(parse("LIN[steps] + SE[hour]")) is model.nodes[1]
    with pytest.raises(KeyError, match=r"PER\[hour\]"):
        model.node(parse("PER[hour]"))


def test_the_chosen_structure_is_the_first(model):
    assert model.paths == model.structures[0].paths
    assert model.counts.totals[ROOT] == 3
    assert math.isclose(model.urn.alpha, 0.7)
    assert model.covariates == ("hour", "steps")


def test_what_is_kept_of_the_pilot_users(tmp_path):
    """Quantiles and digests are in a fitted model's file; an older one has the covariates' ranges."""
    cohort = tiny.cohort()
    model = fit(cohort, pool=tiny.POOL, settings=tiny.settings(sweeps=8), workers=1)
    x = np.concatenate([user.X[:, 0] for user in cohort.raw])
    assert model.pilot.quantiles["x"] == tuple(np.quantile(x, [0, 0.01, 0.1, 0.5, 0.9, 0.99, 1]))
    assert set(model.pilot.quantiles) == {"x", cohort.target}
    model.save(tmp_path / "m.trail")
    assert load(tmp_path / "m.trail").pilot == model.pilot
    assert [model.pilot.has_rows_of(user) for user in cohort.raw] == [True] * len(cohort)
    older = small_model()
    assert older.pilot.range("hour") == (older.scaler.low[0], older.scaler.high[0])


def test_scaling_per_user_gives_a_model_without_new_users():
    model = small_model(scaling="user")
    assert model.table()
    with pytest.raises(DataError, match="scaling per user"):
        model.new_user()
