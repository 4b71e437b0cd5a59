"""Adding an atom touches one place: two kinds defined outside the package work everywhere, with no other change."""

import math

import numpy as np
import pytest

from kerneltrail.errors import KernelError
from kerneltrail.kernels import ATOMS, Hyperparameters, Pool, Priors, layout_of, log_normal, parse
from kerneltrail.methods.cks import Effort, SearchSettings, base_expressions, search
from kerneltrail.report.description import describe
from kerneltrail.trajectory.fit import fit
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from trajectory import tiny

from .drawing import central_difference

pytestmark = pytest.mark.usefixtures("new_atoms")


def test_text():
    assert tuple(ATOMS)[-2:] == ("RQ", "MATERN52")
    composition = parse("MATERN52[x]*RQ[z] + RQ[x]")
    assert composition.text == "RQ[x] + MATERN52[x]*RQ[z]"
    assert parse(composition.text) == composition
    assert len(parse("RQ[x]*RQ[x]").products[0].atoms) == 2  # not idempotent unless it says so


def test_pool():
    pool = Pool.atoms(["x"], kinds=ATOMS)
    assert parse("RQ[x] + SE[x]") in pool
    assert pool.composition(pool.mask(parse("RQ[x] + SE[x]"))) == parse("RQ[x] + SE[x]")


def test_priors_by_kind_by_fallback_and_by_override():
    composition = parse("RQ[x]")
    mean, variance = Priors.heartsteps().moments(composition)
    np.testing.assert_array_equal(mean, [0.5, -1.0, 0.3, 1.0])  # the lengthscale's from the table, the mixture's own
    np.testing.assert_array_equal(variance, [0.75, 0.75, 0.2, 0.75])
    named = Priors.heartsteps().override("mixture", "x", log_normal(2.0, variance=0.1))
    assert named.moments(composition)[0][2] == 2.0


def test_layout_and_hyperparameters():
    fitted = Hyperparameters.from_values(parse("RQ[x]"), [1.0, 2.0, 0.7, 0.1])
    assert list(fitted) == ["RQ[x].amplitude", "RQ[x].lengthscale", "RQ[x].mixture", "noise"]
    assert fitted["RQ[x].mixture"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("RQ", lambda d, ell, alpha: (1.0 + d * d / (2.0 * alpha * ell * ell)) ** -alpha),
        (
            "MATERN52",
            lambda d, ell: (
                (1.0 + math.sqrt(5) * abs(d) / ell + 5.0 * d * d / (3.0 * ell * ell))
                * math.exp(-math.sqrt(5) * abs(d) / ell)
            ),
        ),
    ],
)
def test_covariance_and_gradient(name, oracle):
    kind = ATOMS[name]
    x = np.random.default_rng(0).normal(size=6)
    u = np.array([0.2, -0.3])[: len(kind.hyperparameters)]
    matrix = kind.covariance(x, x, np.exp(u))
    np.testing.assert_allclose(matrix, [[oracle(a - b, *np.exp(u)) for b in x] for a in x], rtol=1e-12)
    found = kind.gradient(x, np.exp(u), matrix)
    numeric = list(central_difference(lambda v: kind.covariance(x, x, np.exp(v)), u))
    np.testing.assert_allclose(found, numeric, atol=1e-8)
    assert kind.series(np.exp(u)[None], 1.0, np.array([1e-8])) is None


def test_words():
    composition = parse("RQ[hour] + MATERN52[hour]*PER[hour]*SE[t] + RQ[t]*RQ[t]")
    size = layout_of(composition).size
    found = describe(Hyperparameters(composition, (0.0,) * size), target="y", units={"hour": "hours"})
    assert [str(sentence) for sentence in found] == [
        "y will resemble, on many scales, what was observed at a similar hour, within about 1 hour. "
        "This part is typically ±1.",
        "y will also resemble, on many scales, what was observed at a similar t, within about 1, as long as t stays "
        "similar (within about 1). This part is typically ±1.",
        "y will also follow a smooth pattern in hour that repeats every hour, as long as hour stays similar (within "
        "about 1 hour), and as long as t stays similar (within about 1). This part is typically ±1.",
        "What remains unexplained varies by about ±1 from row to row.",
    ]


def test_an_atom_without_a_noun_is_a_pattern():
    assert ATOMS["RQ"].noun("hour", [{}], "hours") == "a pattern in hour"


def test_a_whole_fit_with_them_in_the_pool():
    model = fit(tiny.cohort(), pool=Pool.of("MATERN52[x]", "RQ[x]"), settings=tiny.settings(), workers=1)
    assert {node.composition for node in model.nodes if node.composition} <= {
        parse(text) for text in ("RQ[x]", "MATERN52[x]", "MATERN52[x] + RQ[x]")
    }
    user, rows = model.new_user("eve"), tiny.pilot(7)
    for t in (1, 2):
        batch = rows.batch(t)
        user.update(batch.X, batch.y)
    prediction = user.predict(rows.X)
    assert np.all(np.isfinite(prediction.mean))
    assert np.all(prediction.variance > 0.0)
    assert describe(user.hyperparameters, target="y")
    assert to_bytes(from_bytes(to_bytes(model))) == to_bytes(model)


def test_the_grammar_of_a_search_offers_them(monkeypatch):
    assert [each.text for each in base_expressions(["x"])] == ["LIN[x]", "PER[x]", "SE[x]"]  # not unless they say so
    monkeypatch.setattr(type(ATOMS["RQ"]), "in_default_grammar", True)
    assert base_expressions(["x"])[-1].text == "RQ[x]"
    assert SearchSettings().kinds == ("LIN", "PER", "SE", "RQ")
    assert parse("RQ[x]") in Pool.atoms(["x"])
    settings = SearchSettings(depth=1, kinds=("LIN", "RQ"), first=Effort(draws=2), second=Effort(draws=0, fresh=0))
    tree = search(tiny.pilot(1, ends=(20,)), None, settings)
    assert "RQ" in tree.best.expression.text


def test_an_atom_that_absorbs_itself_brings_its_own_rule(monkeypatch):
    kind = type(ATOMS["MATERN52"])
    monkeypatch.setattr(kind, "idempotent", True)
    assert parse("MATERN52[x]*MATERN52[x]") == parse("MATERN52[x]")
    with pytest.raises(KernelError, match="MATERN52"):
        ATOMS["MATERN52"].merged([0.0], [0.0])
