"""All users side by side: the effect of each covariate, and what acting adds, one line for each user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kerneltrail.data import Schema
from kerneltrail.kernels.phrases import counted, listing, rounded
from kerneltrail.report.forest import Estimate, ForestPanel, forest
from kerneltrail.report.model_page.axes import value_names, with_unit
from kerneltrail.report.model_page.effect_data import is_drawn
from kerneltrail.report.model_page.followed_user import UserView
from kerneltrail.report.model_page.numbers import NONE
from kerneltrail.report.page import Block, Expert, Paragraph, Picture, Section, Sentences, Table
from kerneltrail.report.terms import Terms, chance
from kerneltrail.trajectory.effects import Effect
from kerneltrail.trajectory.model import TrajectoryModel
from kerneltrail.trajectory.treatment import TreatmentEffect

DOTS = (
    "A filled dot: it is clear on which side of 0 it lies. A hollow one whose line does not reach 0 probably lies "
    "there, but that is not clear yet."
)
"""How dots are read."""
SITUATIONS = " How it differs between situations is shown user by user."
"""Said where what acting adds depends on covariates."""
MOST = 40
"""Users drawn below one another; the table has all of them."""


def effects_section(model: TrajectoryModel, users: Sequence[UserView]) -> Section | None:
    """The section on everybody's effects; None where nobody's rows are known."""
    known = [one for one in users if one.findings is not None]
    if not known:
        return None
    schema = model.schema
    shown = known[:MOST]
    panels = [
        ForestPanel(schema.label(name), _change(schema), [_estimate(one, name, schema) for one in shown])
        for name in model.covariates
    ]
    names = [_name(one) for one in shown]
    blocks: list[Block] = [
        Sentences("For how many users it is clear", [_tally(known, name, schema) for name in model.covariates]),
        Picture.of(
            lambda width: forest(names, panels, width=width),
            f"For each user, how much {schema.label(schema.target)} changes with "
            f"{listing(map(schema.label, model.covariates))}, with 90 % intervals.",
            "How much the target changes with each covariate, after the user's last batch, with 90 % intervals. "
            f"{DOTS} {_runs('the newest 200 rows of each user')}{_some(shown, known)}{_twice(shown)}",
            broad=len(panels) > 1,
        ),
        Expert("The same in numbers", [_table(known, schema)]),
    ]
    return Section("All users side by side", blocks, "everybody")


def _runs(rows: str) -> str:
    """From where to where a change is drawn."""
    return (
        f"Lines, trends and levels run from low to high values: lines and trends over the middle 80 % of {rows}, "
        "levels between the two that differ most. What turns runs from where it is lowest to where it is highest "
        "within these "
        "80 %, so it lies to the right of 0, whichever way it goes."
    )


def _twice(shown: Sequence[UserView]) -> str:
    """Why a pilot user's numbers are others than in the picture of pilot users."""
    if not any(one.pilot for one in shown):
        return ""
    return (
        " Pilot users are followed here as new ones are. Among what the pilot users showed they are under one kernel "
        "each, and over the rows of all, so their numbers differ."
    )


def pilot_picture(model: TrajectoryModel) -> Picture | None:
    """What was found of the pilot users, one line each; None for models that do not keep it."""
    rows = {(row["user"], row["covariate"]): row for row in model.pilot_effects}
    names = list(dict.fromkeys(name for name, _ in rows))[:MOST]
    if not names:
        return None
    schema = model.schema
    panels = [
        ForestPanel(schema.label(column), _change(schema), [_kept(rows.get((name, column))) for name in names])
        for column in model.covariates
    ]
    return Picture.of(
        lambda width: forest(names, panels, width=width),
        f"For each pilot user, how much {schema.label(schema.target)} changes with "
        f"{listing(map(schema.label, model.covariates))}, with 90 % intervals.",
        "The pilot users, each under the kernel in which it ends: how much the target changes, with 90 % intervals. "
        f"{DOTS} {_runs('the rows of all pilot users')}{_some(names, model.users)}",
        broad=len(panels) > 1,
    )


