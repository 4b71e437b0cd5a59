import math

import numpy as np
import pytest

from gp import oracle
from kerneltrail import gp
from kerneltrail.gp import OnlineState, Posterior, find_map
from kerneltrail.trajectory.evidence import EmpiricalEvidence, LaplaceEvidence
from kerneltrail.trajectory.evidence.empirical import FEW_THETAS
from kerneltrail.trajectory.map_table import block_of
from kerneltrail.trajectory.node_fit import FEW_ROWS, LONGEST, NodeFit, NodePosterior

from .small import rewarded_model, rows, small_model


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def seen(model):
    return model.scaler.apply(rows("new", 30, seed=1, size=10))


def nodes(model):
    return [pytest.param(i, id=node.composition.text) for i, node in enumerate(model.nodes)]


NODES = nodes(small_model())


@pytest.mark.parametrize("place", NODES)
def test_before_any_row_a_fit_has_the_groups_mean(model, place):
    fit = NodeFit.start(model.nodes[place])
    np.testing.assert_array_equal(fit.theta, model.nodes[place].group.mean)
    assert (fit.log_evidence, fit.refined, fit.online) == (0.0, 0, None)


@pytest.mark.parametrize("place", NODES)
def test_refining_is_a_map_under_the_group(model, seen, place):
    node = model.nodes[place]
    fit = NodeFit.start(node).refine(seen, None, LaplaceEvidence)
    best = find_map(seen, node.composition, node.group, rng=np.random.default_rng(1), starts=8)
    assert fit.log_evidence == pytest.approx(best.log_laplace, abs=0.05)
    assert fit.refined == 30
    again = NodeFit.start(node).refine(seen, None, LaplaceEvidence)
    np.testing.assert_array_equal(again.theta, fit.theta)  # no hidden state


@pytest.mark.parametrize("place", NODES)
def test_an_empirical_fit_averages_over_the_pilots_hyperparameters(model, seen, place):
    node = model.nodes[place]
    fit = NodeFit.start(node).refine(seen, None, EmpiricalEvidence)
    each = oracle.log_evidence(seen, node.composition, node.thetas[:FEW_THETAS])[:, -1]
    top = each.max()
    assert fit.log_evidence == pytest.approx(top + math.log(np.exp(each - top).mean()), abs=1e-3)
    np.testing.assert_array_equal(fit.theta, node.thetas[int(each.argmax())])


@pytest.mark.parametrize("evidence", [LaplaceEvidence, EmpiricalEvidence])
@pytest.mark.parametrize("place", NODES)
def test_frozen_evidence_goes_on_from_where_it_was(model, seen, place, evidence):
    """With no new information the evidence at kept hyperparameters is the one that was kept."""
    fit = NodeFit.start(model.nodes[place]).refine(seen, None, evidence)
    frozen = fit.freeze(seen, None)
    assert isinstance(frozen.online, OnlineState)
    assert frozen.log_evidence == fit.log_evidence
    dense = Posterior.fit(seen, fit.hyperparameters).log_evidence
    assert frozen.online.log_evidence == pytest.approx(dense, abs=1e-3)
    followed = frozen.follow(seen.X[:0], seen.y[:0], None)
    assert followed.log_evidence == pytest.approx(fit.log_evidence, abs=2e-3)


