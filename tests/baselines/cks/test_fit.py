"""Warm starts, the guard, likely periods, and the fit of one candidate."""

import numpy as np
import pytest

from kerneltrail.baselines.cks import Effort, Guard, bic, wide_priors
from kerneltrail.baselines.cks.fit import Problem, fit
from kerneltrail.baselines.cks.guard import allowed
from kerneltrail.baselines.cks.periods import likely_periods
from kerneltrail.baselines.cks.starts import inherit, starts_for
from kerneltrail.data import User
from kerneltrail.gp import evidence
from kerneltrail.kernels import Hyperparameters, Priors, layout_of, parse


def fitted(text: str) -> Hyperparameters:
    composition = parse(text)
    layout = layout_of(composition)
    return Hyperparameters.from_values(composition, 0.1 + np.arange(layout.size))


def named(composition, vector) -> dict[str, float]:
    return dict(zip(layout_of(composition).names, vector, strict=True))


def of(hyperparameters: Hyperparameters) -> dict[str, float]:
    return named(hyperparameters.composition, hyperparameters.unconstrained)


def test_a_summand_added_leaves_the_rest_where_it_was():
    parent, child = fitted("LIN[x] + PER[x]"), parse("LIN[x] + PER[x] + SE[x]")
    mean, _ = Priors.synthetic().moments(child)
    given = inherit(parent, child, mean)
    old, now, fresh = of(parent), named(child, given.vector), named(child, given.new)
    assert all(now[name] == old[name] for name in old)
    assert {name for name in fresh if fresh[name]} == {"SE[x].amplitude", "SE[x].lengthscale"}
    assert now["SE[x].lengthscale"] == 0.0  # the prior's mean
    assert given.joined == (False, False, False)


def test_a_factor_added_keeps_the_product_it_joins():
    parent, child = fitted("LIN[x] + PER[x]"), parse("LIN[x] + PER[x]*SE[x]")
    mean, _ = Priors.synthetic().moments(child)
    given = inherit(parent, child, mean)
    old, now, fresh = of(parent), named(child, given.vector), named(child, given.new)
    assert now["PER[x]*SE[x].amplitude"] == old["PER[x].amplitude"]
    assert now["PER[x]*SE[x]: PER[x].period"] == old["PER[x].period"]
    assert {name for name in fresh if fresh[name]} == {"PER[x]*SE[x]: SE[x].lengthscale"}
    assert given.joined == (False, True)


def test_a_sum_multiplied_keeps_both_products():
    parent, child = fitted("LIN[x] + SE[x]"), parse("PER[x]*(LIN[x] + SE[x])")
    given = inherit(parent, child, Priors.synthetic().moments(child)[0])
    old, now = of(parent), named(child, given.vector)
    assert now["LIN[x]*PER[x]: LIN[x].location"] == old["LIN[x].location"]
    assert now["PER[x]*SE[x]: SE[x].lengthscale"] == old["SE[x].lengthscale"]
    assert given.joined == (True, True)


def test_values_whose_owner_is_still_there_are_borrowed_and_searched_for():
    parent, child = fitted("PER[x]*SE[x]"), parse("PER[x] + PER[x]*SE[x]")
    given = inherit(parent, child, Priors.synthetic().moments(child)[0])
    now, fresh = named(child, given.vector), named(child, given.new)
    assert now["PER[x].period"] == of(parent)["PER[x]*SE[x]: PER[x].period"]
    assert fresh["PER[x].period"]
    assert not fresh["PER[x]*SE[x]: PER[x].period"]


def test_a_factor_twice_is_matched_once():
    parent, child = fitted("PER[x]"), parse("PER[x]*PER[x]")
    given = inherit(parent, child, Priors.synthetic().moments(child)[0])
    fresh = named(child, given.new)
    assert not fresh["PER[x]*PER[x]: PER[x].period"]
    assert fresh["PER[x]*PER[x]: PER[x]#2.period"]


def test_a_child_can_start_as_good_as_its_parent():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, 60))
    user = User("a", ("x",), x[:, None], np.sin(9.0 * x) + 0.1 * rng.standard_normal(60), (60,))
    limits = {"x": (0.05, 1.0)}
    problem = Problem(user, wide_priors(limits), limits)
    parent = fit(problem, parse("SE[x]"), Effort())
    assert parent.hyperparameters is not None
    for text in ("LIN[x] + SE[x]", "PER[x] + SE[x]", "LIN[x]*SE[x]", "PER[x]*SE[x]"):
        child = parse(text)
        moments = problem.priors.moments(child)
        starts = starts_for(child, moments, parent.hyperparameters, {"x": 0.5}, {"x": (0.4, 0.2)}, rng, 4)
        assert starts.heir.shape == (6, len(moments[0]))
        log = evidence(user, child, starts.heir[1]).log[0, -1]
        assert log > parent.log_likelihood - 12.0
        for i, slot in enumerate(layout_of(child).slots):
            if slot.spec.kind == "period":
                np.testing.assert_allclose(np.exp(starts.heir[:3, i]), [0.4, 0.2, 0.4])
                np.testing.assert_allclose(np.exp(starts.fresh[:3, i]), [0.4, 0.2, 0.4])
        better = fit(problem, child, Effort(), parent=parent.hyperparameters)
        assert better.log_likelihood > parent.log_likelihood - 1.0


