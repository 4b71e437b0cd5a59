"""How the action of a cohort enters a reward model, in a sentence or two for whoever fits it."""

from __future__ import annotations

from kerneltrail.data import Cohort
from kerneltrail.data.intake_report import row_count
from kerneltrail.gp import Reward
from kerneltrail.gp.population import centred_where_logged


def assignment_lines(cohort: Cohort, reward: Reward | None) -> list[str]:
    """Which coding of the action is used and why, and what rows do at which nobody could act; none without an action.

    `reward` is the reward model that was asked for, or None.
    """
    schema = cohort.schema
    if schema.action is None:
        return []
    if reward is None:
        asking = "a reward model (--features, or reward: in the configuration) asks what it adds"
        return [f"{schema.action} is read but not used; {asking}."]
    coded = centred_where_logged(reward, cohort.raw)
    if coded.typical is not None:
        how = (
            f"What {schema.action} adds is learnt from {schema.action} less its probability (centred coding), as "
            f"{schema.probability} is given, so that a wrong baseline does not leak into it. Typical probability: "
            f"{coded.typical:.2f}."
        )
    else:
        why = (
            "as the configuration asks"
            if reward.coding == "plain"
            else "as no column of its probability is given (--probability)"
        )
        how = f"What {schema.action} adds is learnt from 0 and 1 as they are (plain coding), {why}."
    return [f"{how}{_availability(cohort)}"]


def _availability(cohort: Cohort) -> str:
    """What was done with rows at which nobody could act; empty where nothing is known of them."""
    if cohort.schema.availability is None:
        return ""
    if cohort.schema.available_only:
        dropped = sum(cohort.report.unavailable.values())
        return f" Rows at which nobody could act were dropped ({row_count(dropped)})."
    away = sum(int((user.availability == 0).sum()) for user in cohort.raw if user.availability is not None)
    return f" Rows at which nobody could act ({away}) inform the baseline only."
