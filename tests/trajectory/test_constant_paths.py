"""Models of constant paths and of averaged structures: what is learnt, how users are followed, what files keep."""

from dataclasses import replace

import numpy as np
import pytest

from kerneltrail.errors import ModelFileError, TrajectoryError
from kerneltrail.report.explanation import explain
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.map_table import fit_path
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import fingerprint, to_bytes
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.settings import Settings
from support.identical import difference

from .small import averaged_model, follow, rows, small_model
from .tiny import POOL, cohort, model, pilot, settings

CONSTANT = Settings(paths="constant")


@pytest.fixture(scope="module")
def constant():
    return fit(cohort(4, ends=(3, 5, 8)), pool=POOL, settings=settings(paths="constant"), workers=1)


class TestConstant:
    def test_every_user_has_one_kernel_at_all_batches(self, constant):
        assert [len(path) for path in constant.paths] == [3] * 4
        assert all(len(set(path)) == 1 for structure in constant.structures for path in structure.paths)
        assert all(len(node.thetas) == len(node.users) for node in constant.nodes)  # all rows, once

    def test_the_prior_counts_users_and_nobody_moves(self, constant):
        size = len(constant.nodes)
        users = np.array([len(node.users) for node in constant.nodes])
        share = users + np.exp([constant.urn.log_mass(-1, node.mask) for node in constant.nodes])
        np.testing.assert_allclose(constant.transitions[0], share / share.sum(), rtol=1e-12)
        np.testing.assert_array_equal(constant.transitions[1:], np.eye(size))

    def test_the_filter_is_prior_times_the_newest_evidence(self):
        made = small_model(settings=CONSTANT)
        steps = follow(made.new_user(), rows("new", 16, seed=3))
        for step in steps:
            log = [step.log_evidence[node.composition] for node in made.nodes]
            weights = made.transitions[0] * np.exp(np.array(log) - max(log))
            found = [step.probabilities[node.composition] for node in made.nodes]
            np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9, atol=1e-12)

    def test_the_log_joint_counts_every_row_once(self, constant):
        masks = [path[0] for path in constant.paths]
        users = [pilot(m, ends=(3, 5, 8)) for m in range(4)]
        evidence = sum(
            fit_path(user, POOL.composition(mask), constant.priors, constant.settings.maps, None).log_laplace[-1]
            for user, mask in zip(users, masks, strict=True)
        )
        prior = constant.urn.log_prior(type(constant.counts).of([(mask,) for mask in masks]))
        assert constant.structures[0].log_joint == pytest.approx(prior + evidence, abs=1e-8)

    @pytest.mark.parametrize("evidence", ["group", "empirical"])
    def test_evidences_that_follow_the_paths_serve_too(self, evidence):
        made = model(paths="constant", evidence=evidence)
        assert all(len(set(path)) == 1 for path in made.paths)

    def test_a_stopped_fit_goes_on(self, tmp_path):
        asked = {"pool": POOL, "settings": settings(paths="constant"), "workers": 1}
        first = fit(cohort(), **asked, checkpoint=tmp_path)
        again = fit(cohort(), **asked, checkpoint=tmp_path)
        assert again.structures == first.structures == fit(cohort(), **asked).structures

    def test_a_model_of_either_kind_is_extended(self, constant):
        more = cohort(5, ends=(3, 5, 8))
        assert fit(more, extend=constant, workers=1).settings.paths == "constant"
        assert all(len(set(path)) == 1 for path in fit(more, extend=constant, workers=1).paths)
        changed = fit(more, extend=constant, workers=1, paths="overlapping")
        assert [len(path) for path in changed.paths] == [3] * 5

    @pytest.mark.parametrize("change", [{"memory": "all"}, {"selection": "greedy"}])
    def test_a_user_cannot_be_followed_otherwise(self, constant, change):
        with pytest.raises(TrajectoryError, match="constant paths count every row once"):
            constant.new_user("ann", **change)


class TestAveraged:
    def test_transitions_are_of_the_average_counts(self):
        made = averaged_model()
        masks = [node.mask for node in made.selectable]
        tops = made.averaged.counts + np.exp([[made.urn.log_mass(k, j) for j in masks] for k in (-1, *masks)])
        np.testing.assert_allclose(made.transitions, tops / tops.sum(axis=1, keepdims=True), rtol=1e-12)

    def test_a_user_may_be_at_a_node_that_the_graph_does_not_show(self):
        made = averaged_model()
        extra = made.averaged.nodes[0]
        user = made.new_user("ann")
        assert len(user.probabilities) == 4
        assert user.probabilities[extra.composition] > 0.1
        (step, *_) = follow(user, rows("new", 8, seed=3), batches=[1])
        assert extra.composition in step.log_evidence
        at = NewUser.resume(made, replace(user.state, current=3, weights=np.eye(4)[3]))
        assert at.composition == extra.composition
        assert str(explain(at)).startswith("After 4 rows")
        assert len(made.nodes) == 3
        assert extra.composition not in {edge.child for edge in made.edges}

    def test_a_fit_keeps_the_average_and_shows_the_chosen_graph(self):
        made, plain = model(structure="averaged"), model()
        assert made.structures == plain.structures
        assert [node.mask for node in made.nodes] == [node.mask for node in plain.nodes]
        assert plain.averaged is None
        share = made.averaged.counts[0].sum() / 3  # of the users; less where a kernel was left out
        assert 0.9 < share <= 1.0 + 1e-12
        np.testing.assert_allclose(made.transitions.sum(axis=1), 1.0)

    def test_constant_paths_can_be_averaged(self):
        made = model(structure="averaged", paths="constant")
        np.testing.assert_array_equal(made.transitions[1:], np.eye(len(made.selectable)))

    def test_greedy_is_refused(self):
        with pytest.raises(TrajectoryError, match="a greedy walk is on one graph"):
            averaged_model().new_user("ann", selection="greedy")


@pytest.mark.parametrize("make", [averaged_model, lambda: small_model(settings=CONSTANT)], ids=["averaged", "constant"])
def test_files_keep_models_and_users(make):
    made = make()
    again = from_bytes(to_bytes(made))
    assert difference(again, made) is None
    assert fingerprint(again) == fingerprint(made)
    user = made.new_user("ann")
    person = rows("ann", 12, seed=3)
    follow(user, person, batches=[1, 2])
    back = NewUser.from_bytes(user.to_bytes(), again)
    follow(user, person, batches=[3])
    follow(back, person, batches=[3])
    assert difference(back.state, user.state) is None


def test_another_average_is_another_model():
    made = averaged_model()
    other = replace(made, averaged=replace(made.averaged, counts=made.averaged.counts * 2))
    assert len({fingerprint(each) for each in (made, other, replace(made, averaged=None))}) == 3


def test_a_damaged_average_is_refused():
    made = averaged_model()
    twice = replace(made, averaged=replace(made.averaged, nodes=(made.nodes[0],)))
    less = replace(made, averaged=replace(made.averaged, counts=-made.averaged.counts))
    with pytest.raises(ModelFileError, match="two of its nodes are of the same kernel"):
        from_bytes(to_bytes(twice))
    with pytest.raises(ModelFileError, match="less than never"):
        from_bytes(to_bytes(less))
