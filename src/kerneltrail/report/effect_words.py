"""What was found of one user, in words: direction, size with a 90 % interval, over which span, and how sure it is.

A sentence says what the rows of this user show. What a kernel would allow of any user is said by `describe`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kerneltrail.data import Schema
from kerneltrail.gp.mixture import NormalMixture
from kerneltrail.kernels.phrases import listing, quantity, without_zero
from kerneltrail.report.description import Description, Sentence
from kerneltrail.report.terms import CERTAIN, Terms, chance, sureness
from kerneltrail.trajectory.effects import SURE, Effect, Effects, Interaction
from kerneltrail.trajectory.new_user import NewUser
from kerneltrail.trajectory.treatment import FeatureAdvantage, TreatmentEffect

LEANING = 0.9
"""From this probability of a sign on, an effect that is not clear is said to lean to a side."""
FEW = 5
"""Up to so many values of a feature are all stated; of more, the two ends."""
NOBODY = "none of the kernels learnt from the pilot users reads"
"""Said of a covariate for which every user has the same kernels, whatever the rows say."""
READ = 0.5
"""Below this probability of the kernels that read a covariate, what is said of it rests on other users too."""


def effect_sentence(effect: Effect, schema: Schema, *, rests: bool = True) -> str:
    """What one covariate does to one user's target; with what that `rests` on, where few kernels read the covariate.

    >>> from kerneltrail.data.batching import Batching
    >>> schema = Schema("who", "day", "steps", ("hour",), Batching(size=5), units={"steps": "steps"})
    >>> rising = NormalMixture([1.0], [[600.0]], [[100.0**2]])
    >>> effect = Effect("hour", "line", np.array([8.0, 20.0]), rising, 8.0, 20.0, rising, 1.0)
    >>> print(effect_sentence(effect, schema))
    Steps rises with hour: by 50 steps for each unit of hour (90 % interval 36 to 64), so by 600 steps from 8 to 20 \
(nearly all rows). That it rises is almost certain (probability above 0.99).
    """
    terms = Terms(schema)
    unknown = silence(effect, terms)
    if unknown:
        return unknown
    if not effect.clear:
        text = _unclear(effect, terms)
    elif effect.shape in ("line", "trend"):
        text = _direction(effect, terms)
    elif effect.shape == "levels" and len(effect.x) == 2:
        text = _two_levels(effect, terms)
    else:
        text = _turns(effect, terms)
    return text + _rests(effect, terms) if rests else text


def silence(effect: Effect, terms: Terms) -> str:
    """Why nothing can be said of a covariate; empty if something can."""
    name = terms.called(effect.covariate)
    if effect.start == effect.end:
        held = terms.at(effect.covariate, effect.start)
        return f"The effect of {name} cannot be told yet: it is about {held} in most rows so far."
    moves = effect.change.variances.max() > 0.0 or effect.change.means.any()
    # A level that no row has: the curve is stated around the rows' average, so it is known to be 0 at the only one met.
    if effect.shape == "levels" and moves and len(effect.x) == 2 and not effect.curve.variances[:, 0].any():
        held = terms.at(effect.covariate, float(effect.x[0]))
        return f"The effect of {name} cannot be told yet: in all rows so far it is {held}."
    low, high = effect.interval()
    # Nearly all kernels say that nothing changes.
    if max(-low, high) <= 1e-6 * float((np.abs(effect.change.means) + np.sqrt(effect.change.variances)).max()):
        if not effect.readable:
            return f"No effect of {name} was found: {NOBODY} {name}."
        return (
            f"No effect of {name} was found: the probability that it plays a part for this user is "
            f"{chance(effect.read)}."
        )
    return ""


def _rests(effect: Effect, terms: Terms) -> str:
    """What a sentence rests on where most kernels do not read the covariate."""
    if effect.read >= READ:
        return ""
    name = terms.called(effect.covariate)
    part = f"the probability that {name} plays a part of its own for this user is {chance(effect.read)}"
    if not effect.readable:
        part = f"{NOBODY} {name}"
    if rests_on_others(effect):
        return f" This rests mostly on what users share and on what is left unexplained{_of_newest(effect)}; {part}."
    return f" {part[0].upper()}{part[1:]}."


def _of_newest(effect: Effect) -> str:
    """Of which rows, where it is not of all."""
    return "" if effect.newest is None else f" of the newest {effect.newest} rows"


def rests_on_others(effect: Effect) -> bool:
    """Whether what is said of a covariate rests mostly on other users, and on what the kernels leave unexplained."""
    change = effect.change
    # Without a population to differ from, kernels that do not read the covariate say that nothing changes.
    moves = (change.variances[:, 0] > 0.0) | (change.means[:, 0] != 0.0)
    return effect.read < READ and float(change.weights[moves].sum()) - effect.read > 1e-6


def _ordered(effect: Effect) -> tuple[float, float, float]:
    """The lower and the higher of the two values compared, and the factor that makes the change go that way."""
    return (effect.start, effect.end, 1.0) if effect.start <= effect.end else (effect.end, effect.start, -1.0)


def _size(change: NormalMixture | Effect) -> tuple[float, float, float]:
    """How large a change is, or that of an effect, whatever its sign, with its 90 % interval."""
    if isinstance(change, Effect):
        size, (low, high) = change.size, change.interval()
    else:
        size, (low, high) = float(change.mean[0]), (float(end[0]) for end in change.interval())
    return (size, low, high) if size >= 0 else (-size, -high, -low)


def _direction(effect: Effect, terms: Terms) -> str:
    low_end, high_end, factor = _ordered(effect)
    verb = "rises" if factor * effect.size > 0 else "falls"
    size, low, high = _size(effect)
    span = f"{terms.span(effect.covariate, low_end, high_end)} ({_rows_within(effect)})"
    total = terms.amount(size, high - low)
    head = f"{terms.subject} {verb} with {terms.called(effect.covariate)}"
    slope = effect.slope
    rate = None if slope is None else _size(slope)
    if rate is not None and rate[0] >= 1e-3:
        each = f"{terms.amount(rate[0], rate[2] - rate[1])} {terms.per(effect.covariate)}"
        text = f"{head}: by {each} (90 % interval {terms.interval(rate[1], rate[2])}), so by {total} {span}."
    else:
        bent = "" if effect.shape == "line" else ", in a curve without a turn"
        text = f"{head}{bent}: by {total} (90 % interval {terms.interval(low, high)}) {span}."
    return f"{text} That it {verb} is {sureness(effect.sign)}."


def _rows_within(effect: Effect) -> str:
    """Which rows lie between the values that are compared: method §8.5's percentiles."""
    rows = "the rows" if effect.newest is None else f"the newest {effect.newest} rows"
    if effect.shape in ("line", "trend") and {effect.start, effect.end} == {float(effect.x[0]), float(effect.x[-1])}:
        return "nearly all rows" if effect.newest is None else f"nearly all of {rows}"
    return f"the middle 80 % of {rows}"


