"""Warm starts, the guard, likely periods, and the fit of one candidate."""

import numpy as np
import pytest

from kerneltrail.data import User
from kerneltrail.gp import evidence
from kerneltrail.kernels import Priors, parse
from kerneltrail.methods.cks import Effort, PeriodGuard, base_expressions, bic, expand, read, wide_priors
from kerneltrail.methods.cks.candidate import Candidate
from kerneltrail.methods.cks.expression import numbered
from kerneltrail.methods.cks.fit import FitData, fit
from kerneltrail.methods.cks.layout import ExpressionParameters, expression_layout
from kerneltrail.methods.cks.period_guard import allowed
from kerneltrail.methods.cks.starting_points import inherit, starts_for
from kerneltrail.methods.periods import likely_periods


def fitted(text: str) -> ExpressionParameters:
    expression = read(text)
    size = expression_layout(expression).size
    return ExpressionParameters(expression, tuple(np.log(0.1 + np.arange(size))))


def child_of(parent: ExpressionParameters, text: str):
    """The child of that text, with its atoms traced back to the parent."""
    assert parent.expression is not None
    return next(each for each in expand(parent.expression, base_expressions(["x"])) if each == read(text))


def inherited(parent: ExpressionParameters, text: str):
    child = child_of(parent, text)
    given = inherit(parent, child, expression_layout(child).moments(Priors.synthetic()))
    names = np.array(expression_layout(child).names)
    return child, given, set(names[given.new])


def test_a_summand_added_leaves_the_rest_where_it_was():
    parent = fitted("LIN[x] + PER[x]")
    child, given, new = inherited(parent, "LIN[x] + PER[x] + SE[x]")
    assert new == {"SE[x].lengthscale"}
    assert given.terms.tolist() == [False, False, True]
    np.testing.assert_array_equal(given.vector[expression_layout(child).places[1]], parent.unconstrained[3:5])
    np.testing.assert_allclose(given.amplitudes, [parent.unconstrained[0], parent.unconstrained[2], 1.0])


def test_a_factor_added_keeps_the_product_it_joins():
    parent = fitted("LIN[x] + PER[x]")
    child, given, new = inherited(parent, "LIN[x] + PER[x]*SE[x]")
    assert new == {"SE[x].lengthscale"}
    assert not given.terms.any()
    assert given.factors.tolist() == [False, False, True]
    amplitude = expression_layout(child).pull @ given.amplitudes
    np.testing.assert_allclose(amplitude, [parent.unconstrained[0], parent.unconstrained[2]])


def test_a_term_added_inside_a_product_is_as_large_as_the_term_beside_it():
    parent = fitted("PER[x]*(LIN[x] + SE[x])")
    child, given, new = inherited(parent, "PER[x]*(LIN[x] + SE[x] + SE[x])")
    assert new == {"SE[x]#2.lengthscale"}
    relative = (expression_layout(child).pull @ given.amplitudes)[1:]
    old = parent.unconstrained[4]  # of SE, relative to LIN
    np.testing.assert_allclose(sorted(relative), sorted([old, 0.5 * old]))


def test_an_atom_exchanged_keeps_the_amplitude():
    parent = fitted("LIN[x] + PER[x]")
    _, given, new = inherited(parent, "LIN[x] + SE[x]")
    assert new == {"SE[x].lengthscale"}
    assert not given.terms.any()
    np.testing.assert_allclose(given.amplitudes[1], parent.unconstrained[2])


def test_a_child_can_start_as_good_as_its_parent():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.0, 60))
    user = User("a", ("x",), x[:, None], np.sin(9.0 * x) + 0.1 * rng.standard_normal(60), (60,))
    limits = {"x": (0.05, 1.0)}
    data = FitData(user, wide_priors(limits), limits)
    for first, children in (
        ("SE[x]", ("LIN[x] + SE[x]", "PER[x] + SE[x]", "LIN[x]*SE[x]", "PER[x]*SE[x]", "SE[x] + SE[x]")),
        ("SE[x] + SE[x]", ("SE[x] + SE[x] + SE[x]", "PER[x]*(SE[x] + SE[x])", "SE[x] + LIN[x]*SE[x]")),
    ):
        parent = fit(data, read(first), Effort())
        assert parent.kernel is not None
        for text in children:
            child = child_of(parent.kernel, text)
            candidate = Candidate(data.rows, data.priors, child)
            starts = starts_for(child, candidate.moments, parent.kernel, data.columns, {"x": (0.4, 0.2)}, rng, 4)
            assert starts.heir.shape == (6, len(candidate.moments[0]))
            log = data.rows.log_evidence(candidate.tree, starts.heir[1])
            assert log > parent.log_likelihood - 12.0
            for i, slot in enumerate(expression_layout(child).slots):
                if slot.spec.kind == "period":
                    np.testing.assert_allclose(np.exp(starts.heir[:3, i]), [0.4, 0.2, 0.4])
                    np.testing.assert_allclose(np.exp(starts.fresh[:3, i]), [0.4, 0.2, 0.4])
            better = fit(data, child, Effort(), parent=parent.kernel)
            assert better.log_likelihood > parent.log_likelihood - 1.0