def test_starts_without_a_parent_are_fresh_and_an_heir_of_itself_is_one_point():
    rng = np.random.default_rng(0)
    child = parse("PER[x]")
    moments = Priors.synthetic().moments(child)
    alone = starts_for(child, moments, None, {"x": 0.5}, {}, rng, 4)
    assert alone.heir.shape == (0, 4)
    np.testing.assert_array_equal(alone.fresh[0], moments[0])
    same = starts_for(child, moments, fitted("PER[x]"), {"x": 0.5}, {}, rng, 4)
    np.testing.assert_array_equal(same.heir, [fitted("PER[x]").unconstrained])


def test_a_fit_is_map_and_its_bic_that_of_all_rows():
    x = np.linspace(0.0, 1.0, 30)
    user = User("a", ("x",), x[:, None], 3.0 * x - 1.5 + 0.01 * np.cos(40.0 * x), (30,))
    found = fit(Problem(user, wide_priors({})), parse("LIN[x]"), Effort())
    assert found.status == "fitted"
    assert found.hyperparameters is not None
    assert found.bic == bic(found.log_likelihood, parse("LIN[x]"), 30)
    exact = evidence(user, parse("LIN[x]"), found.hyperparameters.unconstrained).log[0, -1]
    assert found.log_likelihood == pytest.approx(exact, abs=1e-4)
    assert found.hyperparameters["LIN[x].location"] == pytest.approx(0.5, abs=0.05)


def test_the_guard_by_hand():
    column = np.array([0.0, 1.0, 2.0, 2.5, 10.0])
    assert Guard().smallest(column) == max(10 * 0.5, 10 * 10.0 / 5)
    assert Guard(gaps=3.0, spacings=0.0).smallest(column) == 1.5
    assert Guard().smallest(np.array([1.0, 1.0])) == np.inf
    assert Guard().largest(column) == 10.0
    assert Guard(cycles=0.0).largest(column) == np.inf
    assert Guard(cycles=5.0).largest(column) == 2.0
    limits = {"x": (1.0, 4.0)}
    for period, fine in ((0.5, False), (1.0, True), (4.0, True), (5.0, False)):
        theta = Hyperparameters.from_values(parse("PER[x]"), [1.0, 1.0, period, 1.0])
        assert allowed(theta, limits) is fine
    assert allowed(Hyperparameters.from_values(parse("SE[x]"), [1.0, 0.1, 1.0]), limits)


def test_a_period_that_the_guard_forbids_is_rejected():
    x = np.arange(60.0) / 59.0
    user = User("a", ("x",), x[:, None], np.tile([1.0, -1.0, 0.0], 20), (60,))
    never = Problem(user, wide_priors({}), {"x": (np.inf, np.inf)})
    assert fit(never, parse("PER[x]"), Effort()).status == "period"
    assert fit(never, parse("PER[x]"), Effort()).bic == np.inf
    strict = fit(Problem(user, wide_priors({}), Guard().limits(x[:, None], ["x"])), parse("PER[x]"), Effort())
    assert strict.hyperparameters is None or strict.hyperparameters["PER[x].period"] >= 10 / 60
    loose = Guard(gaps=2.0, spacings=0.0).limits(x[:, None], ["x"])
    periods = {"x": likely_periods(x, user.y, loose["x"][0])}
    found = fit(Problem(user, wide_priors(loose), loose, periods), parse("PER[x]"), Effort())
    assert found.hyperparameters is not None
    assert found.hyperparameters["PER[x].period"] == pytest.approx(3.0 / 59.0, rel=0.01)


def test_likely_periods_are_found_on_uneven_rows_under_a_trend():
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(1900.0, 1960.0, 200))
    y = 5e4 + 300.0 * (x - 1900.0) + 800.0 * np.sin(2 * np.pi * x / 0.9) + rng.standard_normal(200)
    assert likely_periods(x, y, 0.5)[0] == pytest.approx(0.9, rel=0.01)
    assert likely_periods(x, y, 0.5, 0.8)[0] <= 0.8
    assert likely_periods(x, np.full(200, 3.0), 0.5) == ()
    assert likely_periods(np.zeros(200), y, 0.5) == ()
    assert likely_periods(x, y, np.inf) == ()


def test_seeds_depend_on_content_not_on_the_order_of_covariates_or_the_name():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((5, 2)), rng.standard_normal(5)
    one = Problem(User("a", ("u", "v"), X, y, (5,)), wide_priors({}))
    two = Problem(User("b", ("v", "u"), X[:, ::-1], y, (5,)), wide_priors({}))
    other = Problem(User("a", ("u", "v"), X, y + 1.0, (5,)), wide_priors({}))
    assert one.rng("a").random() == two.rng("a").random()
    assert one.rng("a").random() != one.rng("b").random()
    assert one.rng("a").random() != other.rng("a").random()


def test_a_thinned_problem_keeps_rows_and_block_together():
    x = np.arange(50.0)
    problem = Problem(User("a", ("x",), x[:, None], 2.0 * x, (50,)), wide_priors({}))
    fewer = problem.thinned(20)
    assert fewer.user.rows == 20
    assert np.all(np.diff(fewer.user.X[:, 0]) > 0)
    np.testing.assert_array_equal(fewer.user.y, 2.0 * fewer.user.X[:, 0])
    assert problem.thinned(50) is problem