def _kept(row: Mapping[str, Any] | None) -> Estimate | None:
    """A pilot user's effect as a model keeps it; None where the kernel does not read the covariate, or it failed."""
    if row is None or row["lower"] == row["upper"] == 0.0:
        return None
    return _upwards(
        Estimate(row["change"], row["lower"], row["upper"], row["clear"]), row["shape"], row["from"] > row["to"]
    )


def _upwards(estimate: Estimate, shape: str, downwards: bool) -> Estimate:
    """From the lower value of a covariate to the higher, whichever the effect was stated from; not of what turns."""
    if not downwards or shape in ("curve", "rhythm"):
        return estimate
    return replace(estimate, mean=-estimate.mean, low=-estimate.high, high=-estimate.low)


def treatment_section(model: TrajectoryModel, users: Sequence[UserView]) -> Section | None:
    """The section on what acting adds; None without an action, or where nobody's rows are known."""
    known = [(one, one.findings.treatment) for one in users if one.findings and one.findings.treatment is not None]
    if not known:
        return None
    schema, shown = model.schema, known[:MOST]
    terms = Terms(schema)
    estimates = [_average(treatment) for _, treatment in shown]
    panel = ForestPanel(f"what {terms.action} adds, on average", _change(schema), estimates, "P(> 0)")
    blocks: list[Block] = [
        Sentences(f"What {terms.action} adds", [_helped([t for _, t in known], terms), *_availability(model, users)]),
        Picture.of(
            lambda width: forest([_name(one) for one, _ in shown], [panel], width=width),
            f"For each user, what {terms.action} adds to {terms.target} on average, with a 90 % interval.",
            f"What {terms.action} adds to {terms.target}, on average over the contexts of a user's newest rows, with "
            "its 90 % interval, and at the right the probability that it is above 0. "
            f"{DOTS}{_some(shown, known)}{SITUATIONS if model.reward is not None and model.reward.features else ''}",
        ),
        Expert("How this was estimated", [Paragraph(_coding(model))]),
    ]
    return Section(f"What does {terms.action} add?", blocks, "treatment")


def _name(one: UserView) -> str:
    return f"{one.user.name} (pilot)" if one.pilot else one.user.name


def _change(schema: Schema) -> str:
    return f"change in {with_unit(schema.target, schema)}"


def _some(shown: Sequence[object], known: Sequence[object]) -> str:
    return "" if len(shown) == len(known) else f" Drawn are the first {len(shown)} of {len(known)} users."


def _effect(one: UserView, name: str, schema: Schema) -> Effect | None:
    """A user's effect of a covariate, if anything is known of it."""
    assert one.findings is not None
    effect: Effect = one.findings.effects[name]
    return effect if is_drawn(effect, schema) else None


def _estimate(one: UserView, name: str, schema: Schema) -> Estimate | None:
    effect = _effect(one, name, schema)
    if effect is None:
        return None
    return _upwards(Estimate(effect.size, *effect.interval(), effect.clear), effect.shape, effect.start > effect.end)


def _average(treatment: TreatmentEffect) -> Estimate:
    low, high = treatment.average.interval()
    mean, positive = float(treatment.average.mean[0]), float(treatment.average.positive[0])
    return Estimate(mean, float(low[0]), float(high[0]), treatment.clear, chance(positive))


def _tally(users: Sequence[UserView], name: str, schema: Schema) -> str:
    """For how many users an effect is clear, and which way it goes."""
    effects = [_effect(one, name, schema) for one in users]
    clear = [effect for effect in effects if effect is not None and effect.clear]
    label, total = schema.label(name), len(users)
    if not clear:
        return f"{label}: for none of {counted(total, 'user')} is an effect clear."
    kinds: dict[str, int] = {}
    for effect in clear:
        kinds[_way(effect, schema)] = kinds.get(_way(effect, schema), 0) + 1
    ways = listing(f"{way} for {count}" for way, count in kinds.items())
    return f"{label}: clear for {len(clear)} of {counted(total, 'user')}: {schema.label(schema.target)} {ways}."