def _two_levels(effect: Effect, terms: Terms) -> str:
    size, low, high = _size(effect)
    word = "higher" if effect.size > 0 else "lower"
    one, other = (terms.at(effect.covariate, value) for value in (effect.end, effect.start))
    return (
        f"{terms.subject} is {terms.amount(size, high - low)} {word} where {terms.called(effect.covariate)} is {one} "
        f"than where it is {other} (90 % interval {terms.interval(low, high)}; probability {chance(effect.sign)} that "
        f"it is {word})."
    )


def _turns(effect: Effect, terms: Terms) -> str:
    size, low, high = _size(effect)
    top, bottom = (effect.end, effect.start) if effect.size > 0 else (effect.start, effect.end)
    width = float(np.ptp(effect.x))
    about = "" if effect.shape == "levels" else "about "
    peak, trough = (f"{about}{terms.at(effect.covariate, value, width)}" for value in (top, bottom))
    name = terms.called(effect.covariate)
    within = "" if effect.shape == "levels" else f", within {_rows_within(effect)}"
    head = f"{terms.subject} is highest where {name} is {peak} and lowest where it is {trough}{within}"
    if effect.period is not None:
        period = terms.period(effect.covariate, effect.period)
        head = (
            f"{terms.subject} goes up and down with {name} in a rhythm that comes back every {period}. Within "
            f"{_rows_within(effect)} it is highest where {name} is {peak} and lowest where it is {trough}"
        )
    return (
        f"{head}: a difference of {terms.amount(size, high - low)} (90 % interval {terms.interval(low, high)}). That "
        f"there is such a difference is {sureness(effect.sign)}."
    )