@pytest.mark.parametrize("place", NODES)
def test_following_is_the_likelihood_of_all_rows_and_a_growing_occam_factor(model, seen, place):
    node = model.nodes[place]
    fit = NodeFit.start(node).refine(seen, None, LaplaceEvidence).freeze(seen, None)
    more = model.scaler.apply(rows("new", 20, seed=2, size=20))
    followed = fit.follow(more.X, more.y, None)
    both = seen.extend(more)
    mean, variance = node.group.mean, node.group.variance
    k = len(mean)
    prior = -0.5 * (np.log(2 * math.pi * variance) + (fit.theta - mean) ** 2 / variance).sum()
    data = fit.precision - np.diag(1.0 / variance)  # what 30 rows said
    precision = np.diag(1.0 / variance) + 50 / 30 * data
    likelihood = oracle.log_evidence(both, node.composition, [fit.theta])[0, -1]
    assert np.linalg.eigvalsh(precision).min() > 0  # else the floor on it would be tested, not the formula
    wanted = likelihood + prior + 0.5 * k * math.log(2 * math.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    assert followed.log_evidence == pytest.approx(wanted, abs=5e-3)
    np.testing.assert_array_equal(followed.theta, fit.theta)
    assert fit.online.rows == 30  # fits are values


def test_a_node_posterior_predicts_from_rows_from_sums_and_from_nothing(model, seen):
    fit = NodeFit.start(model.nodes[0])
    X = seen.X[:3]
    assert NodePosterior(fit, None, None, model.covariates).predict(X, None).mean.tolist() == [0.0] * 3
    fit = fit.refine(seen, None, LaplaceEvidence)
    kept = NodePosterior(fit, seen, None, model.covariates)
    assert isinstance(kept.posterior, Posterior)
    frozen = NodePosterior(fit.freeze(seen, None), None, None, model.covariates)
    assert isinstance(frozen.posterior, OnlineState)
    np.testing.assert_allclose(frozen.predict(X, None).mean, kept.predict(X, None).mean, atol=1e-3)


@pytest.mark.parametrize("node", range(2))
@pytest.mark.parametrize("rewarded", [False, True])
def test_predictions_from_sums_of_kept_rows_are_those_of_the_rows(node, rewarded):
    model = rewarded_model() if rewarded else small_model()
    seen = model.scaler.apply(rows("ann", 300, seed=8, size=300))
    block = block_of(seen, model.reward)
    posterior = NodePosterior(NodeFit.start(model.nodes[node]), seen, block, model.covariates)
    exact = gp.Posterior.fit(seen, posterior.fit.hyperparameters, block=block)
    inside = model.scaler.apply(rows("ann", 40, seed=9, size=40))
    linear = None if block is None else block_of(inside, model.reward).features
    assert isinstance(posterior._quick, gp.OnlineState)
    ahead, expected = posterior.predict(inside.X, linear), exact.predict(inside.X, linear=linear)
    np.testing.assert_allclose((ahead.mean - expected.mean) / expected.sd, 0.0, atol=2e-3)
    np.testing.assert_allclose(ahead.total, expected.total, rtol=1e-3)
    # Effects and explanations ask the rows themselves.
    assert isinstance(posterior.posterior, gp.Posterior)
    if rewarded:
        for one, other in zip(
            posterior.advantage(inside.X, model.reward), exact.advantage(inside.X, model.reward), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


def test_far_outside_the_rows_predictions_come_from_the_rows():
    model = small_model()
    seen = model.scaler.apply(rows("ann", 300, seed=8, size=300))
    posterior = NodePosterior(NodeFit.start(model.nodes[1]), seen, None, model.covariates)
    X = np.array([[0.5, 0.5], [40.0, 0.5]])
    ahead = posterior.predict(X, None)
    exact = gp.Posterior.fit(seen, posterior.fit.hyperparameters).predict(X)
    np.testing.assert_array_equal(ahead.mean, exact.mean)
    np.testing.assert_array_equal(ahead.variance, exact.variance)


def test_few_rows_are_asked_themselves():
    model = small_model()
    seen = model.scaler.apply(rows("ann", FEW_ROWS, seed=8, size=FEW_ROWS))
    posterior = NodePosterior(NodeFit.start(model.nodes[1]), seen, None, model.covariates)
    assert isinstance(posterior._quick, gp.Posterior)


@pytest.mark.parametrize("node", range(3))
def test_what_is_kept_of_a_frozen_node_is_bounded_and_judges_as_exactly_as_matters(node):
    model = small_model()
    seen = model.scaler.apply(rows("ann", 500, seed=8, size=500))
    fit = NodeFit.start(model.nodes[node])
    frozen = fit.freeze(seen, None)
    assert frozen.online is not None
    assert frozen.online.basis.rank <= LONGEST == 256
    exact = gp.Posterior.fit(seen, fit.hyperparameters).log_evidence
    # A hundred nats by 100,000 rows at the most, where a product over two covariates needs many features: 0.5 by 500.
    assert frozen.online.log_evidence == pytest.approx(exact, abs=0.5 if node == 2 else 1e-4)
