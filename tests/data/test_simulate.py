import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from kerneltrail.data import Simulation, simulate
from kerneltrail.data.simulate.truth import LOG_SD, covariance
from kerneltrail.errors import DataError
from kerneltrail.kernels import Priors, layout_of, parse

LATER = [simulate.distinct, simulate.similar, simulate.complex]


def truths(simulation: Simulation) -> tuple[Counter[str], Counter[str]]:
    return (
        Counter(str(simulation.truth[name]) for name in simulation.train.names),
        Counter(str(simulation.truth[name]) for name in simulation.test.names),
    )


def test_the_papers_experiment() -> None:
    simulation = simulate.paper(seed=1)
    assert truths(simulation) == (
        {"LIN[x] + PER[x]": 3, "SE[x]": 3},
        {"LIN[x] + PER[x]": 50, "SE[x]": 50},
    )
    assert simulation.train.names[0] == "train-01"
    assert simulation.test.names[-1] == "test-100"
    for user in (*simulation.train, *simulation.test):
        assert user.ends == (3, 7, 17, 37, 87, 187)
        assert user.X.min() >= -4.0
        assert user.X.max() <= 4.0
        assert simulation.hyperparameters[user.name]["noise"] == pytest.approx(0.15, rel=1e-12)
    assert simulation.train.users == simulation.train.raw
    assert (simulation.train.covariates, simulation.train.target) == (("x",), "y")


@pytest.mark.parametrize(
    ("draw", "kernels"),
    [
        (simulate.distinct, ("LIN[x] + PER[x]", "SE[x]")),
        (simulate.similar, ("LIN[x] + PER[x]", "LIN[x] + SE[x]")),
        (simulate.complex, ("LIN[x]*PER[x]", "SE[x] + PER[x]*SE[x]")),
    ],
)
def test_the_later_experiments(draw: Callable[..., Simulation], kernels: tuple[str, str]) -> None:
    simulation = draw(seed=2)
    assert truths(simulation) == (dict.fromkeys(kernels, 5), dict.fromkeys(kernels, 25))
    for user in simulation.test:
        assert user.ends == (5, 10, 15, 20, 25, 30)
        assert user.X.min() >= 0.0
        assert user.X.max() <= 20.0
        assert simulation.hyperparameters[user.name]["noise"] == pytest.approx(0.25, rel=1e-12)


CENTRES: list[tuple[Callable[..., Simulation], str, dict[str, float], float]] = [
    (
        simulate.paper,
        "LIN[x] + PER[x]",
        {
            "LIN[x].amplitude": math.e,
            "LIN[x].location": 0.0,
            "PER[x].amplitude": math.e,
            "PER[x].lengthscale": 1.0,
            "PER[x].period": math.e,
        },
        0.1,
    ),
    (simulate.paper, "SE[x]", {"SE[x].amplitude": math.e, "SE[x].lengthscale": 1.0}, 0.0),
    (
        simulate.distinct,
        "LIN[x] + PER[x]",
        {
            "LIN[x].amplitude": 4.0,
            "LIN[x].location": 5.0,
            "PER[x].amplitude": 5.0,
            "PER[x].lengthscale": 2.0,
            "PER[x].period": 4.0,
        },
        1.0,
    ),
    (simulate.distinct, "SE[x]", {"SE[x].amplitude": 10.0, "SE[x].lengthscale": 1.0}, 0.0),
    (
        simulate.similar,
        "LIN[x] + SE[x]",
        {"LIN[x].amplitude": 4.0, "LIN[x].location": 5.0, "SE[x].amplitude": 5.0, "SE[x].lengthscale": 3.0},
        1.0,
    ),
    (
        simulate.complex,
        "LIN[x]*PER[x]",
        {
            "LIN[x]*PER[x].amplitude": 4.0,
            "LIN[x]*PER[x]: LIN[x].location": 5.0,
            "LIN[x]*PER[x]: PER[x].lengthscale": 2.0,
            "LIN[x]*PER[x]: PER[x].period": 5.0,
        },
        1.0,
    ),
    (
        simulate.complex,
        "SE[x] + PER[x]*SE[x]",
        {
            "SE[x].amplitude": 7.0,
            "SE[x].lengthscale": 10.0,
            "PER[x]*SE[x].amplitude": 20.0,
            "PER[x]*SE[x]: PER[x].lengthscale": 2.0,
            "PER[x]*SE[x]: PER[x].period": 3.0,
            "PER[x]*SE[x]: SE[x].lengthscale": 5.0,
        },
        1.0,
    ),
]


@pytest.mark.parametrize(("draw", "kernel", "centre", "location_sd"), CENTRES)
def test_hyperparameters_spread_around_the_stated_centre(
    draw: Callable[..., Simulation], kernel: str, centre: dict[str, float], location_sd: float
) -> None:
    """Means within 5 standard errors and variances within χ² bounds at 1e-6, 24 of each: false alarms below 1e-4."""
    keywords: dict[str, Any] = {"batches": (2,)} if draw is simulate.paper else {}
    simulation = draw(train=400, test=1, seed=5, **keywords)
    wanted = parse(kernel)
    vectors = np.array([h.vector for name, h in simulation.hyperparameters.items() if simulation.truth[name] == wanted])
    n = len(vectors)
    assert n >= 200
    layout = layout_of(wanted)
    assert set(centre) == set(layout.names) - {"noise"}
    for slot, column in zip(layout.slots, vectors.T, strict=True):
        if slot.name == "noise":
            assert np.ptp(column) == 0.0
            continue
        middle = math.log(centre[slot.name]) if slot.spec.positive else centre[slot.name]
        sd = LOG_SD if slot.spec.positive else location_sd
        assert abs(column.mean() - middle) < 5.0 * sd / math.sqrt(n)
        tail = stats.chi2.cdf(np.sum((column - middle) ** 2) / sd**2, df=n)
        assert min(tail, 1.0 - tail) > 5e-7


def test_the_papers_centres_are_the_priors_medians() -> None:
    priors = Priors.synthetic()
    for kind, centre in (("lengthscale", 1.0), ("amplitude", math.e), ("period", math.e)):
        prior = priors.of(kind)
        assert prior is not None
        assert math.exp(prior.mean) == pytest.approx(centre)


def test_targets_are_drawn_from_their_own_kernel() -> None:
    """The whitened targets of 60 users are standard normal: χ² over 1,800 rows, two-sided at 1e-6."""
    simulation = simulate.complex(train=59, test=1, seed=3)
    total, rows = 0.0, 0
    for user in (*simulation.train, *simulation.test):
        h = simulation.hyperparameters[user.name]
        K = covariance(h, user.X, ("x",)) + h["noise"] * np.eye(user.rows)
        total += user.y @ np.linalg.solve(K, user.y)
        rows += user.rows
    tail = stats.chi2.cdf(total, df=rows)
    assert min(tail, 1.0 - tail) > 5e-7


@pytest.mark.parametrize("draw", [simulate.paper, *LATER])
def test_seeds_reproduce(draw: Callable[..., Simulation]) -> None:
    first = draw(train=2, test=2, seed=4)
    assert first == draw(train=2, test=2, seed=np.random.default_rng(4))
    assert first.train.users != draw(train=2, test=2, seed=5).train.users
    assert first.train.users[0].y.tolist() != first.test.users[0].y.tolist()


def test_one_user_on_each_side_is_the_least() -> None:
    assert len(simulate.distinct(train=1, test=1).train) == 1
    with pytest.raises(DataError, match="at least one user on each side"):
        simulate.distinct(train=0)