def _way(effect: Effect, schema: Schema) -> str:
    """Which way a clear effect goes."""
    if effect.shape in ("line", "trend"):
        return "rises with it" if (effect.size > 0) == (effect.end > effect.start) else "falls with it"
    if effect.shape == "levels" and len(effect.x) == 2:
        top = effect.end if effect.size > 0 else effect.start
        return f"is higher where it is {Terms(schema).at(effect.covariate, top)}"
    return {"rhythm": "follows a rhythm in it", "levels": "differs by it"}.get(effect.shape, "goes up and down with it")


def _table(users: Sequence[UserView], schema: Schema) -> Table:
    rows = []
    for one in users:
        for effect in one.findings.effects if one.findings is not None else ():
            low, high = effect.interval()
            ends = value_names(effect.covariate, [effect.start, effect.end], schema)
            drawn = is_drawn(effect, schema)
            change, low_end, high_end = (rounded(value, high - low) for value in (effect.size, low, high))
            # On a narrow screen a line breaks before the interval, not inside it.
            size = f"{change} {_together(f'({low_end} to {high_end})')}" if drawn else NONE
            sure = chance(effect.sign) if drawn else NONE
            span = " to ".join(map(_together, ends))
            rows.append([_name(one), schema.label(effect.covariate), span, size, sure, chance(effect.read)])
    return Table(
        "Every user's effects after the last batch; last, how probable the kernels are that read the covariate",
        ("user", "covariate", "from, to", f"{_change(schema)} (90 % interval)", "P(sign)", "P(in the kernel)"),
        rows,
        names=3,
    )


def _together(text: str) -> str:
    """Words that stand on one line."""
    return text.replace(" ", "\u00a0")


def _helped(treatments: Sequence[TreatmentEffect], terms: Terms) -> str:
    up = sum(each.clear and float(each.average.mean[0]) > 0 for each in treatments)
    down = sum(each.clear and float(each.average.mean[0]) < 0 for each in treatments)
    total = counted(len(treatments), "user")
    return (
        f"On average over recent situations, {terms.action} clearly raises {terms.target} for {up} of {total}, clearly "
        f"lowers it for {down}, and is not clear either way for {len(treatments) - up - down}."
    )


def _availability(model: TrajectoryModel, users: Iterable[UserView]) -> list[str]:
    """What rows do at which nobody could act."""
    schema = model.schema
    if schema.available_only:
        return ["Rows at which a user was not available were left out: all of this is about moments to act."]
    flags = [one.user.availability for one in users if one.user.availability is not None]
    if not flags:
        return ["The table does not say when users were not available, so every row counts as a moment to act."]
    rows, could = sum(len(each) for each in flags), int(sum(each.sum() for each in flags))
    if could == rows:
        return [f"Users were available at all {rows:,} rows that are shown."]
    return [
        f"At {rows - could:,} of {rows:,} rows the user was not available, so nobody could act. Such rows say nothing "
        f"about what {Terms(schema).action} adds; they help to learn the rest, and their situations count in the "
        "averages."
    ]


def _coding(model: TrajectoryModel) -> str:
    reward = model.reward
    assert reward is not None  # there is an action
    features = listing(map(model.schema.label, reward.features)) if reward.features else ""
    text = "What acting adds is a constant" + (f" and a straight line in {features}" if features else "")
    text += ", with a Normal prior on the weights, in the same posterior as the kernel, and averaged over kernels."
    if reward.centred:
        return (
            f"{text} The action is coded as its difference from the probability with which it was drawn, so a kernel "
            "that misses something of the rest does not leak into it."
        )
    return (
        f"{text} The probability with which the action was drawn was not logged (or is not used): if acting depended "
        "on something that the kernel misses, that is part of what is shown here."
    )
