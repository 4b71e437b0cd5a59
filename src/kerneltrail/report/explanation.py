"""What is known of a followed user, in words: how sure the selection is, what was found, and what is left."""

from __future__ import annotations

from kerneltrail.kernels import Composition
from kerneltrail.kernels.phrases import counted
from kerneltrail.report.description import Description, Sentence, noun_of
from kerneltrail.report.effect_words import effects_description, noise_sentence
from kerneltrail.report.group_words import group_description
from kerneltrail.report.terms import chance, sureness
from kerneltrail.trajectory.graph import LearntGraph
from kerneltrail.trajectory.new_user import NewUser

SETTLED = 0.9
"""From this probability on, the next best description is not mentioned."""


def explain(user: NewUser) -> Description:
    """What was found of a followed user, in data units: first what describes the user best and how sure that is.

    Then a sentence for each effect, the largest first; interactions; what acting adds; and what is left unexplained.
    Before any row it is what is typical of the pilot users.
    """
    if not user.rows:
        return _before_any_row(user)
    return Description((Sentence(best_description(user)), *effects_description(user), *_limits(user)))


def _limits(user: NewUser) -> tuple[Sentence, ...]:
    """What was left out to keep updates short, if anything was."""
    if not user.limited:
        return ()
    many = counted(len(user.limited), "description")
    total = len(user.model.selectable)
    return (Sentence(f"To keep updates short, {many} of {total} were not fitted anew to the newest rows."),)


def _before_any_row(user: NewUser) -> Description:
    lead = Sentence(f"No rows of user {user.name} have been seen yet. Typical of the pilot users is this:")
    typical = group_description(user.model)
    if typical:
        return Description((lead, *typical, noise_sentence(user.effects(), user.model.schema)))
    if user.model.mean is not None:
        return Description((lead, *effects_description(user)))
    return Description((Sentence(f"No rows of user {user.name} have been seen yet."),))


def best_description(user: NewUser) -> str:
    """How many rows there are, what describes them best, and how sure that is."""
    rows = "1 row" if user.rows == 1 else f"{user.rows} rows"
    best, *others = user.probabilities.items()
    beside = besides_shared(user.model, user.composition)
    head = f"After {rows}, user {user.name} is described best by {_noun(user, user.composition)}{beside}."
    if user.selection == "greedy":
        return f"{head} It was selected step by step, so there is no probability to say how sure that is."
    if not others:
        return f"{head} The pilot users had no other description."
    of = f"Of the {len(user.probabilities)} descriptions that the pilot users had, this one is"
    if best[1] >= SETTLED:
        return f"{head} {of} {sureness(best[1])}."
    composition, probability = others[0]
    return (
        f"{head} {of} the most probable ({chance(best[1])}); next comes {_noun(user, composition)} "
        f"({chance(probability)}). More rows may change that."
    )


def besides_shared(model: LearntGraph, composition: Composition) -> str:
    """What a kernel stands beside, to be added to its noun; noise alone says it by itself."""
    return ", besides what users share" if model.mean is not None and composition else ""


def _noun(user: NewUser, composition: Composition) -> str:
    fitted = user.node_posterior(composition).fit.hyperparameters
    return noun_of(fitted, user.model.schema, user.model.scaler, shared=user.model.mean is not None)