def _unclear(effect: Effect, terms: Terms) -> str:
    name, column = terms.called(effect.covariate), effect.covariate
    low, high = effect.interval()
    # An average over kernels may have 0 outside its interval and its mean on the other side: the interval counts then.
    outside, likely = without_zero(low, high), chance(max(effect.sign, 1.0 - effect.sign))
    up = low > 0.0 if outside else effect.size > 0
    if effect.shape in ("line", "trend"):
        start, end, factor = _ordered(effect)
        low, high = (low, high) if factor > 0 else (-high, -low)
        verb = "rise" if up == (factor > 0) else "fall"
        lies = f"{terms.span(column, start, end)} the change in {terms.target} lies between {terms.between(low, high)}"
        if outside:
            return (
                f"{terms.subject} probably {verb}s with {name}, but that is not clear yet: {lies} (90 % interval; "
                f"probability {likely} that it {verb}s)."
            )
        lean = f" A {verb} is likelier (probability {chance(effect.sign)})."
        return f"No clear effect of {name}: {lies} (90 % interval).{lean if effect.sign >= LEANING else ''}"
    width = float(np.ptp(effect.x))
    one, other = (terms.at(column, value, width) for value in (effect.end, effect.start))
    if effect.shape == "levels" and len(effect.x) == 2:
        word = "higher" if up else "lower"
        if outside:
            return (
                f"{terms.subject} is probably {word} where {name} is {one} than where it is {other}, but that is not "
                f"clear yet: the difference lies between {terms.between(low, high)} (90 % interval; probability "
                f"{likely} that it is {word})."
            )
        text = (
            f"No clear difference by {name}: {terms.target} where it is {one} less that where it is {other} lies "
            f"between {terms.between(low, high)} (90 % interval)."
        )
        lean = f" That it is {word} where {name} is {one} is likelier (probability {chance(effect.sign)})."
        return text + (lean if effect.sign >= LEANING else "")
    if not up:
        one, other, low, high = other, one, -high, -low
    chosen = "The two were picked because they differ most, and by chance alone some two always do."
    within = "" if effect.shape == "levels" else f" within {_rows_within(effect)}"
    if outside:
        return (
            f"{terms.subject} is probably highest where {name} is {one} and lowest where it is {other}{within}, but "
            f"that is not clear yet: the difference lies between {terms.between(low, high)} (90 % interval). {chosen}"
        )
    return (
        f"No clear effect of {name}: the difference in {terms.target} between {one}, where it seems highest, and "
        f"{other}, where it seems lowest{within}, lies between {terms.between(low, high)} (90 % interval). {chosen}"
    )


def interaction_sentence(interaction: Interaction, schema: Schema) -> str:
    """How the effect of one covariate depends on another, for one user."""
    terms = Terms(schema)
    (a, b), (first, second) = interaction.covariates, (interaction.first, interaction.second)
    here, there = (terms.at(b, value, float(np.ptp(interaction.z))) for value in (second[1], second[0]))
    span = terms.span(a, *first)
    if interaction.sign < SURE:
        low, high = (float(end[0]) for end in interaction.change.interval())
        return (
            f"Whether the effect of {terms.called(a)} depends on {terms.called(b)} is not clear: {span}, the change in "
            f"{terms.target} where {terms.called(b)} is {here} less that where it is {there} lies between "
            f"{terms.between(low, high)} (90 % interval)."
        )
    size, low, high = _size(interaction.change)
    word = "more" if float(interaction.change.mean[0]) > 0 else "less"
    return (
        f"The effect of {terms.called(a)} depends on {terms.called(b)}: {span}, {terms.target} gains "
        f"{terms.amount(size, high - low)} {word} (90 % interval {terms.interval(low, high)}) where {terms.called(b)} "
        f"is {here} than where it is {there}. That it gains {word} is {sureness(interaction.sign)}."
    )


def treatment_sentences(treatment: TreatmentEffect, schema: Schema) -> tuple[str, ...]:
    """What acting adds for one user: on average, along each feature, and what availability has to do with it."""
    terms = Terms(schema)
    sentences = [_average(treatment.average, terms)]
    sentences += [_along(each, terms) for each in treatment.features]
    if schema.available_only:
        sentences.append("Rows at which the user was not available are left out.")
    elif schema.availability is not None:
        sentences.append(
            f"Rows at which the user was not available say nothing of what {terms.action} adds; they count for all "
            "else."
        )
    return tuple(sentences)


def _average(average: NormalMixture, terms: Terms) -> str:
    positive = float(average.positive[0])
    sign = positive if float(average.mean[0]) >= 0 else 1.0 - positive
    if sign < SURE:
        low, high = (float(end[0]) for end in average.interval())
        lies = f"the change lies between {terms.between(low, high)} (90 % interval"
        if without_zero(low, high):
            verb, likely = ("raises", positive) if low > 0.0 else ("lowers", 1.0 - positive)
            return (
                f"On average over the recent rows, {terms.action} probably {verb} {terms.target}, but that is not "
                f"clear yet: {lies}; probability {chance(likely)} that it {verb} it)."
            )
        return (
            f"Whether {terms.action} raises or lowers {terms.target} is not certain: on average over the recent rows "
            f"{lies}; probability {chance(positive)} that it raises it)."
        )
    size, low, high = _size(average)
    verb = "raises" if float(average.mean[0]) > 0 else "lowers"
    return (
        f"On average over the recent rows, {terms.action} {verb} {terms.target} by {terms.amount(size, high - low)} "
        f"(90 % interval {terms.interval(low, high)}). That it {verb} it is {sureness(sign)}."
    )


