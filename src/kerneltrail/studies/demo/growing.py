"""One covariate: a user of the paper's synthetic experiment, fitted after each batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.data import User, simulate
from kerneltrail.gp import MapResult, Posterior, find_map_path
from kerneltrail.kernels import Priors, parse
from kerneltrail.report import figures
from kerneltrail.report.description import describe
from kerneltrail.report.figures import GREEN, NARROW, VERMILION, WIDE, Curve, Dots, Panel
from kerneltrail.report.page import Block, Paragraph, Section, Sentences, Table
from kerneltrail.studies.demo.parts import Part, across, listed, shares
from kerneltrail.studies.figure_pair import FigurePair


def growing_user(seed: int) -> Part:
    """A user of the paper's synthetic experiment (method §9.1), fitted after each of its six batches."""
    simulation = simulate.paper(train=1, test=2, seed=seed)
    composition = parse("LIN[x] + PER[x]")
    user = next(user for user in simulation.test if simulation.truth[user.name] == composition)
    path = find_map_path(user, composition, Priors.synthetic(), rng=np.random.default_rng(seed))
    posterior = Posterior.fit(user, path[-1].hyperparameters)
    truth = simulation.hyperparameters[user.name]
    drawn = (
        _fits(user, path),
        _sum_and_parts(user, posterior),
        _periods(user, path, truth["PER[x].period"]),
    )
    sentences = describe(path[-1].hyperparameters, target="y", shares=shares(posterior))
    blocks: list[Block] = [
        Paragraph(
            "This user's target is a straight line plus a pattern that repeats with period "
            f"{truth['PER[x].period']:.2f}, plus noise. The kernel {composition} is fitted after {listed(user.ends)} "
            "rows; each fit starts from the one before."
        ),
        drawn[0].block(),
        Sentences(f"What {composition} says after {user.rows} rows", [str(sentence) for sentence in sentences]),
        drawn[1].block(),
        drawn[2].block(),
        _fit_table(user, path),
    ]
    return Part(Section("One user, batch after batch", blocks), drawn)


def _fits(user: User, path: Sequence[MapResult]) -> FigurePair:
    x = across(user.X[:, 0])
    panels = []
    for t, result in enumerate(path, 1):
        seen, rows = user.upto(t), user.ends[t - 1]
        fit = Posterior.fit(seen, result.hyperparameters).predict(x[:, None])
        dots = [Dots(seen.X[:, 0], seen.y, "observed")]
        if rows < user.rows:
            dots.append(Dots(user.X[rows:, 0], user.y[rows:], "still to come", seen=False))
        curve = Curve(x, fit.mean, np.sqrt(fit.variance), fit.interval(0.95))
        panels.append(Panel(f"after {rows} rows", "x", "y", curve, tuple(dots)))
    return FigurePair(
        "fit",
        figures.grid(panels, columns=3, share=True),
        figures.grid(panels, columns=2, width=NARROW, height=1.7, share=True),
        f"Six panels with the fit of {path[-1].composition} after {listed(user.ends)} rows; the bands narrow.",
        "The fit after each batch. The darker band holds the function with 95% probability, the lighter one new "
        "observations; grey dots had not been seen yet.",
    )


def _sum_and_parts(user: User, posterior: Posterior) -> FigurePair:
    x = across(user.X[:, 0])
    whole = posterior.predict(x[:, None])
    panels = [
        Panel(
            "the sum",
            "x",
            "y",
            Curve(x, whole.mean, np.sqrt(whole.variance)),
            (Dots(user.X[:, 0], user.y, "observed, less the other parts"),),
        )
    ]
    here = posterior.components(user.X)
    share = posterior.shares()
    rest = user.y - posterior.predict(user.X).mean
    for part, at, colour in zip(posterior.components(x[:, None]), here, (VERMILION, GREEN), strict=True):
        panels.append(
            Panel(
                f"{part.product}: {share[part.product]:.0%} of the variance",
                "x",
                "",
                Curve(x, part.mean, np.sqrt(part.variance)),
                (Dots(user.X[:, 0], at.mean + rest, "observed, less the other parts"),),
                colour,
            )
        )
    return FigurePair(
        "parts",
        figures.grid(panels, columns=3, share=True),
        figures.grid(panels, columns=1, width=NARROW, height=1.8, share=True),
        f"The fit of {posterior.composition} and, beside it, the part of each product.",
        "The same fit, taken apart: each product of the kernel has its own function with its own uncertainty, and they "
        "add up to the sum.",
    )


def _periods(user: User, path: Sequence[MapResult], true: float) -> FigurePair:
    index = path[0].hyperparameters.layout.names.index("PER[x].period")
    logs = np.array([result.hyperparameters.unconstrained[index] for result in path])
    spread = np.array([np.sqrt(np.linalg.inv(result.precision)[index, index]) for result in path])
    value, reach = np.exp(logs), np.exp(figures.WITHIN_95 * spread)

    def draw(width: float) -> Figure:
        labels = {"xlabel": "rows seen", "ylabel": "period of the pattern (x)"}
        return figures.estimates(user.ends, value, value / reach, value * reach, truth=true, width=width, **labels)

    return FigurePair(
        "period",
        draw(WIDE),
        draw(NARROW),
        f"Estimated period after {listed(user.ends)} rows with intervals that close in on the true {true:.2f}.",
        "What is learnt of the rhythm: the period that fits best after each batch, with the interval that the "
        "curvature of the posterior gives. Early on it is little more than the prior, and one optimum of several.",
    )


def _fit_table(user: User, path: Sequence[MapResult]) -> Table:
    rows = [
        [
            str(end),
            f"{result.log_likelihood:.2f}",
            f"{result.log_laplace:.2f}",
            f"{result.hyperparameters['PER[x].period']:.3f}",
            f"{result.hyperparameters['noise'] ** 0.5:.3f}",
            result.status,
        ]
        for end, result in zip(user.ends, path, strict=True)
    ]
    columns = ("rows", "log p(y | best)", "log p(y), Laplace", "period", "noise (sd)", "search")
    return Table("The fits in numbers", columns, rows)
