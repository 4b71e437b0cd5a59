"""Several covariates: a user of a simulated trial with prompts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from kerneltrail.data import Scaler, Simulation, User, in_data_units, simulate
from kerneltrail.evaluation import rmse
from kerneltrail.gp import LinearBlock, MapResult, Posterior, Reward, find_map_path
from kerneltrail.kernels import Composition, Priors, parse
from kerneltrail.report import figures
from kerneltrail.report.description import describe
from kerneltrail.report.figures import BLUE, NARROW, ORANGE, PURPLE, VERMILION, WIDE, Curve, Dots, Panel
from kerneltrail.report.page import Block, Paragraph, Section, Sentences, Table
from kerneltrail.studies.demo.parts import POINTS, Part, along, shares, with_unit
from kerneltrail.studies.figure_pair import FigurePair

CANDIDATES = (
    "LIN[log_steps30pre] + SE[hour]",
    "LIN[log_steps30pre] + SE[temperature]",
    "SE[hour] + SE[temperature]",
    "SE[hour]",
    "LIN[log_steps30pre]",
)


def trial_user(seed: int) -> Part:
    """A user of a simulated trial with prompts: which kernel, what it says, whether a prompt helps (method §8)."""
    simulation = simulate.mhealth(seed=seed)
    user = simulation.test.users[0]
    units, target = dict(simulation.test.units), simulation.test.target
    scaler = simulation.test.scaler_for(user)
    reward = Reward(features=("log_steps30pre",))
    fitted = _candidates(user, reward, seed)
    best = max(fitted, key=lambda text: fitted[text][-1].log_laplace)
    hyperparameters = fitted[best][-1].hyperparameters
    posterior = Posterior.fit(user, hyperparameters, block=_block(user, reward))
    drawn = (
        _effects(simulation, user, posterior, reward),
        _forecast(simulation, user, fitted[best][-2], reward),
    )
    sentences = describe(in_data_units(hyperparameters, scaler), target=target, units=units, shares=shares(posterior))
    blocks: list[Block] = [
        Paragraph(
            "Five times a day a person may be prompted to walk. Predicted is the logarithm of the steps in the half "
            "hour after, from the hour, the temperature and the steps before; beside the kernel stands a linear part "
            f"for what a prompt adds. In truth this user follows {simulation.truth[user.name]}."
        ),
        _choice(user, fitted, best, simulation.truth[user.name]),
        Sentences(f"What {best} says after {user.rows} rows", [str(sentence) for sentence in sentences]),
        drawn[0].block(),
        drawn[1].block(),
    ]
    return Part(Section("A user of a trial: several covariates, and prompts", blocks), drawn)


def _block(user: User, reward: Reward) -> LinearBlock:
    assert user.action is not None  # the simulated trial has actions
    return reward.block(user.X, user.covariates, user.action)


def _candidates(user: User, reward: Reward, seed: int) -> dict[str, tuple[MapResult, ...]]:
    block = _block(user, reward)
    return {
        text: find_map_path(
            user, parse(text), Priors.heartsteps(), rng=np.random.default_rng(seed), starts=4, block=block
        )
        for text in CANDIDATES
    }


def _choice(user: User, fitted: dict[str, tuple[MapResult, ...]], best: str, truth: Composition) -> Table:
    order = sorted(fitted, key=lambda text: -fitted[text][-1].log_laplace)
    top = [max(path[t].log_laplace for path in fitted.values()) for t in range(user.batches)]
    rows = []
    for text in order:
        mark = " (the truth)" if parse(text) == truth else ""
        rows.append([text + mark, *(f"{result.log_laplace - top[t]:.1f}" for t, result in enumerate(fitted[text]))])
    caption = (
        "Which kernel? Log evidence (Laplace) after each batch, relative to the best of the five; "
        "3 less is about 20 times less likely"
    )
    return Table(caption, ("kernel", *(f"{end} rows" for end in user.ends)), rows, marked=(order.index(best),))


def _effects(simulation: Simulation, user: User, posterior: Posterior, reward: Reward) -> FigurePair:
    """Each product against its covariate, then the advantage of a prompt, all in data units."""
    scaler, units = simulation.test.scaler_for(user), simulation.test.units
    target = with_unit(simulation.test.target, units)
    linear = _block(user, reward).features
    rest = user.y - posterior.predict(user.X, linear=linear).mean
    raw = scaler.inverse(user.X)
    here = posterior.components(user.X, linear=linear)
    panels = []
    for p, (product, colour) in enumerate(zip(posterior.composition, (VERMILION, BLUE, ORANGE), strict=False)):
        column = user.column_index(product.covariates[0])
        at = along(user, column)
        part = posterior.components(at, linear=np.zeros((POINTS, linear.shape[1])))[p]
        panels.append(
            Panel(
                f"{product}",
                with_unit(user.covariates[column], units),
                target,
                Curve(scaler.inverse(at)[:, column], part.mean, np.sqrt(part.variance)),
                (Dots(raw[:, column], here[p].mean + rest, "observed, less the other parts"),),
                colour,
                mean_label="mean of the part",
                band_label="95% of the part",
            )
        )
    panels.append(_advantage(simulation, user, posterior, reward, scaler))
    return FigurePair(
        "effects",
        figures.grid(panels, columns=len(panels), height=2.7, share=False),
        figures.grid(panels, columns=1, width=NARROW, height=2.2, share=False),
        "The part of each product against its covariate, and what a prompt adds against the steps before.",
        "What matters for this user, in the units of the data: the parts of the kernel, and last what a prompt "
        "adds, with the truth that was simulated. A part is known up to a constant that another part may hold: hence "
        "wide bands around shapes that are well known.",
    )


def _advantage(simulation: Simulation, user: User, posterior: Posterior, reward: Reward, scaler: Scaler) -> Panel:
    column = user.column_index("log_steps30pre")
    at = along(user, column)
    x = scaler.inverse(at)[:, column]
    mean, variance = posterior.advantage(at, reward)
    true = simulation.advantage[user.name]
    return Panel(
        "what a prompt adds",
        with_unit("log_steps30pre", simulation.test.units),
        with_unit(simulation.test.target, simulation.test.units),
        Curve(x, mean, np.sqrt(variance)),
        colour=PURPLE,
        zero=True,
        truth=(x, true["1"] + true["log_steps30pre"] * x),
        mean_label="mean of the part",
        band_label="95% of the part",
    )


def _forecast(simulation: Simulation, user: User, result: MapResult, reward: Reward) -> FigurePair:
    """The last batch, predicted from those before it."""
    before, last = user.upto(user.batches - 1), user.batch(user.batches)
    posterior = Posterior.fit(before, result.hyperparameters, block=_block(before, reward))
    ahead = posterior.predict(last.X, linear=_block(last, reward).features)
    low, high = ahead.interval(0.95)
    inside = int(((low <= last.y) & (last.y <= high)).sum())
    error, naive = rmse(ahead.mean, last.y), rmse(before.y.mean(), last.y)
    label = with_unit(simulation.test.target, simulation.test.units)

    def draw(width: float) -> Figure:
        return figures.forecast(
            ahead.mean, (low, high), last.y, xlabel=f"decision point of batch {user.batches}", ylabel=label, width=width
        )

    return FigurePair(
        "forecast",
        draw(WIDE),
        draw(NARROW),
        f"Predicted intervals for {last.rows} decision points and what was observed; {inside} lie inside.",
        f"The last {last.rows} rows, predicted from the {before.rows} before: {inside} of {last.rows} fall inside the "
        f"95% interval. The error (RMSE) is {error:.2f}; the user's running mean would have {naive:.2f}.",
    )