def _along(feature: FeatureAdvantage, terms: Terms) -> str:
    """What acting adds at each of a feature's few values, or at the two ends of its rows, and whether that differs."""
    name, width, gains = terms.called(feature.feature), float(np.ptp(feature.x)), feature.advantage
    last = len(feature.x) - 1
    shown = range(last + 1) if last < FEW else (0, last)
    lows, highs = gains.interval()
    parts: list[str] = []
    for i in shown:
        low, high = float(lows[i]), float(highs[i])
        where = terms.at(feature.feature, float(feature.x[i]), width)
        gain = terms.change(float(gains.mean[i]), high - low)
        first = f"Where {name} is {where}, {terms.action} changes {terms.target} by {gain}"
        head = f"where it is {where}, by {gain}" if parts else first
        ends = terms.interval(low, high)
        if not parts:
            ends = f"90 % interval {ends}"
        parts.append(f"{head} ({ends}; probability {chance(float(gains.positive[i]))} that it raises it)")
    text = f"{'; '.join(parts)}."
    if last == 0:
        return text
    positive = float(feature.change.positive[0])
    more = float(feature.change.mean[0]) >= 0
    sign = positive if more else 1.0 - positive
    if sign < SURE:
        return f"{text} Whether it depends on {name} is not clear."
    at = terms.at(feature.feature, float(feature.x[-1]), width)
    return f"{text} That the change is {'higher' if more else 'lower'} where {name} is {at} is {sureness(sign)}."


def effects_description(user: NewUser) -> Description:
    """What was found of a followed user: effects, the largest first, interactions, what acting adds, and the noise."""
    treatment = user.treatment() if user.model.takes_action and user.rows else None
    return found_description(user.effects(), treatment, user.model.schema)


def found_description(effects: Effects, treatment: TreatmentEffect | None, schema: Schema) -> Description:
    """The same of effects and of what acting adds, if there is an action."""
    together = resting_together(effects)
    sentences = [
        Sentence(effect_sentence(each, schema, rests=each.covariate not in together), covariates=(each.covariate,))
        for each in effects
    ]
    if together:
        sentences.append(Sentence(rest_sentence(together, schema), covariates=tuple(together)))
    sentences += [
        Sentence(interaction_sentence(each, schema), covariates=each.covariates) for each in effects.interactions
    ]
    if treatment is not None:
        sentences.append(Sentence(without_action(schema)))
        sentences += [Sentence(text) for text in treatment_sentences(treatment, schema)]
    return Description((*sentences, noise_sentence(effects, schema)))


def without_action(schema: Schema) -> str:
    """What effects leave aside where there is an action."""
    return f"All this is for rows without {Terms(schema).action}."


def resting_together(effects: Effects) -> dict[str, Effect]:
    """Covariates of which is said once what rests on other users."""
    others = {effect.covariate: effect for effect in effects if rests_on_others(effect)}
    return others if len(others) > 1 else {}


def rest_sentence(effects: Mapping[str, Effect], schema: Schema) -> str:
    """What several covariates rest on, said once."""
    terms = Terms(schema)
    unread = [terms.called(name) for name, effect in effects.items() if not effect.readable]
    read = {terms.called(name): effect.read for name, effect in effects.items() if effect.readable}
    parts = [f"{NOBODY} {listing(unread, 'or')}"] if unread else []
    if read:
        most = max(read.values())
        each = f" ({listing(read)})" if unread else ""
        parts.append(
            f"for each of {'the others' if unread else 'them'}{each}, the probability that it plays a part of its own "
            f"for this user is {chance(most)}{'' if most < 1.0 - CERTAIN else ' at most'}"
        )
    newest = _of_newest(next(iter(effects.values())))
    return (
        f"What is said of {listing(map(schema.label, effects))} rests mostly on what users share and on what is left "
        f"unexplained{newest}: {'; '.join(parts)}."
    )


def noise_sentence(effects: Effects, schema: Schema) -> Sentence:
    """What is left: a standard deviation in the target's units; and whether neighbouring rows have it in common."""
    size = quantity(effects.noise, schema.unit(schema.target))
    text = f"What remains unexplained varies by about ±{size} from row to row."
    if effects.echo:
        text += (
            f" It is alike in neighbouring rows (correlation {effects.echo:.1f}), so each row says less; the intervals "
            "allow for that."
        )
    return Sentence(text)