def test_starts_without_a_parent_are_fresh_and_an_heir_of_itself_is_one_point():
    rng = np.random.default_rng(0)
    parent = fitted("PER[x]*(LIN[x] + SE[x])")
    child = numbered(parent.expression)
    moments = expression_layout(child).moments(Priors.synthetic())
    columns = {"x": (0.5, 0.3)}
    alone = starts_for(child, moments, None, columns, {}, rng, 4)
    assert alone.heir.shape == (0, 7)
    np.testing.assert_array_equal(alone.fresh[0], moments[0])
    same = starts_for(child, moments, parent, columns, {}, rng, 4)
    np.testing.assert_allclose(same.heir, [parent.unconstrained], rtol=1e-12)


def test_a_fit_is_map_and_its_bic_that_of_all_rows():
    x = np.linspace(0.0, 1.0, 30)
    user = User("a", ("x",), x[:, None], 3.0 * x - 1.5 + 0.01 * np.cos(40.0 * x), (30,))
    found = fit(FitData(user, wide_priors({})), read("LIN[x]"), Effort())
    assert found.status == "fitted"
    assert found.kernel is not None
    assert found.bic == bic(found.log_likelihood, read("LIN[x]"), 30)
    exact = evidence(user, parse("LIN[x]"), found.kernel.unconstrained).log[0, -1]
    assert found.log_likelihood == pytest.approx(exact, abs=1e-4)
    assert found.kernel["LIN[x].location"] == pytest.approx(0.5, abs=0.05)


def test_the_guard_by_hand():
    column = np.array([0.0, 1.0, 2.0, 2.5, 10.0])
    assert PeriodGuard().smallest(column) == max(10 * 0.5, 10 * 10.0 / 5)
    assert PeriodGuard(gaps=3.0, spacings=0.0).smallest(column) == 1.5
    assert PeriodGuard().smallest(np.array([1.0, 1.0])) == np.inf
    assert PeriodGuard().largest(column) == 10.0
    assert PeriodGuard(cycles=0.0).largest(column) == np.inf
    assert PeriodGuard(cycles=5.0).largest(column) == 2.0
    limits = {"x": (1.0, 4.0)}
    for period, fine in ((0.5, False), (1.0, True), (4.0, True), (5.0, False)):
        theta = ExpressionParameters(read("PER[x]"), (0.0, 0.0, np.log(period), 0.0))
        assert allowed(theta, limits) is fine
    assert allowed(ExpressionParameters(read("SE[x]"), (0.0, -2.0, 0.0)), limits)


def test_a_period_that_the_guard_forbids_is_rejected():
    x = np.arange(60.0) / 59.0
    user = User("a", ("x",), x[:, None], np.tile([1.0, -1.0, 0.0], 20), (60,))
    never = FitData(user, wide_priors({}), {"x": (np.inf, np.inf)})
    assert fit(never, read("PER[x]"), Effort()).status == "period"
    assert fit(never, read("PER[x]"), Effort()).bic == np.inf
    strict = fit(FitData(user, wide_priors({}), PeriodGuard().limits(x[:, None], ["x"])), read("PER[x]"), Effort())
    assert strict.kernel is None or strict.kernel["PER[x].period"] >= 10 / 60
    loose = PeriodGuard(gaps=2.0, spacings=0.0).limits(x[:, None], ["x"])
    periods = {"x": likely_periods(x, user.y, loose["x"][0])}
    found = fit(FitData(user, wide_priors(loose), loose, periods), read("PER[x]"), Effort())
    assert found.kernel is not None
    assert found.kernel["PER[x].period"] == pytest.approx(3.0 / 59.0, rel=0.01)


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
    one = FitData(User("a", ("u", "v"), X, y, (5,)), wide_priors({}))
    two = FitData(User("b", ("v", "u"), X[:, ::-1], y, (5,)), wide_priors({}))
    other = FitData(User("a", ("u", "v"), X, y + 1.0, (5,)), wide_priors({}))
    assert one.rng("a").random() == two.rng("a").random()
    assert one.rng("a").random() != one.rng("b").random()
    assert one.rng("a").random() != other.rng("a").random()


def test_a_thinned_problem_keeps_rows_and_block_together():
    x = np.arange(50.0)
    data = FitData(User("a", ("x",), x[:, None], 2.0 * x, (50,)), wide_priors({}))
    fewer = data.thinned(20)
    assert fewer.user.rows == 20
    assert np.all(np.diff(fewer.user.X[:, 0]) > 0)
    np.testing.assert_array_equal(fewer.user.y, 2.0 * fewer.user.X[:, 0])
    assert data.thinned(50) is data
